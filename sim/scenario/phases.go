package scenario

import (
	"errors"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
)

// phases are the two phases of every algorithm of the ABD family, in their
// plainest form: what those algorithms here are built from that aren't abd's
// own. A node that refuses counts as silent, so that a phase for which too
// many refuse ends with its scope.
type phases struct{ configurations quorum.Configurations }

// get asks all members for their records until a read quorum has answered, and
// returns the largest.
func (p phases) get(e env.Env, key abd.Key) (abd.Record, error) {
	var answered quorum.Tally
	answered.Begin(p.configurations)
	var largest abd.Record
	err := e.Ask(p.configurations.Members(), &abd.Get{Key: key}, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		if ack, ok := answer.(*abd.GetAck); ok {
			if largest.Tag.Less(ack.Record.Tag) {
				largest = ack.Record
			}
			answered.Add(from)
		}
		return answered.HasRead()
	})
	return largest, ended(err, "get", abd.NotApplied)
}

// put sends a record to all members until a write quorum has stored it.
func (p phases) put(e env.Env, key abd.Key, r abd.Record) error {
	var answered quorum.Tally
	answered.Begin(p.configurations)
	err := e.Ask(p.configurations.Members(), &abd.Put{Key: key, Record: r}, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		if _, ok := answer.(*abd.PutAck); ok {
			answered.Add(from)
		}
		return answered.HasWrite()
	})
	return ended(err, "put", abd.Unknown)
}

// read is a get phase, and a put phase of what it found.
func (p phases) read(e env.Env, key abd.Key) (abd.Record, error) {
	r, err := p.get(e, key)
	if err != nil || r.Tag.IsZero() {
		return r, err
	}
	return r, p.put(e, key, r)
}

// ended puts the end of a scope into the words that Client asks for.
func ended(err error, phase string, effect abd.Effect) error {
	if u, ok := errors.AsType[*env.Unfinished](err); ok {
		return &abd.QuorumError{Phase: phase, Cause: u.Cause, Effect: effect}
	}
	return err
}
