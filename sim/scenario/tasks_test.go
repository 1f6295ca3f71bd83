package scenario_test

import (
	"errors"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim"
	"atoll/sim/scenario"
)

// gossiping is abd on nodes that have a task each: every now and then it asks
// all nodes, its own as well, for a record, puts what it found to all, and
// fails at times.
type gossiping struct {
	scenario.ABD
	rounds *int
	// wrong is told of a task that runs where none should.
	wrong func()
}

func (gossiping) Name() string { return "gossiping" }

func (g gossiping) Node(c scenario.Cluster, self quorum.NodeID, store replica.Store) (sim.Stepper, error) {
	stepper, err := g.ABD.Node(c, self, store)
	_, readBack := store.(*sim.Disk) // runs have the store watched
	return gossiper{stepper, g, c.Configurations.Members(), readBack}, err
}

type gossiper struct {
	sim.Stepper
	g        gossiping
	members  []quorum.NodeID
	readBack bool
}

func (n gossiper) Tasks() []replica.Task {
	return []replica.Task{{Name: "gossip", Run: n.run}}
}

func (n gossiper) run(e env.Env) error {
	if n.readBack {
		n.g.wrong()
	}
	for {
		if err := e.Sleep(time.Duration(e.Rand() % uint64(100*time.Millisecond))); err != nil {
			return err
		}
		*n.g.rounds++
		var newest abd.Record
		err := e.Ask(n.members, &abd.Get{Key: "k1"}, func(_ env.Conversation, from quorum.NodeID, m env.Message) bool {
			if ack, ok := m.(*abd.GetAck); ok && newest.Tag.Less(ack.Record.Tag) {
				newest = ack.Record
			}
			return from == e.Self() // it is there to be asked
		})
		if err != nil {
			return err
		}
		if !newest.Tag.IsZero() {
			e.Tell(n.members, &abd.Put{Key: "k1", Record: newest})
		}
		if e.Rand()%10 == 0 {
			return errors.New("that is enough for now")
		}
	}
}

// Nodes run their tasks under every kind of fault; runs end, keep all promises,
// and are the same again. Tasks that never end hold no run up.
func TestTasks(t *testing.T) {
	for _, name := range []string{"quiet", "registers"} {
		t.Run(name, func(t *testing.T) {
			s := builtin(t, name)
			for seed := range uint64(2) {
				rounds := 0
				a := gossiping{rounds: &rounds, wrong: func() { t.Error("a task runs in a world of the reading back") }}
				r := mustRun(t, s.Draw(seed), scenario.Options{Algorithm: a})
				if r.Violation != nil {
					t.Fatalf("seed %d: %v", seed, r.Violation)
				}
				if rounds < 10 {
					t.Errorf("seed %d: the tasks did %d rounds", seed, rounds)
				}
				if again := mustRun(t, s.Draw(seed), scenario.Options{Algorithm: a}); again.Hash != r.Hash {
					t.Errorf("seed %d: hash %x, and the second time %x", seed, r.Hash, again.Hash)
				}
				without := mustRun(t, s.Draw(seed), scenario.Options{})
				if without.Hash == r.Hash {
					t.Errorf("seed %d: hash %x without the tasks, too", seed, r.Hash)
				}
				if limit := 2 * (time.Duration(s.WithDefaults().Duration) + time.Duration(s.WithDefaults().Bounds.Ends)); r.Figures.Simulated > limit {
					t.Errorf("seed %d: it took %v of simulated time", seed, r.Figures.Simulated)
				}
			}
		})
	}
}
