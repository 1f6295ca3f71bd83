package scenario

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"atoll/quorum"
	"atoll/sim"
)

// names returns an error if what isn't healed is no node of the cluster, or is
// named twice.
func (h Healing) names(s Scenario) error {
	left := make(map[string]bool)
	for i := range s.pool() {
		left[string(s.node(h.Cluster-1, i))] = true
	}
	for _, name := range h.rest() {
		if !left[name] {
			return fmt.Errorf("%q is no node of it, or is named twice", name)
		}
		delete(left, name)
	}
	return nil
}

// leaves returns an error if what is healed has no quorum of c.
func (h Healing) leaves(c *quorum.Configuration) error {
	core := everybody(c)
	for _, name := range h.rest() {
		if place, ok := c.Place(quorum.NodeID(name)); ok {
			var one quorum.Set
			core = core.Minus(one.Add(place))
		}
	}
	if !c.IsRead(core) || !c.IsWrite(core) {
		return errors.New("what is healed contains no quorum")
	}
	return nil
}

func everybody(c *quorum.Configuration) quorum.Set {
	var all quorum.Set
	for place := range c.Members() {
		all = all.Add(place)
	}
	return all
}

// spoiled returns an error if a plan counts on a node after the healing whose
// disk it has taken away, or a part of it. Nor may it count on one whose disk
// was full, if operations have no timeout: a refusal is an answer, and who has
// answered isn't asked again in the same phase.
func (p Plan) spoiled(s Scenario, c *census) error {
	dead, rest := make(map[string]bool), make(map[string]bool)
	for _, h := range p.Healing {
		for _, name := range h.Dead {
			dead[name] = true
		}
		for _, name := range h.rest() {
			rest[name] = true
		}
	}
	for _, d := range p.Decisions {
		for _, name := range c.all(d.On) {
			if d.Do == "restore" && !s.changes() {
				return fmt.Errorf("%s gets an older disk: nodes notice that only where members change, since they greet each other there", name)
			}
			if (d.Do == "lose" || d.Do == "restore") && !dead[name] {
				return fmt.Errorf("%s loses its disk, or gets an older one: it must be dead after the healing, or an old identity would vote without its memory", name)
			}
			if d.Do == "full" && (s.Timeout == 0 || s.changes()) && !rest[name] {
				return fmt.Errorf("the disk of %s is full: without a timeout of operations it must be among those that aren't healed", name)
			}
			if (d.Do == "damage" || d.Do == "rot" || d.Do == "misdirect") && !rest[name] {
				return fmt.Errorf("%s gets a damaged record: it must be among those that aren't healed", name)
			}
		}
	}
	return nil
}

// heal ends all faults, but for the nodes that the plan leaves as they are.
func (r *run) heal() {
	r.healed = true
	dead, deaf, mute := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for _, h := range r.plan.Healing {
		for _, one := range []struct {
			names []string
			set   map[string]bool
		}{{h.Dead, dead}, {h.Deaf, deaf}, {h.Mute, mute}} {
			for _, name := range one.names {
				one.set[name] = true
			}
		}
	}
	for _, w := range r.ways {
		w.cuts, w.slow, w.loss, w.twice = 0, 0, nil, nil
		r.lay(w)
	}
	for _, x := range r.byIndex {
		if name := string(x.p.ID()); dead[name] {
			if x.p.Up() {
				x.p.Crash()
			}
		} else {
			r.mend(x)
		}
	}
	for _, c := range r.clusters {
		for _, n := range c.nodes {
			c.cutOff(n, deaf[string(n.p.ID())], mute[string(n.p.ID())])
		}
	}
}

// cutOff cuts a node off from the clients and from the other nodes, which may
// have tasks that talk to it: deaf, what comes is lost, mute, what it sends.
func (c *cluster) cutOff(n *node, deaf, mute bool) {
	var others []*process
	for _, cl := range c.clients {
		others = append(others, cl.x)
	}
	others = append(others, c.operators...)
	for _, m := range c.nodes {
		if m != n {
			others = append(others, m.x)
		}
	}
	for _, x := range others {
		if deaf {
			c.r.w.Cut(x.p, n.p)
		}
		if mute {
			c.r.w.Cut(n.p, x.p)
		}
	}
}

// mend ends all faults of a process.
func (r *run) mend(x *process) {
	x.paused, x.off, x.stalled, x.full, x.gray, x.slow = 0, 0, 0, 0, 0, 0
	x.p.Resume()
	x.p.Reconnect()
	x.p.Gray(sim.Delay{})
	x.p.DriftClock(0)
	if x.node != nil {
		x.p.Disk().Free()
		x.p.Unstall()
		x.p.SlowDisk(sim.Delay{})
	} else if x.client != nil {
		x.client.narrow = narrow{}
	}
	if x.node != nil && !x.p.Up() {
		x.down = 0
		r.restart(x)
	}
}

// way is what faults do to the way from one process to another.
type way struct {
	from, to *process
	cuts     int
	slow     int   // times
	loss     []int // per million, of each fault that is going on
	twice    []int
}

func (r *run) way(from, to *process) *way {
	for _, w := range from.ways {
		if w.to == to {
			return w
		}
	}
	w := &way{from: from, to: to}
	from.ways = append(from.ways, w)
	r.ways = append(r.ways, w)
	return w
}

// lay makes the way as the faults on it say.
func (r *run) lay(w *way) {
	if w.cuts > 0 {
		r.w.Cut(w.from.p, w.to.p)
	} else {
		r.w.Mend(w.from.p, w.to.p)
	}
	l := r.link
	for _, n := range w.loss {
		l.Loss = max(l.Loss, uint32(n))
	}
	for _, n := range w.twice {
		l.Duplicate = max(l.Duplicate, uint32(n))
	}
	r.w.SetLink(w.from.p, w.to.p, l)
	r.w.Slow(w.from.p, w.to.p, times(r.s.Network.Delay, w.slow))
}

// times returns a delay so many times over.
func times(d Delay, n int) sim.Delay {
	if n == 0 {
		return sim.Delay{}
	}
	return d.times(n).mustParse()
}

func without(s []int, n int) []int {
	if i := slices.Index(s, n); i >= 0 {
		return slices.Delete(s, i, i+1)
	}
	return s
}

// decide schedules a decision, and its end.
func (r *run) decide(d Decision) {
	r.w.At(time.Duration(d.At), func() {
		if r.healed || r.over {
			return
		}
		r.figures.Decisions++
		on, to := r.processes(d.On), r.processes(d.To)
		for _, x := range on {
			r.happen(d, x, to)
		}
		if d.For > 0 {
			r.w.At(time.Duration(d.For), func() {
				if r.healed {
					return
				}
				for _, x := range on {
					r.cease(d, x, to)
				}
			})
		}
	})
}

func (r *run) processes(patterns []string) []*process {
	var found []*process
	for _, name := range r.census.all(patterns) {
		found = append(found, r.byName[name])
	}
	return found
}
