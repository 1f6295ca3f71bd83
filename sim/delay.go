package sim

import (
	"math/bits"
	"slices"
	"time"

	"atoll/quorum"
)

// Delay is a distribution of durations, as a table of its inverse cumulative
// distribution function: points from the smallest to the largest, with
// straight lines between. It is evaluated in integers, so that it gives the
// same on every machine. The zero Delay is always zero. A Delay is a value that
// never changes: make it once and use it for as many links as you like.
type Delay struct {
	points []time.Duration
	// octaves: the points stand at equal steps of probability between 0 and
	// 1/2, then as many between 1/2 and 3/4, 3/4 and 7/8, and so on: the tail
	// is as exact as the rest. Otherwise all steps are equal.
	octaves bool
}

// longestDelay is where the tails of distributions end.
const longestDelay = 24 * time.Hour

// A distribution with a tail ends at its quantile of one in 2^delayOctaves,
// since a table has to end somewhere.
const (
	delayOctaves = 25
	octaveSteps  = 64
)

// Constant returns the Delay that is always d.
func Constant(d time.Duration) Delay { return Delay{points: []time.Duration{d}} }

// Uniform returns the Delay that takes every duration from low to high with
// the same probability.
func Uniform(low, high time.Duration) Delay { return Table(low, high) }

// Table returns the Delay with the given points, in rising order: Table(1, 2,
// 9) is below 2 half of the time. It is how a measured distribution gets in.
func Table(points ...time.Duration) Delay {
	for i, p := range points {
		if p < 0 || i > 0 && p < points[i-1] {
			panic("sim: the points of a Delay must rise, from zero at least")
		}
	}
	return Delay{points: points}
}

// Exponential returns the Delay of what happens at a constant rate, once
// every mean.
func Exponential(mean time.Duration) Delay {
	mustRise(0, mean)
	return fromQuantiles(func(tail uint64) time.Duration {
		nats, _ := bits.Mul64(negLog2(tail), ln2)
		return clampDelay(bits.Mul64(uint64(mean), nats))
	})
}

// LogNormal returns the Delay whose logarithm has a normal distribution, by
// its median and its 99th percentile: sigma is ln(p99/median)/2.3263. That is
// what round trips over the internet look like.
func LogNormal(median, p99 time.Duration) Delay {
	mustRise(1, median, p99)
	// Per standard deviation, in powers of two.
	spread, _ := bits.Div64(share(log2(uint64(p99))-log2(uint64(median)), z99))
	z := newNormal()
	return fromQuantiles(func(tail uint64) time.Duration {
		below := tail > 1<<63
		if below {
			tail = -tail
		}
		hi, lo := bits.Mul64(z.quantile(tail), spread)
		x := int64(hi<<32 | lo>>32)
		if below {
			x = -x
		}
		return time.Duration(min(scale(uint64(median), x), uint64(longestDelay)))
	})
}

// Pareto returns the Delay that is least at least and has a heavy tail, by its
// 99th percentile: alpha is ln(100)/ln(p99/least). With alpha below 2, so p99
// above ten times least, the variance is infinite but for the end of the table.
func Pareto(least, p99 time.Duration) Delay {
	mustRise(1, least, p99)
	ratio, hundred := log2(uint64(p99))-log2(uint64(least)), log2(100)
	return fromQuantiles(func(tail uint64) time.Duration {
		hi, lo := bits.Mul64(negLog2(tail), ratio)
		x, _ := bits.Div64(hi, lo, hundred)
		return time.Duration(min(scale(uint64(least), int64(x)), uint64(longestDelay)))
	})
}

func mustRise(d ...time.Duration) {
	if d[0] < 0 || !slices.IsSorted(d) || d[len(d)-1] > longestDelay {
		panic("sim: the parameters of a Delay must rise, and a day is the most")
	}
}

