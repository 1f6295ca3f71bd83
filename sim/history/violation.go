package history

import (
	"cmp"
	"fmt"
	"slices"
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
	// Detail tells it of the operations at hand, in a sentence. #3 is the
	// third operation in Register.
	Detail string
	// Operations are the proof, in the order of their calls: they alone
	// aren't linearizable, and neither are they with all other deletes of the
	// key, whatever else is left out of the history.
	Operations []Operation
	// Register is the whole history of the key, in the order of calls.
	Register []Operation
	// proof are the indices of Operations in Register.
	proof []int
}

// prove makes a violation of the operations at some places. The detail has
// a %s for each of the places that are told.
func (r *register) prove(rule Rule, places []int, detail string, told ...int) *Violation {
	slices.SortStableFunc(r.part, func(a, b int) int { return cmp.Compare(r.h[a].Call, r.h[b].Call) })
	v := &Violation{Key: r.h[r.part[0]].Key, Rule: rule}
	slices.Sort(places)
	for i, at := range r.part {
		v.Register = append(v.Register, r.h[at])
		if _, ok := slices.BinarySearch(places, at); ok {
			v.Operations = append(v.Operations, r.h[at])
			v.proof = append(v.proof, i)
		}
	}
	words := make([]any, len(told))
	for i, at := range told {
		words[i] = fmt.Sprintf("%s (#%d)", r.h[at].noun(), slices.Index(r.part, at)+1)
	}
	v.Detail = fmt.Sprintf(detail, words...)
	return v
}

// noun returns the operation as a part of a sentence.
func (o Operation) noun() string {
	noun := "the "
	if o.Client != "" {
		noun = cut(o.Client) + "'s "
	}
	if o.Outcome != OK {
		noun += o.Outcome.String() + " "
	}
	noun += o.Kind.String()
	switch {
	case o.Kind == Write || o.Found:
		noun += " of " + quote(o.Value)
	case o.Kind == Read:
		noun += " of nothing"
	}
	return noun
}

func (v *value) places() []int { return []int{v.write, v.firstOp, v.lastOp} }

func (r *register) fromNowhere(read int) *Violation {
	return r.prove(FromNowhere, []int{read}, "%s: no write to the key has that value", read)
}

func (r *register) fromFailed(read int, v *value) *Violation {
	return r.prove(FromFailed, []int{read, v.write}, "%s found what %s did not write", read, v.write)
}

func (r *register) fromFuture(read int, v *value) *Violation {
	return r.prove(FromFuture, []int{read, v.write}, "%s ended before %s began", read, v.write)
}

func (r *register) interleaved(v, w *value) *Violation {
	return r.prove(Interleaved, append(v.places(), w.places()...),
		"%s ended before %s began, and yet %s ended before %s began: each value came first",
		v.firstOp, w.lastOp, w.firstOp, v.lastOp)
}

func (r *register) lostValue(read int, v *value) *Violation {
	return r.prove(LostValue, append(v.places(), read),
		"the value was there from the end of %s to the beginning of %s, and %s lies between", v.firstOp, v.lastOp, read)
}

func (r *register) resurrected(del int, v *value) *Violation {
	return r.prove(Resurrected, append(v.places(), del),
		"the value was there from the end of %s to the beginning of %s, and %s lies between", v.firstOp, v.lastOp, del)
}

// unexplained tells of a read for which no delete is left. used are the
// deletes that were needed, and by which reads, in the order of time: the
// windows of these reads don't overlap, so each needs a delete of its own.
func (r *register) unexplained(read *window, used []use) *Violation {
	// The latest reads are a proof by themselves once all deletes that reach
	// their windows are those that they use: one fewer than there are reads.
	first := len(used)
	from := read.from
	for i := len(used) - 1; i >= 0; i-- {
		if used[i].delete.to >= from {
			first, from = i, used[i].read.from
		}
	}
	places := r.needs(read)
	told := []int{r.zones[read.behind].firstOp, read.place, r.zones[read.behind].lastOp, read.place}
	detail := "%s ended before %s began, so a delete must lie between the beginning of %s and the end of %s"
	if first == len(used) {
		return r.prove(Unexplained, places, detail+": there is none", told...)
	}
	detail += ": those that can are needed elsewhere"
	for i, u := range used[first:] {
		places = append(append(places, u.delete.place), r.needs(u.read)...)
		if i < maxTold {
			detail += ", %s by %s"
			told = append(told, u.delete.place, u.read.place)
		}
	}
	return r.prove(Unexplained, places, detail, told...)
}

// needs returns the places of the operations that give a read its window.
func (r *register) needs(read *window) []int {
	places := append(r.zones[read.behind].places(), read.place)
	if ahead := r.around(r.h[read.place].Return, r.h[read.place].Return); ahead != nil {
		places = append(places, ahead.places()...)
	}
	return places
}
