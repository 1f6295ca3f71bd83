package quorum_test

import (
	"fmt"
	"testing"

	"atoll/quorum"
)

func systems(n, rows int) []quorum.System {
	equal := make([]uint32, n)
	for i := range equal {
		equal[i] = 1
	}
	return []quorum.System{
		{},
		{Kind: quorum.Threshold, Get: 2, Put: n - 1},
		weighted(many(n), equal...),
		{Kind: quorum.Grid, Rows: rows, Columns: n / rows},
	}
}

// phase is what a caller does with a Tally: all members answer, and after
// each answer the condition is looked at.
func phase(t *quorum.Tally, cs quorum.Configurations) (done bool) {
	t.Begin(cs)
	for _, m := range cs.Members() {
		t.Add(m)
		done = t.HasRead() && t.HasWrite()
	}
	return done
}

func TestTallyAllocatesNothing(t *testing.T) {
	for _, s := range systems(9, 3) {
		cs := quorum.Configurations{newConfiguration(t, many(9), s)}
		n := testing.AllocsPerRun(10, func() {
			var tally quorum.Tally
			if !phase(&tally, cs) || !tally.HasAll() || tally.LeavesRead() || tally.LeavesWrite() {
				t.Error("all members answered, and that isn't a quorum")
			}
		})
		if n != 0 {
			t.Errorf("%v: a phase allocates %v times", s, n)
		}
	}
}

// BenchmarkTally measures a whole phase, from Begin to the last answer.
func BenchmarkTally(b *testing.B) {
	for _, n := range []int{4, 256} {
		for i, s := range systems(n, n/2) {
			kind := [...]string{"majority", "threshold", "weighted", "grid"}[i]
			for _, configurations := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/members=%d/configurations=%d", kind, n, configurations), func(b *testing.B) {
					cs := make(quorum.Configurations, configurations)
					for i := range cs {
						cs[i] = newConfiguration(b, many(n), s)
					}
					var t quorum.Tally
					b.ReportAllocs()
					for b.Loop() {
						if !phase(&t, cs) {
							b.Fatal("all members are no quorum")
						}
					}
				})
			}
		}
	}
}

func BenchmarkTolerance(b *testing.B) {
	for i, s := range systems(256, 16) {
		b.Run([...]string{"majority", "threshold", "weighted", "grid"}[i], func(b *testing.B) {
			c := newConfiguration(b, many(256), s)
			b.ReportAllocs()
			for b.Loop() {
				c.Tolerance()
			}
		})
	}
}
