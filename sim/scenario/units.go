package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/sim"
)

// Duration is a time.Duration that is a text in files: "1.5s", "20ms".
type Duration time.Duration

// String returns the text.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	parsed, err := time.ParseDuration(string(b))
	if err != nil {
		return &textError{text: string(b), want: `a duration with its unit, such as "20ms"`}
	}
	*d = Duration(parsed)
	return nil
}

// Delay is the text of a distribution of durations:
//
//	1ms                   always that
//	uniform 1ms 5ms       every duration between, equally often
//	table 1ms 2ms 9ms     points of the inverse cumulative distribution
//	                      function at equal steps of probability, with straight
//	                      lines between: below 2ms half of the time
//	exponential 2ms       by its mean
//	lognormal 2ms 9ms     by its median and its 99th percentile
//	pareto 1ms 9ms        by the least, and its 99th percentile
type Delay string

// delay is a parsed Delay.
type delay struct {
	sim.Delay
	// bound is the largest value; of those that have a tail, the 99th
	// percentile.
	bound time.Duration
}

// exponentialP99 is the 99th percentile of an exponential distribution, in
// thousandths of its mean.
const exponentialP99 = 4605

// delayExamples has one of each kind.
const delayExamples = "1ms; uniform 1ms 5ms; table 1ms 2ms 9ms; exponential 2ms; lognormal 2ms 9ms; pareto 1ms 9ms"

func (d Delay) parse() (delay, error) {
	kind, p, err := d.words()
	if err != nil {
		return delay{}, err
	}
	switch {
	case kind == "constant" && len(p) == 1:
		return delay{sim.Constant(p[0]), p[0]}, nil
	case kind == "uniform" && len(p) == 2:
		return delay{sim.Uniform(p[0], p[1]), p[1]}, nil
	case kind == "table" && len(p) >= 2:
		return delay{sim.Table(p...), p[len(p)-1]}, nil
	case kind == "exponential" && len(p) == 1:
		return delay{sim.Exponential(p[0]), p[0] * exponentialP99 / 1000}, nil
	case kind == "lognormal" && len(p) == 2 && p[0] > 0:
		return delay{sim.LogNormal(p[0], p[1]), p[1]}, nil
	case kind == "pareto" && len(p) == 2 && p[0] > 0:
		return delay{sim.Pareto(p[0], p[1]), p[1]}, nil
	}
	return delay{}, fmt.Errorf("delay %q is none of: %s", d, delayExamples)
}

// words returns the kind of distribution, and its parameters, which rise.
func (d Delay) words() (kind string, parameters []time.Duration, err error) {
	words := strings.Fields(string(d))
	kind = "constant"
	if len(words) > 1 {
		kind, words = words[0], words[1:]
	}
	if !slices.Contains([]string{"constant", "uniform", "table", "exponential", "lognormal", "pareto"}, kind) {
		return "", nil, fmt.Errorf("delay %q: there is no distribution %q; there are %s", d, kind, delayExamples)
	}
	for i, w := range words {
		p, err := time.ParseDuration(w)
		switch {
		case err != nil:
			return "", nil, fmt.Errorf("delay %q: %w", d, err)
		case p < 0 || p > maxDelay || i > 0 && p < parameters[i-1]:
			return "", nil, fmt.Errorf("delay %q: durations must rise, from 0 to %v at most", d, maxDelay)
		}
		parameters = append(parameters, p)
	}
	return kind, parameters, nil
}

// maxDelay bounds the parameters of a Delay, so that a multiple of it is one.
const maxDelay = time.Minute

// times returns the distribution of which every value is n times that of d.
func (d Delay) times(n int) Delay {
	kind, parameters, err := d.words()
	if err != nil {
		panic(err) // it was parsed before
	}
	var b strings.Builder
	if kind != "constant" {
		b.WriteString(kind)
	}
	for _, p := range parameters {
		fmt.Fprintf(&b, " %v", min(p*time.Duration(n), maxDelay))
	}
	return Delay(b.String())
}

// mustParse parses a Delay that was checked.
func (d Delay) mustParse() sim.Delay {
	parsed, err := d.parse()
	if err != nil {
		panic(err)
	}
	return parsed.Delay
}

func (d Delay) bound() time.Duration {
	parsed, err := d.parse()
	if err != nil {
		return 0 // Check says so
	}
	return parsed.bound
}

// link returns what every way is like without faults.
func (s Scenario) link() sim.Link {
	n := s.Network
	return sim.Link{Delay: n.Delay.mustParse(), Loss: n.Loss, Duplicate: n.Duplicate, Ordered: n.Ordered}
}
