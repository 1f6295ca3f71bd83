package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"atoll/internal/cli"
)

// A scenario that runs quickly, and one in which the mutant abd.StoreAnything
// breaks a promise soon: with clients that race for one key, a node that stores
// smaller tags too goes back in time.
const (
	quick = `{"name": "quick", "clients": 3, "keys": 2, "duration": "300ms", "faults": {"kinds": ["crash"], "every": "100ms", "lasts": "50ms"}}`
	racy  = `{"name": "racy", "clients": 6, "keys": 1, "duration": "1s", "mix": {"read": 50, "write": 50},
	"faults": {"kinds": ["cut", "crash"], "every": "100ms", "lasts": "50ms"}}`
	mutant = "abd.StoreAnything"
)

// took is what differs between two runs of the same: how long they took.
var took = regexp.MustCompile(`"seconds":[0-9.]+,"messages_per_s":[0-9.]+|messages? in .*`)

func lines(text string) []string { return strings.Split(strings.TrimRight(text, "\n"), "\n") }

func TestRunPrintsTheSameHoweverManyRunAtOnce(t *testing.T) {
	path := file(t, "quick.json", quick)
	for _, format := range []string{"table", "json", "csv"} {
		var first string
		for _, n := range []int{1, 4} {
			before := runtime.GOMAXPROCS(n)
			stdout, stderr, code := sim(t, "run", path, "--seeds", "1..6", "-o", format)
			runtime.GOMAXPROCS(before)
			if code != cli.ExitDone || stderr != "" {
				t.Fatalf("exit %d, %s", code, stderr)
			}
			stdout = took.ReplaceAllString(stdout, "")
			if first == "" {
				first = stdout
			} else if stdout != first {
				t.Errorf("-o %s: with another GOMAXPROCS:\n%s\nwant\n%s", format, stdout, first)
			}
		}
	}
}

