package live

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/tags"
)

// scope is the Env of one operation or task.
type scope struct {
	r         *Runtime
	ctx       context.Context
	mailboxes []env.Mailbox // that it owns; guarded by postOffice.mu
}

// err returns why the scope ended, nil if it hasn't.
func (s *scope) err() error {
	if s.r.stopping.Load() {
		return env.ErrStopped
	}
	if s.ctx.Err() == nil {
		return nil
	}
	return ended(s.ctx)
}

// ended translates why a context ended. A cause of its own, which only
// context.WithCancelCause and the like give it, is kept.
func ended(ctx context.Context) error {
	kind, plain := env.ErrCanceled, context.Canceled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind, plain = env.ErrDeadline, context.DeadlineExceeded
	}
	switch cause := context.Cause(ctx); {
	case cause == plain || cause == kind:
		return kind
	case errors.Is(cause, env.ErrStopped), errors.Is(cause, env.ErrDeadline), errors.Is(cause, env.ErrCanceled):
		return cause // whoever canceled it says what that means
	default:
		return fmt.Errorf("%w: %w", kind, cause)
	}
}

// Ask implements env.Env.
func (s *scope) Ask(to []quorum.NodeID, req env.Message, each func(env.Conversation, quorum.NodeID, env.Message) bool) error {
	return s.AskSome(to, nil, req, each)
}

// AskSome implements env.Env.
func (s *scope) AskSome(first, spare []quorum.NodeID, req env.Message, each func(env.Conversation, quorum.NodeID, env.Message) bool) error {
	if err := s.err(); err != nil {
		return notAsked(err, first, spare)
	}
	r := s.r
	c, err := s.place()
	if err != nil {
		return notAsked(err, first, spare)
	}
	defer r.table.give(c)

	var buf [8]outgoing
	key, due, out := c.begin(question{first, spare, req, each}, &r.paces, r.now(), buf[:0])
	defer c.forget()
	r.sweep.expect(due)
	if r.stopping.Load() {
		c.end(key, env.ErrStopped) // Stop may have passed by before begin
	}
	// All are sent, even if each is done before the last: whoever puts a value
	// wants every member to have it.
	r.sweep.expect(r.transmit(c, key, out))
	for c.key.Load() == key {
		select {
		case <-c.wake:
		case <-s.ctx.Done():
			c.end(key, s.err())
		}
	}
	if c.mu.cause != nil {
		return c.unfinished()
	}
	return nil
}

// place returns a place in the table, and waits for one while all are taken.
func (s *scope) place() (*conversation, error) {
	for {
		c, room := s.r.table.take()
		if c != nil {
			return c, nil
		}
		select {
		case <-room:
		case <-s.ctx.Done():
			return nil, s.err()
		case <-s.r.stop:
			return nil, s.err()
		}
	}
}

// notAsked is what Ask returns when the scope ended before anything was sent.
func notAsked(cause error, lists ...[]quorum.NodeID) error {
	u := &env.Unfinished{Cause: cause}
	for _, list := range lists {
		for _, id := range list {
			u.Targets = append(u.Targets, env.Target{Node: id})
		}
	}
	return u
}

// Tell implements env.Env.
func (s *scope) Tell(to []quorum.NodeID, m env.Message) {
	for _, id := range to {
		if s.r.stopping.Load() {
			return
		}
		_ = s.r.network.Send(id, 0, m) // it may be lost
	}
}

// Sleep implements env.Env.
func (s *scope) Sleep(d time.Duration) error {
	if err := s.err(); err != nil || d <= 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.ctx.Done():
	case <-s.r.stop:
	}
	return s.err()
}

// task is a task that was started with Go.
type task struct {
	done   chan struct{}
	err    error // set before done is closed
	cancel context.CancelFunc
}

// Join implements env.Task.
func (t *task) Join() error {
	<-t.done
	return t.err
}

// Cancel implements env.Task.
func (t *task) Cancel() { t.cancel() }

// Go implements env.Env. In a profile, the task has its name as a label.
func (s *scope) Go(name string, f func(env.Env) error) env.Task {
	t := &task{done: make(chan struct{})}
	// Canceled when f returns: that ends the tasks within it.
	ctx, cancel := context.WithCancel(s.ctx)
	t.cancel = cancel
	started := s.r.spawn(func() {
		defer close(t.done)
		defer cancel()
		pprof.Do(ctx, pprof.Labels("task", name), func(ctx context.Context) {
			t.err = s.r.run(name, f, &scope{r: s.r, ctx: ctx})
		})
	})
	if !started {
		cancel()
		t.err = env.ErrStopped
		close(t.done)
	}
	return t
}

// run runs a task in its scope.
func (r *Runtime) run(name string, f func(env.Env) error, in *scope) (err error) {
	if r.panicked != nil {
		defer func() {
			if v := recover(); v != nil {
				p := &PanicError{Task: name, Value: v, Stack: debug.Stack()}
				r.panicked(p)
				err = p
			}
		}()
	}
	return f(in)
}

// Receive implements env.Env.
func (s *scope) Receive(m env.Mailbox) ([]env.Envelope, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	box := s.r.mail.own(m, s)
	for {
		if err := s.err(); err != nil {
			box.signal() // the token that woke us may be meant for the next owner
			return nil, err
		}
		if got := box.takeAll(); len(got) > 0 {
			return got, nil
		}
		select {
		case <-box.filled:
		case <-s.ctx.Done():
		case <-s.r.stop:
		}
	}
}

// Send implements env.Env.
func (s *scope) Send(to env.Address, answer env.Message) {
	if !s.r.stopping.Load() {
		_ = s.r.network.Answer(to, answer) // who asked asks again
	}
}

// ID implements env.Env.
func (s *scope) ID() tags.PID { return s.r.id() }

// Now implements env.Env.
func (s *scope) Now() time.Duration { return s.r.now() }

// Nearest implements env.Env. It takes from what AskSome has seen so far.
func (s *scope) Nearest(nodes []quorum.NodeID) []quorum.NodeID { return s.r.paces.nearest(nodes) }

// Rand implements env.Env.
func (s *scope) Rand() uint64 { return rand.Uint64() }

// Self implements env.Env.
func (s *scope) Self() quorum.NodeID { return s.r.self }

// Trace implements env.Env.
func (s *scope) Trace(e env.Event) {
	if s.r.trace != nil {
		s.r.trace(e)
	}
}
