package synod

import (
	"bytes"
	"fmt"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
)

// View is what an acceptor needs of a node's store: records, as bytes, by
// instance.
type View interface {
	// Load returns a record as it was saved, and the position that it stands at;
	// no bytes if there is none, and the position of what removed it, as far as
	// that is known. The bytes must not be changed.
	Load(Instance) (record []byte, at env.Position)
	// Save appends a record and returns the position behind it; no bytes remove
	// the one that is there. It is visible at once, and durable when the journal is.
	// The bytes are copied. An error that abd.Refusal knows refuses the request;
	// any other one means that the node can't go on.
	Save(i Instance, record []byte) (env.Position, error)
	// Scan calls each with every instance that has a record, begins with prefix and
	// comes after after, in order, until each returns false.
	Scan(prefix string, after Instance, each func(Instance) bool)
}

// Guard is what an acceptor needs to know of the configurations.
type Guard interface {
	// Votes reports whether the node votes on an instance under ballots of
	// configuration k: that is installed here, it isn't sealed, and the node is a
	// member of it (R3).
	Votes(i Instance, k quorum.ConfigIndex) bool
	// Tell returns what an answer says of configurations to who knows as much as
	// a horizon says, and the position of the record that says so.
	Tell(asker quorum.Horizon) (Told, env.Position)
}

// Acceptor is a member's half of the protocol: a deterministic step over a View.
// It is not safe for concurrent use.
type Acceptor struct {
	view  View
	guard Guard
	rules Rules
}

// NewAcceptor returns an acceptor over view.
func NewAcceptor(view View, guard Guard, rules Rules) *Acceptor {
	return &Acceptor{view: view, guard: guard, rules: rules}
}

// Step acts on a Prepare or an Accept and appends the answer to out. An error
// means that the node's store is broken and the node must stop.
func (a *Acceptor) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	var (
		answer env.Message
		after  env.Position
		err    error
	)
	switch m := m.(type) {
	case *Prepare:
		answer, after, err = a.prepare(m)
	case *Accept:
		answer, after, err = a.accept(m)
	default:
		return out, fmt.Errorf("synod: no step for %T", m)
	}
	if err != nil {
		if answer = abd.Refusal(err); answer == nil {
			return out, err
		}
		after = 0
	}
	if a.rules.RevealUnsynced {
		after = 0
	}
	return append(out, env.Out{To: from, Message: answer, After: after}), nil
}

// prepare promises to take nothing below a ballot (R3), unless a larger one was
// promised. A copy of a Prepare whose promise was given already is answered once
// more: that its ballot is nobody else's makes it the same attempt (R1).
func (a *Acceptor) prepare(m *Prepare) (env.Message, env.Position, error) {
	if err := check(m.Instance, m.Ballot); err != nil {
		return nil, 0, err
	}
	told, toldAt := a.guard.Tell(m.Horizon)
	if !a.votes(m.Instance, m.Ballot) {
		return &Closed{told}, toldAt, nil
	}
	r, at, err := a.load(m.Instance)
	switch {
	case err != nil:
		return nil, 0, err
	case m.Ballot.Less(r.floor()) && !a.rules.PromiseBackwards:
		return &Rejected{m.Ballot, r.floor(), told}, max(at, toldAt), nil
	}
	if r.Promised != m.Ballot && !a.rules.PromiseUnsaved {
		r.Promised = m.Ballot
		if at, err = a.save(m.Instance, r); err != nil {
			return nil, 0, err
		}
	}
	return &Promise{m.Ballot, r.Accepted, told}, max(at, toldAt), nil
}

// accept accepts a value, unless a larger ballot was promised (R3). To accept
// under a ballot promises it.
func (a *Acceptor) accept(m *Accept) (env.Message, env.Position, error) {
	err := check(m.Instance, m.Ballot)
	if err == nil {
		err = CheckValue(m.Value)
	}
	if err != nil {
		return nil, 0, err
	}
	told, toldAt := a.guard.Tell(m.Horizon)
	if !a.votes(m.Instance, m.Ballot) {
		return &Closed{told}, toldAt, nil
	}
	r, at, err := a.load(m.Instance)
	switch {
	case err != nil:
		return nil, 0, err
	case m.Ballot.Less(r.floor()) && !a.rules.AcceptBelowPromise:
		return &Rejected{m.Ballot, r.floor(), told}, max(at, toldAt), nil
	case m.Ballot != r.Accepted.Ballot:
		r = Record{Promised: m.Ballot, Accepted: Vote{m.Ballot, m.Value}}
		if at, err = a.save(m.Instance, r); err != nil {
			return nil, 0, err
		}
	case !bytes.Equal(m.Value, r.Accepted.Value):
		return nil, 0, &env.Refused{Reason: env.ReasonBadRequest, Text: fmt.Sprintf("another value was accepted under ballot %v", m.Ballot)}
	}
	return &Accepted{m.Ballot, told}, max(at, toldAt), nil
}

func (a *Acceptor) votes(i Instance, b Ballot) bool {
	return a.guard.Votes(i, b.Index) || a.rules.VoteWhenClosed
}

// check returns the refusal of a request that makes no sense.
func check(i Instance, b Ballot) error {
	if b.Round == 0 || b.ID.IsZero() {
		return &env.Refused{Reason: env.ReasonBadRequest, Text: "a ballot has a round and an id"}
	}
	return i.Check()
}

// Record returns what the acceptor knows of an instance, and the position that
// it stands at: what shows it must wait until the journal is durable up to there.
// The error is a *DamagedError.
func (a *Acceptor) Record(i Instance) (Record, env.Position, error) { return a.load(i) }

// Forget removes what the acceptor knows of an instance, readable or not. That
// is right only where its guard will never again let it vote on the instance:
// once a later configuration is installed than the one that decided it.
func (a *Acceptor) Forget(i Instance) error {
	if b, _ := a.view.Load(i); len(b) == 0 {
		return nil
	}
	_, err := a.view.Save(i, nil)
	return err
}
