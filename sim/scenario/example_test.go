package scenario_test

import (
	"errors"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim"
	"atoll/sim/scenario"
)

// Regular keeps registers that are regular, and not atomic: a read returns the
// newest value that a read quorum has, and tells nobody.
type Regular struct{}

func (Regular) Name() string  { return "regular" }
func (Regular) About() string { return "a read returns the newest value of a read quorum" }

func (Regular) Traits() scenario.Traits {
	return scenario.Traits{
		Tags:        true, // check the tags, too
		ReadRounds:  1,
		WriteRounds: 2,
		Needs: func(request env.Message) sim.Need {
			if _, ok := request.(*Keep); ok {
				return sim.NeedWrite
			}
			return sim.NeedRead
		},
	}
}

// The messages: what clients ask of nodes, and what these answer.
type (
	Look struct{ Key abd.Key }
	Seen struct{ Record abd.Record }
	Keep struct {
		Key    abd.Key
		Record abd.Record
	}
	Kept struct{}
)

func (*Look) Message() {}
func (*Seen) Message() {}
func (*Keep) Message() {}
func (*Kept) Message() {}

// regularNode is the half that runs on a node: a step, without clock or network.
type regularNode struct{ store replica.Store }

func (Regular) Node(_ scenario.Cluster, _ quorum.NodeID, store replica.Store) (sim.Stepper, error) {
	return &regularNode{store}, nil
}

// Step appends what is to be sent to out. After is the position in the journal
// that must be durable before a message may leave: of what the step wrote, and
// of what it read.
func (n *regularNode) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	var answer env.Message
	var after env.Position
	var err error
	switch m := m.(type) {
	case *Look:
		var seen Seen
		seen.Record, after, err = n.store.Load(m.Key, true)
		answer = &seen
	case *Keep:
		var old abd.Record
		old, after, err = n.store.Load(m.Key, false)
		if err == nil && old.Tag.Less(m.Record.Tag) {
			after, err = n.store.Store(m.Key, m.Record)
		}
		answer = &Kept{}
	default:
		return out, nil
	}
	if errors.Is(err, abd.ErrDamaged) || errors.Is(err, abd.ErrFull) {
		return out, nil // whoever can't answer truly is silent
	}
	return append(out, env.Out{To: from, Message: answer, After: after}), err
}

// regularClient is the half that runs operations: straight code over Ask.
type regularClient struct{ members quorum.Configurations }

func (Regular) Client(c scenario.Cluster) scenario.Client { return &regularClient{c.Configurations} }

func (c *regularClient) Read(e env.Env, key abd.Key) (abd.Record, error) { return c.look(e, key) }

func (c *regularClient) Write(e env.Env, op abd.Operation) (abd.Operation, error) {
	if op.Tag.IsZero() { // else it is tried again, and keeps its tag
		if op.ID.IsZero() {
			op.ID = e.ID()
		}
		newest, err := c.look(e, op.Key)
		if err != nil {
			return op, err
		}
		if op.Tag, err = newest.Tag.Next(op.ID); err != nil {
			return op, err
		}
	}
	record := abd.Record{Tag: op.Tag, Deleted: op.Delete}
	if !op.Delete {
		record.Value = op.Value
	}
	op.Sent = true
	return op, c.keep(e, op.Key, record)
}

// look returns the newest record that a read quorum has.
func (c *regularClient) look(e env.Env, key abd.Key) (abd.Record, error) {
	var newest abd.Record
	var answered quorum.Tally
	answered.Begin(c.members)
	err := e.Ask(c.members.Members(), &Look{key}, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		if seen, ok := answer.(*Seen); ok {
			if newest.Tag.Less(seen.Record.Tag) {
				newest = seen.Record
			}
			answered.Add(from)
		}
		return answered.HasRead()
	})
	if err != nil { // the client gave up: nothing was written
		err = &abd.QuorumError{Phase: "look", Cause: err, Effect: abd.NotApplied}
	}
	return newest, err
}

// keep stores a record at a write quorum.
func (c *regularClient) keep(e env.Env, key abd.Key, r abd.Record) error {
	var answered quorum.Tally
	answered.Begin(c.members)
	err := e.Ask(c.members.Members(), &Keep{key, r}, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		if _, ok := answer.(*Kept); ok {
			answered.Add(from)
		}
		return answered.HasWrite()
	})
	if err != nil { // some nodes may have it
		err = &abd.QuorumError{Phase: "keep", Cause: err, Effect: abd.Unknown}
	}
	return err
}