// share returns a/b for two numbers with 32 fractional bits as operands of
// bits.Div64, which yields as many.
func share(a, b uint64) (hi, lo, by uint64) { return a >> 32, a << 32, b }

// clampDelay returns a product whose second factor had 32 fractional bits.
func clampDelay(hi, lo uint64) time.Duration {
	if hi >= 1<<31 {
		return longestDelay
	}
	return min(time.Duration(hi<<32|lo>>32), longestDelay)
}

// fromQuantiles makes a table in octaves. The quantile is a function of the
// share, of 2^64, that lies above.
func fromQuantiles(quantile func(tail uint64) time.Duration) Delay {
	points := make([]time.Duration, 0, delayOctaves*octaveSteps+1)
	for octave := range delayOctaves {
		above := ^uint64(0) >> octave
		for i := range uint64(octaveSteps) {
			points = append(points, quantile(above-above/(2*octaveSteps)*i))
		}
	}
	points = append(points, quantile(^uint64(0)>>delayOctaves))
	return Delay{points, true}
}

// at returns the duration for a draw.
func (d Delay) at(u uint64) time.Duration {
	last := len(d.points) - 1
	switch last {
	case -1:
		return 0
	case 0:
		return d.points[0]
	}
	var i, fraction uint64
	if d.octaves {
		octave := bits.LeadingZeros64(^u)
		if octave >= delayOctaves {
			return d.points[last]
		}
		// How far down from the octave's upper end, of 2^64.
		down := ^(^u << octave) << 1
		i, fraction = bits.Mul64(down, octaveSteps)
		i += uint64(octave) * octaveSteps
	} else {
		i, fraction = bits.Mul64(u, uint64(last))
	}
	low, high := d.points[i], d.points[i+1]
	part, _ := bits.Mul64(uint64(high-low), fraction)
	return low + time.Duration(part)
}

// zero reports whether d is the zero Delay.
func (d Delay) zero() bool { return len(d.points) == 0 }

// Max returns the largest duration that d takes.
func (d Delay) Max() time.Duration {
	if d.zero() {
		return 0
	}
	return d.points[len(d.points)-1]
}

// Quantile returns the duration below which d is with the given chance per
// million.
func (d Delay) Quantile(perMillion uint32) time.Duration {
	if perMillion >= million {
		return d.Max()
	}
	u, _ := bits.Div64(uint64(perMillion), 0, million)
	return d.at(u)
}

// Plus returns d and a constant: a way that takes base at least.
func (d Delay) Plus(base time.Duration) Delay {
	if d.zero() {
		return Constant(base)
	}
	return d.each(func(p time.Duration) time.Duration { return p + base })
}

// Times returns d so many times as long.
func (d Delay) Times(factor int) Delay {
	return d.each(func(p time.Duration) time.Duration { return p * time.Duration(factor) })
}

func (d Delay) each(f func(time.Duration) time.Duration) Delay {
	points := make([]time.Duration, len(d.points))
	for i, p := range d.points {
		points[i] = min(f(p), longestDelay)
	}
	return Delay{points, d.octaves}
}

// Matrix is the one-way delays between places: m[i][j] from place i to place
// j.
type Matrix [][]time.Duration

// Link returns a Config.Link: the matrix says how long the way from one place
// to another takes at least, place where a process is, and way what links are
// like beside (its Delay comes on top).
func (m Matrix) Link(place func(quorum.NodeID) int, way Link) func(from, to quorum.NodeID) Link {
	delays := make([][]Delay, len(m)) // a table is made once a pair of places, not once a pair of nodes
	for i, row := range m {
		if len(row) != len(m) {
			panic("sim: a Matrix must be square")
		}
		delays[i] = make([]Delay, len(row))
		for j, d := range row {
			delays[i][j] = way.Delay.Plus(d)
		}
	}
	return func(from, to quorum.NodeID) Link {
		l := way
		l.Delay = delays[place(from)][place(to)]
		return l
	}
}
