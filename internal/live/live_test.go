package live_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"atoll/env"
	"atoll/internal/live"
	"atoll/quorum"
	"atoll/tags"
)

type number int

func (number) Message() {}

// line is a network of which a test is the far end: it notes down what is
// sent, and when, and takes it unless it has an error for the node.
type line struct {
	begin time.Time
	mu    struct {
		sync.Mutex
		sent []sent
		errs map[quorum.NodeID]error
		hook func(sent)
	}
}

type sent struct {
	at           time.Duration
	to           quorum.NodeID
	conversation uint64
	m            env.Message
}

func (l *line) Send(to quorum.NodeID, conversation uint64, m env.Message) error {
	s := sent{time.Since(l.begin), to, conversation, m}
	l.mu.Lock()
	l.mu.sent = append(l.mu.sent, s)
	err, hook := l.mu.errs[to], l.mu.hook
	l.mu.Unlock()
	if hook != nil {
		hook(s)
	}
	return err
}

func (l *line) Answer(to env.Address, m env.Message) error {
	return l.Send(to.Node, to.Conversation, m)
}

func (l *line) fail(node quorum.NodeID, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.errs[node] = err
}

// take returns what was sent since the last call, as "250ms a 1", and the last
// of it as it is.
func (l *line) take() (lines string, last sent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for _, s := range l.mu.sent {
		fmt.Fprintf(&b, "%v %s %v; ", s.at, s.to, s.m)
		last = s
	}
	l.mu.sent = nil
	return strings.TrimSuffix(b.String(), "; "), last
}

func (l *line) want(t *testing.T, want string) (last sent) {
	t.Helper()
	synctest.Wait()
	got, last := l.take()
	if got != want {
		t.Errorf("sent\n\t%s\nwant\n\t%s", got, want)
	}
	return last
}

// bubble runs f with a Runtime and its line in virtual time.
func bubble(t *testing.T, f func(t *testing.T, r *live.Runtime, l *line)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &line{begin: time.Now()}
		l.mu.errs = make(map[quorum.NodeID]error)
		r := live.New(live.Config{Self: "self", Network: l})
		defer r.Stop()
		f(t, r, l)
	})
}

func nodes(ids ...quorum.NodeID) []quorum.NodeID { return ids }

// asking is an Ask under way.
type asking struct {
	cancel context.CancelCauseFunc
	result chan error
}

func ask(r *live.Runtime, to []quorum.NodeID, each func(env.Conversation, quorum.NodeID, env.Message) bool) *asking {
	ctx, cancel := context.WithCancelCause(context.Background())
	a := &asking{cancel: cancel, result: make(chan error, 1)}
	go func() { a.result <- r.Scope(ctx).Ask(to, number(1), each) }()
	return a
}

func never(env.Conversation, quorum.NodeID, env.Message) bool  { return false }
func atOnce(env.Conversation, quorum.NodeID, env.Message) bool { return true }

func TestResendsWithBackoff(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		a := ask(r, nodes("a", "b"), never)
		first := l.want(t, "0s a 1; 0s b 1")
		time.Sleep(3 * time.Second)
		again := l.want(t, "2s a 1; 2s b 1")
		if again.conversation != first.conversation {
			t.Errorf("sent again as conversation %#x, first as %#x", again.conversation, first.conversation)
		}
		r.Deliver("a", first.conversation, number(0))
		time.Sleep(30 * time.Second)
		l.want(t, "6s b 1; 14s b 1; 22s b 1; 30s b 1")
		r.Deliver("b", first.conversation, &env.Refused{})
		time.Sleep(time.Hour)
		l.want(t, "") // a refusal is an answer
		a.cancel(nil)
		<-a.result
		if got := r.Stats().Resent; got != 6 {
			t.Errorf("Stats counts %d requests as sent again, want 6", got)
		}
	})
}

