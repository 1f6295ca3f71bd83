package sim_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
	"atoll/tags"
)

// The toy of these tests: a node stores the number that it is sent under key
// "k", and answers when that is durable.

type number struct{ n int }

type taken struct{ n int }

func (*number) Message() {}
func (*taken) Message()  {}

type taker struct {
	disk *sim.Disk
	box  env.Mailbox // where numbers above 1000 go
}

func (s *taker) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	n, ok := m.(*number)
	switch {
	case !ok:
		return out, fmt.Errorf("unexpected %T", m)
	case n.n > 1000:
		return append(out, env.Out{To: from, Mailbox: s.box, Message: m}), nil
	}
	tag := tags.Tag{Seq: tags.Seq(n.n), PID: tags.NewPID(1, 1, 1)}
	at, err := s.disk.Store("k", abd.Record{Tag: tag, Value: []byte(fmt.Sprint(n.n))})
	return append(out, env.Out{To: from, Message: &taken{n.n}, After: at}), err
}

func bootTaker(p *sim.Process) (sim.Stepper, error) { return &taker{p.Disk(), "box"}, nil }

func newWorld(t *testing.T, cfg sim.Config) *sim.World {
	w := sim.New(cfg)
	t.Cleanup(w.Close)
	return w
}

func addNode(t *testing.T, w *sim.World, id quorum.NodeID, boot sim.Boot) *sim.Process {
	p, err := w.AddNode(id, boot)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// take asks a until it has taken n.
func take(e env.Env, n int) error {
	return e.Ask([]quorum.NodeID{"a"}, &number{n}, func(_ env.Conversation, _ quorum.NodeID, m env.Message) bool {
		return m.(*taken).n == n
	})
}

func start(p *sim.Process, f func(env.Env) error) *sim.Scope {
	s := p.Scope(0)
	s.Start(f)
	return s
}

func value(d *sim.Disk) string {
	r, _, _ := d.Load("k", true)
	return string(r.Value)
}

// A crash leaves every caller of the process by a panic. What its deferred
// functions do has no effect, and waiting goes on unwinding, even from a
// caller that recovers.
func TestCrashUnwindsCallers(t *testing.T) {
	sent, traced := 0, 0
	w := newWorld(t, sim.Config{
		Observe: func(o sim.Observation) {
			if o.What == sim.Sent {
				sent++
			}
		},
		Trace: func(*sim.Process, env.Event) { traced++ },
	})
	addNode(t, w, "a", bootTaker).Stall()
	p := w.AddClient("p")
	var unwound []string
	deferred := func(e env.Env, name string) {
		defer func() { unwound = append(unwound, name) }()
		e.Tell([]quorum.NodeID{"a"}, &number{1})
		e.Send(env.Address{Node: "a", Conversation: 1}, &taken{})
		e.Trace(env.Event{})
		_ = e.Now() + time.Duration(e.Rand()) + time.Duration(len(e.Self())+len(e.ID().String()))
		e.Go("more", func(env.Env) error { unwound = append(unwound, "a task that was started too late"); return nil })
		_ = e.Sleep(0)
		unwound = append(unwound, "what comes behind a wait")
	}
	s := start(p, func(e env.Env) (err error) {
		defer func() {
			if recover() == nil {
				t.Error("the caller wasn't left by a panic")
			}
			err = nil // whoever swallows the panic has died all the same
		}()
		defer deferred(e, "caller")
		task := e.Go("task", func(e env.Env) error {
			defer deferred(e, "task")
			_, err := e.Receive("nothing")
			return err
		})
		sleeper := e.Go("sleeper", func(e env.Env) error {
			defer deferred(e, "sleeper")
			return e.Sleep(time.Hour)
		})
		asker := e.Go("asker", func(e env.Env) error {
			defer deferred(e, "asker")
			return take(e, 1)
		})
		return errors.Join(task.Join(), sleeper.Join(), asker.Join())
	})
	never := p.Scope(0)
	w.RunFor(10 * time.Millisecond)
	if s.Done() || sent != 1 {
		t.Fatalf("before the crash: done %t, %d messages sent", s.Done(), sent)
	}
	p.Crash()
	w.RunFor(time.Minute)
	slices.Sort(unwound)
	if got := strings.Join(unwound, " "); got != "asker caller sleeper task" {
		t.Errorf("unwound: %s", got)
	}
	if sent != 1 || traced != 0 {
		t.Errorf("%d messages were sent and %d events traced, want 1 and 0", sent, traced)
	}
	if !s.Done() || !errors.Is(s.Err(), sim.ErrCrashed) || !errors.Is(s.Err(), env.ErrStopped) {
		t.Errorf("done %t with %v, want %v", s.Done(), s.Err(), sim.ErrCrashed)
	}
	// A scope of the life that is over never runs.
	if err := p.Restart(); err != nil {
		t.Fatal(err)
	}
	never.Start(func(env.Env) error { t.Error("a scope of an earlier life ran"); return nil })
	w.Settle()
	if !errors.Is(never.Err(), env.ErrStopped) {
		t.Errorf("a scope of an earlier life ended with %v", never.Err())
	}
}

// What is on its way to a life that is over, request or answer, reaches no
// later one.
func TestMessagesToAnEarlierLife(t *testing.T) {
	var late []string
	hold := true
	cfg := sim.Config{
		Intercept: func(sim.Transit) sim.Fate {
			if hold {
				return sim.Hold
			}
			return sim.Pass
		},
		Observe: func(o sim.Observation) {
			if o.What == sim.ArrivedTooLate {
				late = append(late, fmt.Sprintf("%T", o.Message))
			}
		},
	}
	for _, rules := range []sim.Rules{{}, {MatchAnyConversation: true}} {
		cfg.Rules = rules
		late, hold = nil, true
		w := newWorld(t, cfg)
		a, p := addNode(t, w, "a", bootTaker), w.AddClient("p")
		asking := start(p, func(e env.Env) error { return take(e, 1) })
		w.Settle()
		w.Copy(0) // one request arrives, the other one waits
		w.RunFor(10 * time.Millisecond)
		if got := len(w.Held()); got != 2 {
			t.Fatalf("%d messages are held, want the request and the answer", got)
		}
		p.Crash()
		a.Crash()
		for _, x := range []*sim.Process{p, a} {
			if err := x.Restart(); err != nil {
				t.Fatal(err)
			}
		}
		again := start(p, func(e env.Env) error { return take(e, 1) })
		w.Settle()
		w.Release(0)
		w.Release(0)
		w.RunFor(10 * time.Millisecond)
		if !asking.Done() || again.Done() {
			t.Errorf("the earlier life's operation is done: %t; this one's: %t", asking.Done(), again.Done())
		}
		if got, want := fmt.Sprint(late), "[*sim_test.number *sim_test.taken]"; got != want {
			t.Errorf("too late: %v, want %v", got, want)
		}
		hold = false
		if err := w.Wait(time.Minute, again); err != nil {
			t.Error(err)
		}
	}
}

// What a step made depend on the disk leaves when the disk is done, and not at
// all when the node died before; and what the disk keeps is what kind of death
// it was.
func TestNodeDeath(t *testing.T) {
	for _, c := range []struct {
		name string
		kill func(*sim.Process)
		want string // of numbers 1 (durable), 2 (commit under way), 3 (not begun)
	}{
		{"crash", (*sim.Process).Crash, "2"},
		{"power loss", func(p *sim.Process) { p.PowerLoss(0) }, "1"},
		{"power loss that keeps one", func(p *sim.Process) { p.PowerLoss(1) }, "2"},
		{"power loss that keeps all", func(p *sim.Process) { p.PowerLoss(9) }, "3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, sim.Config{ResendFirst: time.Hour})
			a, p := addNode(t, w, "a", bootTaker), w.AddClient("p")
			if err := w.Wait(time.Second, start(p, func(e env.Env) error { return take(e, 1) })); err != nil {
				t.Fatal(err)
			}
			a.Stall()
			var puts []*sim.Scope
			for n := 2; n <= 3; n++ {
				puts = append(puts, start(p, func(e env.Env) error { return take(e, n) }))
				w.RunFor(10 * time.Millisecond)
			}
			if got := value(a.Disk()); got != "3" {
				t.Fatalf("before its death the node has %q, want 3", got)
			}
			c.kill(a)
			if a.Up() {
				t.Fatal("it is still up")
			}
			a.Unstall()
			for i, s := range puts { // or else it would be asked again
				s.Cancel()
				w.Settle()
				if !errors.Is(s.Err(), env.ErrCanceled) {
					t.Errorf("put %d ended with %v", i, s.Err())
				}
			}
			if err := a.Restart(); err != nil {
				t.Fatal(err)
			}
			w.RunFor(time.Second)
			if got := value(a.Disk()); got != c.want {
				t.Errorf("after its death the node has %q, want %q", got, c.want)
			}
			if appended, durable := a.Disk().Positions(); appended != durable {
				t.Errorf("appended %d, durable %d", appended, durable)
			}
		})
	}
}

