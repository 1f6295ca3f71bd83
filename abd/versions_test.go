package abd_test

import (
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim"
)

// earlier is a node of a version that knows of no limit for values: its decoder
// skips what stands behind the fields that it has.
type earlier struct{ sim.Stepper }

func (n earlier) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	if g, ok := m.(*abd.Get); ok {
		m = &abd.Get{Key: g.Key, TagOnly: g.TagOnly}
	}
	return n.Stepper.Step(from, m, out)
}

// TestTwoVersions: a large value is read from whatever mix of nodes there is,
// also by a reader that asks for it as earlier ones did.
func TestTwoVersions(t *testing.T) {
	members := []quorum.NodeID{"a", "b", "c"}
	c, err := quorum.NewConfiguration(0, members, quorum.System{})
	if err != nil {
		t.Fatal(err)
	}
	for olds := range len(members) + 1 {
		w := sim.New(sim.Config{Seed: uint64(olds)})
		defer w.Close()
		registers := &abd.Registers{Known: abd.Fixed(c), MaxValue: 100, Inline: 4}
		for i, id := range members {
			_, err := w.AddNode(id, func(p *sim.Process) (sim.Stepper, error) {
				n, err := replica.New(replica.Config{Cluster: "mixed", Self: id, Configurations: registers.Known.Map().Active(), MaxValue: 100}, p.Disk())
				if err != nil || i >= olds {
					return n, err
				}
				return earlier{n}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		const value = "a large value"
		scope := w.AddClient("p").Scope(time.Minute)
		scope.Start(func(e env.Env) error {
			if _, err := registers.Write(e, abd.Operation{Key: "k", Value: []byte(value)}); err != nil {
				return err
			}
			whole := &abd.Registers{Known: registers.Known, MaxValue: 100, Inline: 1 << 30}
			for range 10 {
				for _, r := range []*abd.Registers{registers, whole} {
					if record, err := r.Read(e, "k"); err != nil || string(record.Value) != value {
						t.Errorf("with %d nodes of an earlier version: read %q, %v", olds, record.Value, err)
					}
				}
				err := e.Ask(members, &abd.Get{Key: "k"}, func(_ env.Conversation, from quorum.NodeID, m env.Message) bool {
					ack, ok := m.(*abd.GetAck)
					if ok && ack.Omitted > 0 {
						t.Errorf("%s has left out a value for which there was no limit", from)
					}
					return ok
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err := w.Wait(2*time.Minute, scope); err != nil || scope.Err() != nil {
			t.Fatal(err, scope.Err())
		}
	}
}

// TestOmits: a value is left out if it is larger than the limit of a get, and
// its size is said.
func TestOmits(t *testing.T) {
	m := newMemory()
	r := abd.NewReplica(m, 100, abd.Rules{})
	step(t, r, &abd.Put{Key: "k", Record: record(1, "four")})
	for _, test := range []struct {
		get     abd.Get
		value   string
		omitted int
	}{
		{abd.Get{Key: "k"}, "four", 0},
		{abd.Get{Key: "k", ValueLimit: 4}, "four", 0},
		{abd.Get{Key: "k", ValueLimit: 3}, "", 4},
		{abd.Get{Key: "k", ValueLimit: 3, TagOnly: true}, "", 0},
		{abd.Get{Key: "other", ValueLimit: 3}, "", 0},
	} {
		ack := step(t, r, &test.get).Message.(*abd.GetAck)
		if string(ack.Record.Value) != test.value || ack.Omitted != test.omitted || test.get.Key == "k" && ack.Record.Tag != record(1, "").Tag {
			t.Errorf("%+v: got %+v, want %q and %d omitted", test.get, ack, test.value, test.omitted)
		}
	}
}

// stingy is a node that leaves values out though it was asked for all of them.
type stingy struct{ sim.Stepper }

func (n stingy) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	first := len(out)
	out, err := n.Stepper.Step(from, m, out)
	for i := range out[first:] {
		if ack, ok := out[first+i].Message.(*abd.GetAck); ok && len(ack.Record.Value) > 0 {
			short := *ack
			short.Record.Value, short.Omitted = nil, len(ack.Record.Value)
			out[first+i].Message = &short
		}
	}
	return out, err
}

// TestValuesThatAreNeverSent: an answer without the value that was asked for is
// none, even if a read quorum gives it.
func TestValuesThatAreNeverSent(t *testing.T) {
	c, err := quorum.NewConfiguration(0, []quorum.NodeID{"a", "b", "c"}, quorum.System{})
	if err != nil {
		t.Fatal(err)
	}
	registers := &abd.Registers{Known: abd.Fixed(c), MaxValue: 100, Inline: 4}
	for seed := range uint64(10) {
		w := sim.New(sim.Config{Seed: seed})
		defer w.Close()
		for _, id := range c.Members() {
			_, err := w.AddNode(id, func(p *sim.Process) (sim.Stepper, error) {
				n, err := replica.New(replica.Config{Cluster: "stingy", Self: id, Configurations: registers.Known.Map().Active(), MaxValue: 100}, p.Disk())
				if err != nil || id == "c" {
					return n, err
				}
				return stingy{n}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		scope := w.AddClient("p").Scope(time.Minute)
		scope.Start(func(e env.Env) error {
			if _, err := registers.Write(e, abd.Operation{Key: "k", Value: []byte("a large value")}); err != nil {
				return err
			}
			for range 5 {
				if r, err := registers.Read(e, "k"); err != nil || string(r.Value) != "a large value" {
					t.Errorf("seed %d: read %q, %v", seed, r.Value, err)
				}
			}
			return nil
		})
		if err := w.Wait(2*time.Minute, scope); err != nil || scope.Err() != nil {
			t.Fatal(err, scope.Err())
		}
	}
}
