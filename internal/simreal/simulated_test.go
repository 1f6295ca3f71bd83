package simreal_test

import (
	"fmt"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
	"atoll/sim/scenario"
)

// simulated is a simulated world.
type simulated struct {
	w       *sim.World
	counted *counts
	clients []scenario.Client
}

func newSimulated(t *testing.T, s setting) *simulated {
	members := make([]quorum.NodeID, s.members)
	for i := range members {
		members[i] = quorum.NodeID(fmt.Sprintf("n%d", i))
	}
	system, err := quorum.ParseSystem(s.quorum)
	if err != nil {
		t.Fatal(err)
	}
	c, err := quorum.NewConfiguration(0, members, system)
	if err != nil {
		t.Fatal(err)
	}
	told := scenario.Cluster{ID: "simulated", Configurations: quorum.Configurations{c}, MaxValue: abd.DefaultMaxValue}
	w := &simulated{counted: newCounts()}
	w.w = sim.New(sim.Config{
		Seed:  1,
		Hedge: patience,
		Link: func(_, _ quorum.NodeID) sim.Link {
			return sim.Link{Delay: sim.Uniform(time.Millisecond, 5*time.Millisecond), Ordered: true}
		},
		Observe: w.observe,
	})
	t.Cleanup(w.w.Close)
	for _, id := range members {
		boot := func(p *sim.Process) (sim.Stepper, error) { return s.algorithm.Node(told, p.ID(), p.Disk()) }
		if _, err := w.w.AddNode(id, boot); err != nil {
			t.Fatal(err)
		}
	}
	for i := range clients {
		w.w.AddClient(clientName(i))
		w.clients = append(w.clients, s.algorithm.Client(told))
	}
	return w
}

func clientName(i int) quorum.NodeID { return quorum.NodeID(fmt.Sprintf("p%d", i)) }

func (w *simulated) counts() *counts { return w.counted }

// observe counts what was sent to nodes, and what has come back: answers that
// come too late for their conversation too.
func (w *simulated) observe(o sim.Observation) {
	for i := range clients {
		switch {
		case o.What == sim.Sent && !o.Answer && o.From.ID() == clientName(i):
			w.counted.count(exchange{client: i, node: o.To.ID(), conversation: o.Conversation}, o.Message)
		case (o.What == sim.Arrived || o.What == sim.ArrivedTooLate) && o.Answer && o.To.ID() == clientName(i):
			w.counted.count(exchange{client: i, node: o.From.ID(), conversation: o.Conversation, answer: true}, o.Message)
		}
	}
}

func (w *simulated) run(client int, f func(env.Env, scenario.Client) error) error {
	s := w.w.Process(clientName(client)).Scope(0)
	s.Start(func(e env.Env) error { return f(&counting{e, w.counted}, w.clients[client]) })
	if err := w.w.Wait(time.Minute, s); err != nil {
		return err
	}
	w.w.RunFor(time.Second) // until it is silent
	return s.Err()
}
