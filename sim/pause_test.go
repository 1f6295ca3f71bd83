package sim_test

import (
	"errors"
	"testing"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
)

// A paused node acts on what has arrived when it is resumed, and answers what
// its disk has synced meanwhile.
func TestPauseNode(t *testing.T) {
	w := newWorld(t, sim.Config{ResendFirst: time.Hour, ResendMost: time.Hour})
	a, p, q := addNode(t, w, "a", bootTaker), w.AddClient("p"), w.AddClient("q")
	a.Stall()
	first := start(p, func(e env.Env) error { return take(e, 1) })
	w.RunFor(10 * time.Millisecond)
	a.Pause()
	a.Unstall()
	second := start(q, func(e env.Env) error { return take(e, 2) })
	w.RunFor(time.Minute)
	if first.Done() || second.Done() {
		t.Error("a paused node has answered")
	}
	if _, durable := a.Disk().Positions(); durable != 1 {
		t.Errorf("the disk is durable up to %d, want 1: it isn't paused", durable)
	}
	if !a.Paused() || value(a.Disk()) != "1" {
		t.Errorf("paused: %t; value %q, want 1", a.Paused(), value(a.Disk()))
	}
	a.Resume()
	a.Resume() // twice is once
	if err := w.Wait(time.Second, first, second); err != nil {
		t.Fatal(err)
	}
	if value(a.Disk()) != "2" {
		t.Errorf("value %q, want 2", value(a.Disk()))
	}
}

// A node whose disk hangs answers nothing that it would have to store, until it has
// died and come back.
func TestHang(t *testing.T) {
	w := newWorld(t, sim.Config{})
	a, p := addNode(t, w, "a", bootTaker), w.AddClient("p")
	a.Hang()
	s := start(p, func(e env.Env) error { return take(e, 1) })
	w.RunFor(time.Minute)
	if s.Done() {
		t.Error("it has answered")
	}
	a.PowerLoss(0)
	if err := a.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(time.Minute, s); err != nil {
		t.Fatal(err)
	}
}

// A paused client runs into its timeouts when it is resumed, unless what it
// waits for has arrived and comes first. Both happen.
func TestPauseClient(t *testing.T) {
	inTime, late := 0, 0
	for seed := range uint64(20) {
		w := newWorld(t, sim.Config{Seed: seed})
		addNode(t, w, "a", bootTaker)
		p := w.AddClient("p")
		s := p.Scope(time.Second)
		s.Start(func(e env.Env) error { return take(e, 1) })
		started := p.Scope(0)
		w.RunFor(0)
		p.Pause()
		started.Start(func(env.Env) error { return nil })
		w.RunFor(time.Hour)
		if s.Done() || started.Done() {
			t.Error("a paused process has run")
		}
		p.Resume()
		if err := w.Wait(time.Second, s, started); err != nil {
			t.Fatal(err)
		}
		switch err := s.Err(); {
		case err == nil:
			inTime++
		case errors.Is(err, env.ErrDeadline):
			late++
		default:
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	if inTime == 0 || late == 0 {
		t.Errorf("%d were in time and %d late, want some of both", inTime, late)
	}
}

// A process that dies while it is paused leaves nothing behind, and its next
// life isn't paused.
func TestPauseThenDeath(t *testing.T) {
	w := newWorld(t, sim.Config{})
	a, p := addNode(t, w, "a", bootTaker), w.AddClient("p")
	s := start(p, func(e env.Env) error { return take(e, 1) })
	a.Pause()
	w.RunFor(10 * time.Millisecond)
	a.Crash()
	if err := a.Restart(); err != nil {
		t.Fatal(err)
	}
	p.Pause()
	a.Crash() // whose return p must hear of when it is resumed
	if err := a.Restart(); err != nil {
		t.Fatal(err)
	}
	w.RunFor(10 * time.Millisecond)
	if value(a.Disk()) != "" {
		t.Error("a message to an earlier life, or of a paused process, has arrived")
	}
	p.Resume()
	w.RunFor(10 * time.Millisecond) // no resend is due so soon
	if !s.Done() || s.Err() != nil {
		t.Errorf("done: %t, %v", s.Done(), s.Err())
	}
	p.Pause()
	p.Crash()
	p.Pause() // a dead process can't be paused
	if p.Paused() {
		t.Error("a dead process is paused")
	}
}

// A paused task keeps its place: what is mailed to it waits.
func TestPauseMailbox(t *testing.T) {
	w := newWorld(t, sim.Config{})
	a, p := addNode(t, w, "a", bootTaker), w.AddClient("p")
	task := start(a, func(e env.Env) error {
		for n := 0; n < 2; {
			got, err := e.Receive("box")
			if err != nil {
				return err
			}
			n += len(got)
		}
		return nil
	})
	w.Settle()
	a.Pause()
	start(p, func(e env.Env) error {
		e.Tell([]quorum.NodeID{"a"}, &number{2001})
		e.Tell([]quorum.NodeID{"a"}, &number{2002})
		return nil
	})
	w.RunFor(time.Second)
	if task.Done() {
		t.Error("a paused task has received")
	}
	a.Resume()
	if err := w.Wait(time.Second, task); err != nil || task.Err() != nil {
		t.Error(err, task.Err())
	}
}
