package sim

import (
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"atoll/env"
)

// Scope is an operation or task on a process, as the driver sees it.
type Scope struct {
	p      *Process
	life   uint64
	limit  time.Duration
	ended  error // why it was canceled before it started
	caller *caller
	done   bool
	err    error
}

// Start runs f in the scope: from the next event on, at the present time. On a
// process that is down it ends at once with env.ErrStopped. A scope is started
// once.
func (s *Scope) Start(f func(env.Env) error) {
	if s.caller != nil || s.done {
		panic("sim: a scope was started twice")
	}
	if !s.p.up || s.p.life != s.life {
		s.done, s.err = true, env.ErrStopped
		return
	}
	c := s.p.call(f)
	s.caller, c.scope = c, s
	if s.limit > 0 {
		c.deadline = s.p.Clock() + s.limit
		c.arm(c.deadline)
	}
	if s.ended != nil {
		c.end(s.ended)
	}
}

// Cancel ends the scope with env.ErrCanceled. It may be called from anywhere,
// by callers too.
func (s *Scope) Cancel() {
	switch {
	case s.caller != nil:
		s.caller.end(env.ErrCanceled)
	case !s.done:
		s.ended = env.ErrCanceled
	}
}

// Done reports whether f has returned, or has died with its process.
func (s *Scope) Done() bool { return s.done }

// ErrCrashed is the Err of a scope whose process has died.
var ErrCrashed = fmt.Errorf("sim: the process has died: %w", env.ErrStopped)

// Err returns what f returned, or ErrCrashed, or nil while the scope isn't
// done.
func (s *Scope) Err() error { return s.err }

// state is what a caller is doing.
type state uint8

const (
	runnable state = iota // in World.ready, or running
	parked                // waiting for what its wait says
	finished
)

// wait is what a parked caller waits for, beside the end of its scope.
type wait uint8

const (
	nothing wait = iota
	anAnswer
	aTime
	mail
	aTask
)

// caller is one run of a function over an Env: a coroutine, and its scope.
// It implements env.Env (env.go), env.Conversation (conversation.go) and
// env.Task.
type caller struct {
	w      *World
	p      *Process
	life   uint64
	number uint64 // of the callers of this life
	index  int    // in the process's list
	name   string // of a task started with Go
	f      func(env.Env) error
	scope  *Scope // nil in a task started with Go

	parent *caller
	tasks  []*caller // started with Go, not joined
	joined bool

	r     *routine
	state state
	wait  wait
	inert bool // its process has died: no effect leaves any more

	ended    error         // why the scope has ended
	deadline time.Duration // this and the other times are what the process's clock shows
	alarm    time.Duration // of a Sleep

	timer   int32 // slot of the timer event
	timerAt time.Duration
	timed   bool // there is one

	owned []*mailbox
	box   *mailbox // of a Receive

	draws  uint64
	asked  uint64 // calls of Nearest
	joiner *caller
	err    error // what f returned
	memory memory

	conversation
}

// call makes a caller that runs f, and puts it among the ready.
func (p *Process) call(f func(env.Env) error) *caller {
	p.started++
	c := &caller{w: p.w, p: p, life: p.life, number: p.started, index: len(p.callers), f: f}
	c.place = p.w.settle(c)
	p.callers = append(p.callers, c)
	p.w.ready = append(p.w.ready, c)
	return c
}

// routine is a coroutine that runs one caller after another.
type routine struct {
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	caller *caller
}

// unwinding is the private panic that ends a caller whose process has died.
type unwinding struct{}

func (w *World) routine() *routine {
	if n := len(w.idle); n > 0 {
		r := w.idle[n-1]
		w.idle = w.idle[:n-1]
		return r
	}
	r := &routine{}
	r.next, r.stop = iter.Pull(func(yield func(struct{}) bool) {
		r.yield = yield
		for r.run() && yield(struct{}{}) {
		}
	})
	return r
}

// run runs the routine's caller to its end. It reports whether the routine can
// be used again.
func (r *routine) run() (again bool) {
	defer func() {
		if again {
			return
		}
		switch v := recover().(type) {
		case nil: // runtime.Goexit: a test that fails inside a caller
		case unwinding:
		case *NoProgress:
			panic(v)
		default:
			// It goes on in the scheduler, which is another stack.
			panic(fmt.Sprintf("%v\n\nin a caller of the simulation, on %s:\n%s", v, r.caller.p.id, debug.Stack()))
		}
	}()
	c := r.caller
	c.err = c.f(c)
	return true
}

