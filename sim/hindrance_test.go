package sim_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
)

// took returns how long p needs for one take.
func took(t *testing.T, w *sim.World, p *sim.Process) time.Duration {
	t.Helper()
	began := w.Now()
	s := start(p, func(e env.Env) error { return take(e, 1) })
	if err := w.Wait(time.Hour, s); err != nil || s.Err() != nil {
		t.Fatal(err, s.Err())
	}
	return w.Now() - began
}

// Every hindrance comes on top, and goes away.
func TestHindrances(t *testing.T) {
	ms := time.Millisecond
	w := newWorld(t, sim.Config{ResendFirst: time.Hour, ResendMost: time.Hour})
	a, p, q := addNode(t, w, "a", bootTaker), w.AddClient("p"), w.AddClient("q")
	slow, none := sim.Constant(100*ms), sim.Delay{}
	for _, c := range []struct {
		name   string
		set    func(sim.Delay)
		ofP, q time.Duration // what it costs them
	}{
		{"gray node", a.Gray, 200 * ms, 200 * ms},
		{"gray client", p.Gray, 200 * ms, 0},
		{"slow way there", func(d sim.Delay) { w.Slow(p, a, d) }, 100 * ms, 0},
		{"slow way back", func(d sim.Delay) { w.Slow(a, p, d) }, 100 * ms, 0},
		{"slow disk", a.SlowDisk, 100 * ms, 100 * ms},
	} {
		usual := took(t, w, p)
		c.set(slow)
		if got := took(t, w, p) - usual; got != c.ofP {
			t.Errorf("%s: p needs %v more, want %v", c.name, got, c.ofP)
		}
		if got := took(t, w, q) - usual; got != c.q {
			t.Errorf("%s: q needs %v more, want %v", c.name, got, c.q)
		}
		c.set(none)
		if got := took(t, w, p); got != usual {
			t.Errorf("%s: afterwards p needs %v, want %v", c.name, got, usual)
		}
	}
}

// A stream loses nothing and keeps the order, however much is lost beneath
// it. What is lost holds up what comes behind.
func TestStream(t *testing.T) {
	var w *sim.World
	var arrived []int
	var at []time.Duration
	w = newWorld(t, sim.Config{
		Seed: 1,
		Link: func(_, _ quorum.NodeID) sim.Link {
			return sim.Stream(sim.Uniform(time.Millisecond, 20*time.Millisecond), 400_000, sim.Constant(time.Second))
		},
		Observe: func(o sim.Observation) {
			if n, ok := o.Message.(*number); ok && o.What == sim.Arrived {
				arrived = append(arrived, n.n)
				at = append(at, w.Now())
			}
		},
	})
	addNode(t, w, "a", bootTaker)
	p := w.AddClient("p")
	const n = 100
	start(p, func(e env.Env) error {
		for i := range n {
			e.Tell([]quorum.NodeID{"a"}, &number{i})
		}
		return nil
	})
	w.RunFor(time.Hour)
	if len(arrived) != n || !slices.IsSorted(arrived) {
		t.Errorf("%d messages have arrived, in order: %t", len(arrived), slices.IsSorted(arrived))
	}
	if last := at[len(at)-1]; last < time.Second || last > time.Minute {
		t.Errorf("the last one has arrived at %v", last)
	}
}

// A new connection is a new stream: nothing on it waits for what was on the
// old one.
func TestStreamOfANewConnection(t *testing.T) {
	for name, end := range map[string]func(w *sim.World, a, p *sim.Process) error{
		"break":      func(w *sim.World, a, p *sim.Process) error { w.Break(a, p, 0); return nil },
		"disconnect": func(_ *sim.World, a, _ *sim.Process) error { a.Disconnect(); a.Reconnect(); return nil },
		"restart":    func(_ *sim.World, a, _ *sim.Process) error { a.Crash(); return a.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, sim.Config{Link: func(_, _ quorum.NodeID) sim.Link {
				return sim.Link{Delay: sim.Constant(time.Millisecond), Ordered: true}
			}})
			a, p := addNode(t, w, "a", bootTaker), w.AddClient("p")
			w.Slow(p, a, sim.Constant(time.Hour))
			start(p, func(e env.Env) error { return take(e, 5) })
			w.Settle()
			w.Slow(p, a, sim.Delay{})
			if err := end(w, a, p); err != nil {
				t.Fatal(err)
			}
			if got := took(t, w, p); got > 10*time.Millisecond {
				t.Errorf("it takes %v", got)
			}
		})
	}
}

// A connection breaks: what is on its way is lost, both sides know, and what
// waits for an answer is sent again as soon as there is another connection.
func TestBreak(t *testing.T) {
	for _, c := range []struct {
		name   string
		after  time.Duration // when it breaks: a way takes a millisecond, a sync too
		stored string        // what the node has by then
	}{
		{"the request is lost", 500 * time.Microsecond, ""},
		{"the answer is lost", 2500 * time.Microsecond, "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lateOnes := 0
			w := newWorld(t, sim.Config{ResendFirst: time.Hour, ResendMost: time.Hour, Observe: func(o sim.Observation) {
				if o.What == sim.ArrivedTooLate {
					lateOnes++
				}
			}})
			a, p, q := addNode(t, w, "a", bootTaker), w.AddClient("p"), w.AddClient("q")
			s := start(p, func(e env.Env) error { return take(e, 1) })
			w.RunFor(c.after)
			w.Break(a, p, time.Second)
			w.RunFor(100 * time.Millisecond)
			if s.Done() || value(a.Disk()) != c.stored || lateOnes != 1 {
				t.Errorf("done: %t; the node has %q, want %q; %d messages were lost", s.Done(), value(a.Disk()), c.stored, lateOnes)
			}
			if other := took(t, w, q); other > 10*time.Millisecond {
				t.Errorf("q, whose connection is whole, needs %v", other)
			}
			if err := w.Wait(time.Second, s); err != nil || s.Err() != nil {
				t.Error(err, s.Err())
			}
			if now := w.Now(); now < time.Second+c.after || now > 1100*time.Millisecond {
				t.Errorf("it is done at %v, want soon after the redial", now)
			}
		})
	}
}

// Who asks while there is no connection learns that nothing was sent.
func TestBrokenIsNotSent(t *testing.T) {
	w := newWorld(t, sim.Config{})
	a, p := addNode(t, w, "a", bootTaker), w.AddClient("p")
	w.Break(p, a, time.Hour)
	w.Break(p, a, 2*time.Hour) // and once more: both must be over
	s := p.Scope(time.Minute)
	s.Start(func(e env.Env) error { return take(e, 1) })
	if err := w.Wait(time.Hour, s); err != nil {
		t.Fatal(err)
	}
	unfinished, ok := errors.AsType[*env.Unfinished](s.Err())
	if !ok || unfinished.Targets[0].Sent || unfinished.Targets[0].Silence() != "connection lost" {
		t.Errorf("it ends with %v", s.Err())
	}
	w.RunFor(time.Hour)
	if again := took(t, w, p); again < 58*time.Minute {
		t.Errorf("a take ends after %v, want when the second redial is over", again)
	}
}
