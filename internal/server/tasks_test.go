package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/live"
	"atoll/internal/logtest"
	"atoll/internal/server"
	"atoll/quorum"
	"atoll/replica"
	"atoll/tags"
)

// tasked is a node with tasks of the test's.
type tasked struct {
	server.Node
	tasks []replica.Task
}

func (n tasked) Tasks() []replica.Task { return n.tasks }

// with returns the node's config, with tasks.
func (n node) with(tasks ...replica.Task) server.Config {
	n.t.Helper()
	cfg := n.config()
	cfg.WrapNode(func(r *replica.Node) server.Node { return tasked{r, tasks} })
	return cfg
}

// putTo asks all of to until each has acked a put of the key.
func putTo(e env.Env, to []quorum.NodeID, key string) error {
	acked := make(map[quorum.NodeID]bool)
	put := &abd.Put{Key: abd.Key(key), Record: abd.Record{Tag: tags.Tag{Seq: 1, PID: e.ID()}, Value: []byte("v")}}
	return e.Ask(to, put, func(_ env.Conversation, from quorum.NodeID, m env.Message) bool {
		if _, ok := m.(*abd.PutAck); ok {
			acked[from] = true
		}
		return len(acked) == len(to)
	})
}

// counter counts what a task has done, and lets a test wait for it.
type counter struct {
	n       atomic.Int64
	changed chan struct{}
}

func newCounter() *counter { return &counter{changed: make(chan struct{}, 1)} }

func (c *counter) add() {
	c.n.Add(1)
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// wait waits until it has counted n more than it has now.
func (c *counter) wait(t testing.TB, n int64) {
	t.Helper()
	for n += c.n.Load(); c.n.Load() < n; {
		receive(t, c.changed)
	}
}

// TestTasksAskTheirOwnNodeAndOthers has a task on each of three nodes that asks
// its own and the others, again and again. While one is down they wait for it,
// and when it is back they go on.
func TestTasksAskTheirOwnNodeAndOthers(t *testing.T) {
	t.Parallel()
	nodes := newNodes(t, identity.Spec{}, "a", "b", "c")
	all := nodes[0].folder().Configuration.Members()
	rounds := make(map[string]*counter)
	start := func(n node) *server.Server {
		id := n.folder().ID
		return n.start(n.with(replica.Task{Name: "probe", Run: func(e env.Env) error {
			if e.Self() != id {
				t.Errorf("the task of %s runs on %s", id, e.Self())
			}
			for {
				err := putTo(e, []quorum.NodeID{id}, n.name)
				if err == nil {
					err = putTo(e, all, "shared")
				}
				if err == nil {
					rounds[n.name].add()
					err = e.Sleep(time.Millisecond)
				}
				if err != nil {
					return err
				}
			}
		}}))
	}
	servers := make(map[string]*server.Server)
	for _, n := range nodes {
		rounds[n.name] = newCounter()
	}
	for _, n := range nodes {
		servers[n.name] = start(n)
	}
	for _, n := range nodes {
		rounds[n.name].wait(t, 3)
	}
	nodes[2].stop(servers["c"])
	before := rounds["a"].n.Load()
	c := nodes[0].client()
	for i := range 5 { // clients go on, in the same inbox
		if _, err := c.Put(t.Context(), fmt.Sprint(i), []byte("v")); err != nil {
			t.Error(err)
		}
	}
	if after := rounds["a"].n.Load(); after > before+1 { // whose acks had come
		t.Errorf("the task of a, which asks all, went on without c: %d rounds, then %d", before, after)
	}
	start(nodes[2])
	for _, n := range nodes {
		rounds[n.name].wait(t, 3)
	}
}

// TestATaskIsAnsweredWhenItIsDurable: what a task puts to its own node is acked
// when the disk has it, and not before.
func TestATaskIsAnsweredWhenItIsDurable(t *testing.T) {
	t.Parallel()
	for _, mutant := range []bool{false, true} {
		n := newNode(t, identity.Spec{})
		acked := make(chan struct{})
		cfg := n.with(replica.Task{Name: "putter", Run: func(e env.Env) error {
			err := e.Ask([]quorum.NodeID{e.Self()}, putOf("k", "v"), func(env.Conversation, quorum.NodeID, env.Message) bool {
				close(acked) // the loop waits for that
				return true
			})
			if err != nil {
				return err
			}
			return e.Sleep(patience)
		}})
		cfg.Rules.AckBeforeSync = mutant
		var disk *slowDisk
		cfg.WrapDisk(func(d server.Disk) server.Disk {
			disk = newSlowDisk(d)
			return disk
		})
		n.start(cfg)
		n.t.Cleanup(func() { close(disk.result) })
		receive(t, disk.began)
		// This comes behind the answer, if there was one.
		if _, ok := n.dial(nil).ask(&abd.Get{Key: "other"}).(*abd.GetAck); !ok {
			t.Error("others are held up")
		}
		if mutant {
			receive(t, acked)
			continue
		}
		select {
		case <-acked:
			t.Error("the task has got an ack, and nothing is durable")
		default:
		}
		disk.result <- nil
		receive(t, acked)
	}
}

// mailing is a node that hands lists to its task, which may see them once the
// record of k is durable.
type mailing struct{ server.Node }

func (n mailing) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	if _, ok := m.(*abd.List); !ok {
		return n.Node.Step(from, m, out)
	}
	got, err := n.Node.Step(from, &abd.Get{Key: "k"}, nil)
	if err != nil {
		return out, err
	}
	return append(out, env.Out{To: from, Mailbox: "lists", Message: m, After: got[0].After}), nil
}