// TestRetriesWhatWasNotTaken: what the network had nobody to give to is tried
// soon again, whatever is asked of others; what it took has time.
func TestRetriesWhatWasNotTaken(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		full := errors.New("queue full")
		l.fail("a", full)
		var copies int
		a := ask(r, nodes("a", "b"), func(c env.Conversation, _ quorum.NodeID, m env.Message) bool {
			copies = c.Sent("a")
			return m == number(9)
		})
		id := l.want(t, "0s a 1; 0s b 1").conversation
		time.Sleep(400 * time.Millisecond)
		l.want(t, "50ms a 1; 150ms a 1; 350ms a 1")
		time.Sleep(1600 * time.Millisecond)
		l.want(t, "750ms a 1; 1.55s a 1; 2s b 1")
		time.Sleep(1800 * time.Millisecond)
		l.want(t, "2.55s a 1; 3.55s a 1")
		l.fail("a", nil)
		time.Sleep(5 * time.Second)
		l.want(t, "4.55s a 1; 6s b 1; 6.55s a 1")
		l.fail("a", full)
		time.Sleep(2 * time.Second)
		l.want(t, "10.55s a 1") // an earlier copy is still on its way
		r.PeerDown("a", full)
		time.Sleep(400 * time.Millisecond)
		l.want(t, "10.85s a 1; 10.95s a 1; 11.15s a 1") // no longer
		r.Deliver("b", id, number(9))
		if err := <-a.result; err != nil || copies != 2 {
			t.Errorf("Ask returned %v, and a was sent %d copies, want 2", err, copies)
		}
	})
}

// TestRetriesWhileTheSweeperWaits: a refusal is retried in time even if the
// sweeper has planned something later, and with others that are in no hurry.
func TestRetriesWhileTheSweeperWaits(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		for _, node := range []quorum.NodeID{"a", "b", "c"} {
			if node != "a" {
				l.fail(node, errors.New("not connected"))
			}
			a := ask(r, nodes(node), never)
			defer func() { a.cancel(nil); <-a.result }()
			time.Sleep(time.Millisecond)
		}
		time.Sleep(57 * time.Millisecond)
		l.want(t, "0s a 1; 1ms b 1; 2ms c 1; 51ms b 1")
		time.Sleep(40 * time.Millisecond)
		l.want(t, "76ms c 1") // not a sweep for each
	})
}

// TestResendsTogether: conversations that begin one after the other are swept
// together, none of them early.
func TestResendsTogether(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		for range 3 {
			a := ask(r, nodes("a"), never)
			defer func() { a.cancel(nil); <-a.result }()
			time.Sleep(10 * time.Millisecond)
		}
		l.want(t, "0s a 1; 10ms a 1; 20ms a 1")
		time.Sleep(2100 * time.Millisecond)
		l.want(t, "2s a 1; 2.025s a 1; 2.025s a 1")
	})
}

func TestPeerUpResendsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		l.fail("a", errors.New("not connected"))
		a := ask(r, nodes("a", "b"), func(c env.Conversation, from quorum.NodeID, _ env.Message) bool {
			return c.Sent("a") == 1
		})
		last := l.want(t, "0s a 1; 0s b 1")
		r.Deliver("b", last.conversation, number(0))
		l.fail("a", nil)
		time.Sleep(time.Millisecond)
		r.PeerUp("a")
		r.PeerUp("b") // has answered
		r.PeerUp("c") // wasn't asked
		l.want(t, "1ms a 1")
		r.Deliver("b", last.conversation, number(0))
		if err := <-a.result; err != nil {
			t.Error(err)
		}
		r.PeerUp("a") // nothing is open
		l.want(t, "")
	})
}

