package abd

import (
	"slices"

	"atoll/env"
	"atoll/quorum"
)

// found is what a get phase yields: the largest record, and whether a put of
// it could add nothing.
type found struct {
	record  Record
	settled bool
}

// gathered is what answers to gets have shown so far.
type gathered struct {
	record    Record
	omitted   int // the size of its value, if that isn't there yet
	confirmed bool
	holders   quorum.Tally    // of the record's tag
	sources   []quorum.NodeID // those of them that have left its value out
}

func (g *gathered) begin(cs quorum.Configurations, rules Rules) { g.holders.Begin(judged(cs, rules)) }

func (g *gathered) grow(cs quorum.Configurations, rules Rules) { g.holders.Grow(judged(cs, rules)) }

// judged are the configurations that settled goes by: all that are active.
func judged(cs quorum.Configurations, rules Rules) quorum.Configurations {
	if rules.FastOnNewest {
		return cs[len(cs)-1:]
	}
	return cs
}

// add takes one more answer.
func (g *gathered) add(from quorum.NodeID, ack *GetAck) {
	switch ack.Record.Tag.Compare(g.record.Tag) {
	case +1:
		g.record, g.omitted, g.confirmed = ack.Record, ack.Omitted, ack.Confirmed
		g.sources = g.sources[:0]
		g.holders.Clear()
	case 0:
		g.confirmed = g.confirmed || ack.Confirmed
		if g.omitted > 0 && ack.Omitted == 0 {
			g.record, g.omitted = ack.Record, 0
		}
	case -1:
		return
	}
	g.holders.Add(from)
	if ack.Omitted > 0 {
		g.sources = append(g.sources, from)
	}
}

// settled is what the one-round read hangs on (R2, S3): the members that hold
// the maximum contain a *write* quorum of every configuration, or one of them
// knows that its put phase has ended, or it is the initial state, which every
// member holds. Only durable copies count, and only those are shown (see
// Replica.get). That they are all of those that were asked says nothing.
func (g *gathered) settled(rules Rules) bool {
	return g.record.Tag.IsZero() || g.confirmed || g.holders.HasWrite() ||
		rules.FastOnReadQuorum && g.holders.HasRead()
}

// heldBy reports whether all of nodes hold the maximum.
func (g *gathered) heldBy(nodes []quorum.NodeID) bool {
	return !slices.ContainsFunc(nodes, func(id quorum.NodeID) bool { return !g.holders.Has(id) })
}

// get runs get phases until one ends over configurations none of which is out
// meanwhile: the largest record among those of a read quorum of each.
func (r *Registers) get(e env.Env, key Key, tagOnly bool) (found, error) {
	for {
		if f, err := r.getOnce(e, key, tagOnly); err != errOut {
			return f, err
		}
	}
}

func (r *Registers) getOnce(e env.Env, key Key, tagOnly bool) (found, error) {
	p := r.begin("get")
	var g gathered
	g.begin(p.config.Active(), r.Rules)
	p.grow = func(cs quorum.Configurations) { g.grow(cs, r.Rules) }
	p.again = func(cs quorum.Configurations) {
		g = gathered{}
		g.begin(cs, r.Rules)
	}
	accept := func(from quorum.NodeID, answer env.Message) bool {
		ack, ok := answer.(*GetAck)
		if !ok {
			return false
		}
		g.add(from, ack)
		return true
	}
	p.prefer(e)
	req := &Get{Key: key, TagOnly: tagOnly, Horizon: p.config.Horizon()}
	if !tagOnly {
		req.ValueLimit = r.inline()
	}
	err := p.run(e, req, accept, g.holders.Remove, p.answered.HasRead, p.refused.LeavesRead)
	switch {
	case err != nil:
		return found{}, err
	case g.omitted > 0:
		return r.fetch(e, key, &p, &g)
	}
	return found{g.record, g.settled(r.Rules) || r.Rules.FastOnAsked && g.heldBy(p.first)}, nil
}

// inline is the limit for values in the answers of a get phase.
func (r *Registers) inline() int {
	if r.Inline > 0 {
		return r.Inline
	}
	return DefaultInline
}

// fetch gets a value that a get phase hasn't brought, because it is large: one
// of those that hold its record is asked for all of it, and the others when
// that one is late (R2).
//
// It is a get phase once more, with the answers of the one before already
// there, over the configurations of that. So whatever shows that tag or a larger one ends it, with a value that
// was stored under the tag beside it, and is judged like any answer: a larger
// tag is settled only if its own holders say so. If the holders die, nothing
// will bring the value. Then a read quorum of this phase is enough by itself:
// it meets every put that has ended, and so nobody has returned the record
// that only those had who died.
func (r *Registers) fetch(e env.Env, key Key, before *phase, known *gathered) (found, error) {
	p := r.begin("get")
	p.config, p.lives = before.config, before.lives
	p.first, p.spare = sources(e.Nearest(p.config.Active().Members()), known.sources)
	settled := known.settled(r.Rules)
	var own gathered
	own.begin(p.config.Active(), r.Rules)
	p.grow = func(cs quorum.Configurations) {
		known.grow(cs, r.Rules)
		own.grow(cs, r.Rules)
	}
	accept := func(from quorum.NodeID, answer env.Message) bool {
		ack, ok := answer.(*GetAck)
		if !ok || ack.Omitted > 0 {
			return false
		}
		own.add(from, ack)
		known.add(from, ack)
		if known.omitted > 0 && r.Rules.ValueFromAnyone {
			known.record.Value, known.omitted = ack.Record.Value, 0
		}
		return true
	}
	void := func(node quorum.NodeID) {
		known.holders.Remove(node)
		own.holders.Remove(node)
	}
	complete := func() bool {
		return known.omitted == 0 || p.answered.HasRead() && !r.Rules.WaitForHolder
	}
	req := &Get{Key: key, Horizon: p.config.Horizon(), expect: known.omitted}
	if err := p.run(e, req, accept, void, complete, p.refused.LeavesRead); err != nil {
		return found{}, err
	}
	if known.omitted > 0 {
		known = &own
	}
	return found{known.record, known.settled(r.Rules) || r.Rules.TrustSecondAnswer && settled}, nil
}

// sources splits members, in the order in which they should be asked, into the
// first of those that hold what is wanted, and the others: holders, then the
// rest.
func sources(order, holders []quorum.NodeID) (first, spare []quorum.NodeID) {
	all := slices.Clone(order)
	slices.SortStableFunc(all, func(a, b quorum.NodeID) int {
		switch isA, isB := slices.Contains(holders, a), slices.Contains(holders, b); {
		case isA && !isB:
			return -1
		case isB && !isA:
			return +1
		}
		return 0
	})
	return all[:1], all[1:]
}
