package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestHistogram holds the quantiles against a sorted slice.
func TestHistogram(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 10, 999, 10_000} {
		var parts [3]histogram
		all := make([]time.Duration, n)
		for i := range all {
			all[i] = time.Duration(math.Exp(r.Float64() * math.Log(float64(time.Minute))))
			parts[i%len(parts)].add(all[i])
		}
		h := new(histogram)
		for i := range parts {
			h.merge(&parts[i])
		}
		slices.Sort(all)
		for _, q := range []float64{0.001, 0.5, 0.99, 0.999, 1} {
			want := all[max(1, int(math.Ceil(q*float64(n)-1e-6)))-1]
			got := h.quantile(q)
			if off := math.Abs(float64(got-want)) / float64(want); off > 1.0/128 {
				t.Errorf("n=%d: quantile(%v) = %v, want %v", n, q, got, want)
			}
		}
	}
}

func TestHistogramEdges(t *testing.T) {
	var h histogram
	if got := h.quantile(0.5); got != 0 {
		t.Errorf("quantile of nothing = %v, want 0", got)
	}
	h.add(-time.Second)
	if got := h.quantile(1); got != 0 {
		t.Errorf("a negative duration counts as %v, want 0", got)
	}
	h.add(math.MaxInt64)
	if got := h.quantile(1); got < time.Hour {
		t.Errorf("the longest duration counts as %v, want more than an hour", got)
	}
	for i := range histogramBuckets {
		if got := bucketOf(bucketMiddle(i)); got != i {
			t.Fatalf("the middle of bucket %d is in bucket %d", i, got)
		}
	}
}
