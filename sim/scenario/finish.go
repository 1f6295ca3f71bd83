package scenario

import (
	"slices"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
	"atoll/sim/succession"
)

// end lets every operation that is under way end, which the healing allows.
// That is what wait-free means: no other client, and none of those who are
// still dead or deaf, can keep it from that.
func (r *run) end() {
	late := false
	r.w.At(time.Duration(r.s.Bounds.Ends), func() { late = true })
	r.until(func() bool { return late || r.pending == 0 })
	if r.pending == 0 || r.failed {
		return
	}
	for _, c := range r.clusters {
		for _, cl := range c.clients {
			if cl.op.active {
				r.violate("liveness", cl.op.register, "a %s of %s, begun at %v, hasn't ended %v after the healing; its cluster has a quorum",
					cl.op.kind, cl.name, cl.op.began, r.s.Bounds.Ends)
			}
		}
	}
}

// maxQuorums is how many quorums of a cluster the reading back goes through:
// all, with up to nine nodes under majorities.
const maxQuorums = 128

// readBack reads every key through every minimal read quorum, as if the power
// of all nodes was cut now and all came back. Each quorum has a world of its
// own, so that one reading doesn't hide by its write-back what the next would
// miss. In these worlds nodes run no tasks, which could do the same.
func (r *run) readBack() {
	if !r.traits.Tags || r.traits.Needs == nil {
		return // then nothing tells an old value from a new one; the last reads must do
	}
	for _, c := range r.clusters {
		now, told := c.now()
		able := c.able(now)
		for _, q := range minimalReadQuorums(now, able, r.plan.Seed) {
			if c.readThrough(now, told, q, able); r.failed {
				return
			}
		}
	}
}

// readThrough reads every key of the cluster through one quorum: get phases
// reach its members alone. What they find may be written back to others.
func (c *cluster) readThrough(now *quorum.Configuration, told Cluster, q, able quorum.Set) {
	r := c.r
	w := sim.New(sim.Config{Seed: r.plan.Seed, Rules: r.mutants.World, Intercept: func(t sim.Transit) sim.Fate {
		if place, ok := now.Place(t.To.ID()); ok && r.traits.Needs(t.Message) == sim.NeedRead && !q.Has(place) {
			return sim.Lose
		}
		return sim.Pass
	}})
	defer w.Close()
	told.Greets = false // nodes do nothing but answer
	images := make(map[int]*sim.Disk)
	for place := range able.All() {
		n := c.byID[now.Members()[place]]
		images[place] = n.p.Disk().Image()
		boot := func(p *sim.Process) (sim.Stepper, error) {
			*p.Disk() = *images[place]
			p.Disk().Free()
			stepper, err := r.algorithm.Node(told, p.ID(), p.Disk())
			return untasked{stepper}, err
		}
		if _, err := w.AddNode(n.p.ID(), boot); err != nil {
			r.violate("boot", nil, "%v", err)
			return
		}
	}
	reader := r.algorithm.Client(told)
	s := w.AddClient("reader").Scope(0)
	s.Start(func(e env.Env) error {
		for _, g := range c.registers {
			if anyDamaged(images, q, g) {
				continue // it abstains on that key, so that q is no quorum for it
			}
			c.readOne(e, reader, g, succession.List(now, q))
		}
		return nil
	})
	if err := w.Wait(time.Duration(r.s.Bounds.Ends), s); err != nil {
		r.violate("liveness", nil, "reading back through %s: %v", succession.List(now, q), err)
	}
}

// untasked is a stepper whose node does nothing but answer.
type untasked struct{ sim.Stepper }

func (c *cluster) readOne(e env.Env, reader Client, g *register, through string) {
	r := c.r
	rec, err := reader.Read(e, g.key)
	switch {
	case err != nil:
		r.violate("liveness", g, "reading back through %s: %v", through, err)
	case rec.Tag.Less(g.completed):
		r.violate("acked-write-lost", g, "a read through %s finds tag %s; an operation had ended with %s",
			through, r.w.TagText(rec.Tag), r.w.TagText(g.completed))
	}
}

// anyDamaged looks at the disks as they are read: a record that was healed and
// not synced is damaged there still.
func anyDamaged(images map[int]*sim.Disk, q quorum.Set, g *register) bool {
	for place := range q.All() {
		if images[place].Damaged(g.key) {
			return true
		}
	}
	return false
}

// minimalReadQuorums returns the read quorums among able none of whose members
// can be left out: all of them, or maxQuorums drawn ones.
func minimalReadQuorums(c *quorum.Configuration, able quorum.Set, seed uint64) []quorum.Set {
	places := slices.Collect(able.All())
	var found []quorum.Set
	if len(places) <= 9 {
		for bits := range 1 << len(places) {
			var s quorum.Set
			for i, place := range places {
				if bits>>i&1 != 0 {
					s = s.Add(place)
				}
			}
			if c.IsRead(s) && minimal(s, c.IsRead) == s {
				found = append(found, s)
			}
		}
		return found
	}
	d := newDice(seed, "read back")
	for range maxQuorums {
		s := drawnQuorum(d, places, c.IsRead)
		if c.IsRead(s) && !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	return found
}

// drawnQuorum returns a minimal quorum of some places, by a drawn order; all
// of them if they contain none.
func drawnQuorum(d *dice, places []int, is func(quorum.Set) bool) quorum.Set {
	order := slices.Clone(places)
	shuffle(d, order)
	var s quorum.Set
	for _, place := range order {
		if s = s.Add(place); is(s) {
			return minimal(s, is)
		}
	}
	return s
}

// minimal leaves out of a quorum, first to last, whom it doesn't need.
func minimal(s quorum.Set, is func(quorum.Set) bool) quorum.Set {
	for place := range s.All() {
		var one quorum.Set
		if rest := s.Minus(one.Add(place)); is(rest) {
			s = rest
		}
	}
	return s
}

// readLast lets a new client of each cluster read every key, through whatever
// quorum answers first. These reads are part of the history: what was acked
// and is gone shows even where there are no tags.
func (r *run) readLast() {
	var scopes []*sim.Scope
	figures := r.figures
	for _, c := range r.clusters {
		cl := r.addClient(c, quorum.NodeID(r.s.prefix(c.number)+"last"), len(c.clients))
		cl.idle = true
		cl.self = r.algorithm.Client(c.told)
		s := cl.p.Scope(0)
		s.Start(func(e env.Env) error {
			cl.asker = asker{Env: e, cl: cl}
			cl.asker.hear = cl.asker.heard
			for _, g := range c.registers {
				if err := cl.read(&cl.asker, g); err != nil {
					return err
				}
			}
			return nil
		})
		scopes = append(scopes, s)
	}
	late := false
	r.w.At(time.Duration(r.s.Bounds.Ends), func() { late = true })
	for _, s := range scopes {
		r.until(func() bool { return s.Done() || late })
		if !s.Done() || s.Err() != nil {
			r.violate("liveness", nil, "the last reads haven't ended %v after they began, or failed: %v", r.s.Bounds.Ends, s.Err())
		}
	}
	r.figures = figures // of the clients' operations alone
}
