package rambo_test

import (
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/replica"
	"atoll/sim"
)

// asked is a node without tasks.
type asked struct{ sim.Stepper }

// discovery is a world of three disjoint configurations of three nodes each, in
// which every message takes as long, and syncs take no time.
type discovery struct {
	*sim.World
	t   *testing.T
	row []*quorum.Configuration
}

const oneWay = 5 * time.Millisecond

func newDiscovery(t *testing.T) *discovery {
	t.Helper()
	d := &discovery{t: t, World: sim.New(sim.Config{
		Hedge: time.Minute,
		Link:  func(_, _ quorum.NodeID) sim.Link { return sim.Link{Delay: sim.Constant(oneWay)} },
		Sync:  func(quorum.NodeID) sim.Delay { return sim.Constant(0) },
	})}
	t.Cleanup(d.Close)
	d.AddClient("p")
	for i, members := range [][]quorum.NodeID{{"a", "b", "c"}, {"d", "e", "f"}, {"g", "h", "i"}} {
		c, err := quorum.NewConfiguration(quorum.ConfigIndex(i), members, quorum.System{})
		if err != nil {
			t.Fatal(err)
		}
		d.row = append(d.row, c)
		for _, id := range members {
			_, err := d.AddNode(id, func(p *sim.Process) (sim.Stepper, error) {
				n, err := replica.New(replica.Config{Cluster: "c1", Self: p.ID(), Configurations: d.row[:1], MaxValue: 100}, p.Disk())
				return asked{n}, err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

// rounds is how many round trips an operation of p takes.
func (d *discovery) rounds(op func(env.Env) error) int {
	d.t.Helper()
	var took time.Duration
	scope := d.Process("p").Scope(time.Minute)
	scope.Start(func(e env.Env) error {
		began := e.Now()
		err := op(e)
		took = e.Now() - began
		return err
	})
	if err := d.Wait(2*time.Minute, scope); err != nil || scope.Err() != nil {
		d.t.Fatal(err, scope.Err())
	}
	return int((took + oneWay) / (2 * oneWay))
}

// tell has the members of a configuration know the configurations from one to
// another, the first of which is installed.
func (d *discovery) tell(of, from, to int) {
	d.t.Helper()
	m, err := quorum.NewMap(d.row[from : to+1]...)
	if err != nil {
		d.t.Fatal(err)
	}
	told := 0
	d.rounds(func(e env.Env) error {
		return e.Ask(d.row[of].Members(), gossip(m), func(env.Conversation, quorum.NodeID, env.Message) bool {
			told++
			return told == len(d.row[of].Members())
		})
	})
}

// TestRoundTripsOfDiscovery: each configuration that an operation discovers costs it
// one more round trip at most. A get takes one if what it finds is
// settled, as here, and two if not; a put takes two.
func TestRoundTripsOfDiscovery(t *testing.T) {
	for _, c := range []struct {
		name     string
		know     [3][2]int // what the members of each configuration know: from, to
		get, put int
	}{
		{"nothing new", [3][2]int{{0, 0}, {0, 0}, {0, 0}}, 1, 2},
		{"one is decided", [3][2]int{{0, 1}, {0, 1}, {0, 1}}, 1 + 1, 2 + 1},
		{"one is installed", [3][2]int{{1, 1}, {1, 1}, {1, 1}}, 1 + 1, 2 + 1},
		{"two are installed, and the old members know", [3][2]int{{2, 2}, {2, 2}, {2, 2}}, 1 + 1, 2 + 1},
		{"two are installed, one after the other", [3][2]int{{1, 1}, {2, 2}, {2, 2}}, 1 + 2, 2 + 2},
		{"one is installed, and one decided", [3][2]int{{1, 1}, {1, 2}, {1, 2}}, 1 + 2, 2 + 2},
		{"one is decided, and its members know that it is installed", [3][2]int{{0, 1}, {1, 1}, {1, 1}}, 1 + 1, 2 + 1},
	} {
		for _, write := range []bool{false, true} {
			d := newDiscovery(t)
			for i, know := range c.know {
				if know != [2]int{} {
					d.tell(i, know[0], know[1])
				}
			}
			first, err := quorum.NewMap(d.row[0])
			if err != nil {
				t.Fatal(err)
			}
			registers := &abd.Registers{Known: rambo.NewCMap(first), MaxValue: 100}
			got, want := 0, c.get
			if write {
				want = c.put
				got = d.rounds(func(e env.Env) error {
					_, err := registers.Write(e, abd.Operation{Key: "k", Value: []byte("v")})
					return err
				})
			} else {
				got = d.rounds(func(e env.Env) error { _, err := registers.Read(e, "k"); return err })
			}
			if got != want {
				t.Errorf("%s, write %v: %d round trips, want %d", c.name, write, got, want)
			}
		}
	}
}
