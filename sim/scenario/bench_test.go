package scenario_test

import (
	"testing"

	"atoll/sim/scenario"
)

// BenchmarkRegisters runs one seed after another of a scenario, from the
// drawing of the plan to the verdict of the oracle, all checks included, and
// reports how many messages arrive a second.
func BenchmarkRegisters(b *testing.B) {
	for _, name := range []string{"registers", "quiet"} {
		b.Run(name, func(b *testing.B) {
			s := builtin(b, name)
			b.ReportAllocs()
			seed, messages := uint64(0), uint64(0)
			for b.Loop() {
				seed++
				r := mustRun(b, s.Draw(seed), scenario.Options{})
				if r.Violation != nil {
					b.Fatalf("seed %d: %v", seed, r.Violation)
				}
				messages += r.Figures.Messages
			}
			b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "msgs/s")
			b.ReportMetric(float64(messages)/float64(b.N), "msgs/op")
		})
	}
}
