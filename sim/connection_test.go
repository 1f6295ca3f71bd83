package sim_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
)

// An answer that is still on its way when the connection ends, over which it
// was sent, is passed on. But the node has forgotten the conversation, and is
// asked until it answers over the new connection.
func TestAnswerOfAnEndedConnection(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(a, p *sim.Process) error
	}{
		{"the node restarts", func(a, _ *sim.Process) error { a.Crash(); return a.Restart() }},
		{"the node is disconnected", func(a, _ *sim.Process) error { a.Disconnect(); a.Reconnect(); return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, sim.Config{Intercept: func(sim.Transit) sim.Fate { return sim.Hold }, ResendFirst: time.Second})
			a, p := addNode(t, w, "a", bootTaker), w.AddClient("p")
			heard := 0
			asking := start(p, func(e env.Env) error {
				return e.Ask([]quorum.NodeID{"a"}, &number{1}, func(env.Conversation, quorum.NodeID, env.Message) bool {
					heard++
					return false
				})
			})
			held := func() (names []string) {
				w.RunFor(10 * time.Millisecond)
				for _, h := range w.Held() {
					names = append(names, fmt.Sprintf("%s->%s", h.From.ID(), h.To.ID()))
				}
				return names
			}
			want := func(when string, wantHeld []string, wantHeard int) {
				t.Helper()
				if got := held(); !slices.Equal(got, wantHeld) || heard != wantHeard {
					t.Fatalf("%s: %v held and %d answers heard, want %v and %d", when, got, heard, wantHeld, wantHeard)
				}
			}
			want("at first", []string{"p->a"}, 0)
			w.Release(0)
			want("with the request there", []string{"a->p"}, 0)
			if err := c.end(a, p); err != nil {
				t.Fatal(err)
			}
			want("on the new connection", []string{"a->p", "p->a"}, 0)
			w.Release(0)
			want("with the old answer there", []string{"p->a"}, 1)
			w.Discard(0)
			w.RunFor(time.Second)
			want("after a while", []string{"p->a"}, 1)
			w.Release(0)
			want("asked once more", []string{"a->p"}, 1)
			w.Release(0)
			want("with the new answer there", nil, 2)
			w.RunFor(time.Minute)
			want("after a long while", nil, 2)
			asking.Cancel()
		})
	}
}

// What a task sends to an address goes nowhere when the connection has ended
// over which the address came, on whichever side, even if there is a new one.
func TestAddressOfAnEndedConnection(t *testing.T) {
	for _, who := range []quorum.NodeID{"a", "p"} {
		sent := 0
		w := newWorld(t, sim.Config{Observe: func(o sim.Observation) {
			if o.What == sim.Sent && o.Answer {
				sent++
			}
		}})
		a, p := addNode(t, w, "a", bootTaker), w.AddClient("p")
		var kept env.Address
		receive := a.Scope(0)
		receive.Start(func(e env.Env) error {
			got, err := e.Receive("box")
			if err == nil {
				kept = got[0].From
			}
			return err
		})
		asking := p.Scope(time.Minute)
		asking.Start(func(e env.Env) error { return take(e, 1001) })
		push := func() {
			t.Helper()
			s := start(a, func(e env.Env) error { e.Send(kept, &taken{0}); return nil })
			if err := w.Wait(time.Second, s); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Wait(time.Second, receive); err != nil {
			t.Fatal(err)
		}
		push()
		w.Process(who).Disconnect()
		push()
		w.Process(who).Reconnect()
		push()
		if sent != 1 {
			t.Errorf("with %s off and on the network: %d of three pushes were sent, want the first", who, sent)
		}
		if err := w.Wait(time.Hour, asking); err != nil {
			t.Fatal(err)
		}
	}
}

// A process that is off the network goes on talking to itself.
func TestLoopbackNeedsNoNetwork(t *testing.T) {
	w := newWorld(t, sim.Config{})
	a := addNode(t, w, "a", bootTaker)
	a.Disconnect()
	s := a.Scope(time.Minute)
	s.Start(func(e env.Env) error { return take(e, 1) })
	if err := errors.Join(w.Wait(time.Hour, s), s.Err()); err != nil {
		t.Error(err)
	}
}

// A mailbox that its task has emptied makes room for another one.
func TestMailboxesGoWithTheirTasks(t *testing.T) {
	w := newWorld(t, sim.Config{})
	stepper := &taker{}
	a := addNode(t, w, "a", func(p *sim.Process) (sim.Stepper, error) { stepper.disk = p.Disk(); return stepper, nil })
	const more = 5000 // than there may be
	for n := range more {
		stepper.box = env.Mailbox(fmt.Sprint("box", n))
		tell := start(a, func(e env.Env) error { e.Tell([]quorum.NodeID{"a"}, &number{2000 + n}); return nil })
		w.Settle()
		receive := a.Scope(time.Second)
		receive.Start(func(e env.Env) error { _, err := e.Receive(stepper.box); return err })
		if err := errors.Join(w.Wait(time.Minute, tell, receive), receive.Err()); err != nil {
			t.Fatalf("mailbox %d: %v", n, err)
		}
	}
}