// TestPeerDownAsksAgain: with its connection, a node that has answered has
// forgotten the conversation.
func TestPeerDownAsksAgain(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		sent := 0
		a := ask(r, nodes("a", "b"), func(c env.Conversation, _ quorum.NodeID, m env.Message) bool {
			sent = c.Sent("a")
			return m == number(9)
		})
		id := l.want(t, "0s a 1; 0s b 1").conversation
		r.Deliver("a", id, number(0))
		r.Deliver("b", id, number(0))
		time.Sleep(time.Minute)
		reset := errors.New("reset")
		r.PeerDown("a", reset)
		r.PeerDown("c", reset) // wasn't asked
		r.PeerUp("b")          // has answered, and nothing has ended
		l.want(t, "")
		time.Sleep(time.Millisecond)
		r.PeerUp("a")
		again := l.want(t, "1m0.001s a 1")
		if again.conversation != id {
			t.Errorf("asked again as conversation %#x, first as %#x", again.conversation, id)
		}
		time.Sleep(7 * time.Second)
		l.want(t, "1m2.001s a 1; 1m6.001s a 1") // its answer may be lost on the new one too
		r.Deliver("a", id, number(0))
		time.Sleep(time.Minute)
		l.want(t, "")
		// Without PeerUp, the sweeper tries.
		r.PeerDown("a", reset)
		time.Sleep(3 * time.Second)
		l.want(t, "2m7.051s a 1; 2m9.051s a 1")
		r.Deliver("b", id, number(9))
		if err := <-a.result; err != nil || sent != 6 {
			t.Errorf("Ask returned %v, and a was sent %d copies, want 6", err, sent)
		}
	})
}

func TestOnlyAnswersOfNodesThatWereAsked(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		var heard []string
		a := ask(r, nodes("a", "b"), func(_ env.Conversation, from quorum.NodeID, m env.Message) bool {
			heard = append(heard, fmt.Sprint(from, m))
			return m == number(9)
		})
		last := l.want(t, "0s a 1; 0s b 1")
		id := last.conversation
		r.Deliver("c", id, number(9))       // not asked
		r.Deliver("a", 0, number(9))        // the answer to a Tell
		r.Deliver("a", id+1, number(9))     // another place
		r.Deliver("a", id^1<<63, number(9)) // another generation
		r.Deliver("a", id|1<<20, number(9)) // a redirect that wasn't
		r.Deliver("b", id, number(2))
		r.Deliver("b", id, number(3)) // once more
		r.Deliver("a", id, number(9))
		r.Deliver("a", id, number(4)) // it has ended
		if err := <-a.result; err != nil {
			t.Error(err)
		}
		r.Deliver("a", id, number(5))
		if got, want := fmt.Sprint(heard), "[b2 b3 a9]"; got != want {
			t.Errorf("heard %s, want %s", got, want)
		}
		// The next conversation uses the same place, and has another number.
		a = ask(r, nodes("a"), atOnce)
		last = l.want(t, "0s a 1")
		if last.conversation == id {
			t.Errorf("two conversations have the number %#x", id)
		}
		r.Deliver("a", id, number(6))
		synctest.Wait()
		select {
		case <-a.result:
			t.Error("a late answer ended the next conversation")
		default:
		}
		r.Deliver("a", last.conversation, number(7))
		<-a.result
	})
}

// TestRedirect: what a node was asked last is what is sent again, and an
// answer to what it was asked before doesn't stop that.
func TestRedirect(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		a := ask(r, nodes("a", "b"), func(c env.Conversation, from quorum.NodeID, m env.Message) bool {
			switch m {
			case number(100):
				c.Redirect("b", number(2))
				c.Add("a", "b", "c")
			case number(101):
				c.Redirect("d", number(3)) // wasn't asked
			}
			return m == number(102)
		})
		first := l.want(t, "0s a 1; 0s b 1").conversation
		time.Sleep(100 * time.Millisecond)
		r.Deliver("a", first, number(100))
		l.mu.Lock()
		second := l.mu.sent[0].conversation
		l.mu.Unlock()
		l.want(t, "100ms b 2; 100ms c 1")
		if first == second {
			t.Error("the answers to what b was asked first and then can't be told apart")
		}
		r.Deliver("c", first, number(0))
		r.Deliver("b", first, number(0)) // to the first request
		time.Sleep(2100 * time.Millisecond)
		l.want(t, "2.1s b 2")
		r.Deliver("b", second, number(0))
		time.Sleep(time.Minute)
		l.want(t, "")
		// All have answered, and the sweeper sleeps; what is added wakes it.
		r.Deliver("a", first, number(101))
		l.want(t, "1m2.2s d 3")
		time.Sleep(2100 * time.Millisecond)
		l.want(t, "1m4.2s d 3")
		r.Deliver("d", first, number(102))
		if err := <-a.result; err != nil {
			t.Error(err)
		}
	})
}

