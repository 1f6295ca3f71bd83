package sim

import (
	"math/bits"
	"sort"
)

// Logarithms, powers and the normal distribution in integers. Floating point
// would be faster, and differ from machine to machine in its last bit, and
// with it the trace hash of a seed. Unless said otherwise a number here is an
// uint64 with 32 fractional bits.

const (
	ln2 = 12786308645202655660 // ln 2, of 2^64
	// z99 is the 99th percentile of the standard normal distribution.
	z99 = 2_326_347_874_040 << 32 / 1_000_000_000_000
	// halfLog2E is 1/(2 ln 2), of 2^64: e^(-z*z/2) = 2^(-z*z/(2 ln 2)).
	halfLog2E = 13306513097844322492
	// density is that of the standard normal distribution at 0, 1/sqrt(2 pi),
	// over a step of 2^-normalStepBits, of 2^64.
	density = 7186705221432913
)

// roots are 2^(1/2), 2^(1/4), 2^(1/8), ..., of 2^63.
var roots = [32]uint64{
	0xb504f333f9de6484, 0x9837f0518db8a96f, 0x8b95c1e3ea8bd6e7, 0x85aac367cc487b15,
	0x82cd8698ac2ba1d7, 0x8164d1f3bc030773, 0x80b1ed4fd999ab6c, 0x8058d7d2d5e5f6b1,
	0x802c6436d0e04f51, 0x8016302f17467628, 0x800b179c82028fd1, 0x80058baf7fee3b5d,
	0x8002c5d00fdcfcb7, 0x800162e61bed4a49, 0x8000b17292f702a4, 0x800058b92abbae02,
	0x80002c5c8dade4d7, 0x8000162e44eaf636, 0x80000b1721fa7c19, 0x8000058b90de7e4d,
	0x800002c5c8678f37, 0x80000162e431dba0, 0x800000b1721872d1, 0x80000058b90c1aa9,
	0x8000002c5c8605a4, 0x800000162e4300e6, 0x8000000b17217ff8, 0x800000058b90bfdd,
	0x80000002c5c85fe7, 0x8000000162e42ff2, 0x80000000b17217f8, 0x8000000058b90bfc,
}

// negLog2 returns -log2 of a share of 2^64, which must not be zero: bit by
// bit, by squaring.
func negLog2(share uint64) uint64 {
	n := uint64(bits.LeadingZeros64(share))
	m := share << n // of 2^63: from 1 to 2
	var fraction uint64
	for range 32 {
		hi, lo := bits.Mul64(m, m)
		fraction <<= 1
		if m = hi; hi>>63 == 0 {
			m = hi<<1 | lo>>63
		} else {
			fraction |= 1
		}
	}
	return (n+1)<<32 - fraction
}

// log2 returns the logarithm of a whole number above zero.
func log2(v uint64) uint64 { return 64<<32 - negLog2(v) }

// scale returns v times 2^x, at most 2^62; v may have any number of fractional
// bits.
func scale(v uint64, x int64) uint64 {
	r := uint64(1) << 63
	for i, root := range roots {
		if uint32(x)>>(31-i)&1 == 1 {
			hi, lo := bits.Mul64(r, root)
			r = hi<<1 | lo>>63
		}
	}
	hi, lo := bits.Mul64(v, r)
	v = hi<<1 | lo>>63
	switch shift := x >> 32; {
	case v == 0 || shift <= 0:
		return v >> uint(-shift)
	case shift+int64(bits.Len64(v)) > 62:
		return 1 << 62
	default:
		return v << uint(shift)
	}
}

const (
	normalStepBits = 10
	normalEnd      = 8 // beyond that many standard deviations is nothing
)

// normal is the upper tail of the standard normal distribution: the share of
// 2^64 above each step of 2^-normalStepBits standard deviations from 0.
type normal []uint64

// newNormal integrates the density from the far end, so that small tails are
// as exact as large ones.
func newNormal() normal {
	n := make(normal, normalEnd<<normalStepBits+1)
	for i := len(n) - 2; i >= 0; i-- {
		middle := uint64(2*i + 1) // in half steps
		x, _ := bits.Mul64(middle*middle<<(32-2*normalStepBits-2), halfLog2E)
		n[i] = n[i+1] + scale(density, -int64(x))
	}
	return n
}

// quantile returns how many standard deviations leave a tail above them, which
// must be at most half of 2^64.
func (n normal) quantile(tail uint64) uint64 {
	i := sort.Search(len(n), func(i int) bool { return n[i] < tail })
	if i == 0 {
		return 0
	}
	if i == len(n) {
		return normalEnd << 32
	}
	high, low := n[i-1], n[i]
	hi, lo := bits.Mul64(high-tail, 1<<(32-normalStepBits))
	part, _ := bits.Div64(hi, lo, high-low)
	return uint64(i-1)<<(32-normalStepBits) + part
}