// resumeAll lets every caller run that is ready, until none is.
func (w *World) resumeAll() {
	for i := 0; i < len(w.ready); i++ {
		c := w.ready[i]
		w.ready[i] = nil // keep nothing alive
		switch {
		case c.state != runnable:
		case c.p.frozen != nil:
			c.p.frozen.ready = append(c.p.frozen.ready, c)
		default:
			w.resume(c)
		}
	}
	w.ready = w.ready[:0]
}

// resume lets one caller run until it parks or ends.
func (w *World) resume(c *caller) {
	w.more(c.p)
	if c.r == nil {
		c.r = w.routine()
		c.r.caller = c
	}
	w.running = c
	c.r.next()
	w.running = nil
	if c.state == runnable {
		c.finish(c.err)
		c.r.caller = nil
		w.idle = append(w.idle, c.r)
		c.r = nil
	}
}

// park gives the control back to the scheduler until the caller is woken. Only
// the caller itself calls it.
func (c *caller) park(what wait) {
	c.wait, c.state = what, parked
	if !c.r.yield(struct{}{}) {
		panic(unwinding{})
	}
	c.wait = nothing
}

// wake makes a parked caller ready.
func (c *caller) wake() {
	if c.state == parked {
		c.state = runnable
		c.w.ready = append(c.w.ready, c)
	}
}

// finish is the end of a caller.
func (c *caller) finish(err error) {
	if len(c.tasks) > 0 {
		panic(fmt.Sprintf("sim: a caller on %s returned without having joined its task %q", c.p.id, c.tasks[0].name))
	}
	c.err = err
	c.leave()
	c.w.hash = fold(c.w.hash, c.p.hash^c.number<<1)
	if err != nil {
		c.w.hash = foldString(c.w.hash, err.Error())
	}
	if c.joiner != nil {
		c.joiner.wake()
	}
	last := len(c.p.callers) - 1
	c.p.callers[last].index = c.index
	c.p.callers[c.index] = c.p.callers[last]
	c.p.callers[last] = nil
	c.p.callers = c.p.callers[:last]
}

// leave gives back what a caller holds of the world.
func (c *caller) leave() {
	c.state = finished
	c.disown()
	c.disarm()
	c.w.vacate(c)
	if c.scope != nil {
		c.scope.done, c.scope.err = true, c.err
	}
}

// unwind ends a caller whose process has died: its function is left by a
// panic, and what its deferred functions call has no effect.
func (c *caller) unwind() {
	if c.state == finished {
		return
	}
	c.err = ErrCrashed
	c.leave()
	if c.r != nil {
		r := c.r
		c.r = nil
		r.caller = nil
		r.stop()
		c.err = ErrCrashed // whatever it returned while it unwound
	}
}

// end ends the caller's scope, and those of its tasks.
func (c *caller) end(why error) {
	if c.ended != nil || c.state == finished {
		return
	}
	c.ended = why
	c.disown()
	for _, t := range c.tasks {
		t.end(why)
	}
	if c.wait != aTask {
		c.wake()
	}
}

// arm sees to it that timeout is called when the clock shows at, or earlier. A
// caller has one timer event at most: one that is earlier than needed finds
// out when it comes up, so that asking and being answered costs none.
func (c *caller) arm(at time.Duration) {
	if c.timed && c.timerAt <= at {
		return
	}
	c.disarm()
	c.timed, c.timerAt = true, at
	c.timer = c.w.schedule.add(c.p.when(at), event{kind: timerEvent, caller: c})
}

// rearm sets the timer once more, for the same time, after something happened
// to the clock or to the event.
func (c *caller) rearm() {
	at := c.timerAt
	c.disarm()
	c.arm(at)
}

func (c *caller) disarm() {
	if c.timed {
		c.w.schedule.cancel(c.timer)
		c.timed = false
	}
}

// timeout is the caller's timer event.
func (c *caller) timeout() {
	c.timed = false
	if f := c.p.frozen; f != nil {
		f.due = append(f.due, c)
		return
	}
	now := c.p.Clock()
	next := c.deadline
	if next > 0 && now >= next {
		c.end(env.ErrDeadline)
		return
	}
	switch c.wait {
	case aTime:
		if now >= c.alarm {
			c.wake()
		} else {
			next = sooner(next, c.alarm)
		}
	case anAnswer:
		if c.woken {
			c.woken = false
			c.pass("", env.Woken{})
		}
		if c.hedging && now >= c.hedge {
			c.release()
		}
		if now >= c.again {
			c.repeat()
		}
		next = sooner(next, c.again)
		if c.hedging {
			next = min(next, c.hedge)
		}
	}
	if next > 0 {
		c.arm(next)
	}
}

// sooner returns the earlier of two times, of which a may be zero for none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}