// TestManyRedirects: a node that is redirected more often than numbers can
// tell apart is asked as long as the conversation lasts.
func TestManyRedirects(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		l.mu.hook = func(s sent) {
			if s.m != number(20) {
				go r.Deliver(s.to, s.conversation, s.m)
			}
		}
		a := ask(r, nodes("a"), func(c env.Conversation, from quorum.NodeID, m env.Message) bool {
			if m != number(20) {
				c.Redirect("a", m.(number)+1)
			}
			return false
		})
		synctest.Wait()
		_, last := l.take()
		r.Deliver("a", last.conversation, number(20))
		time.Sleep(2100 * time.Millisecond)
		l.want(t, "2s a 20")
		a.cancel(nil)
		<-a.result
	})
}

// TestAnswersFromWithinSend: the network may deliver before Send returns. The
// nodes that come after the one whose answer was enough are asked all the
// same.
func TestAnswersFromWithinSend(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		l.mu.hook = func(s sent) { r.Deliver(s.to, s.conversation, s.m) }
		err := r.Scope(t.Context()).Ask(nodes("a", "b", "c"), number(1), func(c env.Conversation, from quorum.NodeID, m env.Message) bool {
			c.Add("d") // sent, though it comes with the last answer
			return true
		})
		if err != nil {
			t.Error(err)
		}
		l.want(t, "0s a 1; 0s d 1; 0s b 1; 0s c 1")
	})
}

func TestUnfinishedSaysWhatIsKnown(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		refused := errors.New("connection refused")
		l.fail("refusing", refused)
		l.fail("back", refused)
		to := nodes("silent", "refusing", "answering", "back", "lost", "gone")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		result := make(chan error)
		go func() { result <- r.Scope(ctx).Ask(to, number(1), never) }()
		synctest.Wait()
		_, last := l.take()
		r.Deliver("answering", last.conversation, number(0))
		l.fail("back", nil)
		l.fail("gone", refused)
		r.PeerUp("back")
		r.PeerDown("back", nil)
		r.PeerUp("back") // what was wrong is over
		reset := errors.New("reset")
		time.Sleep(59*time.Second + 970*time.Millisecond)
		r.PeerDown("lost", reset)
		err := <-result
		var u *env.Unfinished
		if !errors.As(err, &u) || u.Cause != env.ErrDeadline || !errors.Is(err, env.ErrDeadline) {
			t.Fatalf("Ask returned %v", err)
		}
		want := []env.Target{
			{Node: "silent", Sent: true},
			{Node: "refusing", Err: refused},
			{Node: "answering", Sent: true, Answered: true},
			{Node: "back", Sent: true},
			{Node: "lost", Sent: true, Err: reset},
			{Node: "gone", Sent: true, Err: refused},
		}
		if !slices.Equal(u.Targets, want) {
			t.Errorf("targets\n\t%+v\nwant\n\t%+v", u.Targets, want)
		}
	})
}