// TestMail: what a step puts into a mailbox gets there when that is durable which
// it depends on; the task answers over the session that the message came by; and
// the task of its own node is answered likewise.
func TestMail(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	cfg := n.config()
	own := make(chan error, 1)
	received := newCounter()
	cfg.WrapNode(func(r *replica.Node) server.Node {
		return tasked{mailing{r}, []replica.Task{
			{Name: "lister", Run: func(e env.Env) error {
				for {
					got, err := e.Receive("lists")
					for _, envelope := range got {
						received.add()
						e.Send(envelope.From, &abd.Page{More: true})
					}
					if err != nil {
						return err
					}
				}
			}},
			{Name: "asker", Run: func(e env.Env) error {
				own <- e.Ask([]quorum.NodeID{e.Self()}, &abd.List{Limit: 1}, func(_ env.Conversation, _ quorum.NodeID, m env.Message) bool {
					page, ok := m.(*abd.Page)
					return ok && page.More
				})
				return e.Sleep(patience)
			}},
		}}
	})
	var disk *slowDisk
	cfg.WrapDisk(func(d server.Disk) server.Disk {
		disk = newSlowDisk(d)
		return disk
	})
	n.start(cfg)
	n.t.Cleanup(func() { close(disk.result) })
	if err := receive(t, own); err != nil {
		t.Error(err)
	}
	p := n.dial(nil)
	put := p.send(putOf("k", "v"))
	receive(t, disk.began)
	before := received.n.Load()
	list := p.send(&abd.List{Limit: 1})
	p.ask(&abd.Get{Key: "other"})
	if received.n.Load() != before {
		t.Error("the task has got a message that depends on what isn't durable")
	}
	disk.result <- nil
	if ack, ok := p.receive(put).(*abd.PutAck); !ok {
		t.Errorf("the put was answered by %T", ack)
	}
	if page, ok := p.receive(list).(*abd.Page); !ok || !page.More {
		t.Errorf("the list was answered by %v", page)
	}
}

