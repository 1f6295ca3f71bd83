package sim

import "slices"

// freeze is what waits while a process is paused.
type freeze struct {
	arrived []event    // messages that the operating system has taken
	ready   []*caller  // who would run
	due     []*caller  // whose timers have come up
	back    []*Process // that can be reached again
	synced  bool       // a commit has ended
}

// maxArrived is how many messages the operating system keeps for a process
// that is paused. What comes then is lost.
const maxArrived = 1 << 16

// Pause freezes a process, as SIGSTOP or a busy hypervisor does: nothing in it
// runs until Resume. What is on its way to it or back arrives, its disk ends
// what it was told to do, and its clock goes on.
func (p *Process) Pause() {
	p.w.outside("Pause")
	if p.frozen == nil && p.up {
		p.frozen = &freeze{}
	}
}

// Resume undoes Pause. Whether what has arrived or what has timed out
// meanwhile comes first is drawn, since that is how it is.
func (p *Process) Resume() {
	p.w.outside("Resume")
	f := p.frozen
	if f == nil {
		return
	}
	p.frozen = nil
	p.pauses++
	if f.synced {
		p.release()
	}
	timeoutsFirst := happens(draw(fold(mix(p.w.cfg.Seed), p.hash), p.pauses, forResume), million/2)
	for _, c := range f.due {
		switch {
		case c.state == finished:
		case timeoutsFirst:
			c.timeout()
		default:
			c.rearm() // a timer that is due comes behind messages
		}
	}
	for _, e := range f.arrived {
		p.w.schedule.add(p.w.now, e)
	}
	for _, q := range f.back {
		for _, c := range p.callers {
			if c.listens() {
				c.reconnect(q)
			}
		}
	}
	p.w.ready = append(p.w.ready, f.ready...)
}

// Paused reports whether the process is frozen.
func (p *Process) Paused() bool { return p.frozen != nil }

// reconnect is told that a process can be reached again.
func (c *caller) reconnect(q *Process) {
	if f := c.p.frozen; f == nil {
		c.reconnected(q)
	} else if !slices.Contains(f.back, q) {
		f.back = append(f.back, q)
	}
}

// take keeps a message that has arrived at a frozen process.
func (f *freeze) take(w *World, e *event) {
	if len(f.arrived) == maxArrived {
		w.lost(e)
		return
	}
	f.arrived = append(f.arrived, *e)
}
