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
	r := register{h: h, byValue: make(map[string]int)}
	for _, part := range parts {
		v, err := r.check(part)
		if v != nil || err != nil {
			return v, err
		}
	}
	return nil, nil
}

// partition returns, for each key in order of appearance, the places of its
// operations in h, after a look at each.
func partition(h History) ([][]int, error) {
	number := make(map[string]int)
	var counts []int
	keys := make([]int, len(h))
	for i := range h {
		if reason := h[i].wrong(); reason != "" {
			return nil, &InvalidError{At: i, Operation: h[i], Reason: reason}
		}
		k, ok := number[h[i].Key]
		if !ok {
			k = len(counts)
			number[h[i].Key] = k
			counts = append(counts, 0)
		}
		keys[i] = k
		counts[k]++
	}
	parts, all := make([][]int, len(counts)), make([]int, len(h))
	for k, n := range counts {
		parts[k], all = all[:0:n], all[n:]
	}
	for i, k := range keys {
		parts[k] = append(parts[k], i)
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
