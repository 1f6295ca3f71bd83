package main

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"atoll/sim/scenario"
	"atoll/sim/stat"
)

func TestNumbersForPeople(t *testing.T) {
	for _, c := range []struct {
		f    float64
		want string
	}{{0, "0"}, {0.004, "0"}, {0.126, "0.13"}, {1, "1.00"}, {9.994, "9.99"}, {12.34, "12.3"}, {99.96, "100.0"}, {123.4, "123"}, {98765.4, "98765"}, {-12.34, "-12.3"}} {
		if got := short(c.f); got != c.want {
			t.Errorf("%v: got %s, want %s", c.f, got, c.want)
		}
	}
	for _, c := range []struct {
		n    uint64
		want string
	}{{0, "0"}, {999, "999"}, {1000, "1,000"}, {1234567, "1,234,567"}, {math.MaxUint64, "18,446,744,073,709,551,615"}} {
		if got := grouped(c.n); got != c.want {
			t.Errorf("%d: got %s, want %s", c.n, got, c.want)
		}
	}
	for _, c := range []struct {
		i    stat.Interval
		want string
	}{
		{stat.Interval{}, "-"},
		{stat.Interval{N: 1, Mean: 3.456}, "3.46"},
		{stat.Interval{N: 5, Mean: 2}, "2.00"},
		{stat.Interval{N: 5, Mean: 1.23456, Half: 0.0123}, "1.235 ± 0.012"},
		{stat.Interval{N: 5, Mean: 12.3456, Half: 1.23}, "12.3 ± 1.2"},
		{stat.Interval{N: 5, Mean: 1234.56, Half: 45.6}, "1235 ± 46"},
		{stat.Interval{N: 5, Mean: -0.00001, Half: 0.00002}, "0.0000 ± 0.0000"},
	} {
		if got := intervalText(c.i); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.i, got, c.want)
		}
	}
}

func TestQuoteArgument(t *testing.T) {
	for _, c := range []struct{ s, want string }{
		{"registers", "registers"}, {"dir/my-file_1.json", "dir/my-file_1.json"}, {"", "''"}, {"a b", "'a b'"}, {"it's", `'it'\''s'`}, {"$(x)", "'$(x)'"},
	} {
		if got := quoteArgument(c.s); got != c.want {
			t.Errorf("%q: got %s, want %s", c.s, got, c.want)
		}
	}
}

// TestMeasure: the figures of a run, worked out by hand.
func TestMeasure(t *testing.T) {
	f := scenario.Figures{DelayBound: 5 * time.Millisecond, Stalls: 2, LongestStall: 120 * time.Millisecond}
	f.ByKind[scenario.Read] = scenario.KindFigures{
		Rounds: 5, Messages: 40, OneRound: 3,
		Latencies: []time.Duration{4e6, 3e6, 2e6, 10e6},
	}
	all := figures()
	got := make(map[string]float64)
	for i, v := range measure(&f, all) {
		if v.ok {
			got[all[i].column()] = v.value
		}
	}
	want := map[string]float64{
		"read_rounds": 1.25, "read_messages": 10, "read_one_round": 0.75,
		"read_p50_ms": 3, "read_p90_ms": 10, "read_p99_ms": 10, "read_max_ms": 10,
		"read_p50_d": 0.6, "read_p90_d": 2, "read_p99_d": 2, "read_max_d": 2,
		"stalls": 2, "longest_stall_ms": 120,
	}
	for name, w := range want {
		if g, ok := got[name]; !ok || math.Abs(g-w) > 1e-12 {
			t.Errorf("%s: got %v, %v, want %v", name, g, ok, w)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("figures of what didn't happen: %v", got)
	}
}

// TestSummaryPairsOnlyWhatBothHave: a seed in which one side read nothing
// counts for the means of the other, and for no difference.
func TestSummaryPairsOnlyWhatBothHave(t *testing.T) {
	all := []figure{{scenario.Read, "rounds", nil}}
	s := newSummary("x", seedRange{1, 3}, make([]side, 2), all)
	replay := func(uint64) string { return "" }
	for _, c := range [][2]optional{{{1, true}, {2, true}}, {{3, true}, {}}, {{2, true}, {2.5, true}}} {
		s.add([]record{{values: []optional{c[0]}}, {side: 1, values: []optional{c[1]}}}, replay)
	}
	// Nor does a run count that a violation has cut short.
	s.add([]record{{values: []optional{{99, true}}, violation: &scenario.Violation{}}, {side: 1, values: []optional{{3, true}}}}, replay)
	if n := s.samples[0][0].N(); n != 3 {
		t.Errorf("%d values of the base, want 3", n)
	}
	if n := s.samples[1][0].N(); n != 3 || s.totals.violations != 1 || s.totals.runs != 8 {
		t.Errorf("%d values of the other, want 3; totals %+v", n, s.totals)
	}
	if d := s.pairs[0].Difference(); d.N != 2 || d.Mean != 0.75 {
		t.Errorf("the difference is %+v, want 0.75 of 2", d)
	}
	b, err := json.Marshal(differencesObject(s))
	want := `{"read":{"rounds":{"n":2,"mean":0.75,"ci95":3.1766,"change":0.5,"apart":false}}}`
	if string(b) != want || err != nil {
		t.Errorf("got %s, %v, want %s", b, err, want)
	}
}

// TestOneSeedHasNoInterval: in JSON it is null, and not zero.
func TestOneSeedHasNoInterval(t *testing.T) {
	b, err := json.Marshal(intervalObject(stat.Interval{N: 1, Mean: 2.5}))
	if want := `{"n":1,"mean":2.5,"ci95":null}`; string(b) != want || err != nil {
		t.Errorf("got %s, %v, want %s", b, err, want)
	}
}

func TestTestName(t *testing.T) {
	for _, c := range []struct{ rule, want string }{{"linearizable", "TestLinearizable"}, {"acked-tag lost", "TestAckedTagLost"}} {
		if got := testName(c.rule); got != c.want {
			t.Errorf("%s: got %s, want %s", c.rule, got, c.want)
		}
	}
}
