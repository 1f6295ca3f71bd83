package abd_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/abd"
	oracle "atoll/sim/history"
)

// call is an operation on one register, as its caller saw it. An absent
// register has the empty value.
type call struct {
	write      bool
	key, value string // the value that was written or read
	began      int64
	ended      int64 // 0: not yet, or never
	dropped    bool  // certainly without effect
}

// history is what callers saw. Its clock counts beginnings and ends.
type history struct {
	clock int64
	calls []call
}

func (h *history) begin(c call) int {
	h.clock++
	c.began = h.clock
	h.calls = append(h.calls, c)
	return len(h.calls) - 1
}

func (h *history) end(at int, value string) {
	h.clock++
	h.calls[at].ended, h.calls[at].value = h.clock, value
}

func (h *history) drop(at int) { h.calls[at].dropped = true }

// keys returns the keys with a prefix that anybody has begun to write.
func (h *history) keys(prefix string) []string {
	var keys []string
	for _, c := range h.calls {
		if c.write && strings.HasPrefix(c.key, prefix) && !slices.Contains(keys, c.key) {
			keys = append(keys, c.key)
		}
	}
	return keys
}

// valueOf returns the value that was written under a listed key's tag, which
// some disk holds.
func (h *history) valueOf(s *schedule, item abd.Listed) string {
	for _, p := range s.script.World.Processes() {
		if p.Disk() == nil {
			continue
		}
		if r, _, err := p.Disk().Load(item.Key, true); err == nil && r.Tag == item.Tag {
			return string(r.Value)
		}
	}
	return "a value that nobody holds"
}

// operations returns h for the oracle. A write that never ended may have taken
// effect at any time after it began, or not at all.
func (h *history) operations() oracle.History {
	var ops oracle.History
	for i, c := range h.calls {
		op := oracle.Operation{Client: fmt.Sprint(i), Key: c.key, Kind: oracle.Read, Value: c.value, Outcome: oracle.OK,
			Call: time.Duration(c.began), Return: time.Duration(max(c.began, c.ended))}
		switch {
		case c.write && c.value == "":
			op.Kind = oracle.Delete
		case c.write:
			op.Kind = oracle.Write
		default:
			op.Found = c.value != ""
		}
		switch {
		case c.dropped:
			op.Outcome = oracle.Failed
		case c.ended == 0:
			op.Outcome = oracle.Unknown
		}
		ops = append(ops, op)
	}
	return ops
}

// linearizable reports whether an atomic register for each key could have
// given the results of h.
func (h *history) linearizable() bool {
	violation, err := oracle.Check(h.operations())
	if err != nil {
		panic(err)
	}
	return violation == nil
}

// String lists the calls, each with when it began and ended.
func (h *history) String() string {
	var b strings.Builder
	for _, c := range h.calls {
		what := "read"
		if c.write {
			what = "write"
		}
		fmt.Fprintf(&b, "%4d-%-4d %s %s %q\n", c.began, c.ended, what, c.key, c.value)
	}
	return b.String()
}
