package stat

import (
	"fmt"
	"math"
)

// Sample takes figures, one from each seed, and remembers their number, mean,
// variance and range. The zero Sample is empty and ready.
type Sample struct {
	n           int
	mean        float64
	squares     float64 // sum of the squared distances from the mean
	least, most float64
}

// Add takes a figure. One that is no number, or infinite, is a figure that the
// run doesn't have: the caller leaves it out. Add panics on it, because it
// would spoil the mean of all others silently.
func (s *Sample) Add(x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		panic(fmt.Sprintf("stat: %v is no figure", x))
	}
	if s.n == 0 {
		s.least, s.most = x, x
	}
	s.least, s.most = min(s.least, x), max(s.most, x)
	s.n++
	// Welford's recurrence: it subtracts before it squares, so that a large
	// mean with a small variance loses no digits.
	before := x - s.mean
	s.mean += before / float64(s.n)
	s.squares += float64(before * (x - s.mean))
}

// N returns how many figures were added.
func (s *Sample) N() int { return s.n }

// Mean returns their mean, 0 when there are none.
func (s *Sample) Mean() float64 { return s.mean }

// Range returns the least and the most of them, 0 when there are none.
func (s *Sample) Range() (least, most float64) { return s.least, s.most }

// Deviation returns their standard deviation, with n-1 in the denominator; 0
// for fewer than two.
func (s *Sample) Deviation() float64 {
	if s.n < 2 {
		return 0
	}
	return math.Sqrt(s.squares / float64(s.n-1))
}

// Interval returns the mean and its 95 % confidence interval.
func (s *Sample) Interval() Interval {
	i := Interval{N: s.n, Mean: s.mean}
	if s.n >= 2 {
		i.Half = Student(s.n-1) * s.Deviation() / math.Sqrt(float64(s.n))
	}
	return i
}

// Interval is a mean of N figures and how far off it may be: the true mean is
// within Half of it, with a confidence of 95 %.
type Interval struct {
	N    int
	Mean float64
	// Half is half of the interval's width. It means something only when
	// Known says so.
	Half float64
}

// Known reports whether Half means something: one figure says nothing about
// how far figures scatter.
func (i Interval) Known() bool { return i.N >= 2 }

// Low returns where the interval begins.
func (i Interval) Low() float64 { return i.Mean - i.Half }

// High returns where the interval ends.
func (i Interval) High() float64 { return i.Mean + i.Half }

// Apart reports whether the interval is known and leaves zero out: a
// difference that is Apart is more than chance explains, at the level of 5 %.
// Who looks at twenty figures must expect to see one of them Apart by chance.
func (i Interval) Apart() bool { return i.Known() && (i.Low() > 0 || i.High() < 0) }

// Pairs compares two settings, seed by seed. The zero Pairs is empty and
// ready.
type Pairs struct{ base, other, difference Sample }

// Add takes the figures that both settings had with one seed.
func (p *Pairs) Add(base, other float64) {
	p.base.Add(base)
	p.other.Add(other)
	p.difference.Add(other - base)
}

// Base returns the mean of the first setting over the seeds of the pairs.
func (p *Pairs) Base() Interval { return p.base.Interval() }

// Other returns that of the second.
func (p *Pairs) Other() Interval { return p.other.Interval() }

// Difference returns the mean of other - base with its interval: that of the
// differences, which common random numbers make narrow, not that of two
// independent means.
func (p *Pairs) Difference() Interval { return p.difference.Interval() }

// Change returns the difference as a share of the mean of the base: -0.25 when
// other is a quarter less. It is 0, false when that mean is 0.
func (p *Pairs) Change() (share float64, ok bool) {
	if p.base.mean == 0 {
		return 0, false
	}
	return p.difference.mean / p.base.mean, true
}
