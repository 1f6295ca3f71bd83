package abd_test

import (
	"fmt"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim"
	"atoll/tags"
)

// lister is a cluster whose disks a test fills before it lists.
type lister struct {
	world     *sim.World
	registers *abd.Registers
	nodes     []*sim.Process
}

func newLister(t *testing.T, seed uint64, system string, n int) *lister {
	t.Helper()
	s, err := quorum.ParseSystem(system)
	if err != nil {
		t.Fatal(err)
	}
	var ids []quorum.NodeID
	for i := range n {
		ids = append(ids, quorum.NodeID(fmt.Sprint("n", i)))
	}
	c, err := quorum.NewConfiguration(0, ids, s)
	if err != nil {
		t.Fatal(err)
	}
	l := &lister{registers: &abd.Registers{Known: abd.Fixed(c), MaxValue: 100}}
	l.world = sim.New(sim.Config{Seed: seed, Link: func(_, _ quorum.NodeID) sim.Link {
		return sim.Link{Delay: sim.Uniform(time.Millisecond, 5*time.Millisecond)}
	}})
	t.Cleanup(l.world.Close)
	for _, id := range ids {
		p, err := l.world.AddNode(id, func(p *sim.Process) (sim.Stepper, error) {
			return replica.New(replica.Config{Cluster: "list", Self: p.ID(), Configurations: l.registers.Known.Map().Active(), MaxValue: 100}, p.Disk())
		})
		if err != nil {
			t.Fatal(err)
		}
		l.nodes = append(l.nodes, p)
	}
	return l
}

// has puts a record on a node's disk, durable, as an earlier put would have.
func (l *lister) has(t *testing.T, node int, key abd.Key, r abd.Record) {
	t.Helper()
	d := l.nodes[node].Disk()
	if _, err := d.Store(key, r); err != nil {
		t.Fatal(err)
	}
	d.Cut()
	if _, err := d.Commit(); err != nil {
		t.Fatal(err)
	}
}

func (l *lister) list(t *testing.T) (keys []abd.Listed) {
	t.Helper()
	scope := l.world.AddClient("p").Scope(time.Minute)
	scope.Start(func(e env.Env) (err error) {
		keys, _, _, err = l.registers.List(e, "", "", abd.MaxPage)
		return err
	})
	if err := l.world.Wait(2*time.Minute, scope); err != nil {
		t.Fatal(err)
	}
	if err := scope.Err(); err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestListWritesBackAllThatIsUnsettled: whatever the number of keys whose
// writes are still under way, each that is listed is on a write quorum.
func TestListWritesBackAllThatIsUnsettled(t *testing.T) {
	for _, n := range []int{1, 31, 32, 33, 64, 65, 70} {
		l := newLister(t, 1, "majority", 3)
		l.nodes[2].Crash() // so that the read quorum has the node that holds them
		for i := range n {
			l.has(t, 0, abd.Key(fmt.Sprintf("k%02d", i)), record(1, "v"))
		}
		keys := l.list(t)
		if len(keys) != n {
			t.Errorf("%d keys: %d are listed", n, len(keys))
		}
		for _, k := range keys {
			if d := l.nodes[1].Disk().Durable(k.Key); d.Tag != k.Tag {
				t.Errorf("%d keys: %s is listed under %v, and the second node has %v", n, k.Key, k.Tag, d.Tag)
			}
		}
	}
}

// TestListMergesByTag: what a member says of a smaller tag, that it is a
// tombstone or confirmed, says nothing of the larger one, whichever page
// comes first.
func TestListMergesByTag(t *testing.T) {
	older, newer := tags.Tag{Seq: 1, PID: pid(1)}, tags.Tag{Seq: 2, PID: pid(2)}
	for seed := range uint64(20) {
		// Any one node is a write quorum: what the larger tag says is settled.
		l := newLister(t, seed, "get=2,put=1", 2)
		l.has(t, 0, "deleted", abd.Record{Tag: newer, Deleted: true})
		l.has(t, 1, "deleted", abd.Record{Tag: older, Value: []byte("v")})
		l.has(t, 0, "written", abd.Record{Tag: older, Deleted: true})
		l.has(t, 1, "written", abd.Record{Tag: newer, Value: []byte("v")})
		if keys := l.list(t); len(keys) != 1 || keys[0] != (abd.Listed{Key: "written", Tag: newer}) {
			t.Errorf("seed %d: listed %v, want written under %v", seed, keys, newer)
		}
	}
}

// TestConfirmedIsATagsOwn: that an older tag is confirmed says nothing of a
// larger one, whichever answer comes first. What is shown is written back.
func TestConfirmedIsATagsOwn(t *testing.T) {
	older, newer := record(1, "older"), record(2, "newer")
	for _, test := range []struct {
		name string
		show func(l *lister, e env.Env) error
	}{
		{"read", func(l *lister, e env.Env) error {
			r, err := l.registers.Read(e, "k")
			if err == nil && r.Tag != newer.Tag {
				err = fmt.Errorf("read %v", r.Tag)
			}
			return err
		}},
		{"list", func(l *lister, e env.Env) error {
			_, _, _, err := l.registers.List(e, "", "", abd.MaxPage)
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for seed := range uint64(20) {
				l := newLister(t, seed, "majority", 3)
				l.nodes[2].Crash()
				l.has(t, 0, "k", older)
				l.has(t, 1, "k", newer)
				scope := l.world.AddClient("p").Scope(time.Minute)
				scope.Start(func(e env.Env) error {
					e.Tell([]quorum.NodeID{"n0"}, &abd.Confirm{Key: "k", Tag: older.Tag})
					if err := e.Sleep(time.Second); err != nil {
						return err
					}
					return test.show(l, e)
				})
				if err := l.world.Wait(2*time.Minute, scope); err != nil || scope.Err() != nil {
					t.Fatal(err, scope.Err())
				}
				if d := l.nodes[0].Disk().Durable("k"); d.Tag != newer.Tag {
					t.Errorf("seed %d: %v was shown, and the other node has %v", seed, newer.Tag, d.Tag)
				}
			}
		})
	}
}
