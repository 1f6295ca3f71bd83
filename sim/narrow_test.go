package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
)

// First copies reach exactly a minimal quorum, every one of them now and then,
// and later copies reach everybody.
func TestNarrow(t *testing.T) {
	for _, system := range []string{"majority", "get=2,put=5", "get=5,put=2", "grid=2x3", "weights=n0:3,n1:2,n2:1,n3:1,n4:1,n5:1"} {
		t.Run(system, func(t *testing.T) {
			c := configuration(t, system, 6)
			heard := make(map[env.Message][]quorum.NodeID)
			w := newWorld(t, sim.Config{Seed: 3, Observe: func(o sim.Observation) {
				if o.What == sim.Arrived && !o.Answer {
					heard[o.Message] = append(heard[o.Message], o.To.ID())
				}
			}})
			registers := &abd.Registers{Known: abd.Fixed(c), MaxValue: 10}
			addMembers(t, w, registers)
			w.Narrow(func(_ *sim.Process, req env.Message) (quorum.Configurations, sim.Need) {
				return registers.Known.Map().Active(), sim.Needs(req)
			})
			s := start(w.AddClient("p"), func(e env.Env) error {
				for i := range 200 {
					if _, err := registers.Write(e, abd.Operation{Key: "k", Value: fmt.Append(nil, i)}); err != nil {
						return err
					}
				}
				return nil
			})
			if err := w.Wait(time.Hour, s); err != nil || s.Err() != nil {
				t.Fatal(err, s.Err())
			}
			seen := make(map[string]bool)
			for m, by := range heard {
				is := c.IsRead
				switch m.(type) {
				case *abd.Put:
					is = c.IsWrite
				case *abd.Get:
				default:
					continue // confirmed, or said among nodes
				}
				slices.Sort(by)
				if !minimal(c, by, is) {
					t.Errorf("%T was heard by %v, which isn't a minimal quorum", m, by)
				}
				seen[fmt.Sprintf("%T %v", m, by)] = true
			}
			if len(seen) < 5 {
				t.Errorf("only %d different quorums were drawn", len(seen))
			}
			if w.Now() > 2*time.Second {
				t.Errorf("it took %v: something was sent twice", w.Now())
			}
		})
	}
}

func minimal(c *quorum.Configuration, nodes []quorum.NodeID, is func(quorum.Set) bool) bool {
	var s quorum.Set
	for _, id := range nodes {
		place, _ := c.Place(id)
		s = s.Add(place)
	}
	if !is(s) || s.Len() != len(nodes) {
		return false
	}
	for place := range s.All() {
		if is(s.Minus(quorum.Set{}.Add(place))) {
			return false
		}
	}
	return true
}

// When a member of the minimal quorum is dead, the second copies reach the
// others.
func TestNarrowWithADeadMember(t *testing.T) {
	w := newWorld(t, sim.Config{Seed: 1})
	registers := &abd.Registers{Known: abd.Fixed(configuration(t, "majority", 3)), MaxValue: 10}
	addMembers(t, w, registers)
	w.Narrow(func(_ *sim.Process, req env.Message) (quorum.Configurations, sim.Need) {
		return registers.Known.Map().Active(), sim.Needs(req)
	})
	w.Process("n0").Crash()
	s := start(w.AddClient("p"), func(e env.Env) error {
		for range 20 {
			if _, err := registers.Read(e, "k"); err != nil {
				return err
			}
		}
		return nil
	})
	if err := w.Wait(time.Minute, s); err != nil || s.Err() != nil {
		t.Error(err, s.Err())
	}
	if w.Now() < sim.DefaultResendFirst {
		t.Errorf("20 reads took %v: the dead member was never in a minimal quorum", w.Now())
	}
}
