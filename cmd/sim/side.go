package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/internal/cli"
	"atoll/sim/scenario"
)

// side is what runs with each seed: one, or two that are compared.
type side struct {
	label    string
	scenario scenario.Scenario
	// plan, when set, is run as it is, whatever the seed.
	plan *scenario.Plan
}

// sidesOf returns the sides of a run: s, and what it is compared with, if that
// isn't empty: an algorithm, or a scenario.
func sidesOf(s scenario.Scenario, compare string) ([]side, error) {
	base := side{label: algorithmOf(s), scenario: s}
	if compare == "" {
		return []side{base}, nil
	}
	if slices.Contains(algorithmNames(), compare) {
		other := side{label: compare, scenario: withAlgorithm(s, compare)}
		// Both must do the same operations.
		base.scenario.SingleWriter = other.scenario.SingleWriter
		return []side{base, other}, nil
	}
	t, err := loadScenario(compare)
	if err != nil {
		if _, ok := err.(*cli.UsageError); ok {
			return nil, checkName("--"+flagCompare, "algorithm or scenario", compare, slices.Concat(algorithmNames(), scenarioNames()))
		}
		return nil, err
	}
	t.Rules = slices.Compact(slices.Sorted(slices.Values(slices.Concat(t.Rules, s.Rules))))
	base.label, compare = s.Name, t.Name
	if base.label == compare {
		base.label, compare = "first", "second"
	}
	return []side{base, {label: compare, scenario: t}}, nil
}

// algorithmOf returns the name of the algorithm that s runs.
func algorithmOf(s scenario.Scenario) string { return s.WithDefaults().Algorithm }

// record is what is kept of one run: a result without what is long.
type record struct {
	seed      uint64
	side      int
	hash      uint64
	violation *scenario.Violation
	figures   scenario.Figures // without Latencies
	count     [4]uint64        // operations that ended well, by kind
	values    []optional       // of all figures
	ended     []scenario.Ended
	result    *scenario.Result // whole, when it was asked for
	err       error
}

func (r *record) operations() (n uint64) {
	for _, c := range r.count {
		n += c
	}
	return n
}

func (r *record) failed() (n uint64) {
	for i := range r.figures.ByKind {
		n += r.figures.ByKind[i].Failed
	}
	return n
}

func (r *record) unknown() (n uint64) {
	for i := range r.figures.ByKind {
		n += r.figures.ByKind[i].Unknown
	}
	return n
}

// keep says what a record keeps beside the figures.
type keep struct {
	operations bool // each operation
	result     bool
}

// runSide runs a side with a seed.
func runSide(sides []side, at int, seed uint64, all []figure, o scenario.Options, k keep) record {
	r := record{seed: seed, side: at}
	if k.operations {
		o.Ended = func(e scenario.Ended) { r.ended = append(r.ended, e) }
	}
	result, err := runPlan(sides[at], seed, o)
	r.hash, r.violation, r.figures, r.err = result.Hash, result.Violation, result.Figures, err
	r.values = measure(&result.Figures, all)
	for kind := range r.figures.ByKind {
		r.count[kind] = uint64(len(r.figures.ByKind[kind].Latencies))
		r.figures.ByKind[kind].Latencies = nil
	}
	if k.result {
		r.result = &result
	}
	return r
}

func runPlan(s side, seed uint64, o scenario.Options) (scenario.Result, error) {
	if s.plan != nil {
		return scenario.Run(*s.plan, o)
	}
	return scenario.Run(s.scenario.Draw(seed), o)
}

// totals are sums over runs, and how long they took.
type totals struct {
	runs, violations                      uint64
	operations, failed, unknown, messages uint64
	took                                  time.Duration
}

func (t *totals) add(r *record) {
	t.runs++
	if r.violation != nil {
		t.violations++
	}
	t.operations += r.operations()
	t.failed += r.failed()
	t.unknown += r.unknown()
	t.messages += r.figures.Messages
}

func (t *totals) messagesPerSecond() float64 {
	if t.took <= 0 {
		return 0
	}
	return float64(t.messages) / t.took.Seconds()
}

// counted returns "1 run", "2 runs".
func counted(n uint64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + one + "s"
}

// grouped returns n with a comma after every third digit from the right.
func grouped(n uint64) string {
	s := fmt.Sprint(n)
	var parts []string
	for len(s) > 3 {
		parts = append(parts, s[len(s)-3:])
		s = s[:len(s)-3]
	}
	parts = append(parts, s)
	slices.Reverse(parts)
	return strings.Join(parts, ",")
}
