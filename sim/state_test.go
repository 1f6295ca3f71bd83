package sim_test

import (
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim"
)

// stateful is a world of three nodes in which two clients write, and messages
// are held.
func stateful(t *testing.T, values ...string) *sim.World {
	t.Helper()
	w := sim.New(sim.Config{
		Link:      func(_, _ quorum.NodeID) sim.Link { return sim.Link{Delay: sim.Constant(0)} },
		Sync:      func(quorum.NodeID) sim.Delay { return sim.Constant(0) },
		Nearest:   func(_ *sim.Process, nodes []quorum.NodeID) []quorum.NodeID { return nodes },
		Intercept: func(sim.Transit) sim.Fate { return sim.Hold },
		Memory:    sim.NewMemory(func(env.Message) bool { return false }, func(env.Message) bool { return false }),
	})
	t.Cleanup(w.Close)
	c, err := quorum.NewConfiguration(0, []quorum.NodeID{"a", "b", "c"}, quorum.System{})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range c.Members() {
		_, err := w.AddNode(id, func(p *sim.Process) (sim.Stepper, error) {
			n, err := replica.New(replica.Config{Cluster: "c", Self: p.ID(), Configurations: quorum.Configurations{c}, MaxValue: 10}, p.Disk())
			return struct{ sim.Stepper }{n}, err // without its tasks
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, value := range values {
		p := w.AddClient(quorum.NodeID([]string{"p", "q"}[i]))
		p.Scope(0).Start(func(e env.Env) error {
			_, err := (&abd.Registers{Known: abd.Fixed(c), MaxValue: 10}).Write(e, abd.Operation{Key: "k", Value: []byte(value)})
			return err
		})
	}
	w.Settle()
	return w
}

// release lets the held message between two processes arrive.
func release(t *testing.T, w *sim.World, from, to quorum.NodeID) {
	t.Helper()
	for i, h := range w.Held() {
		if h.From.ID() == from && h.To.ID() == to {
			w.Release(i)
			w.Settle()
			return
		}
	}
	t.Fatalf("nothing is held from %s to %s", from, to)
}

// TestState: the same, brought about in another order, is the same state; and
// what goes on otherwise isn't.
func TestState(t *testing.T) {
	first, second := stateful(t, "x", "y"), stateful(t, "x", "y")
	if first.State() != second.State() {
		t.Error("two beginnings differ")
	}
	release(t, first, "p", "a")
	release(t, first, "q", "b")
	release(t, second, "q", "b")
	if first.State() == second.State() {
		t.Error("a request has arrived in one of two worlds, and they are the same")
	}
	release(t, second, "p", "a")
	if first.State() != second.State() {
		t.Error("the same requests have arrived in another order, and that shows")
	}
	release(t, first, "a", "p")
	release(t, first, "b", "q")
	release(t, second, "a", "p")
	if first.State() == second.State() {
		t.Error("an answer has arrived in one of two worlds, and they are the same")
	}
	release(t, second, "b", "q")
	if first.State() != second.State() {
		t.Error("the same answers have arrived in another order, and that shows")
	}
	if first.State(1) == first.State() || first.State(1) == first.State(2) {
		t.Error("what the driver knows doesn't count")
	}
}

// TestStateOfDisks: what nodes hold, and whether it is durable.
func TestStateOfDisks(t *testing.T) {
	written := func(stall bool) *sim.World {
		w := stateful(t, "x")
		for _, id := range []quorum.NodeID{"a", "b"} {
			release(t, w, "p", id)
			release(t, w, id, "p")
		}
		if stall {
			w.Process("a").Stall()
		}
		release(t, w, "p", "a")
		for len(w.Held()) > 0 {
			w.Discard(0)
		}
		return w
	}
	durable, stalled := written(false), written(true)
	if durable.State() == stalled.State() {
		t.Error("a record that isn't durable counts as one that is")
	}
	stalled.Process("a").Unstall()
	stalled.Settle()
	for len(stalled.Held()) > 0 {
		stalled.Discard(0)
	}
	if durable.State() != stalled.State() {
		t.Error("that a record became durable later shows")
	}
}

// TestStateOfAHungDisk: what can't become durable any more is the same in whatever
// order it was stored, and so is what waits for that.
func TestStateOfAHungDisk(t *testing.T) {
	written := func(stop func(*sim.Process), order ...quorum.NodeID) uint64 {
		w := stateful(t, "x", "y")
		for _, client := range order {
			for _, id := range []quorum.NodeID{"a", "b"} {
				release(t, w, client, id)
				release(t, w, id, client)
			}
		}
		stop(w.Process("a"))
		for _, client := range order {
			release(t, w, client, "a")
		}
		for len(w.Held()) > 0 {
			w.Discard(0)
		}
		return w.State()
	}
	if written((*sim.Process).Hang, "p", "q") != written((*sim.Process).Hang, "q", "p") {
		t.Error("on a disk that hangs the order shows")
	}
	if written((*sim.Process).Stall, "p", "q") == written((*sim.Process).Stall, "q", "p") {
		t.Error("on a disk that may go on the order doesn't show")
	}
}
