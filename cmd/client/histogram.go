package main

import (
	"math/bits"
	"time"
)

// A histogram counts durations in buckets that are 1/128 of their size wide,
// so that a quantile is off by less than 1 %. Counting costs an index and an
// addition; there is one for each client, and they are merged at the end.
type histogram struct {
	counts [histogramBuckets]uint32
	n      uint64
}

const (
	// histogramBits is the logarithm of the number of buckets for each power
	// of two.
	histogramBits = 7
	// histogramRange is the logarithm of the longest duration told apart:
	// 2^42 ns, more than an hour.
	histogramRange   = 42
	histogramBuckets = (histogramRange - histogramBits + 1) << histogramBits
)

func (h *histogram) add(d time.Duration) {
	h.counts[bucketOf(d)]++
	h.n++
}

func (h *histogram) merge(o *histogram) {
	for i, c := range o.counts {
		h.counts[i] += c
	}
	h.n += o.n
}

// quantile returns the smallest duration that a share q of all, 0 < q ≤ 1,
// doesn't exceed; 0 if there is none.
func (h *histogram) quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	left := max(1, uint64(q*float64(h.n)+0.999999))
	for i, c := range h.counts {
		if uint64(c) >= left {
			return bucketMiddle(i)
		}
		left -= uint64(c)
	}
	return bucketMiddle(histogramBuckets - 1)
}

// bucketOf: durations below 2^histogramBits ns have a bucket each; above, the
// leading 1 and the histogramBits after it choose the bucket.
func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0))
	shift := bits.Len64(v) - 1 - histogramBits
	if shift < 0 {
		return int(v)
	}
	i := shift<<histogramBits + int(v>>shift)
	return min(i, histogramBuckets-1)
}

func bucketMiddle(i int) time.Duration {
	shift := i>>histogramBits - 1
	if shift < 0 {
		return time.Duration(i)
	}
	low := uint64(i-shift<<histogramBits) << shift
	return time.Duration(low + 1<<shift/2)
}
