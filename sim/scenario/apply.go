package scenario

import (
	"errors"
	"slices"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
)

// happen begins a fault on one process.
func (r *run) happen(d Decision, x *process, to []*process) {
	switch d.Do {
	case "crash", "powerloss", "torn", "lose":
		x.down++
		x.buried = x.buried || d.For == 0
		r.kill(d, x)
	case "pause":
		x.paused++
		x.buried = x.buried || d.For == 0
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
		x.p.Gray(times(r.s.Network.Delay, x.gray))
	case "stall":
		x.stalled++
		x.p.Stall()
	case "full":
		x.full++
		x.p.Disk().Fill()
	case "damage":
		x.p.Disk().Damage(keyOf(d.Key))
	case "rot":
		x.p.Disk().Rot(keyOf(d.Key))
	case "misdirect":
		x.p.Disk().Misdirect(keyOf(d.Key))
	case "failsync":
		x.p.FailSync()
	case "slowdisk":
		x.slow += d.N
		x.p.SlowDisk(times(r.s.Disk.Sync, x.slow))
	case "minimal":
		x.client.narrow.minimal++
	case "reach":
		x.client.narrow.reach = append(x.client.narrow.reach, d.N)
	case "restore":
		x.node.copy()
	case "propose":
		x.operator.propose(d)
	default:
		r.onWays(d, x, to, +1)
	}
}

// cease ends a fault on one process.
func (r *run) cease(d Decision, x *process, to []*process) {
	switch d.Do {
	case "crash", "powerloss", "torn", "lose":
		if x.down--; x.down == 0 {
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
		x.p.Gray(times(r.s.Network.Delay, x.gray))
	case "slowdisk":
		x.slow -= d.N
		x.p.SlowDisk(times(r.s.Disk.Sync, x.slow))
	case "stall":
		if x.stalled--; x.stalled == 0 {
			x.p.Unstall()
		}
	case "full":
		if x.full--; x.full == 0 {
			x.p.Disk().Free()
		}
	case "restore":
		x.node.putBack()
	case "minimal":
		x.client.narrow.minimal--
	case "reach":
		x.client.narrow.reach = without(x.client.narrow.reach, d.N)
	case "jump", "break", "damage", "rot", "misdirect", "failsync", "propose": // have no end
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
	if d.Do == "lose" {
		x.p.LoseDisk()
		return
	}
	if x.p.Up() {
		switch d.Do {
		case "crash":
			x.p.Crash()
		case "torn":
			x.p.TornPowerLoss(d.N)
		default:
			x.p.PowerLoss(d.N)
		}
		if x.client != nil {
			x.client.died()
		}
	}
}

// restart begins the next life.
func (r *run) restart(x *process) {
	if x.p.Up() || x.node != nil && x.node.restored {
		return // a copy is started once: its next start would look newer
	}
	switch err := x.p.Restart(); {
	case errors.Is(err, sim.ErrDiskLost):
		return // as it must be: it has promised what it can't remember
	case err != nil:
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

// stopped is called when a step of a node or its disk has failed. A node whose
// fsync failed must stop: what is on the disk nobody knows. Its supervisor
// starts it again.
func (r *run) stopped(x *process) {
	if x.node != nil && x.node.restored && isOutcast(x.p.Failure()) {
		r.figures.Outcast++
		return
	}
	if !errors.Is(x.p.Failure(), sim.ErrSync) {
		r.violate("node-stopped", nil, "%s stopped: %v", x.p.ID(), x.p.Failure())
		return
	}
	r.w.At(0, func() {
		if x.down == 0 {
			r.restart(x)
		}
	})
}

// narrow is whom the requests of a client reach.
type narrow struct {
	minimal int   // faults by which it is a minimal quorum
	reach   []int // how many nodes

	conversation uint64
	reached      quorum.Set // by that conversation
}

// has reports whether a plan has a decision of a kind.
func (p Plan) has(kind string) bool {
	return slices.ContainsFunc(p.Decisions, func(d Decision) bool { return d.Do == kind })
}

// toMinimal narrows what clients ask to minimal quorums while a fault says so.
func (r *run) toMinimal(asker *sim.Process, req env.Message) (quorum.Configurations, sim.Need) {
	cl := r.byIndex[asker.Index()].client
	if cl == nil || cl.narrow.minimal == 0 || r.traits.Needs == nil {
		return nil, sim.NeedNothing
	}
	if cl.c.changing {
		return cl.c.succession.Known().Active(), r.traits.Needs(req)
	}
	return cl.c.told.Configurations, r.traits.Needs(req)
}

// intercept loses what a client sends to other nodes than its requests reach.
func (r *run) intercept(t sim.Transit) sim.Fate {
	if t.Answer {
		return sim.Pass
	}
	cl, n := r.byIndex[t.From.Index()].client, r.byIndex[t.To.Index()].node
	if cl == nil || n == nil || len(cl.narrow.reach) == 0 {
		return sim.Pass
	}
	v := &cl.narrow
	if v.conversation != t.Conversation {
		v.conversation = t.Conversation
		v.reached = cl.reached(t.Conversation)
	}
	if v.reached.Has(n.place) {
		return sim.Pass
	}
	return sim.Lose
}

// reached draws the nodes that a conversation reaches.
func (cl *client) reached(conversation uint64) (reached quorum.Set) {
	places := make([]int, len(cl.c.nodes))
	for i := range places {
		places[i] = i
	}
	shuffle(&dice{base: mix(cl.base ^ mix(conversation))}, places)
	most := cl.narrow.reach[len(cl.narrow.reach)-1]
	for _, place := range places[:min(most, len(places))] {
		reached = reached.Add(place)
	}
	return reached
}
