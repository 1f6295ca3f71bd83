package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Rule names a way in which a register can go wrong.
type Rule string

// The rules: each says what happened.
const (
	FromNowhere Rule = "a read found a value that nobody wrote"
	FromFailed  Rule = "a read found the value of a write that had failed"
	FromFuture  Rule = "a read found a value before its write began"
	Interleaved Rule = "each of two values was there before the other"
	LostValue   Rule = "a read found nothing while a value was there"
	Resurrected Rule = "a value was there before and after a delete"
	Unexplained Rule = "a read found nothing, and no delete explains it"
)

// Violation is a proof that a history isn't linearizable.
type Violation struct {
	// Key is the register.
	Key string
	// Rule is what happened, the same for all violations of its kind.
	Rule Rule
	// Detail tells it of the operations at hand, in a sentence.
	Detail string
	// Operations are those that Detail speaks of, in the order of their
	// calls.
	Operations []Operation
	// Register is the history of the key, in the order of calls.
	Register []Operation
}

// violation returns a violation by the operations at some places.
func (r *register) violation(rule Rule, detail string, places ...int) *Violation {
	v := &Violation{Key: r.h[r.part[0]].Key, Rule: rule, Detail: detail}
	slices.Sort(places)
	for _, at := range slices.Compact(places) {
		v.Operations = append(v.Operations, r.h[at])
	}
	for _, at := range r.part {
		v.Register = append(v.Register, r.h[at])
	}
	byCall := func(a, b Operation) int { return cmp.Compare(a.Call, b.Call) }
	slices.SortStableFunc(v.Operations, byCall)
	slices.SortStableFunc(v.Register, byCall)
	return v
}

// tell returns an operation for a sentence.
func (r *register) tell(at int) string { return r.h[at].tell() }

func (r *register) fromNowhere(read int) *Violation {
	return r.violation(FromNowhere, fmt.Sprintf("%s, and no write to the key has that value", r.tell(read)), read)
}

func (r *register) fromFailed(read int, v *value) *Violation {
	return r.violation(FromFailed, fmt.Sprintf("%s, though %s", r.tell(read), r.tell(v.write)), read, v.write)
}

func (r *register) fromFuture(read int, v *value) *Violation {
	return r.violation(FromFuture, fmt.Sprintf("%s, before %s", r.tell(read), r.tell(v.write)), read, v.write)
}

func (r *register) interleaved(v, w *value) *Violation {
	return r.violation(Interleaved, fmt.Sprintf("%s and %s; but %s and %s",
		r.tell(v.firstOp), r.after(w.lastOp), r.tell(w.firstOp), r.after(v.lastOp)),
		v.write, v.firstOp, v.lastOp, w.write, w.firstOp, w.lastOp)
}

func (r *register) after(at int) string { return "only then " + r.tell(at) }

func (r *register) lostValue(read int, v *value) *Violation {
	return r.violation(LostValue, fmt.Sprintf("%s, then %s, and only then %s",
		r.tell(v.firstOp), r.tell(read), r.tell(v.lastOp)), v.write, v.firstOp, v.lastOp, read)
}

func (r *register) resurrected(del int, v *value) *Violation {
	return r.violation(Resurrected, fmt.Sprintf("%s, then %s, and only then %s",
		r.tell(v.firstOp), r.tell(del), r.tell(v.lastOp)), v.write, v.firstOp, v.lastOp, del)
}

// unexplained tells of a read for which no delete is left: used are those
// that could have explained it, were they not needed by other reads.
func (r *register) unexplained(read *window, used []use) *Violation {
	v := &r.zones[read.behind]
	places := []int{read.place, v.write, v.firstOp, v.lastOp}
	var others strings.Builder
	for _, u := range used {
		if u.delete.from <= read.to && u.delete.to >= read.from {
			fmt.Fprintf(&others, "; %s, but explains %s", r.tell(u.delete.place), r.tell(u.read.place))
			places = append(places, u.delete.place, u.read.place)
		}
	}
	return r.violation(Unexplained, fmt.Sprintf("%s and only then %s: a delete must lie between %s and it, and none is left%s",
		r.tell(v.firstOp), r.tell(read.place), r.tell(v.lastOp), &others), places...)
}

// Error returns the rule and the detail.
func (v *Violation) Error() string {
	return fmt.Sprintf("key %s: %s: %s", quote(v.Key), v.Rule, v.Detail)
}
