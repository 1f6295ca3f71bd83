package report_test

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"atoll/bench/report"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata/results.md")

func readTestdata(t *testing.T) report.Records {
	t.Helper()
	f, err := os.Open("testdata/results.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r report.Records
	if err := r.Read(f); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRead(t *testing.T) {
	r := readTestdata(t)
	if len(r.Environments) != 2 || len(r.Runs) != 9 || len(r.Gaps) != 4 || len(r.Sustained) != 1 ||
		len(r.Silences) != 3 || len(r.Changing) != 2 || len(r.Starts) != 3 || len(r.Connections) != 2 || len(r.Idle) != 1 || len(r.Chaos) != 2 {
		t.Fatalf("%d environments, %d runs, %d gaps, %d sustained, %d silences, %d of changes, %d starts, %d of connections, %d of idle ones, %d of chaos", len(r.Environments), len(r.Runs),
			len(r.Gaps), len(r.Sustained), len(r.Silences), len(r.Changing), len(r.Starts), len(r.Connections), len(r.Idle), len(r.Chaos))
	}
	if first, last := r.Runs[0].Session, r.Runs[8].Session; first != 1 || last != 2 {
		t.Errorf("the first run is of session %d and the last of %d, want 1 and 2", first, last)
	}
	if s := r.Sustained[0]; s.Target != "atoll" || s.Clients != 512 || s.PerSecond != 15000 || len(s.Series) != 2 || s.Samples[1].Nodes[0].Journal != 64<<20 {
		t.Errorf("sustained: %+v", s)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{\"kind\":\"run\"}\n{\"kind\":\"walk\"}\n", `line 2: unknown kind "walk"`},
		{"{\"target\":\"atoll\"}", "line 1: an object without a kind"},
		{"{\"kind\":\"run\",", "line 1: unexpected end of JSON input"},
		{"{\"kind\":\"run\",\"clients\":\"many\"}", "line 1: json: cannot unmarshal"},
	} {
		var r report.Records
		if err := r.Read(strings.NewReader(c.text)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.text, err, c.want)
		}
	}
}

// TestSummarize checks the arithmetic that conclusions are drawn from.
func TestSummarize(t *testing.T) {
	s := report.Summarize(readTestdata(t).Runs)
	if len(s.Cells) != 2 || strings.Join(s.Targets, " ") != "atoll etcd nats" {
		t.Fatalf("cells %v, targets %v", s.Cells, s.Targets)
	}
	put := s.Cells[0]
	// Round 0: 3000 against 1500 of NATS; round 1: 2000 against 2500 of etcd.
	// In the other session no peer did anything, and its round 0 isn't the
	// first session's.
	if want := (report.Spread{Median: 1.4, Min: 0.8, Max: 2, Count: 2}); put.Best != want {
		t.Errorf("ratio to the best peer %+v, want %+v", put.Best, want)
	}
	byName := make(map[string]report.TargetSummary)
	for _, target := range put.Targets {
		byName[target.Target] = target
	}
	if want := (report.Spread{Median: 1.9, Min: 0.8, Max: 3, Count: 2}); byName["etcd"].Ratio != want {
		t.Errorf("ratio to etcd %+v, want %+v", byName["etcd"].Ratio, want)
	}
	if want := (report.Spread{Median: 1.625, Min: 1.25, Max: 2, Count: 2}); byName["nats"].Ratio != want {
		t.Errorf("ratio to NATS %+v, want %+v", byName["nats"].Ratio, want)
	}
	if want := (report.Spread{Median: 3000, Min: 2000, Max: 10000, Count: 3}); byName["atoll"].PerSecond != want {
		t.Errorf("atoll's speed %+v, want %+v", byName["atoll"].PerSecond, want)
	}
	if got := byName["atoll"].Ratio; got.Count != 0 {
		t.Errorf("ratio of atoll to itself: %+v", got)
	}
	// The run in which nothing was done counts as a speed and has no latency.
	if n := byName["nats"]; n.PerSecond.Min != 0 || n.P50 != 6 || n.Errors != 11 {
		t.Errorf("NATS: %+v", n)
	}
	if get := s.Cells[1]; get.Best.Count != 0 || len(get.Targets) != 1 {
		t.Errorf("a cell without a peer: %+v", get)
	}
}

func TestMarkdown(t *testing.T) {
	r := readTestdata(t)
	var got bytes.Buffer
	if err := r.WriteMarkdown(&got); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/results.md"
	if *rewrite {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got:\n%s\nwant (go test ./report -rewrite):\n%s", got.Bytes(), want)
	}
}

// TestVariant: another build of atoll is compared with, and is no peer.
func TestVariant(t *testing.T) {
	runs := []report.Run{{Target: "atoll", PerSecond: 30}, {Target: "atoll2", PerSecond: 60}, {Target: "etcd", PerSecond: 10}}
	c := report.Summarize(runs).Cells[0]
	if c.Best.Median != 3 || c.Targets[1].Ratio.Median != 0.5 {
		t.Errorf("ratio to the best peer %v, to the other build %v; want 3 and 0.5", c.Best.Median, c.Targets[1].Ratio.Median)
	}
	if best := report.Summarize(runs[:2]).Cells[0].Best; best.Count != 0 {
		t.Errorf("without a peer: %+v", best)
	}
}

// TestBusyMachine: figures of a machine that did something else come with a
// warning.
func TestBusyMachine(t *testing.T) {
	const warning = "don't quote"
	for _, c := range []struct {
		foreign float64
		warned  bool
	}{{0.1, false}, {0.5, true}} {
		r := report.Records{Environments: []report.Environment{{Cores: 2}}}
		for round := range 3 {
			r.Runs = append(r.Runs, report.Run{Target: "atoll", Round: round, Seconds: 2, CPUForeign: c.foreign})
		}
		var b bytes.Buffer
		if err := r.WriteMarkdown(&b); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), warning); got != c.warned {
			t.Errorf("%v s of 4 s used by others: warned is %v, want %v", c.foreign, got, c.warned)
		}
	}
}