// Commits run one at a time, and each takes along what was stepped meanwhile.
func TestCommitsBatch(t *testing.T) {
	syncs := 0
	w := newWorld(t, sim.Config{
		Sync: func(quorum.NodeID) sim.Delay { return sim.Constant(time.Second) },
		Link: func(_, _ quorum.NodeID) sim.Link { return sim.Link{Delay: sim.Uniform(0, time.Millisecond)} },
		Observe: func(o sim.Observation) {
			if o.What == sim.Synced {
				syncs++
			}
		},
		ResendFirst: time.Hour,
	})
	addNode(t, w, "a", bootTaker)
	p := w.AddClient("p")
	var scopes []*sim.Scope
	for n := range 50 {
		scopes = append(scopes, start(p, func(e env.Env) error { return take(e, n+1) }))
	}
	if err := w.Wait(time.Minute, scopes...); err != nil {
		t.Fatal(err)
	}
	if syncs != 2 {
		t.Errorf("%d commits for 50 records that came at once, want 2", syncs)
	}
}

// A node whose step returns an error is down, with that error.
func TestStepError(t *testing.T) {
	w := newWorld(t, sim.Config{})
	a, p := addNode(t, w, "a", bootTaker), w.AddClient("p")
	start(p, func(e env.Env) error {
		e.Tell([]quorum.NodeID{"a"}, &taken{})
		return nil
	})
	w.RunFor(time.Second)
	if a.Up() || a.Failure() == nil {
		t.Errorf("up %t, failure %v", a.Up(), a.Failure())
	}
	if err := a.Restart(); err != nil || a.Failure() != nil {
		t.Errorf("restart: %v, failure %v", err, a.Failure())
	}
}

