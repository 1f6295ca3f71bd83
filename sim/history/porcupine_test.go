package history_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"atoll/sim/history"
)

var (
	histories = flag.Int("histories", 20_000, "how many random histories TestAgainstPorcupine judges")
	first     = flag.Uint64("first", 1, "number of the first of them")
)

// model is an atomic register for each key, without a value at first.
var model = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		var keys []string
		parts := make(map[string][]porcupine.Operation)
		for _, p := range all {
			key := p.Input.(history.Operation).Key
			if _, ok := parts[key]; !ok {
				keys = append(keys, key)
			}
			parts[key] = append(parts[key], p)
		}
		var list [][]porcupine.Operation
		for _, key := range keys {
			list = append(list, parts[key])
		}
		return list
	},
	Init: func() any { return content{} },
	Step: func(state, input, _ any) (bool, any) {
		switch op := input.(history.Operation); op.Kind {
		case history.Write:
			return true, content{true, op.Value}
		case history.Delete:
			return true, content{}
		default:
			return state == content{op.Found, op.Value}, state
		}
	},
}

// content is what a register contains.
type content struct {
	found bool
	value string
}

// linearizable is the judgement of porcupine, which tries orders of
// operations one after another. An unknown operation may come after
// everything else, where it's as good as if it never happened.
func linearizable(h history.History) bool {
	var end time.Duration
	for _, op := range h {
		end = max(end, op.Call, op.Return)
	}
	var ops []porcupine.Operation
	for i, op := range h {
		ret := op.Return
		switch {
		case op.Outcome == history.Failed, op.Kind == history.Read && op.Outcome != history.OK:
			continue
		case op.Outcome == history.Unknown:
			ret = end + 1
		}
		ops = append(ops, porcupine.Operation{ClientId: i, Input: op, Call: int64(op.Call), Return: int64(ret)})
	}
	return porcupine.CheckOperations(model, ops)
}

// TestAgainstPorcupine holds Check against porcupine on small histories of
// every sort: with few and many deletes, failures and unknown outcomes, on
// coarse and fine clocks, right ones and corrupted ones. What proves a
// violation must be one for both, with the other deletes of its key. By hand:
//
//	go test ./sim/history -run TestAgainstPorcupine -histories 1000000 -timeout 0
func TestAgainstPorcupine(t *testing.T) {
	if testing.Short() {
		*histories = min(*histories, 2_000)
	}
	verdicts := make(map[history.Rule]int)
	for n := *first; n < *first+uint64(*histories); n++ {
		h, untouched := random(n)
		violation, err := history.Check(h)
		if err != nil {
			t.Fatalf("history %d: %v\n%s", n, err, show(h))
		}
		if want := linearizable(h); (violation == nil) != want {
			t.Fatalf("history %d: porcupine says %v, we say %v\n%s", n, want, violation, show(h))
		}
		if violation == nil {
			verdicts[""]++
			continue
		}
		verdicts[violation.Rule]++
		if untouched {
			t.Fatalf("history %d comes from a register: %v", n, violation)
		}
		if err := proven(violation); err != nil {
			t.Fatalf("history %d: %v\n%v", n, err, violation)
		}
	}
	if *histories < 10_000 {
		return
	}
	for _, rule := range append([]history.Rule{""}, rules...) {
		t.Logf("%8d of %d: %s", verdicts[rule], *histories, rule)
		if verdicts[rule]*500 < *histories {
			t.Errorf("the histories are too much alike: %d of %d with the verdict %q", verdicts[rule], *histories, rule)
		}
	}
}

// proven says what is wrong with the proof of a violation.
func proven(v *history.Violation) error {
	proof := history.History(v.Operations)
	if linearizable(proof) {
		return fmt.Errorf("the proof is linearizable:\n%s", show(proof))
	}
	for _, op := range v.Register {
		if op.Kind == history.Delete && !slices.Contains(proof, op) {
			proof = append(proof, op)
		}
	}
	if linearizable(proof) {
		return fmt.Errorf("the proof is linearizable with all deletes:\n%s", show(proof))
	}
	return nil
}

var rules = []history.Rule{history.FromNowhere, history.FromFailed, history.FromFuture, history.Interleaved,
	history.LostValue, history.Resurrected, history.Unexplained}

// maker makes one random history.
type maker struct {
	*rand.Rand
	span    int // of time
	longest int // operation
	// percentages
	writes, deletes, unknown, failed int
}

