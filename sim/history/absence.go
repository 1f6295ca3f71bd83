package history

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// window is a span of time in which some delete must take effect to explain
// the read at a place, or in which the delete at that place can take effect.
type window struct {
	place    int
	from, to time.Duration
	// behind is the index in zones of the value that must be gone before the
	// read.
	behind int
}

// absence judges the reads that found nothing, and the deletes. Why it is
// right is in docs/adr/0006-zone-test-oracle.md.
//
// Each value of which an operation ended before a read was called was there
// before the read, so all operations on it precede the delete that the read
// saw: its window begins with the latest call among them.
func (r *register) absence() *Violation {
	deletes := make([]window, 0, len(r.deletes))
	for _, at := range r.deletes {
		op := &r.h[at]
		end := op.Return
		if op.Outcome == Unknown {
			end = never
		}
		if v := r.around(op.Call, end); v != nil {
			return r.resurrected(at, v)
		}
		deletes = append(deletes, window{place: at, from: op.Call, to: end})
	}
	var reads []window
	slices.SortFunc(r.absent, func(a, b int) int { return cmp.Compare(r.h[a].Call, r.h[b].Call) })
	next, from, behind := 0, time.Duration(0), -1
	for _, at := range r.absent {
		op := &r.h[at]
		if v := r.around(op.Call, op.Return); v != nil {
			return r.lostValue(at, v)
		}
		for ; next < len(r.zones) && r.zones[next].first < op.Call; next++ {
			if behind < 0 || r.zones[next].last > from {
				from, behind = r.zones[next].last, next
			}
		}
		if behind >= 0 { // else nothing was there yet
			reads = append(reads, window{place: at, from: from, to: r.outside(op.Return), behind: behind})
		}
	}
	return r.assign(reads, deletes)
}

// outside returns the latest time up to t at which no value is held.
func (r *register) outside(t time.Duration) time.Duration {
	if v := r.around(t, t); v != nil {
		return v.first
	}
	return t
}

// assign gives each delete one point in its window, so that the window of
// each read has at least one, if that can be done.
//
// Reads are taken in the order in which their windows end. A delete whose
// window ends before that of the first read that has no point yet is best put
// at its own end: no later choice helps more reads. If the read has no point
// even so, one of the deletes that can still reach the read's end must be put
// there: the later the better for the reads that follow, and as all of those
// deletes can reach it, best the one that would end first.
func (r *register) assign(reads, deletes []window) *Violation {
	slices.SortStableFunc(reads, func(a, b window) int { return cmp.Compare(a.to, b.to) })
	slices.SortFunc(deletes, func(a, b window) int { return cmp.Compare(a.from, b.from) })
	var (
		open   byEnd
		next   int
		latest time.Duration // point: each is later than those before
		placed bool          // any
		used   []use
	)
	for i := range reads {
		read := &reads[i]
		for ; next < len(deletes) && deletes[next].from <= read.to; next++ {
			heap.Push(&open, &deletes[next])
		}
		for len(open) > 0 && open[0].to < read.to {
			latest, placed = heap.Pop(&open).(*window).to, true
		}
		if placed && latest >= read.from {
			continue
		}
		if len(open) == 0 {
			return r.unexplained(read, used)
		}
		used = append(used, use{delete: heap.Pop(&open).(*window), read: read})
		latest, placed = read.to, true
	}
	return nil
}

// use tells that a delete was needed for a read.
type use struct{ delete, read *window }

// byEnd is a heap of windows, the one that ends first on top.
type byEnd []*window

func (b byEnd) Len() int           { return len(b) }
func (b byEnd) Less(i, j int) bool { return b[i].to < b[j].to }
func (b byEnd) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *byEnd) Push(x any)        { *b = append(*b, x.(*window)) }
func (b *byEnd) Pop() any {
	last := (*b)[len(*b)-1]
	*b = (*b)[:len(*b)-1]
	return last
}
