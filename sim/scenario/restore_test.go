package scenario_test

import (
	"testing"

	"atoll/sim/scenario"
)

// TestCopies: a member that is restored from an older copy of its disk ends before it
// serves, whatever else happens, if all others that can come back know better.
func TestCopies(t *testing.T) {
	s := builtin(t, "copies")
	restored, outcast := 0, 0
	for seed := range uint64(40) {
		r := mustRun(t, s.Draw(seed), scenario.Options{})
		if r.Violation != nil {
			t.Errorf("seed %d: %v", seed, r.Violation)
		}
		restored += r.Figures.Restored
		outcast += r.Figures.Outcast
	}
	t.Logf("%d nodes were restored, %d were found out", restored, outcast)
	if restored < 10 || outcast < restored*3/4 {
		t.Errorf("%d nodes were restored, and %d were found out; want most of ten at least", restored, outcast)
	}
}
