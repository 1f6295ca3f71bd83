package scenario

import "math/bits"

// million is what chances are counted in.
const million = 1_000_000

// mix spreads every bit of x over the whole result (the finalizer of
// splitmix64, which is a bijection).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// stream returns the base of the draws for one purpose, that no other purpose
// shares.
func stream(seed uint64, purpose string) uint64 {
	h := mix(seed + 0x9e3779b97f4a7c15)
	for i := range len(purpose) {
		h = mix(h ^ uint64(purpose[i]))
	}
	return h
}

// below returns a number below n for a draw.
func below(draw uint64, n int) int {
	hi, _ := bits.Mul64(draw, uint64(n))
	return int(hi)
}

// dice draws one number after another.
type dice struct{ base, drawn uint64 }

func newDice(seed uint64, purpose string) *dice { return &dice{base: stream(seed, purpose)} }

func (d *dice) next() uint64 {
	d.drawn++
	return mix(d.base ^ mix(d.drawn))
}

// below draws a number from 0 to n-1.
func (d *dice) below(n int) int { return below(d.next(), n) }

// between draws a number from low to high.
func (d *dice) between(low, high int) int { return low + d.below(high-low+1) }

// one draws whether something with a chance of one in n happens.
func (d *dice) one(n int) bool { return d.below(n) == 0 }

// around draws a duration from 0 to twice the mean, not 0 itself.
func (d *dice) around(mean Duration) Duration {
	return 1 + Duration(d.below(int(min(2*mean, Duration(maxDuration)))+1))
}

// shuffle puts s into a drawn order.
func shuffle[T any](d *dice, s []T) {
	for i := len(s) - 1; i > 0; i-- {
		j := d.below(i + 1)
		s[i], s[j] = s[j], s[i]
	}
}
