package sim

import (
	"slices"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
)

// Need is what a phase needs answers from.
type Need uint8

// The needs of a phase.
const (
	// NeedNothing: it is no phase, or one that is left alone.
	NeedNothing Need = iota
	// NeedRead: a read quorum of every configuration.
	NeedRead
	// NeedWrite: a write quorum of every configuration.
	NeedWrite
)

// Narrow says which quorums a request that somebody asks needs, and of what.
type Narrow func(asker *Process, req env.Message) (quorum.Configurations, Need)

// Needs returns what the phases of registers need: a Narrow is that and a set
// of configurations.
func Needs(req env.Message) Need {
	switch req := req.(type) {
	case *abd.Get:
		if req.AnswerBytes() > 0 {
			return NeedNothing // it is for a value, and any holder has that
		}
		return NeedRead
	case *abd.List:
		return NeedRead
	case *abd.Put:
		return NeedWrite
	}
	return NeedNothing
}

// Narrow makes the network pass the first copies of each request to exactly a
// minimal quorum of each configuration, drawn anew for each phase; the other
// members' first copies are lost. Nil ends it.
//
// A network that is well sends everything to everybody, and then nearly every
// phase is heard by more members than its proof counts on. This fault takes
// away what nobody may count on, and so finds what was counted wrongly.
func (w *World) Narrow(n Narrow) { w.narrow = n }

// narrowTo draws whom the first copies of a request reach, beside those who
// are in no configuration.
func (c *caller) narrowTo(req env.Message) {
	c.spared = c.spared[:0]
	if c.w.narrow == nil {
		return
	}
	cs, need := c.w.narrow(c.p, req)
	if need == NeedNothing {
		return
	}
	base := fold(c.base(), c.turn)
	var chosen []quorum.NodeID
	for _, cfg := range cs {
		is := cfg.IsRead
		if need == NeedWrite {
			is = cfg.IsWrite
		}
		base = mix(base)
		for place := range minimalQuorum(len(cfg.Members()), is, base).All() {
			chosen = append(chosen, cfg.Members()[place])
		}
	}
	for _, id := range cs.Members() {
		if !slices.Contains(chosen, id) {
			c.spared = append(c.spared, id)
		}
	}
}

// minimalQuorum returns a set of n members that is a quorum, and that isn't
// one without any of them. Each minimal quorum can come out.
func minimalQuorum(n int, is func(quorum.Set) bool, base uint64) quorum.Set {
	order := make([]int, n)
	for i := range order {
		j := int(draw(base, uint64(i), forNarrow) % uint64(i+1))
		order[i] = order[j]
		order[j] = i
	}
	var all quorum.Set
	for _, i := range order {
		all = all.Add(i)
	}
	for _, i := range order {
		if less := all.Minus(quorum.Set{}.Add(i)); is(less) {
			all = less
		}
	}
	return all
}
