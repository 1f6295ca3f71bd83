package live

import (
	"sync/atomic"
	"time"
)

// sweeper is the state of the goroutine that resends.
type sweeper struct {
	// next is when it will sweep at the latest, by Runtime.now; never, if it
	// waits for a kick.
	next atomic.Int64
	kick chan struct{} // of capacity 1
	// woken is set by Wake.
	woken atomic.Bool

	resent atomic.Uint64
	out    []outgoing // the sweeper's own
}

func (s *sweeper) init() {
	s.kick = make(chan struct{}, 1)
	s.next.Store(int64(never))
}

// expect is told, after it is to be seen in the table, that a conversation is
// due at that time.
func (s *sweeper) expect(due time.Duration) {
	if int64(due) < s.next.Load() {
		select {
		case s.kick <- struct{}{}:
		default:
		}
	}
}

// sweepUntilStopped is the sweeper's goroutine.
func (r *Runtime) sweepUntilStopped() {
	timer := time.NewTimer(0)
	timer.Stop()
	for {
		if r.sweep.woken.Swap(false) {
			r.wakeAll()
		}
		now := r.now()
		if next := r.plan(now); next != never {
			timer.Reset(next - now)
		}
		select {
		case <-timer.C:
		case <-r.sweep.kick:
			timer.Stop()
		case <-r.stop:
			timer.Stop()
			return
		}
	}
}

// Wake is told that the process has learned something by which those go whose
// requests are env.Wakeable: they are told, a little later and on a goroutine of
// the Runtime. It doesn't block, and may be called where an answer arrives.
func (r *Runtime) Wake() {
	r.sweep.woken.Store(true)
	select {
	case r.sweep.kick <- struct{}{}:
	default:
	}
}

// wakeAll tells them.
func (r *Runtime) wakeAll() {
	for c := range r.table.all() {
		key := c.key.Load()
		out, due := c.woken(key, r.now, r.sweep.out[:0])
		r.sweep.expect(min(due, r.transmit(c, key, out)))
		clear(out)
	}
}

// plan sends what is due, and returns when to do so again. It takes care that a
// conversation which is opened meanwhile isn't overlooked, and that nearly none
// of those needs to kick.
func (r *Runtime) plan(now time.Duration) time.Duration {
	s := &r.sweep
	// Whatever is opened from here on is due no earlier than this, unless the
	// network doesn't take it.
	latest := now + min(FirstResend, r.paces.least)
	s.next.Store(int64(latest))
	next := r.sweepDue(now)
	if next > latest {
		// Nothing is due soon. From here on, what is due before next kicks.
		s.next.Store(int64(next))
		// What came before that didn't kick, and may not have been seen.
		next = min(next, r.sweepDue(now))
	}
	s.next.Store(int64(next))
	return next
}

// sweepDue sends what is due, and returns when to look again.
func (r *Runtime) sweepDue(now time.Duration) time.Duration {
	resend, hedge := never, never
	for c := range r.table.all() {
		key := c.key.Load()
		if key == 0 {
			continue
		}
		due, spares := time.Duration(c.due.Load()), time.Duration(c.hedge.Load())
		if min(due, spares) <= now {
			due, spares = r.sweepOne(c, key, now)
		}
		resend, hedge = min(resend, due), min(hedge, spares)
	}
	return min(max(resend, now+minSweep), max(hedge, now+minHedgeSweep))
}

// sweepOne asks the spares of a conversation, or asks again, or both. It
// returns when to do so next.
func (r *Runtime) sweepOne(c *conversation, key uint64, now time.Duration) (due, hedge time.Duration) {
	if !c.lock(key) {
		return now, never // it ended; another may have begun here, so look again soon
	}
	out := r.sweep.out[:0]
	due = time.Duration(c.due.Load())
	if time.Duration(c.hedge.Load()) <= now {
		c.hedged(key, &r.paces)
		out = c.unsent(key, now, out)
		due = min(due, now+FirstResend)
	}
	fresh := len(out)
	if due <= now {
		out, due = c.overdue(key, now, out)
	}
	c.due.Store(int64(due))
	hedge = time.Duration(c.hedge.Load())
	c.mu.Unlock()
	r.sweep.resent.Add(uint64(len(out) - fresh))
	due = min(due, r.transmit(c, key, out))
	clear(out)
	r.sweep.out = out[:0]
	return due, hedge
}

// resend hands requests to the network that it was given before. It returns
// what transmit does.
func (r *Runtime) resend(c *conversation, key uint64, out []outgoing) (due time.Duration) {
	r.sweep.resent.Add(uint64(len(out)))
	return r.transmit(c, key, out)
}