// A node may start tasks when it boots; they end with its life, and the next
// life's mailbox is empty.
func TestTasksOfANode(t *testing.T) {
	var got []string
	w := newWorld(t, sim.Config{})
	boot := func(p *sim.Process) (sim.Stepper, error) {
		start(p, func(e env.Env) error {
			if e.Self() != "a" {
				t.Errorf("Self is %q", e.Self())
			}
			for {
				mail, err := e.Receive("box")
				if err != nil {
					return err
				}
				for _, m := range mail {
					got = append(got, fmt.Sprintf("%d:%d", p.Life(), m.Message.(*number).n))
				}
				if err := e.Sleep(time.Second); err != nil {
					return err
				}
			}
		})
		return bootTaker(p)
	}
	a, p := addNode(t, w, "a", boot), w.AddClient("p")
	tell := func(n int) {
		start(p, func(e env.Env) error { e.Tell([]quorum.NodeID{"a"}, &number{n}); return nil })
		w.RunFor(10 * time.Millisecond)
	}
	tell(1001)
	tell(1002) // waits, and dies with the first life
	a.Crash()
	if err := a.Restart(); err != nil {
		t.Fatal(err)
	}
	tell(1003)
	if want := "1:1001 2:1003"; strings.Join(got, " ") != want {
		t.Errorf("received %v, want %s", got, want)
	}
	a.Stop()
	if a.Up() {
		t.Error("a stopped node is up")
	}
}

// A way that is cut in one direction loses in silence; a process that is off
// the network shows.
func TestCutAndDisconnect(t *testing.T) {
	w := newWorld(t, sim.Config{})
	a, p := addNode(t, w, "a", bootTaker), w.AddClient("p")
	facts := func(cause func()) (u *env.Unfinished) {
		s := p.Scope(time.Second)
		s.Start(func(e env.Env) error { return take(e, 7) })
		cause()
		if err := w.Wait(time.Minute, s); err != nil {
			t.Fatal(err)
		}
		errors.As(s.Err(), &u)
		return u
	}
	if u := facts(func() { w.Cut(p, a) }); u == nil || !u.Targets[0].Sent || u.Targets[0].Err != nil || value(a.Disk()) != "" {
		t.Errorf("with the way there cut: %v, disk %q", u, value(a.Disk()))
	}
	w.Mend(p, a)
	if u := facts(func() { w.Cut(a, p) }); u == nil || u.Targets[0].Answered || value(a.Disk()) != "7" {
		t.Errorf("with the way back cut: %v, disk %q", u, value(a.Disk()))
	}
	w.Mend(a, p)
	w.SetLink(p, a, sim.Link{Loss: 1_000_000})
	if u := facts(func() {}); u == nil || !u.Targets[0].Sent || u.Targets[0].Err != nil {
		t.Errorf("on a way that loses everything: %v", u)
	}
	w.SetLink(p, a, sim.Link{Delay: sim.Constant(time.Millisecond)})
	if u := facts(func() {}); u != nil {
		t.Errorf("on a way that loses nothing: %v", u)
	}
	if u := facts(a.Disconnect); u == nil || u.Targets[0].Sent || u.Targets[0].Err == nil {
		t.Errorf("disconnected: %v", u)
	}
	a.Reconnect()
	if u := facts(a.Crash); u == nil || u.Targets[0].Sent || u.Targets[0].Err == nil {
		t.Errorf("down: %v", u)
	}
}

