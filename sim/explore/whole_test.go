package explore

import (
	"maps"
	"slices"

	"atoll/sim/scenario"
)

// ExploreWhole is what Explore is with Options.Plain, made of whole worlds: the same
// states, a thousand times as slowly. It is there to be compared with.
//
// A world can't be copied, for its callers can't be. So there is one, which goes
// on from where it stands as long as it can, and begins anew and is brought back
// by the same moves where it can't.
func ExploreWhole(scope Scope) (r Report, err error) {
	b, err := newBeginning(&scope, scenario.Mutants{}, true)
	if err != nil {
		return r, err
	}
	x, err := b.world(nil)
	if err != nil {
		return r, err
	}
	defer func() { x.w.Close() }()
	spent := false // x has nowhere to go, but another one may
	var done path
	var left [][]move // to be made, behind each of those that are done
	seen, outcomes := make(map[uint64]bool), make(map[string]bool)
	arrive := func() {
		var next []move
		if state := x.state(); !seen[state] {
			seen[state] = true
			if r.States, next = r.States+1, x.moves(); len(next) == 0 {
				r.Ends++
				outcomes[x.judge.outcome()] = true
			}
		}
		left = append(left, next)
	}
	for arrive(); len(left) > 0; {
		last := len(left) - 1
		if len(left[last]) == 0 {
			left, done = left[:last], done[:max(0, last-1)]
			continue
		}
		m := left[last][0]
		left[last] = left[last][1:]
		if spent {
			next, err := b.worldAfter(done, nil)
			if err != nil {
				return r, err
			}
			x.w.Close()
			x = next
		}
		if err := x.do(m); err != nil {
			return r, err
		}
		left[last] = append(left[last], x.variants(m)...)
		done = append(done, m)
		r.Moves++
		r.Depth = max(r.Depth, len(done))
		if x.judge.violation != nil {
			r.Violation = x.judge.violation
			r.Violation.Path = done.String()
			return r, nil
		}
		arrive()
		spent = len(left[len(left)-1]) == 0
	}
	r.Complete = true
	r.Outcomes = slices.Sorted(maps.Keys(outcomes))
	return r, nil
}

// state returns a hash of all that what follows, and what is found wrong with
// it, depends on.
func (x *world) state() uint64 {
	beside := []uint64{uint64(x.crashes), uint64(x.lost), 0, x.judge.state()}
	if x.hanging != nil {
		beside[2] = bit(x.hanging)
	}
	for i := range x.operations {
		o, s := &x.operations[i], uint64(0)
		if o.scope != nil {
			s |= 1
		}
		if o.ended {
			s |= 2
		}
		beside = append(beside, s)
	}
	return x.w.State(beside...)
}
