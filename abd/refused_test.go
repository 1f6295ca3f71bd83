package abd_test

import (
	"errors"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
)

// refusing is a node that answers gets, and refuses puts.
type refusing struct{}

func (refusing) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	var answer env.Message = &env.Refused{Reason: env.ReasonFull}
	if _, ok := m.(*abd.Get); ok {
		answer = &abd.GetAck{}
	}
	return append(out, env.Out{To: from, Message: answer}), nil
}

// TestRefusedByAll: a write that every member refused wasn't applied, unless
// one of them has another copy of it on its way: because what was asked was
// lost with the connection, and asked again.
func TestRefusedByAll(t *testing.T) {
	for name, c := range map[string]struct {
		restart bool
		want    abd.Effect
	}{
		"once":                        {false, abd.NotApplied},
		"asked again after a restart": {true, abd.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			holdPuts := quorum.NodeID("b")
			w := sim.New(sim.Config{Intercept: func(m sim.Transit) sim.Fate {
				if _, put := m.Message.(*abd.Put); put && m.To.ID() == holdPuts {
					return sim.Hold
				}
				return sim.Pass
			}})
			defer w.Close()
			boot := func(*sim.Process) (sim.Stepper, error) { return refusing{}, nil }
			members := []quorum.NodeID{"a", "b"}
			for _, id := range members {
				if _, err := w.AddNode(id, boot); err != nil {
					t.Fatal(err)
				}
			}
			// A write quorum is any one member, so that nothing is decided
			// before the second one refuses, too.
			system, err := quorum.ParseSystem("get=2,put=1")
			if err != nil {
				t.Fatal(err)
			}
			config, err := quorum.NewConfiguration(0, members, system)
			if err != nil {
				t.Fatal(err)
			}
			r := &abd.Registers{Known: abd.Fixed(config), MaxValue: 10}
			s := w.AddClient("p").Scope(0)
			s.Start(func(e env.Env) error {
				_, err := r.Write(e, abd.Operation{Key: "k", Value: []byte("x")})
				return err
			})
			w.RunFor(20 * time.Millisecond) // a has refused
			if c.restart {
				holdPuts = "a"
				a := w.Process("a")
				a.Crash()
				if err := a.Restart(); err != nil {
					t.Fatal(err)
				}
			}
			w.Release(0) // to b
			if err := w.Wait(time.Minute, s); err != nil {
				t.Fatal(err)
			}
			q, ok := errors.AsType[*abd.QuorumError](s.Err())
			if !ok || q.Effect != c.want {
				t.Errorf("the write ended with %v, want effect %v", s.Err(), c.want)
			}
		})
	}
}
