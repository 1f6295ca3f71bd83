package live_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"atoll/env"
	"atoll/internal/live"
	"atoll/quorum"
)

// some asks first, with spare, and ends with as many answers.
func some(r *live.Runtime, first, spare []quorum.NodeID, enough int) *asking {
	a := &asking{result: make(chan error, 1)}
	go func() {
		heard := 0
		a.result <- r.Scope(context.Background()).AskSome(first, spare, number(1), func(env.Conversation, quorum.NodeID, env.Message) bool {
			heard++
			return heard == enough
		})
	}()
	return a
}

// warm has nodes answer, each after its own time, often enough that it is known.
func warm(t *testing.T, r *live.Runtime, l *line, latency map[quorum.NodeID]time.Duration, order []quorum.NodeID) {
	t.Helper()
	l.mu.hook = func(s sent) {
		d, ok := latency[s.to]
		if !ok {
			return
		}
		time.AfterFunc(d, func() { r.Deliver(s.to, s.conversation, s.m) })
	}
	for range 40 {
		for i := range order {
			a := some(r, order[i:i+1], nodes("nobody"), 1)
			if err := <-a.result; err != nil {
				t.Fatal(err)
			}
		}
	}
	l.take()
}

// TestHedges: the spare is asked after a few times what the slowest of those
// before it usually takes, and no sooner than HedgeLeast.
func TestHedges(t *testing.T) {
	for _, test := range []struct {
		usual time.Duration
		want  string
	}{
		{time.Millisecond, "0s a 1; 0s b 1; 5ms c 1"},
		{10 * time.Millisecond, "0s a 1; 0s b 1; 30ms c 1"},
		{time.Second, "0s a 1; 0s b 1; 1s c 1"}, // HedgeMost
	} {
		bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
			warm(t, r, l, map[quorum.NodeID]time.Duration{"a": time.Millisecond, "b": test.usual}, nodes("a", "b"))
			l.mu.hook = nil
			time.Sleep(time.Minute) // nothing of that is planned any more
			l.begin = time.Now()
			before := r.Stats().Hedged
			a := some(r, nodes("a", "b"), nodes("c"), 1)
			time.Sleep(1500 * time.Millisecond)
			last := l.want(t, test.want)
			r.Deliver("c", last.conversation, number(0))
			if err := <-a.result; err != nil {
				t.Error(err)
			}
			if got := r.Stats().Hedged - before; got != 1 {
				t.Errorf("Stats counts %d hedges, want 1", got)
			}
		})
	}
}

// TestSparesAreAskedAtOnce: when the network refuses a request, when a
// connection ends, and not when one comes up.
func TestSparesAreAskedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		l.fail("a", errors.New("not connected"))
		a := some(r, nodes("a", "b"), nodes("c", "d"), 1)
		last := l.want(t, "0s a 1; 0s b 1; 0s c 1; 0s d 1")
		r.Deliver("d", last.conversation, number(0))
		<-a.result

		l.fail("a", nil)
		a = some(r, nodes("a", "b"), nodes("c"), 1)
		l.want(t, "0s a 1; 0s b 1")
		r.PeerUp("c")
		r.PeerDown("c", nil) // it wasn't asked
		l.want(t, "")
		r.PeerDown("b", nil)
		last = l.want(t, "0s c 1")
		r.Deliver("c", last.conversation, number(0))
		<-a.result
	})
}

// TestASpareThatWasNotAskedIsNobody: its answer isn't passed on.
func TestASpareThatWasNotAskedIsNobody(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		a := some(r, nodes("a"), nodes("b"), 1)
		id := l.want(t, "0s a 1").conversation
		r.Deliver("b", id, number(0))
		synctest.Wait()
		select {
		case <-a.result:
			t.Error("an answer of a spare that wasn't asked ended the conversation")
		default:
		}
		r.Deliver("a", id, number(0))
		<-a.result
	})
}

// TestNearest: fast nodes take turns, slow ones come behind them, then those
// that are late, and last those that are out of reach. A slow one is asked now
// and then, and is back when it is fast.
func TestNearest(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		latency := map[quorum.NodeID]time.Duration{
			"a": 10 * time.Millisecond, "b": time.Millisecond, "c": 1500 * time.Microsecond, "d": 5 * time.Millisecond,
		}
		all := nodes("a", "b", "c", "d")
		warm(t, r, l, latency, all)
		e := r.Scope(context.Background())
		seen := func() string {
			orders := make(map[string]bool)
			for range 20 {
				orders[fmt.Sprint(e.Nearest(all))] = true
			}
			return fmt.Sprint(orders)
		}
		check := func(when, want string) {
			t.Helper()
			if got := seen(); got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
		read := func() {
			t.Helper()
			order := e.Nearest(all)
			if err := <-some(r, order[:2], order[2:], 2).result; err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
		}
		read()
		check("at first", "map[[b c d a]:true [c b d a]:true]")

		delete(latency, "b") // it falls silent
		read()
		check("when b is silent", "map[[c d a b]:true]")
		for range 40 {
			l.take()
			began := time.Now()
			read()
			if took := time.Since(began); took > 56*time.Millisecond {
				t.Errorf("a read took %v though b is known to be silent", took-50*time.Millisecond)
			}
		}

		latency["b"] = time.Millisecond // it is back, and nobody says so
		for range 10 {
			read()
		}
		check("when b is back", "map[[b c d a]:true [c b d a]:true]")

		r.PeerDown("c", nil)
		check("without c", "map[[b d a c]:true]")
		r.PeerUp("c")
		check("with c", "map[[b c d a]:true [c b d a]:true]")
	})
}

// TestBulkyAnswersTakeTime: a request whose answer is large isn't late when a
// small one would be.
func TestBulkyAnswersTakeTime(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		warm(t, r, l, map[quorum.NodeID]time.Duration{"a": time.Millisecond}, nodes("a"))
		l.mu.hook = nil
		synctest.Wait()
		l.begin = time.Now()
		done := make(chan error)
		go func() {
			done <- r.Scope(context.Background()).AskSome(nodes("a"), nodes("b"), bulky(1<<20), atOnce)
		}()
		time.Sleep(500 * time.Millisecond)
		last := l.want(t, "0s a 1048576; 310.2ms b 1048576") // three times 102.4 + 1 ms
		r.Deliver("b", last.conversation, number(0))
		<-done
	})
}

type bulky int

func (bulky) Message()           {}
func (b bulky) AnswerBytes() int { return int(b) }
