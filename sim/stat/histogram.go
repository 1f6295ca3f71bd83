package stat

import (
	"cmp"
	"fmt"
	"math/bits"
)

const (
	// bucketBits is the logarithm of the number of buckets for each power of
	// two. Numbers below 1<<bucketBits have a bucket each; above, the leading
	// 1 and the bucketBits bits after it choose the bucket, so that it is at
	// most 1/128 of its numbers wide, and its middle is off by half of that.
	bucketBits = 7
	// million is what quantiles are counted in.
	million = 1_000_000
)

// Quantiles that everybody asks for, in millionths.
const (
	P50     = 500_000
	P90     = 900_000
	P99     = 990_000
	P999    = 999_000
	Largest = million
)

// rankOf returns which of n numbers in rising order, counted from 1, is the
// quantile at perMillion millionths: n * perMillion / 1,000,000, rounded up.
func rankOf(n uint64, perMillion uint32) uint64 {
	if perMillion > million {
		panic(fmt.Sprintf("stat: there is no quantile at %d millionths", perMillion))
	}
	high, low := bits.Mul64(n, uint64(perMillion))
	rank, rest := bits.Div64(high, low, million)
	if rest > 0 || rank == 0 {
		rank++
	}
	return rank
}

// QuantileOf returns the least of some numbers in rising order that perMillion
// millionths of all don't exceed: the definition of Histogram.Quantile, exact.
// There must be a number.
func QuantileOf[T cmp.Ordered](sorted []T, perMillion uint32) T {
	return sorted[rankOf(uint64(len(sorted)), perMillion)-1]
}

// Histogram counts numbers from 0 up: durations in nanoseconds, bytes. It
// grows with the logarithm of the largest number, to 58 KB. The zero Histogram
// is empty and ready. All of it is arithmetic in integers.
type Histogram struct {
	counts      []uint64
	n           uint64
	sum         uint64
	least, most int64
}

// Add counts x. It panics on a negative one: nothing that is measured here can
// be.
func (h *Histogram) Add(x int64) {
	if x < 0 {
		panic(fmt.Sprintf("stat: a histogram can't count %d", x))
	}
	b := bucketOf(uint64(x))
	h.grow(b + 1)
	h.counts[b]++
	if h.n == 0 {
		h.least, h.most = x, x
	}
	h.least, h.most = min(h.least, x), max(h.most, x)
	h.n++
	h.sum += uint64(x)
}

// Merge counts all that o has counted.
func (h *Histogram) Merge(o *Histogram) {
	if o.n == 0 {
		return
	}
	h.grow(len(o.counts))
	for i, c := range o.counts {
		h.counts[i] += c
	}
	if h.n == 0 {
		h.least, h.most = o.least, o.most
	}
	h.least, h.most = min(h.least, o.least), max(h.most, o.most)
	h.n += o.n
	h.sum += o.sum
}

func (h *Histogram) grow(n int) {
	if n > len(h.counts) {
		h.counts = append(h.counts, make([]uint64, n-len(h.counts))...)
	}
}

// N returns how many numbers were counted.
func (h *Histogram) N() uint64 { return h.n }

// Mean returns their mean, exact but for the division; 0 when there are none.
func (h *Histogram) Mean() float64 {
	if h.n == 0 {
		return 0
	}
	return float64(h.sum) / float64(h.n)
}

// Most returns the largest of them, exactly; 0 when there are none.
func (h *Histogram) Most() int64 { return h.most }

// Quantile returns the least number that perMillion millionths of all don't
// exceed: P99 of a hundred numbers is the 99th. It is off by less than half a
// percent, and exact below 128. It is 0 when there are none; perMillion is
// from 0 (the least) to 1,000,000 (the largest).
func (h *Histogram) Quantile(perMillion uint32) int64 {
	if h.n == 0 {
		return 0
	}
	rank := rankOf(h.n, perMillion)
	for i, c := range h.counts {
		if c >= rank {
			return min(max(bucketMiddle(i), h.least), h.most)
		}
		rank -= c
	}
	return h.most
}

func bucketOf(x uint64) int {
	shift := bits.Len64(x) - 1 - bucketBits
	if shift < 0 {
		return int(x)
	}
	return shift<<bucketBits + int(x>>shift)
}

func bucketMiddle(i int) int64 {
	shift := i>>bucketBits - 1
	if shift < 0 {
		return int64(i)
	}
	low := int64(i-shift<<bucketBits) << shift
	return low + int64(1)<<shift/2
}
