package history

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

// never is when an operation ends that may take effect at any time.
const never = time.Duration(math.MaxInt64)

// register judges the operations on one key, then those on the next. Places
// are indices in h.
type register struct {
	h History
	// part holds the places of the key's operations.
	part []int
	// byValue holds the index of each value in values. It has had room for
	// so many.
	byValue map[string]int
	room    int
	values  []value
	// zones are the values that the register had, in the order of first.
	zones []value
	// held are the zones with first < last, in the same order.
	held []value
	// absent are the places of the reads that found nothing, deletes those of
	// the deletes that may have taken effect.
	absent, deletes []int
}

// value is a value that was written, with its zone: what all operations on it
// tell together of when it was there.
type value struct {
	write int // place
	// first is the earliest return of an operation on the value: it had been
	// there by then. last is the latest call: it was there then or later. If
	// first < last, it was there all the time between.
	first, last     time.Duration
	firstOp, lastOp int // places
	// there tells that the write certainly took effect.
	there bool
}

// check judges a key.
func (r *register) check(p part) (*Violation, error) {
	r.part = p.places
	if p.writes > r.room || p.writes < r.room/4 {
		// To clear a map takes as long as it has room: one large register
		// would burden all small ones after it.
		r.byValue, r.room = make(map[string]int, p.writes), p.writes
	} else {
		clear(r.byValue)
	}
	r.values = slices.Grow(r.values[:0], p.writes)
	r.zones, r.held = r.zones[:0], r.held[:0]
	r.absent, r.deletes = r.absent[:0], r.deletes[:0]
	if err := r.writes(); err != nil {
		return nil, err
	}
	if v := r.reads(); v != nil {
		return v, nil
	}
	if v := r.conflicts(); v != nil {
		return v, nil
	}
	return r.absence(), nil
}

// writes collects values and deletes.
func (r *register) writes() error {
	for _, at := range r.part {
		op := &r.h[at]
		end := op.Return
		if op.Outcome == Unknown {
			end = never
		}
		switch {
		case op.Kind == Delete && op.Outcome != Failed:
			r.deletes = append(r.deletes, at)
		case op.Kind == Write:
			r.byValue[op.Value] = len(r.values)
			if len(r.byValue) == len(r.values) {
				return &InvalidError{At: at, Operation: *op, Reason: "its value was already written to this key, " +
					"so reads of it don't tell what they saw"}
			}
			r.values = append(r.values, value{write: at, first: end, last: op.Call, firstOp: at, lastOp: at,
				there: op.Outcome == OK})
		}
	}
	return nil
}

// reads adds what reads found to the values' zones.
func (r *register) reads() *Violation {
	for _, at := range r.part {
		op := &r.h[at]
		switch {
		case op.Kind != Read || op.Outcome != OK:
			continue // tells nothing
		case !op.Found:
			r.absent = append(r.absent, at)
			continue
		}
		i, ok := r.byValue[op.Value]
		if !ok {
			return r.fromNowhere(at)
		}
		v := &r.values[i]
		switch write := &r.h[v.write]; {
		case write.Outcome == Failed:
			return r.fromFailed(at, v)
		case op.Return < write.Call:
			return r.fromFuture(at, v)
		}
		v.there = true
		if op.Return < v.first {
			v.first, v.firstOp = op.Return, at
		}
		if op.Call > v.last {
			v.last, v.lastOp = op.Call, at
		}
	}
	return nil
}

// conflicts looks for two values of which each was there before the other:
// an operation on each returned before one on the other was called. Of two
// such values at least one was held.
func (r *register) conflicts() *Violation {
	for _, v := range r.values {
		if v.there {
			r.zones = append(r.zones, v)
		}
	}
	slices.SortFunc(r.zones, func(a, b value) int { return cmp.Compare(a.first, b.first) })
	for i, v := range r.zones {
		if v.first >= v.last {
			continue
		}
		// What was held before v has ended before its neighbour began, and
		// so on, so the nearest tells of all.
		if n := len(r.held); n > 0 && r.held[n-1].last > v.first {
			return r.interleaved(&r.held[n-1], &r.zones[i])
		}
		r.held = append(r.held, v)
	}
	for i, v := range r.zones {
		if v.first < v.last {
			continue
		}
		if around := r.around(v.last, v.first); around != nil {
			return r.interleaved(around, &r.zones[i])
		}
	}
	return nil
}

// around returns the value that was held from before one time until after
// another, or nil.
func (r *register) around(from, to time.Duration) *value {
	n := sort.Search(len(r.held), func(i int) bool { return r.held[i].first >= from })
	if n > 0 && r.held[n-1].last > to {
		return &r.held[n-1]
	}
	return nil
}
