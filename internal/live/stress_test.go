package live_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"atoll/env"
	"atoll/internal/live"
	"atoll/quorum"
)

// storm is a network of echoing nodes that loses, repeats and delays at
// random. Its answers carry the request's number.
type storm struct {
	runtime *live.Runtime
	rand    func() uint64
	wg      sync.WaitGroup
}

func (s *storm) Send(to quorum.NodeID, conversation uint64, m env.Message) error {
	dice := s.rand() % 16
	switch {
	case dice == 0:
		return errors.New("not connected")
	case dice <= 2:
		return nil
	case dice <= 4:
		s.echo(to, conversation, m)
	}
	s.echo(to, conversation, m)
	return nil
}

func (s *storm) echo(from quorum.NodeID, conversation uint64, m env.Message) {
	delay := time.Duration(s.rand() % uint64(2*time.Millisecond))
	if s.rand()%4 == 0 {
		delay *= 200 // as late as a resend, or long after the end
	}
	s.wg.Go(func() {
		if delay > 0 {
			time.Sleep(delay)
		}
		s.runtime.Deliver(from, conversation, m)
	})
}

func (s *storm) Answer(env.Address, env.Message) error { return nil }

// TestStorm: many callers on a bad network, canceled at random, with
// connections that come and go. Each sees the answers to its own requests
// only, one at a time, and none after it was done.
func TestStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &storm{rand: rand.Uint64}
		s.runtime = live.New(live.Config{Network: s})
		var callers, weather sync.WaitGroup
		over := make(chan struct{})
		weather.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(20 * time.Millisecond):
				}
				id := members[rand.IntN(len(members))]
				s.runtime.PeerDown(id, errors.New("reset"))
				s.runtime.PeerUp(id)
			}
		})
		var finished, ended atomic.Int64
		for caller := range 64 {
			callers.Go(func() {
				for round := range 20 {
					err := s.operation(number(caller*1000+round), round%5 == 4)
					switch {
					case err == nil:
						finished.Add(1)
					case errors.Is(err, env.ErrDeadline):
						ended.Add(1)
					default:
						t.Error(err)
					}
				}
			})
		}
		callers.Wait()
		close(over)
		weather.Wait()
		s.runtime.Stop()
		s.wg.Wait() // answers to conversations that are over, and a Runtime that is
		if finished.Load() < 64*15 || ended.Load() == 0 {
			t.Errorf("%d operations finished, %d met their deadline", finished.Load(), ended.Load())
		}
	})
}

var members = nodes("a", "b", "c", "d", "e")

// operation asks all members until three have answered, the first of which is
// then asked something else.
func (s *storm) operation(n number, hasty bool) error {
	limit := time.Minute
	if hasty {
		limit = time.Duration(rand.Int64N(int64(5 * time.Millisecond)))
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var wrong error
	var inside atomic.Int32
	over := false
	var first quorum.NodeID
	again := false
	heard := make(map[quorum.NodeID]bool)
	err := s.runtime.Scope(ctx).Ask(members[:3], n, func(c env.Conversation, from quorum.NodeID, m env.Message) bool {
		if inside.Add(1) != 1 || over {
			wrong = errors.New("each was called while it ran, or after its end")
		}
		defer inside.Add(-1)
		switch m {
		case n:
		case -n:
			again = true
		default:
			wrong = fmt.Errorf("%v was passed the answer %v", n, m)
		}
		if first == "" {
			first = from
			c.Redirect(from, -n)
			c.Add(members...)
		}
		heard[from] = true
		over = again && len(heard) >= 3
		return over
	})
	// Read without a lock: after Ask has returned, each doesn't run.
	if wrong != nil {
		return wrong
	}
	if err == nil && !over {
		return errors.New("Ask returned nil before each had returned true")
	}
	return err
}

// TestStopInAStorm: Stop while everything is under way.
func TestStopInAStorm(t *testing.T) {
	for range 20 {
		synctest.Test(t, stopInAStorm)
	}
}

func stopInAStorm(t *testing.T) {
	s := &storm{rand: rand.Uint64}
	s.runtime = live.New(live.Config{Network: s})
	var callers sync.WaitGroup
	var begun atomic.Int64
	warm := make(chan struct{})
	for range 16 {
		callers.Go(func() {
			e := s.runtime.Scope(context.Background())
			for n := number(1); ; n++ {
				task := e.Go("task", func(e env.Env) error {
					return e.Ask(members, -n, atOnce)
				})
				err := e.Ask(members, n, atOnce)
				if err2 := task.Join(); err == nil {
					err = err2
				}
				if begun.Add(1) == 100 {
					close(warm)
				}
				if err != nil {
					if !errors.Is(err, env.ErrStopped) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	<-warm
	s.runtime.Stop()
	callers.Wait()
	s.wg.Wait()
}

// TestCancelWhileEachRuns: the scope ends while an answer is looked at. Ask
// waits for each, and if that is satisfied, it was in time.
func TestCancelWhileEachRuns(t *testing.T) {
	for _, satisfied := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			l := &line{begin: time.Now()}
			r := live.New(live.Config{Network: l})
			defer r.Stop()
			running, goOn := make(chan struct{}), make(chan struct{})
			a := ask(r, nodes("a"), func(env.Conversation, quorum.NodeID, env.Message) bool {
				close(running)
				<-goOn // each must not block; here it stands for one that takes a while
				return satisfied
			})
			synctest.Wait()
			_, last := l.take()
			go r.Deliver("a", last.conversation, number(1))
			<-running
			a.cancel(nil)
			close(goOn)
			if err := <-a.result; (err == nil) != satisfied {
				t.Errorf("each returned %v, and Ask %v", satisfied, err)
			}
		})
	}
}
