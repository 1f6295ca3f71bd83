package scenario_test

import (
	"flag"
	"runtime"
	"testing"
	"time"

	"atoll/sim/scenario"
)

var large = flag.Bool("large", false, "run TestLargeWorld, which takes half a minute")

// TestLargeWorld runs 200 clusters of five replicas, and 10,000 clients, in one
// world, and tells what it took:
//
//	go test ./sim/scenario -run TestLargeWorld -large -v
func TestLargeWorld(t *testing.T) {
	if !*large {
		t.Skip("-large runs it")
	}
	s := builtin(t, "registers")
	s.Clusters, s.Clients, s.Keys = 200, 50, 20
	s.Duration = scenario.Duration(time.Second)
	p := s.Draw(1)
	var most runtime.MemStats
	ended := 0
	began := time.Now()
	r := mustRun(t, p, scenario.Options{Ended: func(scenario.Ended) {
		if ended++; ended%50_000 == 0 {
			var now runtime.MemStats
			if runtime.ReadMemStats(&now); now.Sys > most.Sys {
				most = now
			}
		}
	}})
	took := time.Since(began)
	if r.Violation != nil {
		t.Fatal(r.Violation)
	}
	f := r.Figures
	t.Logf("%d operations, %d messages, %d decisions in %v: %.0f messages/s, at most %d MB from the system, %d MB of them heap",
		f.Operations(), f.Messages, f.Decisions, took.Round(time.Millisecond), float64(f.Messages)/took.Seconds(), most.Sys>>20, most.HeapSys>>20)
	if limit := uint64(2 << 30); most.Sys > limit {
		t.Errorf("%d bytes of memory, more than %d", most.Sys, limit)
	}
}