// random returns history number n, and whether it certainly comes from a
// register.
func random(n uint64) (h history.History, untouched bool) {
	rnd := rand.New(rand.NewPCG(n, 0))
	m := maker{Rand: rnd, span: 4 + rnd.IntN(60), longest: 1 + rnd.IntN(1+rnd.IntN(25)), writes: 10 + rnd.IntN(40),
		deletes: rnd.IntN(40), unknown: rnd.IntN(4) * rnd.IntN(15), failed: rnd.IntN(2) * rnd.IntN(20)}
	if rnd.IntN(4) == 0 {
		return m.contest(), false
	}
	keys := 1 + rnd.IntN(8)/7
	for k := range keys {
		h = append(h, m.register(fmt.Sprintf("k%d", k), 2+rnd.IntN(13))...)
	}
	m.Shuffle(len(h), func(i, j int) { h[i], h[j] = h[j], h[i] })
	corruptions := max(0, m.IntN(6)-1)
	for range corruptions {
		m.corrupt(h)
	}
	return h, corruptions == 0
}

// register returns what clients see of one register: each operation that
// takes effect does so at one point.
func (m *maker) register(key string, n int) history.History {
	var h history.History
	var points []int // points[i]: when h[i] takes effect; -1: never
	for i := range n {
		call := m.IntN(m.span)
		ret := call + m.IntN(m.longest)
		op := history.Operation{Client: fmt.Sprintf("c%d", i), Key: key, Kind: history.Read, Outcome: history.OK,
			Call: time.Duration(call), Return: time.Duration(ret)}
		switch kind := m.IntN(100); {
		case kind < m.writes:
			op.Kind, op.Value = history.Write, fmt.Sprintf("v%d", i)
		case kind < m.writes+m.deletes:
			op.Kind = history.Delete
		}
		point := call + m.IntN(ret-call+1)
		switch outcome := m.IntN(100); {
		case outcome < m.unknown:
			op.Outcome = history.Unknown
			if point = call + m.IntN(2*m.span); m.IntN(3) == 0 {
				point = -1
			}
		case outcome < m.unknown+m.failed:
			op.Outcome, point = history.Failed, -1
		}
		h, points = append(h, op), append(points, point)
	}
	var now content
	for at := range 3*m.span + m.longest {
		for _, i := range m.Perm(n) {
			if points[i] != at {
				continue
			}
			switch op := &h[i]; {
			case op.Kind == history.Write:
				now = content{true, op.Value}
			case op.Kind == history.Delete:
				now = content{}
			case op.Outcome == history.OK:
				op.Found, op.Value = now.found, now.value
			}
		}
	}
	return h
}

// contest returns a history in which values come one after another and are
// gone after each, and about as many deletes as that takes, some of which are
// called too late or end too early. That depends on little things.
func (m *maker) contest() history.History {
	var h history.History
	add := func(kind history.Kind, value string, call, ret int) {
		h = append(h, history.Operation{Client: fmt.Sprintf("c%d", len(h)), Key: "k", Kind: kind, Outcome: history.OK,
			Value: value, Found: kind == history.Read && value != "", Call: time.Duration(call), Return: time.Duration(ret)})
	}
	values, at, longest := 1+m.IntN(5), 0, 1+m.IntN(12)
	for i := range values {
		value := fmt.Sprintf("v%d", i)
		add(history.Write, value, at, at+m.IntN(longest))
		if m.IntN(3) == 0 {
			at += m.IntN(6)
			add(history.Read, value, at, at+m.IntN(longest))
		}
		at += 1 + m.IntN(6)
		add(history.Read, "", at, at+m.IntN(longest))
		at += 1 + m.IntN(6)
	}
	for range max(0, values-1+m.IntN(3)) {
		call := m.IntN(at)
		add(history.Delete, "", call, call+m.IntN(1+m.IntN(2*at)))
		if m.IntN(10) == 0 {
			h[len(h)-1].Outcome = history.Unknown
		}
	}
	return h
}

// corrupt changes one operation, so that what clients saw may be wrong.
func (m *maker) corrupt(h history.History) {
	op, other := &h[m.IntN(len(h))], &h[m.IntN(len(h))]
	switch m.IntN(10) {
	case 0: // another time
		op.Call = time.Duration(m.IntN(m.span))
		op.Return = op.Call + time.Duration(m.IntN(m.longest))
	case 1: // another outcome
		if op.Kind != history.Read {
			op.Outcome = history.OK + history.Outcome(m.IntN(3))
		}
	case 2: // a read at another time
		if op.Kind == history.Read {
			op.Call, op.Return = other.Call, max(other.Call, other.Return)
		}
	default: // another result of a read, rarely one of the future
		for range 2 * len(h) {
			op, other = &h[m.IntN(len(h))], &h[m.IntN(len(h))]
			if op.Kind != history.Read || op.Outcome != history.OK || op.Key != other.Key ||
				other.Call > op.Return && m.IntN(20) > 0 {
				continue
			}
			op.Value, op.Found = other.Value, other.Found || other.Kind == history.Write
			if op.Found && m.IntN(50) == 0 {
				op.Value = "nobody's"
			}
			return
		}
	}
}

// show lists a history.
func show(h history.History) string {
	s := ""
	for _, op := range h {
		s += fmt.Sprintf("%s %s %d-%d %v\n", op.Key, op.Client, op.Call, op.Return, op)
	}
	return s
}
