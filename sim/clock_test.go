package sim_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"atoll/env"
	"atoll/sim"
)

// What a process sleeps, in the world's time, by a clock that goes wrong.
func TestClock(t *testing.T) {
	for _, c := range []struct {
		name  string
		wrong func(w *sim.World, p *sim.Process)
		slept time.Duration // the world's time for a sleep of 10 s
		shown time.Duration // by the clock, in that time
	}{
		{"right", func(*sim.World, *sim.Process) {}, 10 * time.Second, 10 * time.Second},
		{"fast", func(_ *sim.World, p *sim.Process) { p.DriftClock(250_000) }, 8 * time.Second, 10 * time.Second},
		{"slow", func(_ *sim.World, p *sim.Process) { p.DriftClock(-500_000) }, 20 * time.Second, 10 * time.Second},
		{"ahead", func(_ *sim.World, p *sim.Process) { p.JumpClock(time.Hour) }, 10 * time.Second, 10 * time.Second},
		{"jumps ahead", func(w *sim.World, p *sim.Process) {
			w.At(4*time.Second, func() { p.JumpClock(time.Hour) })
		}, 4 * time.Second, time.Hour + 4*time.Second},
		{"jumps back", func(w *sim.World, p *sim.Process) {
			w.At(4*time.Second, func() { p.JumpClock(-3 * time.Second) })
		}, 13 * time.Second, 10 * time.Second},
		{"drifts later", func(w *sim.World, p *sim.Process) {
			w.At(4*time.Second, func() { p.DriftClock(500_000) })
		}, 8 * time.Second, 10 * time.Second},
		{"back and ahead again", func(w *sim.World, p *sim.Process) {
			w.At(4*time.Second, func() { p.JumpClock(-time.Hour) })
			w.At(5*time.Second, func() { p.JumpClock(time.Hour) })
		}, 10 * time.Second, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, sim.Config{})
			p := w.AddClient("p")
			c.wrong(w, p)
			var shown time.Duration
			s := start(p, func(e env.Env) error {
				began := e.Now()
				err := e.Sleep(10 * time.Second)
				shown = e.Now() - began
				return err
			})
			if err := w.Wait(2*time.Hour, s); err != nil || s.Err() != nil {
				t.Fatal(err, s.Err())
			}
			if w.Now() != c.slept || shown != c.shown {
				t.Errorf("it slept %v and its clock shows %v, want %v and %v", w.Now(), shown, c.slept, c.shown)
			}
		})
	}
}

// Deadlines and resends go by the process's clock, and nobody else's.
func TestClockOfDeadlinesAndResends(t *testing.T) {
	sent := 0
	w := newWorld(t, sim.Config{Observe: func(o sim.Observation) {
		if o.What == sim.Sent {
			sent++
		}
	}})
	addNode(t, w, "a", bootTaker).Stall()
	p, q := w.AddClient("p"), w.AddClient("q")
	begin := func(p *sim.Process) *sim.Scope {
		s := p.Scope(time.Hour)
		s.Start(func(e env.Env) error { return take(e, 1) })
		return s
	}
	asking := begin(p)
	w.RunFor(10 * time.Millisecond)
	if sent != 1 {
		t.Errorf("%d requests were sent, want 1", sent)
	}
	p.JumpClock(time.Second)
	w.Settle()
	if sent != 2 || asking.Done() {
		t.Errorf("after a second on its clock %d requests were sent, want 2; done: %t", sent, asking.Done())
	}
	other := begin(q)
	p.JumpClock(time.Hour)
	w.Settle()
	if !errors.Is(asking.Err(), env.ErrDeadline) || other.Done() {
		t.Errorf("after an hour on its clock: %v; the other is done: %t", asking.Err(), other.Done())
	}
}

// Whatever happens to a clock, it never goes back, and no sleep ends before
// the clock shows its end.
func TestClockNeverGoesBack(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, seed))
	w := newWorld(t, sim.Config{})
	p := w.AddClient("p")
	s := start(p, func(e env.Env) error {
		last := e.Now()
		for range 2000 {
			d := time.Duration(e.Rand() % uint64(time.Second))
			if err := e.Sleep(d); err != nil {
				return err
			}
			now := e.Now()
			if now < last+d {
				t.Errorf("after a sleep of %v at %v it is %v", d, last, now)
			}
			last = now
		}
		return nil
	})
	for !s.Done() {
		if r.IntN(2) == 0 {
			p.JumpClock(time.Duration(r.Int64N(int64(4*time.Second))) - 2*time.Second)
		} else {
			p.DriftClock(r.IntN(1_000_001) - 500_000)
		}
		w.RunFor(time.Duration(r.Int64N(int64(time.Second))))
	}
	if s.Err() != nil {
		t.Error(s.Err())
	}
}
