package reconfig_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/reconfig"
	"atoll/sim"
	"atoll/synod"
)

// unitMutants are killed by a few steps: each returns what is wrong.
var unitMutants = map[string]func(*testing.T, reconfig.Rules) string{
	"TolerateNothing": func(t *testing.T, rules reconfig.Rules) string {
		f := newFixture(t, sim.Config{}, rules, configuration(t, 0, "majority", "a"))
		f.AddClient("p")
		_, err := f.recon(f.proposer(), "p", "a", "b")
		if _, ok := errors.AsType[*reconfig.FragileError](err); !ok {
			return "two members that tolerate no death are proposed"
		}
		return ""
	},
	"ReadyUnsaved":  func(t *testing.T, rules reconfig.Rules) string { return readyAndPowerLoss(t, rules) },
	"ReadyUnsynced": func(t *testing.T, rules reconfig.Rules) string { return readyAndPowerLoss(t, rules) },
	"ReadyForAny": func(t *testing.T, rules reconfig.Rules) string {
		r := newReplica(sim.NewDisk(), "d", rules)
		r.Stand(news(t, configuration(t, 5, "majority", "a")), 0)
		m := step(t, r, &reconfig.Ready{Cluster: "c1", Configuration: configuration(t, 5, "majority", "d")}).Message
		if _, ready := m.(*reconfig.Readied); ready {
			return "ready for an index that is decided"
		}
		return ""
	},
	"VoteOnAny": func(t *testing.T, rules reconfig.Rules) string {
		r := newReplica(sim.NewDisk(), "a", rules)
		r.Stand(news(t, configuration(t, 5, "majority", "a")), 0)
		m := step(t, r, &synod.Prepare{Instance: reconfig.Instance(6), Ballot: ballot(9, 1)}).Message
		if _, promise := m.(*synod.Promise); promise {
			return "a ballot of another configuration is above all of this one"
		}
		return ""
	},
	"AcceptAnything": func(t *testing.T, rules reconfig.Rules) string {
		r := newReplica(sim.NewDisk(), "a", rules)
		r.Stand(news(t, configuration(t, 5, "majority", "a")), 0)
		m := step(t, r, &synod.Accept{Instance: reconfig.Instance(6), Ballot: ballot(5, 1), Value: []byte("nonsense")}).Message
		if _, accepted := m.(*synod.Accepted); accepted {
			return "accepted is what nobody can act upon"
		}
		return ""
	},
	"FinishAtOnce": func(t *testing.T, rules reconfig.Rules) string {
		f := newFixture(t, sim.Config{}, rules, configuration(t, 0, "majority", "a", "b", "c"))
		f.AddClient("p")
		f.acceptAt("a", configuration(t, 1, "majority", "b", "c", "d"))
		began := f.Now()
		if _, err := f.finish("a", time.Second, 10*time.Second); err != nil {
			return err.Error()
		}
		if f.Now()-began < time.Second {
			return "a proposer that is alive was overtaken"
		}
		return ""
	},
}

// readyAndPowerLoss returns what is wrong if a node that has said that it is
// ready doesn't know it after a power cut.
func readyAndPowerLoss(t *testing.T, rules reconfig.Rules) string {
	f := newFixture(t, sim.Config{}, rules, configuration(t, 0, "majority", "a"))
	f.AddClient("p")
	f.Process("b").Stall() // nothing becomes durable
	c1 := configuration(t, 1, "majority", "a", "b")
	heard := false
	err := f.run("p", time.Second, func(e env.Env) error {
		return e.Ask([]quorum.NodeID{"b"}, &reconfig.Ready{Cluster: "c1", Configuration: c1}, func(_ env.Conversation, _ quorum.NodeID, answer env.Message) bool {
			_, heard = answer.(*reconfig.Readied)
			return heard
		})
	})
	f.Process("b").PowerLoss(0)
	f.Process("b").Unstall()
	if err := f.Process("b").Restart(); err != nil {
		t.Fatal(err)
	}
	notes, _ := f.Process("b").Disk().Cell("recon.ready")
	switch {
	case heard && len(notes) == 0:
		return "it was ready, and knows nothing of it"
	case !heard && !errors.Is(err, env.ErrDeadline):
		return err.Error()
	}
	return ""
}

// TestMutants: each rule is missed by the random runs or by a few steps, and these
// find nothing wrong where none is broken.
func TestMutants(t *testing.T) {
	for name, check := range unitMutants {
		if bad := check(t, reconfig.Rules{}); bad != "" {
			t.Errorf("%s: the real code: %s", name, bad)
		}
		if bad := check(t, breakRule(t, name)); bad == "" {
			t.Errorf("the mutant %s survives", name)
		} else {
			t.Logf("%s: %s", name, bad)
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[reconfig.Rules]()) {
		if unitMutants[f.Name] == nil && !slices.Contains(randomMutants, f.Name) {
			t.Errorf("nothing kills the mutant %s", f.Name)
		}
	}
}
