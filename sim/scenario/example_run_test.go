package scenario_test

import (
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/sim/scenario"
)

// firstViolation runs an algorithm with the seeds up to n and returns the first violation.
func firstViolation(t *testing.T, s scenario.Scenario, a scenario.Algorithm, n uint64) (uint64, *scenario.Violation) {
	t.Helper()
	for seed := uint64(1); seed <= n; seed++ {
		r, err := scenario.Run(s.Draw(seed), scenario.Options{Algorithm: a})
		if err != nil {
			t.Fatal(err)
		}
		if r.Violation != nil {
			return seed, r.Violation
		}
	}
	return 0, nil
}

// TestRegularIsNotAtomic: the algorithm of docs/SIMULATOR.md breaks a promise,
// and with the missing half of its reads keeps all.
func TestRegularIsNotAtomic(t *testing.T) {
	s, ok := scenario.Builtin("registers")
	if !ok {
		t.Fatal("no scenario registers")
	}
	seed, v := firstViolation(t, s, Regular{}, 50)
	if v == nil {
		t.Fatal("reads that tell nobody were taken for atomic")
	}
	t.Logf("seed %d: %s: %s", seed, v.Rule, v.Text)
	if seed, v := firstViolation(t, s, Atomic{}, 50); v != nil {
		t.Errorf("with the write-back seed %d breaks %v", seed, v)
	}
}

// Atomic is Regular with the second half of a read.
type Atomic struct{ Regular }

func (Atomic) Name() string { return "atomic" }

func (Atomic) Traits() scenario.Traits {
	t := Regular{}.Traits()
	t.ReadRounds = 2
	return t
}

func (Atomic) Client(c scenario.Cluster) scenario.Client {
	return &atomicClient{regularClient{c.Configurations}}
}

type atomicClient struct{ regularClient }

func (c *atomicClient) Read(e env.Env, key abd.Key) (abd.Record, error) {
	newest, err := c.look(e, key)
	if err != nil || newest.Tag.IsZero() {
		return newest, err
	}
	return newest, c.keep(e, key, newest)
}
