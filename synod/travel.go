package synod

import "atoll/env"

// Carried is a vote on its way into the next configuration.
type Carried struct {
	Instance Instance
	Vote     Vote
}

// Votes returns the acceptor's votes on instances that travel, in order, from
// the first one after an instance on, at most limit of them; whether there are
// more; and the position of all that they show. A record that can't be read is
// an error, a *DamagedError: to leave its vote out would say that there is none,
// and it may be the one that was chosen.
//
// R4: a member that was fenced hands over its votes, and the promises needn't
// travel. Ballots of the next configuration are larger than all of this one,
// and this one takes no more of its own.
func (a *Acceptor) Votes(after Instance, limit int) (votes []Carried, more bool, at env.Position, err error) {
	a.view.Scan(TravellingPrefix, after, func(i Instance) bool {
		var r Record
		var pos env.Position
		if r, pos, err = a.load(i); err != nil {
			if a.rules.EmptyVotes {
				err = nil
				return true
			}
			return false
		}
		at = max(at, pos)
		if r.Accepted.IsZero() {
			return true
		}
		if more = len(votes) == limit; more {
			return false
		}
		votes = append(votes, Carried{i, r.Accepted})
		return true
	})
	if err != nil {
		return nil, false, 0, err
	}
	return votes, more, at, nil
}

// Merge takes a vote that comes from the configuration before. It is taken only
// if its ballot is higher than that of the vote which is there (R4): installs
// arrive late, and more than once, and by then the node may have accepted
// something else, which is based on what was installed. It returns the position
// of the vote that then is there.
//
// The error is one that abd.Refusal knows, a *DamagedError among them, or means
// that the node can't go on.
func (a *Acceptor) Merge(c Carried) (env.Position, error) {
	if !c.Instance.Travels() || c.Vote.IsZero() {
		return 0, &env.Refused{Reason: env.ReasonBadRequest, Text: "no vote that travels"}
	}
	if err := c.Instance.Check(); err != nil {
		return 0, err
	}
	if err := CheckValue(c.Vote.Value); err != nil {
		return 0, err
	}
	r, at, err := a.load(c.Instance)
	switch {
	case err != nil:
		return 0, err
	case !r.Accepted.Ballot.Less(c.Vote.Ballot) && !a.rules.MergeOverwrites:
		return at, nil
	}
	r.Accepted = c.Vote
	return a.save(c.Instance, r)
}
