package repair

import (
	"atoll/abd"
	"atoll/env"
	"atoll/synod"
)

// Votes are a node's votes on instances that travel, of which each is about a key:
// a *synod.Acceptor.
type Votes interface {
	Votes(after synod.Instance, limit int) (votes []synod.Carried, more bool, at env.Position, err error)
	Merge(synod.Carried) (env.Position, error)
}

// KeyOf returns the key that an instance which travels is about.
func KeyOf(i synod.Instance) abd.Key { return abd.Key(i[len(synod.TravellingPrefix):]) }

// eachVote calls each with the node's votes on keys in a range, in order, until it
// returns false. It returns the position of all that they show. A vote that can't
// be read is an error: to leave it out would say that there is none.
func (r *Replica) eachVote(in Range, each func(synod.Carried) bool) (at env.Position, err error) {
	if r.votes == nil {
		return 0, nil
	}
	for after, more := synod.TravellingPrefix+synod.Instance(in.After), true; more; {
		var votes []synod.Carried
		var pos env.Position
		if votes, more, pos, err = r.votes.Votes(after, MaxVotes); err != nil {
			return 0, err
		}
		at = max(at, pos)
		for _, c := range votes {
			if !in.Has(KeyOf(c.Instance)) || !each(c) {
				return at, nil
			}
			after = c.Instance
		}
	}
	return at, nil
}

// addVotes adds the votes on the keys up to where an answer of so many bytes ends. When
// they are too many, or too large, the answer ends earlier; one is always possible.
func (r *Replica) addVotes(missing *Missing, in Range, size int) (at env.Position, err error) {
	if missing.More {
		in.To = missing.Last
	}
	return r.eachVote(in, func(c synod.Carried) bool {
		n := len(missing.Votes)
		size += len(c.Instance) + len(c.Vote.Value) + entryOverhead
		if n == 0 || n < MaxVotes && size <= maxAnswer {
			missing.Votes = append(missing.Votes, c)
			return true
		}
		missing.More, missing.Last = true, KeyOf(missing.Votes[n-1].Instance)
		for len(missing.Entries) > 0 && missing.Entries[len(missing.Entries)-1].Key > missing.Last {
			missing.Entries = missing.Entries[:len(missing.Entries)-1]
		}
		return false
	})
}

// TakeVotes takes votes that come from the configuration before, each if its ballot
// is higher than that of the vote which is there (R4.3). For the error see
// synod.Acceptor.Merge.
func (r *Replica) TakeVotes(votes []synod.Carried) error {
	for _, c := range votes {
		if r.votes == nil {
			return &env.Refused{Reason: env.ReasonBadRequest, Text: "this node takes no votes"}
		}
		if _, err := r.votes.Merge(c); err != nil {
			return err
		}
	}
	return nil
}
