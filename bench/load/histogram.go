package load

import (
	"encoding/json"
	"fmt"
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

// sparse is a histogram in JSON: the buckets that have anything in them.
type sparse struct {
	Counts  map[int]uint32
	Longest time.Duration
}

// MarshalJSON returns the histogram for UnmarshalJSON of the same program.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	s := sparse{make(map[int]uint32), h.longest}
	for i, n := range h.counts {
		if n > 0 {
			s.Counts[i] = n
		}
	}
	return json.Marshal(s)
}

// UnmarshalJSON replaces the histogram.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var s sparse
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*h = Histogram{longest: s.Longest}
	for i, n := range s.Counts {
		if i < 0 || i >= buckets {
			return fmt.Errorf("load: a histogram has no bucket %d", i)
		}
		h.counts[i] = n
		h.count += uint64(n)
	}
	return nil
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