// TestCauses: how a scope's end is reported, by Ask before and after it, and
// by the other calls.
func TestCauses(t *testing.T) {
	own := errors.New("my own reason")
	for name, test := range map[string]struct {
		context func() (context.Context, func())
		want    error
		cause   error
	}{
		"canceled": {func() (context.Context, func()) {
			ctx, cancel := context.WithCancel(context.Background())
			return ctx, cancel
		}, env.ErrCanceled, nil},
		"canceled for a reason": {func() (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(context.Background())
			return ctx, func() { cancel(own) }
		}, env.ErrCanceled, own},
		"canceled as stopped": {func() (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(context.Background())
			return ctx, func() { cancel(env.ErrStopped) }
		}, env.ErrStopped, nil},
		"deadline": {func() (context.Context, func()) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			return ctx, func() { time.Sleep(2 * time.Second); cancel() }
		}, env.ErrDeadline, nil},
		"deadline for a reason": {func() (context.Context, func()) {
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, own)
			return ctx, func() { time.Sleep(2 * time.Second); cancel() }
		}, env.ErrDeadline, own},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
				ctx, end := test.context()
				e := r.Scope(ctx)
				before := make(chan error)
				go func() { before <- e.Ask(nodes("a"), number(1), never) }()
				synctest.Wait()
				end()
				synctest.Wait()
				_, received := e.Receive("box")
				for i, err := range []error{<-before, e.Ask(nodes("a"), number(1), never), e.Sleep(0), e.Sleep(time.Hour), received} {
					if !errors.Is(err, test.want) || test.cause != nil && !errors.Is(err, test.cause) {
						t.Errorf("call %d returned %v, want %v and %v", i, err, test.want, test.cause)
					}
				}
			})
		})
	}
}

// TestTasksEndWithTheirScope: with the one in which they were started, and
// with the task that started them.
// TestMailboxesGoWithTheirTasks: what tasks have received from and emptied
// leaves room for other mailboxes.
func TestTell(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		l.fail("a", errors.New("not connected"))
		r.Scope(t.Context()).Tell(nodes("a", "b"), number(7))
		time.Sleep(time.Hour) // it isn't sent again
		if last := l.want(t, "0s a 7; 0s b 7"); last.conversation != 0 {
			t.Errorf("sent in conversation %d, want 0", last.conversation)
		}
	})
}

func TestIDs(t *testing.T) {
	seen := make(map[tags.PID]bool)
	for range 3 {
		bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
			e := r.Scope(t.Context())
			for n := range 100 {
				id := e.ID()
				b := id.Bytes()
				if got := int(b[15]); got != n+1 {
					t.Fatalf("the count of id %v is %d, want %d", id, got, n+1)
				}
				if seen[id] {
					t.Fatalf("id %v was drawn twice", id)
				}
				seen[id] = true
			}
		})
	}
}

func TestTrace(t *testing.T) {
	var got []string
	r := live.New(live.Config{Network: &line{}, Trace: func(e env.Event) { got = append(got, e.Name) }})
	defer r.Stop()
	r.Scope(t.Context()).Trace(env.Event{Name: "abd.tag-chosen"})
	if !slices.Equal(got, []string{"abd.tag-chosen"}) {
		t.Errorf("traced %v", got)
	}
}

// TestPanicked: who is told of panics gets that of a task, and its name and
// stack, and the task's Join an error; the others go on.

type wakeable int

func (wakeable) Message() {}
func (wakeable) Wakes()   {}

// TestWake: those are told whose requests say that they want to be, and may ask
// others.
func TestWake(t *testing.T) {
	bubble(t, func(t *testing.T, r *live.Runtime, l *line) {
		asleep := ask(r, nodes("a"), func(env.Conversation, quorum.NodeID, env.Message) bool { return true })
		l.want(t, "0s a 1")
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		woken := 0
		result := make(chan error, 1)
		go func() {
			result <- r.Scope(ctx).Ask(nodes("b"), wakeable(7), func(c env.Conversation, from quorum.NodeID, m env.Message) bool {
				if _, ok := m.(env.Woken); ok && from == "" {
					woken++
					c.Add("c")
				}
				return woken == 2
			})
		}()
		l.want(t, "0s b 7")
		r.Wake()
		l.want(t, "0s c 7")
		r.Wake()
		if err := <-result; err != nil || woken != 2 {
			t.Errorf("woken %d times: %v", woken, err)
		}
		asleep.cancel(env.ErrCanceled)
		if err := <-asleep.result; !errors.Is(err, env.ErrCanceled) {
			t.Errorf("who can't be woken ended with %v", err)
		}
	})
}
