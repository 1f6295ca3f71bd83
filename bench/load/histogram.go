package load

import (
	"math"
	"math/bits"
	"time"
)

const (
	// subBits: each power of two has 2^subBits buckets, so a quantile is off
	// by less than 1 %.
	subBits = 6
	// topBits: durations of 2^topBits ns, more than an hour, and above share
	// the last bucket.
	topBits = 42
	buckets = (topBits - subBits + 1) << subBits
)

// Histogram counts durations in buckets whose width grows with them. Its zero
// value is empty and ready. It isn't safe for concurrent use: each client has
// its own, and they are merged.
type Histogram struct {
	counts  [buckets]uint32
	count   uint64
	longest time.Duration
}

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) {
	h.counts[bucket(d)]++
	h.count++
	h.longest = max(h.longest, d)
}

// Merge adds what o has counted.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.count += o.count
	h.longest = max(h.longest, o.longest)
}

// Count returns how many durations were counted.
func (h *Histogram) Count() uint64 { return h.count }

// Max returns the longest, exactly.
func (h *Histogram) Max() time.Duration { return h.longest }

// Quantile returns, within 1 %, the smallest duration that a share q of all
// (0 < q ≤ 1) doesn't exceed; 0 if there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(math.Ceil(q * float64(h.count)))
	for i, n := range h.counts {
		if uint64(n) >= rank && rank > 0 {
			return min(middle(i), h.longest)
		}
		rank -= uint64(n)
	}
	return 0
}

// bucket: below 2^subBits ns each duration has its own; above, the leading 1 and
// the subBits that follow it choose the bucket.
func bucket(d time.Duration) int {
	v := uint64(max(d, 0))
	shift := bits.Len64(v) - 1 - subBits
	if shift <= 0 {
		return int(v)
	}
	return min(shift<<subBits+int(v>>shift), buckets-1)
}

// middle returns the duration in the middle of a bucket.
func middle(i int) time.Duration {
	shift := i>>subBits - 1
	if shift <= 0 {
		return time.Duration(i)
	}
	low := uint64(i-shift<<subBits) << shift
	return time.Duration(low + 1<<shift/2)
}
