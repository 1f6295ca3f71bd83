package explore

import (
	"fmt"
	"slices"
	"time"

	"atoll/rambo"
	"atoll/sim"
)

// world is a scope that is being run as a whole, move by move.
type world struct {
	*stage
	judge   *judge
	crashes int // that are left
	lost    int
	hanging *sim.Process // a node whose disk hangs
}

// world returns a world that is about to make its first move.
func (b *beginning) world(tell func(string)) (*world, error) {
	x := &world{stage: b.stage(everybody), crashes: b.scope.Crashes, lost: b.scope.Lost}
	var err error
	if x.judge, err = b.judge(x.w.TagText); err != nil {
		return nil, err
	}
	x.happens = x.judge.take
	if err := x.enter(); err != nil {
		x.w.Close()
		return nil, err
	}
	x.tell = tell
	x.settle()
	x.start()
	x.settle()
	return x, nil
}

// start begins all operations that may begin.
func (x *world) start() {
	for i := range x.operations {
		if o := &x.operations[i]; o.scope == nil && !slices.ContainsFunc(x.operations[:o.After], func(o operation) bool { return !o.over() }) {
			x.begin(i)
		}
	}
}

// over reports whether all operations are.
func (x *world) over() bool {
	return !slices.ContainsFunc(x.operations, func(o operation) bool { return !o.over() })
}

// moves returns all that may happen next, but for what is known only once a
// message has arrived (variants).
func (x *world) moves() (all []move) {
	if x.over() {
		return nil
	}
	for i := range x.w.Held() {
		all = append(all, move{kind: arrives, at: uint32(i)})
	}
	if len(all) == 0 && x.hanging == nil {
		all = append(all, move{kind: passes})
	}
	for _, p := range x.w.Processes() {
		if p == x.hanging || x.crashes > 0 && x.scope.mortal(p.ID()) && x.busy(p) {
			all = append(all, move{kind: dies, at: uint32(p.Index())})
		}
	}
	return all
}

// busy reports whether a process has anything to lose: a node, or an operation
// under way.
func (x *world) busy(p *sim.Process) bool {
	if p.Disk() != nil {
		return true
	}
	return slices.ContainsFunc(x.operations, func(o operation) bool { return o.p == p && o.scope != nil && !o.scope.Done() })
}

// variants returns the other ways in which a message can arrive, which has had
// an effect.
func (x *world) variants(m move) (all []move) {
	if m.kind != arrives {
		return nil
	}
	if x.loud && x.lost > 0 {
		all = append(all, move{kind: unheard, at: m.at})
	}
	for _, n := range x.nodes {
		if x.wrote&bit(n.p) != 0 && x.crashes > 0 && x.hanging == nil && x.scope.mortal(n.p.ID()) {
			all = append(all, move{kind: hangs, at: m.at, by: uint8(n.p.Index())})
		}
	}
	return all
}

// do lets a move happen, and all that follows from it at once.
func (x *world) do(m move) error {
	x.loud, x.wrote = false, 0
	switch held := x.w.Held(); m.kind {
	case arrives, unheard, hangs:
		if int(m.at) >= len(held) || m.kind == hangs && int(m.by) >= len(x.nodes) {
			return fmt.Errorf("explore: move %v: no such message is held, or there is no such node", m)
		}
		x.deliver(m)
	case dies:
		if int(m.at) >= len(x.w.Processes()) {
			return fmt.Errorf("explore: move %v: no such process", m)
		}
		p := x.w.Processes()[m.at]
		x.sayf("%s dies, and comes back", p.ID())
		if p == x.hanging {
			x.hanging = nil
		} else {
			x.crashes--
		}
		x.die(p)
	case passes:
		x.sayf("time passes")
		for _, d := range pauses {
			if len(held) > 0 {
				break
			}
			x.w.RunFor(d)
			x.settle()
			held = x.w.Held()
		}
	}
	x.settle()
	x.start()
	x.settle()
	return nil
}

// pauses are how long time passes: the second if nothing has come of the first.
// The first is enough for what is sent again, and for what begins again, wherever
// timers stand; the second for new members to be given up.
var pauses = [2]time.Duration{2*sim.DefaultResendMost + rambo.DefaultAgain, 2 * patience}

// patience is how long new members alone are waited for to merge.
const patience = time.Minute

// deliver lets a held message arrive.
func (x *world) deliver(m move) {
	switch m.kind {
	case unheard:
		x.losing = true
		x.lost--
	case hangs:
		// It must die: a disk that only takes its time is like a network that does.
		x.crashes--
		x.hanging = x.w.Processes()[m.by]
		x.hang(x.hanging)
		x.sayf("from now on the disk of %s hangs", x.hanging.ID())
	}
	x.begun(x.w.Held()[m.at].From)
	x.w.Release(int(m.at))
	x.w.RunFor(instant)
	x.losing = false
}

// begun is called when something that a process has sent arrives. It is then
// that an operation begins, for the history: until then nobody could have told
// whether it had. So it begins behind as many others as it can.
func (x *world) begun(p *sim.Process) {
	for i := range x.operations {
		if o := &x.operations[i]; o.p == p && o.Do != Upgrade {
			x.happens(event{what: begins, by: i})
		}
	}
}

// settle lets everything happen that is due, and throws away the messages that
// nobody would notice: those that come too late, second copies, and requests
// that change nothing and whose answer nobody awaits.
func (x *world) settle() {
	x.w.RunFor(instant)
	tell := x.tell
	x.tell = nil
	known := make(map[uint64]bool)
	for i := 0; i < len(x.w.Held()); {
		h := x.w.Held()[i]
		label := x.w.StateOf(h)
		if x.w.Arrives(h) && (!onlyReads(h.Message) || x.w.Awaited(h)) && !known[label] {
			known[label] = true
			i++
			continue
		}
		x.w.Discard(i)
	}
	x.tell = tell
}

// worldAfter returns a world that has made some moves.
func (b *beginning) worldAfter(p path, tell func(string)) (*world, error) {
	x, err := b.world(tell)
	if err != nil {
		return nil, err
	}
	for _, m := range p {
		if err := x.do(m); err != nil {
			x.w.Close()
			return nil, err
		}
	}
	return x, nil
}
