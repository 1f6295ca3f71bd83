package history

import "fmt"

// InvalidError says that a history can't be judged, because it isn't one.
type InvalidError struct {
	// At is the place of the operation in the history, counted from 0.
	At        int
	Operation Operation
	Reason    string
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("operation %d (%v of key %s): %s", e.At, e.Operation, quote(e.Operation.Key), e.Reason)
}

// Check decides whether registers that are linearizable, each by itself and
// without a value at first, could have given the results of h. It returns
// nil if they could and otherwise a violation; there is no third answer. The
// error is an *InvalidError: h isn't a history.
//
// It takes O(n log n) time and O(n) memory for n operations, however many are
// concurrent.
func Check(h History) (*Violation, error) {
	parts, err := partition(h)
	if err != nil {
		return nil, err
	}
	r := register{h: h}
	for _, p := range parts {
		v, err := r.check(p)
		if v != nil || err != nil {
			return v, err
		}
	}
	return nil, nil
}

// part is what a history has on one key.
type part struct {
	places []int // in the history, of all operations
	writes int   // how many of them are writes
}

// partition returns the part of each key, in order of appearance, after a
// look at each operation.
func partition(h History) ([]part, error) {
	number := make(map[string]int)
	var parts []part
	var counts []int
	keys := make([]int, len(h))
	for i := range h {
		op := &h[i]
		if reason := op.wrong(); reason != "" {
			return nil, &InvalidError{At: i, Operation: *op, Reason: reason}
		}
		k, ok := number[op.Key]
		if !ok {
			k = len(parts)
			number[op.Key] = k
			parts, counts = append(parts, part{}), append(counts, 0)
		}
		keys[i] = k
		counts[k]++
		if op.Kind == Write {
			parts[k].writes++
		}
	}
	all := make([]int, len(h))
	for k, n := range counts {
		parts[k].places, all = all[:0:n], all[n:]
	}
	for i, k := range keys {
		parts[k].places = append(parts[k].places, i)
	}
	return parts, nil
}

// wrong returns what makes o no operation, or "".
func (o *Operation) wrong() string {
	switch {
	case o.Kind < Read || o.Kind > Delete:
		return "there is no such kind"
	case o.Outcome < OK || o.Outcome > Unknown:
		return "there is no such outcome"
	case o.Outcome != Unknown && o.Return < o.Call:
		return "it returned before it was called"
	case o.Found && (o.Kind != Read || o.Outcome != OK):
		return "only a read that is ok finds something"
	case o.Value != "" && o.Kind != Write && !o.Found:
		return "it has a value that was neither written nor found"
	}
	return ""
}
