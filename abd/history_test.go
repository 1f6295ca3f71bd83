package abd_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"atoll/abd"
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

// linearizable reports whether an atomic register for each key could have
// given the results of h. A write that never ended may have taken effect at
// any time after it began, or not at all.
func (h *history) linearizable() bool {
	register := porcupine.Model{
		Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
			var parts [][]porcupine.Operation
			for _, key := range h.keys("") {
				var part []porcupine.Operation
				for _, op := range all {
					if op.Input.(call).key == key {
						part = append(part, op)
					}
				}
				parts = append(parts, part)
			}
			return parts
		},
		Init: func() any { return "" },
		Step: func(state, input, _ any) (bool, any) {
			c := input.(call)
			if c.write {
				return true, c.value
			}
			return state == c.value, state
		},
	}
	var ops []porcupine.Operation
	for i, c := range h.calls {
		end := c.ended
		switch {
		case c.dropped || !c.write && end == 0:
			continue
		case end == 0:
			end = h.clock + 1
		}
		ops = append(ops, porcupine.Operation{ClientId: i, Input: c, Call: c.began, Return: end})
	}
	return porcupine.CheckOperations(register, ops)
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