// TestTaskThatFails is started again, counted and logged, and nobody else minds.
func TestTaskThatFails(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	runs := newCounter()
	var book logtest.Book
	cfg := n.with(
		replica.Task{Name: "failing", Run: func(env.Env) error { runs.add(); return errors.New("it didn't work") }},
		replica.Task{Name: "sleeping", Run: func(e env.Env) error { return e.Sleep(patience) }})
	cfg.Metrics, cfg.Log = "127.0.0.1:0", book.Log(slog.LevelInfo)
	s := n.start(cfg)
	for runs.n.Load() < 2 {
		receive(t, runs.changed)
	}
	if got := metric(t, s, `atoll_task_restarts_total{task="failing"}`); got < 1 {
		t.Errorf("%v restarts are counted", got)
	}
	if got := metric(t, s, `atoll_task_restarts_total{task="sleeping"}`); got != 0 {
		t.Errorf("%v restarts of a task that goes on are counted", got)
	}
	if text := book.String(); !strings.Contains(text, "task=failing") || !strings.Contains(text, "it didn't work") {
		t.Errorf("the log says %s", text)
	}
	if _, err := n.client().Put(t.Context(), "k", []byte("v")); err != nil {
		t.Error(err)
	}
}

// TestCloseEndsTasks closes a server while its task waits for a node that isn't
// there. That no goroutine is left, TestMain looks.
func TestCloseEndsTasks(t *testing.T) {
	t.Parallel()
	nodes := newNodes(t, identity.Spec{}, "a", "b")
	b := nodes[1].folder().ID
	began, ended := make(chan struct{}, 1), make(chan error, 1)
	s := nodes[0].start(nodes[0].with(replica.Task{Name: "waiting", Run: func(e env.Env) error {
		if err := putTo(e, []quorum.NodeID{e.Self()}, "k"); err != nil {
			return err
		}
		began <- struct{}{}
		err := putTo(e, []quorum.NodeID{b, e.Self()}, "k")
		ended <- err
		return err
	}}))
	receive(t, began)
	nodes[0].stop(s)
	err := receive(t, ended)
	unfinished, ok := errors.AsType[*env.Unfinished](err)
	if !ok || !errors.Is(err, env.ErrStopped) || unfinished.Targets[0].Node != b || unfinished.Targets[0].Answered {
		t.Errorf("the task's Ask ended with %v, want %v and b unanswered", err, env.ErrStopped)
	}
}

// TestTaskThatPanics ends the server, with the reason, and the other tasks.
func TestTaskThatPanics(t *testing.T) {
	t.Parallel()
	for _, inner := range []bool{false, true} {
		n := newNode(t, identity.Spec{})
		other := make(chan error, 1)
		var book logtest.Book
		cfg := n.with(
			replica.Task{Name: "other", Run: func(e env.Env) error {
				err := e.Sleep(patience)
				other <- err
				return err
			}},
			replica.Task{Name: "bad", Run: func(e env.Env) error {
				if inner {
					return e.Go("bad", func(env.Env) error { panic("so it goes") }).Join()
				}
				panic("so it goes")
			}})
		cfg.Metrics, cfg.Log = "127.0.0.1:0", book.Log(slog.LevelInfo)
		s, err := server.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		p, ok := errors.AsType[*live.PanicError](s.Wait(ctx))
		if !ok || p.Task != "bad" || p.Value != "so it goes" {
			t.Errorf("the server ended with %v, want the panic", p)
		}
		if err := receive(t, other); !errors.Is(err, env.ErrStopped) {
			t.Errorf("another task ended with %v, want %v", err, env.ErrStopped)
		}
		if status, body := get(t, s, "/healthz"); status != 503 || !strings.Contains(body, "so it goes") {
			t.Errorf("/healthz: %d, %q", status, body)
		}
		if !strings.Contains(book.String(), "TestTaskThatPanics") {
			t.Error("the log has no stack")
		}
		if err := s.Close(); !errors.As(err, &p) {
			t.Errorf("close: %v, want the panic", err)
		}
	}
}
