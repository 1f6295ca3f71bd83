package sim_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
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

// stormyRun runs a cluster through every fault that the kernel knows and
// that a node survives.
func stormyRun(t *testing.T, seed uint64) outcome {
	delays := []sim.Delay{
		sim.Table(time.Millisecond, 2*time.Millisecond, 20*time.Millisecond),
		sim.Exponential(3 * time.Millisecond),
		sim.LogNormal(2*time.Millisecond, 30*time.Millisecond),
		sim.Pareto(time.Millisecond, 40*time.Millisecond),
	}
	l := newWorkload(t, sim.Config{
		Seed: seed,
		Link: func(from, to quorum.NodeID) sim.Link {
			d := delays[(int(from[1])+int(to[1]))%len(delays)]
			if from > to {
				return sim.Stream(d, 50_000, sim.Constant(10*time.Millisecond))
			}
			return sim.Link{Delay: d, Loss: 50_000, Duplicate: 50_000}
		},
		Sync: func(quorum.NodeID) sim.Delay { return sim.Uniform(time.Millisecond, 10*time.Millisecond) },
	}, 5)
	l.w.Narrow(func(_ *sim.Process, req env.Message) (quorum.Configurations, sim.Need) {
		return l.registers.Known.Map().Active(), sim.Needs(req)
	})
	for i := range 10 {
		l.start(quorum.NodeID(fmt.Sprintf("p%d", i)), 40)
	}
	for i, p := range l.w.Processes() {
		l.storm(t, i, p)
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

// storm plans what happens to the i-th process, twice: nodes are the first
// five.
func (l *workload) storm(t *testing.T, i int, p *sim.Process) {
	restart := func() {
		if err := p.Restart(); err != nil {
			t.Error(err)
		}
	}
	again := func() { l.start(p.ID(), 10) }
	other := l.w.Processes()[(i+7)%len(l.w.Processes())]
	at := time.Duration(i+1) * 60 * time.Millisecond
	after := func(d time.Duration, f func()) { l.w.At(at+d*time.Millisecond, f) }
	after(0, func() { l.w.Break(p, other, 20*time.Millisecond) })
	after(5, func() { p.DriftClock(1000 * i); p.JumpClock(time.Duration(i-7) * time.Second) })
	after(10, func() {
		p.Gray(sim.Exponential(5 * time.Millisecond))
		l.w.Slow(p, other, sim.Constant(time.Millisecond))
	})
	after(60, func() { p.Gray(sim.Delay{}); l.w.Slow(p, other, sim.Delay{}) })
	after(70, p.Pause)
	after(90, p.Resume)
	switch {
	case i == 0:
		after(30, p.Crash)
		after(50, restart)
	case i == 1:
		after(30, func() { p.TornPowerLoss(1) })
		after(50, restart)
	case i == 2:
		after(20, p.FailSync)
		after(60, func() {
			if !p.Up() { // it had something to sync
				restart()
			}
		})
	case i == 3:
		after(10, func() { p.SlowDisk(sim.Exponential(20 * time.Millisecond)); p.Disk().Fill() })
		after(15, p.Disk().Free)
		after(60, func() { p.SlowDisk(sim.Delay{}) })
	case i == 4:
		after(10, p.Stall)
		after(50, p.Unstall)
	case i%5 == 0:
		after(30, p.Crash)
		after(50, restart)
		after(51, again)
	}
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

// childSeed names the environment variable that makes a test binary run a
// storm, print its hash and checkpoints, and do nothing else.
const childSeed = "ATOLL_STORM_SEED"

// TestChild is what TestTwoProcesses runs in another process.
func TestChild(t *testing.T) {
	text, ok := os.LookupEnv(childSeed)
	if !ok {
		t.Skip("not a child of TestTwoProcesses")
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	o := stormyRun(t, seed)
	fmt.Printf("storm %#x %d %#x\n", o.hash, o.events, o.checkpoints)
}

// The same seed gives the same run in another process, on one thread and on
// eight.
func TestTwoProcesses(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const seed = 42
	o := stormyRun(t, seed)
	want := fmt.Sprintf("storm %#x %d %#x\n", o.hash, o.events, o.checkpoints)
	for _, threads := range []string{"1", "8"} {
		child := exec.Command(self, "-test.run=^TestChild$")
		child.Env = append(os.Environ(), childSeed+"="+strconv.Itoa(seed), "GOMAXPROCS="+threads)
		out, err := child.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if !strings.Contains(string(out), want) {
			t.Errorf("with GOMAXPROCS=%s another process says\n%swant\n%s", threads, out, want)
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

// The trace hash of a seed is the same in every process, with the race
// detector and without, and on every machine. It changes when the kernel
// changes what happens, or what it hashes; then nobody's old seeds replay,
// which is worth a line in the commit.
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

// The same for a world of tails, broken connections and clocks, whose tables
// must come out the same everywhere.
func TestGoldenHashOfFaults(t *testing.T) {
	ms := time.Millisecond
	delays := []sim.Delay{sim.Exponential(3 * ms), sim.LogNormal(2*ms, 30*ms), sim.Pareto(ms, 40*ms), sim.Uniform(ms, 5*ms)}
	w := newWorld(t, sim.Config{
		Seed: 7,
		Link: func(from, to quorum.NodeID) sim.Link {
			return sim.Stream(delays[int(from[0]+to[0])%len(delays)], 50_000, delays[0])
		},
		Sync: func(quorum.NodeID) sim.Delay { return delays[1] },
	})
	a := addNode(t, w, "a", bootTaker)
	var scopes []*sim.Scope
	for i := range 8 {
		p := w.AddClient(quorum.NodeID('p' + rune(i)))
		scopes = append(scopes, start(p, func(e env.Env) error {
			for n := range 20 {
				if err := errors.Join(take(e, 20*i+n), e.Sleep(time.Duration(e.Rand()%uint64(10*ms)))); err != nil {
					return err
				}
			}
			return nil
		}))
		p.DriftClock(10_000 * i)
		w.At(time.Duration(20*i)*ms, func() { w.Break(a, p, 5*ms); p.JumpClock(100 * ms) })
		w.At(time.Duration(20*i+5)*ms, p.Pause)
		w.At(time.Duration(20*i+15)*ms, p.Resume)
	}
	w.At(50*ms, func() { a.Gray(delays[2]); a.SlowDisk(delays[0]) })
	if err := w.Wait(time.Hour, scopes...); err != nil {
		t.Fatal(err)
	}
	const want = 0xfd310ceacb1f08e
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
