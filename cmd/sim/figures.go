package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"atoll/sim/scenario"
	"atoll/sim/stat"
)

// A figure is a measurement that every run may have: it is a column in CSV, a
// name in JSON, and a mean over the seeds in the summary.
type figure struct {
	// kind is the kind of operations that it is about; everything for a
	// figure of the whole run.
	kind scenario.Kind
	// name has its unit behind it, unless it is a count, or a share from 0
	// to 1.
	name string
	of   func(*measured) (float64, bool)
}

// everything stands where a kind would.
const everything = scenario.Kind(255)

// measured is a result with what is read more than once.
type measured struct {
	*scenario.Figures
	sorted [][]time.Duration // latencies of each kind
}

// figures are all figures, in the order in which they are printed.
func figures() []figure {
	var all []figure
	for _, kind := range scenario.Kinds() {
		all = append(all,
			perOperation(kind, "rounds", func(k *scenario.KindFigures) uint64 { return k.Rounds }),
			perOperation(kind, "messages", func(k *scenario.KindFigures) uint64 { return k.Messages }),
			onlyCounted(perOperation(kind, "bytes", func(k *scenario.KindFigures) uint64 { return k.Bytes })),
			perOperation(kind, "one_round", func(k *scenario.KindFigures) uint64 { return k.OneRound }))
		for _, q := range quantiles() {
			all = append(all, latency(kind, q, "ms"))
		}
		for _, q := range quantiles() {
			all = append(all, latency(kind, q, "d"))
		}
	}
	return append(all,
		figure{everything, "stalls", func(m *measured) (float64, bool) { return float64(m.Stalls), true }},
		figure{everything, "longest_stall_ms", func(m *measured) (float64, bool) { return milliseconds(m.LongestStall), true }})
}

// perOperation is a count for each operation of a kind, on average.
func perOperation(kind scenario.Kind, name string, count func(*scenario.KindFigures) uint64) figure {
	return figure{kind, name, func(m *measured) (float64, bool) {
		n := len(m.sorted[kind])
		if n == 0 {
			return 0, false
		}
		return float64(count(&m.ByKind[kind])) / float64(n), true
	}}
}

// onlyCounted is f where it isn't zero: bytes that weren't counted are.
func onlyCounted(f figure) figure {
	of := f.of
	f.of = func(m *measured) (float64, bool) {
		v, ok := of(m)
		return v, ok && v > 0
	}
	return f
}

// quantile is one that is printed of latencies.
type quantile struct {
	name       string
	perMillion uint32
}

func quantiles() []quantile {
	return []quantile{{"p50", stat.P50}, {"p90", stat.P90}, {"p99", stat.P99}, {"max", stat.Largest}}
}

// latency is a quantile of the latencies of a kind, in milliseconds or in
// delay bounds.
func latency(kind scenario.Kind, q quantile, unit string) figure {
	return figure{kind, q.name + "_" + unit, func(m *measured) (float64, bool) {
		if len(m.sorted[kind]) == 0 || unit == "d" && m.DelayBound == 0 {
			return 0, false
		}
		at := stat.QuantileOf(m.sorted[kind], q.perMillion)
		if unit == "d" {
			return float64(at) / float64(m.DelayBound), true
		}
		return milliseconds(at), true
	}}
}

// optional is a figure's value in one run, if it has one.
type optional struct {
	value float64
	ok    bool
}

// measure returns the values of all figures.
func measure(f *scenario.Figures, all []figure) []optional {
	m := measured{Figures: f}
	for kind := range f.ByKind {
		m.sorted = append(m.sorted, slices.Sorted(slices.Values(f.ByKind[kind].Latencies)))
	}
	values := make([]optional, len(all))
	for i := range all {
		values[i].value, values[i].ok = all[i].of(&m)
	}
	return values
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// decimals is how many decimals figures are printed with in JSON and CSV.
const decimals = 4

// rounded returns f with so many decimals.
func rounded(f float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', decimals, 64), 64)
	if err != nil {
		return f // it was no number, and isn't one now
	}
	return r
}

// short returns f for people: three significant digits, or all of a whole
// number's.
func short(f float64) string {
	digits := 2
	for limit := 1.0; digits > 0 && (f >= 10*limit || f <= -10*limit); limit *= 10 {
		digits--
	}
	if s := fixed(f, digits); strings.Trim(s, "0.") != "" {
		return s
	}
	return "0"
}

// fixed returns f with so many decimals, and no zero with a sign.
func fixed(f float64, digits int) string {
	s := strconv.FormatFloat(f, 'f', digits, 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-")
	}
	return s
}
