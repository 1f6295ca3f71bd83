package scenario

import (
	"time"

	"atoll/quorum"
	"atoll/sim"
)

// happen begins a fault on one process.
func (r *run) happen(d Decision, x *process, to []*process) {
	switch d.Do {
	case "crash", "powerloss", "lose":
		x.down++
		r.kill(d, x)
	case "pause":
		x.paused++
		x.p.Pause()
	case "jump":
		x.p.JumpClock(time.Duration(d.N) * time.Millisecond)
	case "drift":
		x.p.DriftClock(d.N)
	case "disconnect":
		x.off++
		x.p.Disconnect()
	case "break":
		for _, y := range to {
			if x != y {
				r.w.Break(x.p, y.p, time.Duration(d.For))
			}
		}
	case "gray":
		x.gray += d.N
		x.p.Gray(r.times(x.gray))
	case "stall":
		x.stalled++
		x.p.Stall()
	case "full":
		x.full++
		x.p.Disk().Limit = max(1, x.p.Disk().Usage().Bytes)
	case "damage":
		x.p.Disk().Damage(keyOf(d.Key))
	case "minimal":
		x.client.narrow.minimal++
	case "reach":
		x.client.narrow.reach = append(x.client.narrow.reach, d.N)
	default:
		r.onWays(d, x, to, +1)
	}
}

// cease ends a fault on one process.
func (r *run) cease(d Decision, x *process, to []*process) {
	switch d.Do {
	case "crash", "powerloss":
		if x.down--; x.down == 0 && !x.lost {
			r.restart(x)
		}
	case "pause":
		if x.paused--; x.paused == 0 {
			x.p.Resume()
		}
	case "drift":
		x.p.DriftClock(0)
	case "disconnect":
		if x.off--; x.off == 0 {
			x.p.Reconnect()
		}
	case "gray":
		x.gray -= d.N
		x.p.Gray(r.times(x.gray))
	case "stall":
		if x.stalled--; x.stalled == 0 {
			x.p.Unstall()
		}
	case "full":
		if x.full--; x.full == 0 {
			x.p.Disk().Limit = 0
		}
	case "minimal":
		x.client.narrow.minimal--
	case "reach":
		x.client.narrow.reach = without(x.client.narrow.reach, d.N)
	case "lose", "jump", "break", "damage": // have no end
	default:
		r.onWays(d, x, to, -1)
	}
}

// onWays begins (by 1) or ends (by -1) a fault on the ways from one process to
// others, and back where it goes both ways.
func (r *run) onWays(d Decision, x *process, to []*process, by int) {
	for _, y := range to {
		if x == y {
			continue
		}
		r.onWay(d, r.way(x, y), by)
		if d.Do != "cut" {
			r.onWay(d, r.way(y, x), by)
		}
	}
}

func (r *run) onWay(d Decision, w *way, by int) {
	change := func(s []int) []int {
		if by > 0 {
			return append(s, d.N)
		}
		return without(s, d.N)
	}
	switch d.Do {
	case "cut", "isolate":
		w.cuts += by
	case "slow":
		w.slow += by * d.N
	case "lossy":
		w.loss = change(w.loss)
	case "double":
		w.twice = change(w.twice)
	}
	r.lay(w)
}

// kill ends a life.
func (r *run) kill(d Decision, x *process) {
	if x.p.Up() {
		if d.Do == "crash" {
			x.p.Crash()
		} else {
			x.p.PowerLoss(d.N)
		}
		if x.client != nil {
			x.client.died()
		}
	}
	x.lost = x.lost || d.Do == "lose"
}

// restart begins the next life.
func (r *run) restart(x *process) {
	if x.p.Up() {
		return
	}
	if err := x.p.Restart(); err != nil {
		r.violate("boot", nil, "%s doesn't come up again: %v", x.p.ID(), err)
		return
	}
	if x.paused > 0 {
		x.p.Pause()
	}
	if x.client != nil {
		x.client.live()
	}
}

// narrow is whom the requests of a client reach.
type narrow struct {
	minimal int   // faults by which it is a minimal quorum
	reach   []int // how many nodes

	conversation uint64
	reached      quorum.Set // by that conversation
}

// narrows reports whether a plan has a decision for which every message must be
// looked at.
func (p Plan) narrows() bool {
	for _, d := range p.Decisions {
		if d.Do == "minimal" || d.Do == "reach" {
			return true
		}
	}
	return false
}

// intercept loses what a client sends to other nodes than its requests reach.
func (r *run) intercept(t sim.Transit) sim.Fate {
	if t.Answer {
		return sim.Pass
	}
	cl, n := r.byIndex[t.From.Index()].client, r.byIndex[t.To.Index()].node
	if cl == nil || n == nil || cl.narrow.minimal == 0 && len(cl.narrow.reach) == 0 {
		return sim.Pass
	}
	v := &cl.narrow
	if v.conversation != t.Conversation {
		v.conversation = t.Conversation
		v.reached = r.reached(cl, &t)
	}
	if v.reached.Has(n.place) {
		return sim.Pass
	}
	return sim.Lose
}

// reached draws the nodes that a conversation reaches.
func (r *run) reached(cl *client, t *sim.Transit) quorum.Set {
	c := cl.c
	d := &dice{base: mix(cl.base ^ mix(t.Conversation))}
	places := make([]int, len(c.nodes))
	for i := range places {
		places[i] = i
	}
	is := func(s quorum.Set) bool { return s.Len() == len(c.nodes) }
	if n := len(cl.narrow.reach); n > 0 {
		most := cl.narrow.reach[n-1]
		is = func(s quorum.Set) bool { return s.Len() >= most }
	} else if r.traits.Needs != nil {
		switch r.traits.Needs(t.Message) {
		case NeedsRead:
			is = c.configuration.IsRead
		case NeedsWrite:
			is = c.configuration.IsWrite
		}
	}
	if is(quorum.Set{}) {
		return quorum.Set{} // it reaches nobody
	}
	return drawnQuorum(d, places, is)
}
