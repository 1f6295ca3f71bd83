package report

import (
	"math"
	"slices"
)

// Subject is the target that the others are compared with. Variant is another
// build of it, which is compared with it as well, and is no peer.
const (
	Subject = "atoll"
	Variant = "atoll2"
)

// Spread is a median, and what it lies between.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Count is of how many values; without any the others are 0.
	Count int `json:"count"`
}

// spread of values, in any order.
func spread(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{
		Median: rounded((sorted[(n-1)/2] + sorted[n/2]) / 2),
		Min:    rounded(sorted[0]), Max: rounded(sorted[n-1]), Count: n,
	}
}

// rounded returns f with three decimals.
func rounded(f float64) float64 { return math.Round(f*1000) / 1000 }

// Summary compares targets, cell by cell, in the order in which they were first
// measured.
type Summary struct {
	Kind    string        `json:"kind"`
	Targets []string      `json:"targets"`
	Cells   []CellSummary `json:"cells"`
}

// CellSummary compares targets in one cell.
type CellSummary struct {
	Cell
	Targets []TargetSummary `json:"targets"`
	// Best is atoll's operations per second divided by those of the best peer
	// of the same round. It has no values without atoll or without a peer.
	Best Spread `json:"ratio_to_best"`
}

// TargetSummary is one target in one cell: medians over its runs.
type TargetSummary struct {
	Target    string  `json:"target"`
	PerSecond Spread  `json:"ops_per_s"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	// Stall is the longest of all runs.
	Stall  float64 `json:"max_stall_ms"`
	Errors uint64  `json:"errors"`
	// Ratio is atoll's operations per second divided by this target's in the
	// same round; of atoll itself it has no values.
	Ratio Spread `json:"ratio"`
	// CPU is the processor time of the nodes and of the load generator for an
	// operation, in microseconds.
	CPUNodes float64 `json:"cpu_nodes_us_per_op"`
	CPULoad  float64 `json:"cpu_load_us_per_op"`
}

// Summarize compares the targets of the runs.
func Summarize(runs []Run) Summary {
	s := Summary{Kind: KindSummary}
	var cells []Cell
	for _, r := range runs {
		if !slices.Contains(cells, r.Cell) {
			cells = append(cells, r.Cell)
		}
		if !slices.Contains(s.Targets, r.Target) {
			s.Targets = append(s.Targets, r.Target)
		}
	}
	// Turns rotate, so the first round's order is whose the first turn was:
	// atoll goes first, the others stay.
	slices.SortStableFunc(s.Targets, func(a, b string) int { return boolRank(b == Subject) - boolRank(a == Subject) })
	for _, c := range cells {
		of := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Cell != c })
		s.Cells = append(s.Cells, summarizeCell(c, s.Targets, of))
	}
	return s
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

func summarizeCell(c Cell, targets []string, runs []Run) CellSummary {
	s := CellSummary{Cell: c}
	for _, t := range targets {
		of := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Target != t })
		if len(of) > 0 {
			s.Targets = append(s.Targets, summarizeTarget(t, of, ratios(runs, func(peer string) bool { return peer == t })))
		}
	}
	s.Best = spread(ratios(runs, func(peer string) bool { return peer != Variant }))
	return s
}

// ratios returns, for each round in which atoll ran and one of the chosen peers
// did anything, atoll's operations per second divided by the best of theirs.
func ratios(runs []Run, chosen func(target string) bool) []float64 {
	var all []float64
	for _, subject := range runs {
		if subject.Target != Subject {
			continue
		}
		best := 0.0
		for _, r := range runs {
			if r.Session == subject.Session && r.Round == subject.Round && r.Target != Subject && chosen(r.Target) {
				best = max(best, r.PerSecond)
			}
		}
		if best > 0 {
			all = append(all, subject.PerSecond/best)
		}
	}
	return all
}

func summarizeTarget(name string, runs []Run, ratios []float64) TargetSummary {
	s := TargetSummary{Target: name, Ratio: spread(ratios)}
	var perSecond, p50, p99, nodes, load []float64
	for _, r := range runs {
		perSecond = append(perSecond, r.PerSecond)
		s.Errors += r.Errors
		s.Stall = max(s.Stall, r.Stall)
		if r.Operations == 0 {
			continue // it has no latencies
		}
		p50, p99 = append(p50, r.P50), append(p99, r.P99)
		nodes = append(nodes, r.CPUTarget*1e6/float64(r.Operations))
		load = append(load, r.CPULoad*1e6/float64(r.Operations))
	}
	s.PerSecond = spread(perSecond)
	s.P50, s.P99 = spread(p50).Median, spread(p99).Median
	s.CPUNodes, s.CPULoad = spread(nodes).Median, spread(load).Median
	return s
}
