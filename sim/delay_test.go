package sim_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"atoll/quorum"
	"atoll/sim"
)

// The distributions have the quantiles that their formulas say, in the body
// and far out in the tail.
func TestDelayQuantiles(t *testing.T) {
	const ms = float64(time.Millisecond)
	const z99 = 2.3263478740408408
	probit := func(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }
	for _, c := range []struct {
		name  string
		delay sim.Delay
		want  func(p float64) float64 // in ms
	}{
		{"uniform", sim.Uniform(2*time.Millisecond, 12*time.Millisecond), func(p float64) float64 { return 2 + 10*p }},
		{"exponential", sim.Exponential(10 * time.Millisecond), func(p float64) float64 { return -10 * math.Log(1-p) }},
		{"log-normal", sim.LogNormal(20*time.Millisecond, 200*time.Millisecond), func(p float64) float64 {
			return 20 * math.Exp(math.Log(10)/z99*probit(p))
		}},
		{"pareto", sim.Pareto(5*time.Millisecond, 500*time.Millisecond), func(p float64) float64 {
			return 5 * math.Pow(1-p, -1) // alpha is 1
		}},
		{"exponential over a base", sim.Exponential(10 * time.Millisecond).Plus(7 * time.Millisecond), func(p float64) float64 {
			return 7 - 10*math.Log(1-p)
		}},
		{"three times exponential", sim.Exponential(10 * time.Millisecond).Times(3), func(p float64) float64 { return -30 * math.Log(1-p) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			last := time.Duration(0)
			for _, perMillion := range []uint32{20_000, 100_000, 300_000, 500_000, 700_000, 900_000, 990_000, 999_000, 999_900, 999_990} {
				got, want := c.delay.Quantile(perMillion), c.want(float64(perMillion)/1e6)*ms
				if math.Abs(float64(got)-want) > 0.01*want {
					t.Errorf("quantile %d per million is %v, want %v", perMillion, got, time.Duration(want))
				}
				if got < last {
					t.Errorf("quantile %d per million is %v, below %v", perMillion, got, last)
				}
				last = got
			}
			if c.delay.Max() < last {
				t.Errorf("Max is %v, below %v", c.delay.Max(), last)
			}
		})
	}
}

func TestDelayOfTheZeroAndConstant(t *testing.T) {
	var zero sim.Delay
	if zero.Max() != 0 || zero.Quantile(500_000) != 0 || zero.Plus(3).Max() != 3 {
		t.Error("the zero Delay isn't zero")
	}
	if d := sim.Constant(5).Times(2).Plus(1); d.Quantile(0) != 11 || d.Max() != 11 {
		t.Errorf("5*2+1 is %v to %v", d.Quantile(0), d.Max())
	}
	if d := sim.Pareto(time.Hour, 20*time.Hour).Max(); d != 24*time.Hour {
		t.Errorf("the longest delay is %v, want a day", d)
	}
}

// Messages take what the matrix says and what comes on top, and whatever they
// draw it is the same mean as on paper.
func TestMatrix(t *testing.T) {
	m := sim.Matrix{{time.Millisecond, 40 * time.Millisecond}, {60 * time.Millisecond, 2 * time.Millisecond}}
	place := func(id quorum.NodeID) int { return int(id[0] - 'a') }
	link := m.Link(place, sim.Link{Delay: sim.Exponential(10 * time.Millisecond), Loss: 7})
	for _, c := range []struct {
		from, to quorum.NodeID
		least    time.Duration
	}{{"a1", "a2", 1}, {"a1", "b1", 40}, {"b1", "a1", 60}, {"b1", "b2", 2}} {
		l := link(c.from, c.to)
		if got, want := l.Delay.Quantile(0), c.least*time.Millisecond; got < want || got > want+time.Microsecond {
			t.Errorf("%s to %s takes at least %v, want %v", c.from, c.to, got, want)
		}
		if l.Loss != 7 {
			t.Errorf("%s to %s loses %d per million, want 7", c.from, c.to, l.Loss)
		}
	}
}

// A world draws from a distribution what it should: the mean of many ways
// between two processes is that of the formula.
func TestDelayMean(t *testing.T) {
	for _, c := range []struct {
		name  string
		delay sim.Delay
		mean  time.Duration
	}{
		{"exponential", sim.Exponential(10 * time.Millisecond), 10 * time.Millisecond},
		{"log-normal", sim.LogNormal(20*time.Millisecond, 60*time.Millisecond), 22365 * time.Microsecond},
		// alpha is 3: 3/2 of the least.
		{"pareto", sim.Pareto(10*time.Millisecond, 46416*time.Microsecond), 15 * time.Millisecond},
	} {
		var total time.Duration
		const n = 200_000
		for i := range uint64(n) {
			total += sim.DelayAt(c.delay, i*0x9e3779b97f4a7c15)
		}
		if mean := total / n; math.Abs(float64(mean-c.mean)) > 0.02*float64(c.mean) {
			t.Errorf("the mean of %s is %v, want %v", c.name, mean, c.mean)
		}
	}
}

func ExampleLogNormal() {
	d := sim.LogNormal(20*time.Millisecond, 200*time.Millisecond)
	fmt.Println(d.Quantile(500_000).Round(time.Millisecond), d.Quantile(990_000).Round(time.Millisecond))
	// Output: 20ms 200ms
}

func TestDelayParametersMustRise(t *testing.T) {
	for name, f := range map[string]func() sim.Delay{
		"table":       func() sim.Delay { return sim.Table(2, 1) },
		"negative":    func() sim.Delay { return sim.Exponential(-1) },
		"log-normal":  func() sim.Delay { return sim.LogNormal(2, 1) },
		"zero median": func() sim.Delay { return sim.LogNormal(0, 1) },
		"pareto":      func() sim.Delay { return sim.Pareto(2, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
