package scenario

import (
	"fmt"
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
	*d = Duration(parsed)
	return err
}

// Delay is the text of a distribution of durations:
//
//	1ms                  always that
//	uniform 1ms 5ms      every duration between, equally often
//	table 1ms 2ms 9ms    points of the inverse cumulative distribution
//	                     function at equal steps of probability, with straight
//	                     lines between: below 2ms half of the time
type Delay string

// parse returns the distribution and its largest value.
func (d Delay) parse() (parsed delay, err error) {
	words := strings.Fields(string(d))
	kind := "constant"
	if len(words) > 1 {
		kind, words = words[0], words[1:]
	}
	points := make([]time.Duration, len(words))
	for i, w := range words {
		if points[i], err = time.ParseDuration(w); err != nil {
			return delay{}, fmt.Errorf("delay %q: %w", d, err)
		}
		if points[i] < 0 || i > 0 && points[i] < points[i-1] {
			return delay{}, fmt.Errorf("delay %q: durations must rise from zero", d)
		}
	}
	switch {
	case kind == "constant" && len(points) == 1:
		return delay{sim.Constant(points[0]), points[0]}, nil
	case kind == "uniform" && len(points) == 2:
		return delay{sim.Uniform(points[0], points[1]), points[1]}, nil
	case kind == "table" && len(points) >= 2:
		return delay{sim.Table(points...), points[len(points)-1]}, nil
	}
	return delay{}, fmt.Errorf("delay %q is none of \"1ms\", \"uniform 1ms 5ms\", \"table 1ms 2ms 9ms\"", d)
}

// delay is a parsed Delay.
type delay struct {
	sim.Delay
	largest time.Duration
}

func (d Delay) bound() time.Duration {
	parsed, err := d.parse()
	if err != nil {
		return 0 // Check says so
	}
	return parsed.largest
}
