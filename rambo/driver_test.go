package rambo_test

import (
	"testing"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/reconfig"
	"atoll/replica"
	"atoll/sim"
)

// TestOneDriverIsEnough: one node takes another one's place and leaves it again,
// over and over, in a store that fits on a page. The member whose turn it is brings
// each step to its end; the next one's turn would be in an hour.
func TestOneDriverIsEnough(t *testing.T) {
	world := sim.New(sim.Config{
		Seed: 1,
		Link: func(_, _ quorum.NodeID) sim.Link { return sim.Link{Delay: sim.Table(time.Millisecond)} },
		Sync: func(quorum.NodeID) sim.Delay { return sim.Table(time.Millisecond) },
	})
	t.Cleanup(world.Close)
	sets := [][]quorum.NodeID{{"a", "b", "c"}, {"a", "b", "d"}}
	first, err := quorum.NewConfiguration(0, sets[0], quorum.System{})
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*sim.Process
	for _, id := range []quorum.NodeID{"a", "b", "c", "d"} {
		p, err := world.AddNode(id, func(p *sim.Process) (sim.Stepper, error) {
			return replica.New(replica.Config{
				Cluster: "one", Self: p.ID(), MaxValue: 100, Configurations: quorum.Configurations{first},
				Members:         []quorum.Member{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}},
				Reconfiguration: rambo.Pace{Turn: time.Hour, Patience: time.Hour},
			}, p.Disk())
		})
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, p)
	}
	known, err := quorum.NewMap(first)
	if err != nil {
		t.Fatal(err)
	}
	operator := world.AddClient("operator")
	proposer := &reconfig.Proposer{Cluster: "one", Known: rambo.NewCMap(known)}
	for k := 1; k <= 6; k++ {
		s := operator.Scope(0)
		s.Start(func(e env.Env) error {
			_, err := rambo.Recon(e, proposer, reconfig.Proposal{Members: sets[k%2]})
			return err
		})
		if err := world.Wait(time.Minute, s); err != nil || s.Err() != nil {
			t.Fatalf("configuration %d isn't decided: %v, %v", k, err, s.Err())
		}
		world.RunFor(40 * time.Millisecond) // sooner than what isn't answered is asked again
		for _, p := range nodes {
			m := mapOn(p)
			if got := m.Installed().Index(); int(got) != k {
				t.Fatalf("%s: in the end configuration %d is installed, want %d", p.ID(), got, k)
			}
			proposer.Known.Learn(&quorum.News{Map: m})
		}
	}
}