// What a protocol or a driver does wrong is said at once.
func TestMisuse(t *testing.T) {
	for _, c := range []struct {
		name, want string
		do         func(w *sim.World, p *sim.Process, e env.Env)
	}{
		{"crash by a caller", "was called by a caller", func(w *sim.World, p *sim.Process, e env.Env) { p.Crash() }},
		{"a task that isn't joined", `without having joined its task "lost"`, func(_ *sim.World, _ *sim.Process, e env.Env) {
			e.Go("lost", func(env.Env) error { return nil })
		}},
		{"a panic", "index out of range", func(*sim.World, *sim.Process, env.Env) { _ = nothing[len(nothing)] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, sim.Config{})
			p := w.AddClient("p")
			start(p, func(e env.Env) error { c.do(w, p, e); return nil })
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, c.want) {
					t.Errorf("panic %q, want %q in it", got, c.want)
				}
			}()
			w.Settle()
		})
	}
}

var nothing []int

// Wait tells a run that takes long from one that has come to rest.
func TestWait(t *testing.T) {
	w := newWorld(t, sim.Config{})
	p := w.AddClient("p")
	sleeper := start(p, func(e env.Env) error { return e.Sleep(time.Hour) })
	if err := w.Wait(time.Minute, sleeper); err != sim.ErrLimit {
		t.Errorf("Wait = %v, want %v", err, sim.ErrLimit)
	}
	waiter := start(p, func(e env.Env) error { _, err := e.Receive("nothing"); return err })
	if err := w.Wait(2*time.Hour, sleeper, waiter); err != sim.ErrQuiet {
		t.Errorf("Wait = %v, want %v", err, sim.ErrQuiet)
	}
	if w.Now() != time.Hour {
		t.Errorf("it is %v, want an hour", w.Now())
	}
}

// What happens without end at one instant ends the world, whoever does it.
func TestNoProgress(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(e env.Env) error
	}{
		{"tasks", func(e env.Env) error {
			for {
				if err := e.Go("task", func(env.Env) error { return nil }).Join(); err != nil {
					return err
				}
			}
		}},
		{"messages to itself", func(e env.Env) error {
			for {
				if err := e.Ask([]quorum.NodeID{"a"}, &number{1}, func(env.Conversation, quorum.NodeID, env.Message) bool { return true }); err != nil {
					return err
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, sim.Config{Sync: func(quorum.NodeID) sim.Delay { return sim.Constant(0) }})
			a := addNode(t, w, "a", bootTaker)
			defer func() {
				e, ok := recover().(*sim.NoProgress)
				if !ok || e.Process != "a" || e.At != time.Second {
					t.Errorf("got %v, want no progress of a after a second", e)
				}
			}()
			w.RunFor(time.Second)
			s := a.Scope(0)
			s.Start(c.f)
			err := w.Wait(time.Hour, s)
			t.Errorf("it ended: %v", err)
		})
	}
}

// TestConversationOutsideAsk: a Conversation is of use only while the function
// given to Ask runs. Who kept it is told so, and a caller that has died can
// send nothing through it.
func TestConversationOutsideAsk(t *testing.T) {
	for _, use := range []struct {
		name string
		f    func(env.Conversation)
	}{
		{"Add", func(c env.Conversation) { c.Add("b") }},
		{"Redirect", func(c env.Conversation) { c.Redirect("a", &number{1}) }},
		{"Sent", func(c env.Conversation) { c.Sent("a") }},
	} {
		t.Run(use.name, func(t *testing.T) {
			w := sim.New(sim.Config{})
			defer w.Close()
			for _, id := range []quorum.NodeID{"a", "b"} {
				if _, err := w.AddNode(id, bootTaker); err != nil {
					t.Fatal(err)
				}
			}
			var recovered any
			ask := w.AddClient("p").Scope(time.Second)
			ask.Start(func(e env.Env) error {
				var kept env.Conversation
				err := e.Ask([]quorum.NodeID{"a"}, &number{1}, func(c env.Conversation, _ quorum.NodeID, _ env.Message) bool {
					kept = c
					return true
				})
				defer func() { recovered = recover() }()
				use.f(kept)
				return err
			})
			if err := w.Wait(time.Minute, ask); err != nil || recovered == nil {
				t.Errorf("Wait: %v, and the use panicked with %v; want a panic", err, recovered)
			}
		})
	}
}
