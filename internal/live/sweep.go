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

// plan resends what is due, and returns when to do so again. It takes care
// that a conversation which is opened meanwhile isn't overlooked, and that
// nearly none of those needs to kick.
func (r *Runtime) plan(now time.Duration) time.Duration {
	s := &r.sweep
	// Whatever is opened from here on is due no earlier than this, unless the
	// network doesn't take it: then it kicks.
	latest := now + FirstResend
	s.next.Store(int64(latest))
	next := r.resendDue(now)
	if next == never {
		// Nothing is open, or nothing that waits. From here on everyone kicks.
		s.next.Store(int64(never))
		// Those who came before that didn't kick, and may not have been seen.
		if next = r.resendDue(now); next == never {
			return never
		}
	}
	next = min(max(next, now+minSweep), latest)
	s.next.Store(int64(next))
	return next
}

// resendDue resends what is due, and returns when the next is.
func (r *Runtime) resendDue(now time.Duration) time.Duration {
	next := never
	for c := range r.table.all() {
		key := c.key.Load()
		if key == 0 {
			continue
		}
		due := time.Duration(c.due.Load())
		if due <= now {
			due = r.resendOne(c, key, now)
		}
		next = min(next, due)
	}
	return next
}

func (r *Runtime) resendOne(c *conversation, key uint64, now time.Duration) (due time.Duration) {
	if !c.lock(key) {
		return now // it ended; another may have begun here, so look again soon
	}
	due = time.Duration(c.due.Load())
	if due > now {
		c.mu.Unlock()
		return due
	}
	out, due := c.overdue(key, now, r.sweep.out[:0])
	c.due.Store(int64(due))
	c.mu.Unlock()
	due = min(due, r.resend(c, key, out))
	clear(out)
	r.sweep.out = out[:0]
	return due
}

// resend hands requests to the network that it was given before. It returns
// what transmit does.
func (r *Runtime) resend(c *conversation, key uint64, out []outgoing) (due time.Duration) {
	if len(out) == 0 {
		return never
	}
	r.sweep.resent.Add(uint64(len(out)))
	return r.transmit(c, key, out)
}
