package scenario_test

import (
	"testing"

	"atoll/sim/scenario"
)

func builtin(t testing.TB, name string) scenario.Scenario {
	t.Helper()
	s, ok := scenario.Builtin(name)
	if !ok {
		t.Fatalf("no scenario %q", name)
	}
	return s
}

func mustRun(t testing.TB, p scenario.Plan, o scenario.Options) scenario.Result {
	t.Helper()
	r, err := scenario.Run(p, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTry(t *testing.T) {
	for _, s := range scenario.Builtins() {
		for seed := range uint64(60) {
			r := mustRun(t, s.Draw(seed), scenario.Options{})
			if r.Violation != nil {
				t.Errorf("%s %d: %v", s.Name, seed, r.Violation)
			}
			if seed < 3 {
				t.Logf("%s %d: %d ops, %d messages, %d decisions, stalls %d %v", s.Name, seed, r.Figures.Operations(), r.Figures.Messages, r.Figures.Decisions, r.Figures.Stalls, r.Figures.LongestStall)
			}
		}
	}
}
