package live_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"atoll/env"
	"atoll/internal/live"
)

func TestStop(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		e := r.Scope(t.Context())
		results := make(chan error)
		for _, wait := range []func() error{
			func() error { return e.Ask(nodes("a"), number(1), never) },
			func() error { return e.Sleep(time.Hour) },
			func() error { _, err := e.Receive("box"); return err },
			func() error { return e.Go("task", func(e env.Env) error { return e.Sleep(time.Hour) }).Join() },
		} {
			go func() { results <- wait() }()
		}
		last := l.want(t, "0s a 1")
		left := false
		e.Go("slow to end", func(e env.Env) error {
			err := e.Sleep(time.Hour)
			time.Sleep(time.Second) // whatever it does besides
			left = true
			return err
		})
		var two sync.WaitGroup
		two.Go(r.Stop)
		two.Go(r.Stop)
		for range 4 {
			if err := <-results; !errors.Is(err, env.ErrStopped) {
				t.Errorf("a wait ended with %v, want %v", err, env.ErrStopped)
			}
		}
		two.Wait()
		if !left {
			t.Error("Stop returned before a task had")
		}
		r.Deliver("a", last.conversation, number(0))
		r.PeerUp("a")
		e.Tell(nodes("a"), number(2))
		e.Send(env.Address{Node: "a"}, number(3))
		l.want(t, "")
		ran := false
		err := e.Go("late", func(env.Env) error { ran = true; return nil }).Join()
		if ran || err != env.ErrStopped {
			t.Errorf("a task ran after Stop: %v, error %v", ran, err)
		}
		if err := e.Ask(nodes("a"), number(1), never); !errors.Is(err, env.ErrStopped) {
			t.Errorf("Ask after Stop returned %v", err)
		}
	})
}

func TestTasksEndWithTheirScope(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		ctx, cancel := context.WithCancel(t.Context())
		e := r.Scope(ctx)
		var inner env.Task
		sleep := func(e env.Env) error { return e.Sleep(time.Hour) }
		outer := e.Go("outer", func(e env.Env) error {
			inner = e.Go("inner", sleep)
			return nil
		})
		if err := outer.Join(); err != nil {
			t.Error(err)
		}
		if err := inner.Join(); err != env.ErrCanceled {
			t.Errorf("a task that its task didn't join ended with %v, want %v", err, env.ErrCanceled)
		}
		one, two := e.Go("one", sleep), r.Scope(t.Context()).Go("two", sleep)
		cancel()
		if err := one.Join(); err != env.ErrCanceled {
			t.Errorf("a task in a canceled scope ended with %v, want %v", err, env.ErrCanceled)
		}
		time.Sleep(2 * time.Hour)
		if err := two.Join(); err != nil {
			t.Errorf("a task in another scope ended with %v", err)
		}
	})
}

func TestMail(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		e := r.Scope(t.Context())
		put := func(n int) {
			r.Mail("box", env.Envelope{From: env.Address{Node: "a", Conversation: uint64(n)}, Message: number(n)})
		}
		for n := range live.MaxMail + 10 {
			put(n)
		}
		r.Mail("other", env.Envelope{})
		got, err := e.Receive("box")
		if err != nil || len(got) != live.MaxMail {
			t.Fatalf("Receive returned %d envelopes and %v, want %d", len(got), err, live.MaxMail)
		}
		for n, envelope := range got {
			if envelope.Message != number(n) || envelope.From.Conversation != uint64(n) {
				t.Fatalf("envelope %d is %+v", n, envelope)
			}
		}
		if got := r.Stats().MailDropped; got != 10 {
			t.Errorf("Stats counts %d envelopes as dropped, want 10", got)
		}
		more := make(chan []env.Envelope)
		go func() {
			got, _ := e.Receive("box")
			more <- got
		}()
		synctest.Wait()
		put(1)
		if got := <-more; len(got) != 1 || got[0].Message != number(1) {
			t.Errorf("Receive returned %v", got)
		}
		e.Send(got[3].From, number(33))
		if last := l.want(t, "0s a 33"); last.conversation != 3 {
			t.Errorf("answered in conversation %d, want 3", last.conversation)
		}
	})
}

func TestMailboxesGoWithTheirTasks(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		e := r.Scope(t.Context())
		for n := range live.MaxMailboxes + 10 {
			box := env.Mailbox(strconv.Itoa(n))
			r.Mail(box, env.Envelope{})
			if err := e.Go("task", func(e env.Env) error { _, err := e.Receive(box); return err }).Join(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if got := r.Stats().MailDropped; got != 0 {
			t.Errorf("%d envelopes were dropped", got)
		}
	})
}

func TestMailboxesAreLimited(t *testing.T) {
	r := live.New(live.Config{Network: &line{}})
	defer r.Stop()
	for n := range live.MaxMailboxes + 3 {
		r.Mail(env.Mailbox(strconv.Itoa(n)), env.Envelope{})
	}
	if got := r.Stats().MailDropped; got != 3 {
		t.Errorf("%d envelopes were dropped, want 3", got)
	}
}

func TestPanicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told *live.PanicError
		r := live.New(live.Config{Network: &line{begin: time.Now()}, Panicked: func(p *live.PanicError) { told = p }})
		defer r.Stop()
		e := r.Scope(t.Context())
		other := e.Go("other", func(e env.Env) error { return e.Sleep(time.Second) })
		bad := e.Go("bad", func(env.Env) error { panic("so it goes") })
		p, ok := errors.AsType[*live.PanicError](bad.Join())
		if !ok || p != told || p.Task != "bad" || p.Value != "so it goes" || !strings.Contains(string(p.Stack), "TestPanicked") {
			t.Errorf("the task ended with %v, and told was %v", p, told)
		}
		if err := other.Join(); err != nil {
			t.Errorf("another task ended with %v", err)
		}
	})
}
