package scenario_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/sim/history"
	"atoll/sim/scenario"
)

var seeds = flag.Uint64("seeds", 5, "how many seeds of each scenario the tests run")

func builtin(t testing.TB, name string) scenario.Scenario {
	t.Helper()
	s, ok := scenario.Builtin(name)
	if !ok {
		t.Fatalf("no scenario %q", name)
	}
	return s
}

func mustRun(t testing.TB, p scenario.Plan, o scenario.Options) scenario.Result {
	t.Helper()
	r, err := scenario.Run(p, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every built-in scenario keeps its promises, whatever the algorithm, and gets
// something done.
func TestBuiltins(t *testing.T) {
	for _, s := range scenario.Builtins() {
		for _, a := range scenario.Algorithms() {
			if s.Membership.Operators > 0 && !a.Traits().Membership {
				continue
			}
			t.Run(s.Name+"/"+a.Name(), func(t *testing.T) {
				t.Parallel()
				s.Algorithm = a.Name()
				for seed := range *seeds {
					r := mustRun(t, s.Draw(seed), scenario.Options{})
					if r.Violation != nil {
						t.Fatalf("seed %d: %v", seed, r.Violation)
					}
					if n := r.Figures.Operations(); n < 50 {
						t.Errorf("seed %d: only %d operations", seed, n)
					}
				}
			})
		}
	}
}

// All kinds of faults happen in the plans that a few seeds draw.
func TestSwarm(t *testing.T) {
	s := builtin(t, "registers")
	happened, without, quorums := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for seed := range uint64(40) {
		p := s.Draw(seed)
		kinds := make(map[string]bool)
		for _, d := range p.Decisions {
			kinds[d.Do], happened[d.Do] = true, true
		}
		for _, k := range s.Faults.Kinds {
			without[k] = without[k] || !kinds[k]
		}
		quorums[p.Scenario.Quorum] = true
		if err := p.Check(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	for _, k := range s.Faults.Kinds {
		if !happened[k] || !without[k] {
			t.Errorf("%s: in some plan: %v, not in some: %v; want both", k, happened[k], without[k])
		}
	}
	if len(quorums) < 5 {
		t.Errorf("only the quorum systems %v", quorums)
	}
}

func TestDrawIsTheSameForEveryAlgorithm(t *testing.T) {
	s := builtin(t, "registers")
	want := s.Draw(3)
	s.Algorithm = "swabd"
	got := s.Draw(3)
	got.Scenario.Algorithm = want.Scenario.Algorithm
	if string(got.JSON()) != string(want.JSON()) {
		t.Errorf("got\n%s\nwant\n%s", got.JSON(), want.JSON())
	}
}

// hashes returns the trace hash of a few runs.
func hashes(t *testing.T) string {
	var b strings.Builder
	for seed := range uint64(4) {
		r := mustRun(t, builtin(t, "registers").Draw(seed), scenario.Options{})
		fmt.Fprintf(&b, "%016x of %d events, %d checkpoints\n", r.Hash, r.Figures.Events, len(r.Checkpoints))
	}
	return b.String()
}

// hashesOnly is set in the processes that TestSameRun starts.
const hashesOnly = "ATOLL_TEST_HASHES"

func TestSameRun(t *testing.T) {
	want := hashes(t)
	if os.Getenv(hashesOnly) != "" {
		fmt.Printf("%s%s", hashesOnly, want)
		return
	}
	procs := runtime.GOMAXPROCS(1)
	again := hashes(t)
	runtime.GOMAXPROCS(procs)
	if again != want {
		t.Errorf("the second time:\n%s\nthe first time:\n%s", again, want)
	}
	for _, procs := range []string{"1", "8"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestSameRun$")
		cmd.Env = append(os.Environ(), hashesOnly+"=1", "GOMAXPROCS="+procs)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		_, got, _ := strings.Cut(string(out), hashesOnly)
		if !strings.HasPrefix(got, want) {
			t.Errorf("in another process with GOMAXPROCS=%s:\n%s\nhere:\n%s", procs, got, want)
		}
	}
}

// What nobody looks at while a run goes on doesn't change it.
func TestLookingChangesNothing(t *testing.T) {
	p := builtin(t, "registers").Draw(5)
	want := mustRun(t, p, scenario.Options{})
	ended := 0
	got := mustRun(t, p, scenario.Options{Bytes: true, Ended: func(scenario.Ended) { ended++ }})
	if got.Hash != want.Hash {
		t.Errorf("hash %x, want %x", got.Hash, want.Hash)
	}
	if uint64(ended) < want.Figures.Operations() {
		t.Errorf("told of %d operations, there were %d", ended, want.Figures.Operations())
	}
}

// A plan that was written down and read again is the same plan.
func TestPlanFile(t *testing.T) {
	want := builtin(t, "registers").Draw(7)
	got, err := scenario.ParsePlan(strings.NewReader(string(want.JSON())))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := mustRun(t, got, scenario.Options{}), mustRun(t, want, scenario.Options{}); a.Hash != b.Hash {
		t.Errorf("hash %x from the file, %x without", a.Hash, b.Hash)
	}
}

// Taking a fault out of a plan leaves the clients' operations as they were:
// the same kinds on the same keys, in the same order.
func TestOperationsDontHangOnFaults(t *testing.T) {
	p := builtin(t, "registers").Draw(2)
	of := func(p scenario.Plan) map[string][]string {
		done := make(map[string][]string)
		mustRun(t, p, scenario.Options{Ended: func(e scenario.Ended) {
			if e.Outcome == history.OK {
				done[e.Client] = append(done[e.Client], fmt.Sprint(e.Kind, e.Key))
			}
		}})
		return done
	}
	without := p
	without.Decisions, without.Healing, without.Scenario.Timeout = nil, nil, 0
	calm := of(without)
	without.Scenario.Algorithm = "abd-writeback"
	for client, done := range of(without) {
		n := min(len(done), len(calm[client]))
		if n < 10 || !slices.Equal(done[:n], calm[client][:n]) {
			t.Errorf("%s does another %d operations under another algorithm", client, n)
		}
	}
}

func TestFigures(t *testing.T) {
	s := builtin(t, "quiet")
	s.Operations, s.Keys, s.Clients, s.Think = 40, 8, 8, scenario.Duration(50*time.Millisecond)
	s.SingleWriter, s.Duration = true, scenario.Duration(time.Minute)
	figures := make(map[string]scenario.Figures)
	for _, a := range scenario.Algorithms() {
		s.Algorithm = a.Name()
		r := mustRun(t, s.Draw(1), scenario.Options{Bytes: true})
		if r.Violation != nil {
			t.Fatal(r.Violation)
		}
		f := r.Figures
		figures[a.Name()] = f
		if f.Operations() != 8*40 || f.DelayBound != 5*time.Millisecond || f.Stalls != 0 || f.LongestStall > 30*time.Millisecond {
			t.Errorf("%s: %d operations, d %v, %d stalls, the longest %v; want 320, 5ms, 0, a few delays",
				a.Name(), f.Operations(), f.DelayBound, f.Stalls, f.LongestStall)
		}
		for _, kind := range []scenario.Kind{scenario.Read, scenario.Write} {
			k := f.ByKind[kind]
			n := uint64(len(k.Latencies))
			// A round is a request to each of five nodes and an answer, or, the
			// first of an operation of package abd, to three of them; the last
			// answers may come when the run is over.
			most := 10 * k.Rounds
			if a.Name() == "abd" || a.Name() == "abd-writeback" && kind == scenario.Write {
				most -= 4 * n
			}
			if k.Messages > most || k.Messages < most-10 {
				t.Errorf("%s: %d messages in %d rounds of %d %ss", a.Name(), k.Messages, k.Rounds, n, kind)
			}
			if k.Bytes < 20*k.Messages || k.Bytes > 80*k.Messages {
				t.Errorf("%s: %d bytes in %d messages", a.Name(), k.Bytes, k.Messages)
			}
			for _, l := range k.Latencies {
				if l < time.Millisecond || l > 30*time.Millisecond {
					t.Errorf("%s: a %s took %v", a.Name(), kind, l)
				}
			}
		}
	}
	abd, back, single := figures["abd"].ByKind, figures["abd-writeback"].ByKind, figures["swabd"].ByKind
	writes := uint64(len(abd[scenario.Write].Latencies))
	if abd[scenario.Write].Rounds != 2*writes || single[scenario.Write].Rounds > writes+8 {
		t.Errorf("%d writes took %d rounds, and %d of a single writer", writes, abd[scenario.Write].Rounds, single[scenario.Write].Rounds)
	}
	reads := uint64(len(abd[scenario.Read].Latencies))
	if fast := abd[scenario.Read].OneRound; fast < reads*9/10 || back[scenario.Read].OneRound > reads/2 {
		t.Errorf("of %d reads %d take one round, and %d of those that write back", reads, fast, back[scenario.Read].OneRound)
	}
}
