package explore

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"atoll/sim"
	"atoll/sim/scenario"
)

// TestAlikeGoOnAlike: states of a process that are told apart only by what is said to
// be of no use any more (turns, hang) do the same, whatever happens to them, and are
// alike again afterwards.
func TestAlikeGoOnAlike(t *testing.T) {
	for _, in := range []struct {
		name    string
		crashes int
	}{{"leave", 1}, {"get-all", 0}, {"replace", 0}} {
		s, _ := Find(in.name)
		s.Crashes, s.Lost = in.crashes, 0
		b, err := newBeginning(&s, scenario.Mutants{}, true)
		if err != nil {
			t.Fatal(err)
		}
		c, err := newCast(b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := search(c, Options{Plain: true, MaxStates: 5000}); err != nil {
			t.Fatal(err)
		}
		alike := 0
		for who := range c.roles {
			alike += checkAlike(t, in.name, c, uint8(who))
		}
		t.Logf("%s: %d states of processes are like others", in.name, alike)
		if alike == 0 {
			t.Errorf("%s: no two states are alike", in.name)
		}
	}
}

// checkAlike compares the states of one process, and returns how many are like an
// earlier one.
func checkAlike(t *testing.T, scope string, c *cast, who uint8) (alike int) {
	t.Helper()
	plain, less := c.memory, sim.NewMemory(forgets, turns)
	kinds := make(map[uint32]uint64) // of states
	kindOf := func(state uint32) uint64 {
		kind, ok := kinds[state]
		if !ok {
			c.memory, c.plain = less, false
			x, err := c.alone(who, state)
			c.memory, c.plain = plain, true
			if err != nil {
				t.Fatal(err)
			}
			defer x.w.Close()
			kind = x.alone.State()
			if c.roles[who].states[state>>placeBits].stalled {
				kind = ^kind
			}
			kind = uint64(hash(kind).add(uint64(state % (1 << placeBits))))
			kinds[state] = kind
		}
		return kind
	}
	first := make(map[uint64]uint32) // state of each kind
	for _, state := range slices.Sorted(maps.Values(c.roles[who].at)) {
		kind := kindOf(state)
		other, ok := first[kind]
		if !ok {
			first[kind] = state
			continue
		}
		alike++
		inputs := maps.Clone(c.roles[who].states[state>>placeBits].next)
		maps.Copy(inputs, c.roles[who].states[other>>placeBits].next)
		for in := range inputs {
			one, err := c.step(who, state, in)
			if err != nil {
				t.Fatal(err)
			}
			two, err := c.step(who, other, in)
			if err != nil {
				t.Fatal(err)
			}
			a, b := unnumbered(one), unnumbered(two)
			if kindOf(one.to) != kindOf(two.to) || !reflect.DeepEqual(a, b) {
				t.Fatalf("%s: states %d and %d of process %d are alike; behind %+v one does %+v, the other %+v", scope, state, other, who, in, a, b)
			}
		}
	}
	return alike
}

// unnumbered returns what a step does, without numbers that are others wherever
// something is counted from the beginning.
func unnumbered(s *step) step {
	c := *s
	c.to = 0
	c.events = slices.Clone(s.events)
	for i := range c.events {
		c.events[i].in.Conversation = 0
	}
	return c
}
