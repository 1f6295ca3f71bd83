package sim_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
)

// outcome is what a run was, as far as one can tell from outside.
type outcome struct {
	hash        uint64
	events      uint64
	checkpoints []uint64
	completed   int
}

// stormyRun runs a cluster through loss, duplicates and deaths of all kinds.
func stormyRun(t *testing.T, seed uint64) outcome {
	l := newWorkload(t, sim.Config{
		Seed: seed,
		Link: func(from, to quorum.NodeID) sim.Link {
			return sim.Link{Delay: sim.Table(time.Millisecond, 2*time.Millisecond, 20*time.Millisecond), Loss: 50_000, Duplicate: 50_000, Ordered: from < to}
		},
		Sync: func(quorum.NodeID) sim.Delay { return sim.Uniform(time.Millisecond, 10*time.Millisecond) },
	}, 5)
	for i := range 10 {
		l.start(quorum.NodeID(fmt.Sprintf("p%d", i)), 40)
	}
	restart := func(p *sim.Process) func() {
		return func() {
			if err := p.Restart(); err != nil {
				t.Error(err)
			}
		}
	}
	for i, p := range l.w.Processes() {
		at := time.Duration(i+1) * 100 * time.Millisecond
		switch i % 5 {
		case 0:
			l.w.At(at, p.Crash)
		case 1:
			l.w.At(at, func() { p.PowerLoss(i) })
		default:
			continue
		}
		l.w.At(at+50*time.Millisecond, restart(p))
		if p.Disk() == nil {
			l.w.At(at+60*time.Millisecond, func() { l.start(p.ID(), 10) })
		}
	}
	l.w.RunFor(time.Second)
	// Every death is over; what is started now ends.
	if err := l.w.Wait(time.Hour, l.scopes...); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	for _, s := range l.scopes {
		if err := s.Err(); err != nil && !errors.Is(err, sim.ErrCrashed) {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	events, _ := l.w.Events()
	return outcome{l.w.Hash(), events, slices.Clone(l.w.Checkpoints()), l.completed}
}

// The same seed gives the same run, whatever runs beside it and on however
// many threads; another seed gives another.
func TestSameSeedSameRun(t *testing.T) {
	for seed := range uint64(3) {
		want := stormyRun(t, seed)
		if want.completed < 300 || len(want.checkpoints) < 5 {
			t.Errorf("seed %d: only %d operations and %d events", seed, want.completed, want.events)
		}
		for _, threads := range []int{1, 8} {
			before := runtime.GOMAXPROCS(threads)
			results := make(chan outcome)
			const beside = 2
			for range beside {
				go func() { results <- stormyRun(t, seed) }()
			}
			for range beside {
				got := <-results
				if i := firstDifference(got.checkpoints, want.checkpoints); i >= 0 {
					t.Errorf("seed %d on %d threads: the runs part before event %d", seed, threads, 1000*(i+1))
				}
				if got.hash != want.hash || got.events != want.events || got.completed != want.completed {
					t.Errorf("seed %d on %d threads: %+v, want %+v", seed, threads, got.hash, want.hash)
				}
			}
			runtime.GOMAXPROCS(before)
		}
		if other := stormyRun(t, seed+100); other.hash == want.hash {
			t.Errorf("seeds %d and %d have the same run", seed, seed+100)
		}
	}
}

func firstDifference(a, b []uint64) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

// The trace hash of a seed is the same in every process and on every machine.
// It changes when the kernel changes what happens, or what it hashes; then
// nobody's old seeds replay, which is worth a line in the commit.
func TestGoldenHash(t *testing.T) {
	w := newWorld(t, sim.Config{Seed: 42, Link: func(_, _ quorum.NodeID) sim.Link {
		return sim.Link{Delay: sim.Uniform(time.Millisecond, 9*time.Millisecond), Loss: 100_000, Duplicate: 100_000}
	}})
	addNode(t, w, "a", bootTaker)
	var scopes []*sim.Scope
	for i := range 20 {
		scopes = append(scopes, start(w.AddClient(quorum.NodeID(fmt.Sprintf("p%d", i))), func(e env.Env) error {
			for n := range 20 {
				if err := take(e, 20*i+n); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	if err := w.Wait(time.Hour, scopes...); err != nil {
		t.Fatal(err)
	}
	const want = 0x1439bfe151f9abaf
	if got := w.Hash(); got != want {
		t.Errorf("hash %#x, want %#x", got, uint64(want))
	}
}

// Draws are counter-based: what one client's messages go through doesn't
// change when another one's fault or the whole other client is taken out.
func TestDrawsAreIndependent(t *testing.T) {
	arrivals := func(others int, loss uint32) (seen []time.Duration) {
		var w *sim.World
		w = newWorld(t, sim.Config{
			Seed: 7,
			Link: func(from, to quorum.NodeID) sim.Link {
				l := sim.Link{Delay: sim.Uniform(time.Millisecond, time.Second), Loss: 300_000}
				if from != "p" && to != "p" {
					l.Loss = loss
				}
				return l
			},
			Observe: func(o sim.Observation) {
				if o.What == sim.Arrived && (o.From.ID() == "p" || o.To.ID() == "p") {
					seen = append(seen, w.Now())
				}
			},
		})
		for i := range others {
			start(w.AddClient(quorum.NodeID(fmt.Sprint("other", i))), func(e env.Env) error { return take(e, 5000+i) })
		}
		echo := func(*sim.Process) (sim.Stepper, error) { return echoStepper{}, nil }
		addNode(t, w, "a", echo)
		p := w.AddClient("p")
		s := start(p, func(e env.Env) error {
			for n := range 20 {
				if err := take(e, n); err != nil {
					return err
				}
			}
			return nil
		})
		if err := w.Wait(time.Hour, s); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	want := arrivals(0, 0)
	for _, loss := range []uint32{0, 500_000} {
		if got := arrivals(3, loss); !slices.Equal(got, want) {
			t.Errorf("with other clients whose loss is %d per million, messages arrive at\n%v, without them at\n%v", loss, got, want)
		}
	}
}

type echoStepper struct{}

func (echoStepper) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	return append(out, env.Out{To: from, Message: &taken{m.(*number).n}}), nil
}