func TestRunJSON(t *testing.T) {
	stdout, stderr, code := sim(t, "run", file(t, "quick.json", quick), "--seeds", "5..8", "-o", "json", "--bytes")
	if code != cli.ExitDone || stderr != "" {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	all := lines(stdout)
	if len(all) != 5 {
		t.Fatalf("%d lines, want 4 and a summary:\n%s", len(all), stdout)
	}
	type count struct {
		Seed, Operations, Messages uint64
		Hash, Algorithm            string
		Violation                  any
		Read                       struct {
			Rounds, Bytes float64
			P50           float64 `json:"p50_ms"`
		}
	}
	var operations, messages uint64
	for i, line := range all[:4] {
		var c count
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		if c.Seed != uint64(5+i) || len(c.Hash) != 16 || c.Algorithm != "abd" || c.Violation != nil ||
			c.Read.Rounds < 1 || c.Read.Bytes < 1 || c.Read.P50 < 1 {
			t.Errorf("%+v from %s", c, line)
		}
		operations += c.Operations
		messages += c.Messages
	}
	var sum struct {
		Summary                                 bool
		Seeds, Violations, Operations, Messages uint64
		Rate                                    float64 `json:"messages_per_s"`
		Figures                                 struct {
			Read struct {
				Rounds struct {
					N          int
					Mean, CI95 float64
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(all[4]), &sum); err != nil {
		t.Fatal(err)
	}
	if r := sum.Figures.Read.Rounds; !sum.Summary || sum.Seeds != 4 || sum.Violations != 0 || sum.Rate <= 0 || r.N != 4 || r.Mean < 1 {
		t.Errorf("summary %+v", sum)
	}
	if sum.Operations != operations || sum.Messages != messages || operations == 0 || messages == 0 {
		t.Errorf("the summary has %d operations and %d messages, the runs %d and %d", sum.Operations, sum.Messages, operations, messages)
	}
}

func TestRunCSV(t *testing.T) {
	path := file(t, "quick.json", quick)
	each := filepath.Join(t.TempDir(), "operations.csv")
	stdout, stderr, code := sim(t, "run", path, "--seeds", "1..3", "-o", "csv", "--operations", each, "--compare", "abd-writeback")
	if code != cli.ExitDone || stderr != "" {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	if err != nil || len(rows) != 7 || rows[1][1] != "abd" || rows[2][1] != "abd-writeback" || rows[5][2] != "3" {
		t.Errorf("%v, got\n%s", err, stdout)
	}
	b, err := os.ReadFile(each)
	if err != nil {
		t.Fatal(err)
	}
	rows, err = csv.NewReader(strings.NewReader(string(b))).ReadAll()
	if err != nil || len(rows) < 100 || rows[1][0] != "1" || rows[len(rows)-1][0] != "3" || rows[len(rows)-1][1] != "abd-writeback" {
		t.Errorf("%v, got %d operations, %q to %q", err, len(rows), rows[1], rows[len(rows)-1])
	}
}

// TestCompareShowsWhatIsKnown: reads that always write back take two rounds,
// ours fewer, and writes don't differ.
func TestCompareShowsWhatIsKnown(t *testing.T) {
	stdout, stderr, code := sim(t, "run", file(t, "quick.json", quick), "--seeds", "1..6", "-o", "json", "--compare", "abd-writeback")
	if code != cli.ExitDone || stderr != "" {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	all := lines(stdout)
	var sum struct {
		Runs        int
		Differences map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(all[len(all)-1]), &sum); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Rounds struct {
			Mean  float64
			Apart bool
		}
	}
	if err := json.Unmarshal(sum.Differences["read"], &read); err != nil {
		t.Fatal(err)
	}
	if sum.Runs != 12 || read.Rounds.Mean < 0.1 || read.Rounds.Mean > 1 || !read.Rounds.Apart {
		t.Errorf("reads that write back take %+v more rounds, in %d runs", read.Rounds, sum.Runs)
	}
	stdout, _, _ = sim(t, "run", file(t, "quick.json", quick), "--seeds", "1..6", "--compare", "abd-writeback")
	if !regexp.MustCompile(`(?m)^read: rounds +1\.\d+ ± \S+ +1\.9\d+ ± .* \*$`).MatchString(stdout) {
		t.Errorf("no row for the rounds of reads in\n%s", stdout)
	}
}

// TestCompareSaysWhichSideBroke: the one whose scenario breaks a rule, and not
// the one before it.
func TestCompareSaysWhichSideBroke(t *testing.T) {
	good := file(t, "racy.json", racy)
	bad := file(t, "broken.json", strings.Replace(racy, `"name": "racy"`, `"name": "broken", "rules": ["`+mutant+`"]`, 1))
	stdout, stderr, code := sim(t, "run", good, "--compare", bad, "--seeds", "1..20", "--fail-fast")
	if code != cli.ExitOther || !strings.Contains(stdout, ", side broken, broke a promise:\n") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	all := lines(stdout)
	if all[len(all)-2] != "to see both sides again:" || !strings.HasSuffix(all[len(all)-1], " --compare "+bad) {
		t.Errorf("the last lines are %q", all[len(all)-2:])
	}
}

// TestAgainstItselfNothingDiffers: common random numbers leave no difference
// where there is none.
func TestAgainstItselfNothingDiffers(t *testing.T) {
	stdout, stderr, code := sim(t, "run", file(t, "quick.json", quick), "--seeds", "1..4", "-o", "json", "--compare", "abd")
	if code != cli.ExitDone || stderr != "" {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	all := lines(stdout)
	for _, m := range regexp.MustCompile(`"mean":([^,]+),`).FindAllStringSubmatch(strings.SplitAfter(all[len(all)-1], `"differences"`)[1], -1) {
		if m[1] != "0" {
			t.Fatalf("a difference of %s in\n%s", m[1], all[len(all)-1])
		}
	}
}

// TestAViolationIsFoundReplayedAndShrunk goes the whole way: a mutant breaks a
// promise, the last line replays it, and what is shrunk still breaks it.
func TestAViolationIsFoundReplayedAndShrunk(t *testing.T) {
	path := file(t, "racy.json", racy)
	stdout, stderr, code := sim(t, "run", path, "--seeds", "1..20", "--mutant", mutant, "--fail-fast")
	if code != cli.ExitOther || !strings.HasPrefix(stderr, "sim: run: ") || strings.Count(stderr, "\n") != 1 {
		t.Fatalf("exit %d, %s%s", code, stdout, stderr)
	}
	all := lines(stdout)
	replay := strings.Fields(all[len(all)-1])
	if len(replay) != 7 || replay[0] != "sim" || replay[3] != "--seed" || replay[5] != "--mutant" {
		t.Fatalf("the last line is %q", replay)
	}

	stdout, _, code = sim(t, append(replay[1:], "-o", "json")...)
	var again struct {
		Violation struct{ Rule string }
		Replay    string
	}
	if err := json.Unmarshal([]byte(lines(stdout)[0]), &again); err != nil {
		t.Fatal(err)
	}
	if code != cli.ExitOther || again.Violation.Rule == "" || again.Replay != strings.Join(replay, " ") {
		t.Fatalf("replayed: exit %d, %s", code, stdout)
	}

	stdout, stderr, code = sim(t, "run", path, "--seed", replay[4], "--mutant", mutant, "-o", "csv")
	if code != cli.ExitOther || !strings.HasPrefix(stderr, strings.Join(replay, " ")+"\n") || strings.Contains(stdout, "sim run") {
		t.Errorf("-o csv: exit %d, the replay line must be on stderr:\n%s", code, stderr)
	}

	plan, stderr, code := sim(t, "shrink", path, "--seed", replay[4], "--mutant", mutant, "-o", "json", "--runs", "60")
	if code != cli.ExitDone || stderr != "" {
		t.Fatalf("shrink: exit %d, %s", code, stderr)
	}
	small := file(t, "plan.json", plan)
	history := filepath.Join(t.TempDir(), "history.jsonl")
	stdout, _, code = sim(t, "replay", small, "--history", history)
	if code != cli.ExitOther || !strings.Contains(stdout, again.Violation.Rule+": ") || !strings.HasSuffix(stdout, "\nsim replay "+small+"\n") {
		t.Errorf("the shrunk plan: exit %d\n%s", code, stdout)
	}
	if stdout, stderr, code := sim(t, "check", history); code == cli.ExitPrecondition || code == cli.ExitUsage {
		t.Errorf("its history is none: exit %d, %s%s", code, stdout, stderr)
	}
	stdout, stderr, code = sim(t, "shrink", "--plan", small, "-o", "go", "--runs", "1")
	if code != cli.ExitDone || !strings.Contains(stdout, "func Test") {
		t.Errorf("as a Go test: exit %d\n%s%s", code, stdout, stderr)
	}
}

func TestNothingToShrink(t *testing.T) {
	stdout, stderr, code := sim(t, "shrink", file(t, "quick.json", quick), "--seed", "1")
	if code != cli.ExitNotFound || stdout != "" || stderr != "sim: shrink: quick, seed 1 keeps all promises: there is nothing to shrink\n" {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
}

// TestWhatIsShownRuns: the file that show prints of a scenario is that
// scenario, and of a plan that plan.
func TestWhatIsShownRuns(t *testing.T) {
	hash := func(stdout string) string {
		m := regexp.MustCompile(`"hash":"([0-9a-f]{16})"`).FindStringSubmatch(stdout)
		if m == nil {
			t.Fatalf("no hash in %s", stdout)
		}
		return m[1]
	}
	path := file(t, "quick.json", quick)
	stdout, _, _ := sim(t, "run", path, "--seed", "3", "-o", "json")
	want := hash(stdout)

	shown, stderr, code := sim(t, "show", path)
	if code != cli.ExitDone || stderr != "" {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	stdout, _, _ = sim(t, "run", file(t, "shown.json", shown), "--seed", "3", "-o", "json")
	if got := hash(stdout); got != want {
		t.Errorf("the scenario as it is shown has the hash %s, want %s", got, want)
	}
	plan, _, _ := sim(t, "show", path, "--seed", "3")
	stdout, _, _ = sim(t, "replay", file(t, "plan.json", plan), "-o", "json")
	if got := hash(stdout); got != want {
		t.Errorf("the plan as it is shown has the hash %s, want %s", got, want)
	}
}

// TestBuiltIn: the scenario that everybody begins with keeps all promises, and
// prints what its users look for.
func TestBuiltIn(t *testing.T) {
	stdout, stderr, code := sim(t, "run", "registers", "--seeds", "1..4")
	if code != cli.ExitDone || stderr != "" {
		t.Fatalf("exit %d, %s%s", code, stdout, stderr)
	}
	for _, want := range []string{"no promise was broken", " ended well", " messages in ", "rounds", "p99 latency, d", "share of one round", "longest stall"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

// TestInterrupted: what has run is printed, and the code says that it isn't
// all.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out cancelingWriter
	out.cancel = cancel
	var errs bytes.Buffer
	a := app()
	a.Writer, a.ErrWriter = &out, &errs
	code := cli.RunContext(ctx, a, []string{"sim", "run", file(t, "quick.json", quick), "--seeds", "1..1000000", "-o", "jsonl"})
	if code != cli.ExitInterrupted || errs.String() != "sim: run: interrupted\n" {
		t.Errorf("exit %d, %s", code, errs.String())
	}
	all := lines(out.String())
	var sum struct {
		Summary, Complete bool
		Seeds             int
	}
	if err := json.Unmarshal([]byte(all[len(all)-1]), &sum); err != nil {
		t.Fatal(err)
	}
	if !sum.Summary || sum.Complete || sum.Seeds != len(all)-1 || sum.Seeds < 3 {
		t.Errorf("%+v after %d lines", sum, len(all))
	}
}

// cancelingWriter interrupts the command when it has printed three times.
type cancelingWriter struct {
	bytes.Buffer
	writes int
	cancel func()
}

func (w *cancelingWriter) Write(b []byte) (int, error) {
	if w.writes++; w.writes == 3 {
		w.cancel()
	}
	return w.Buffer.Write(b)
}
