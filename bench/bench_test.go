package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/bench/load"
	"atoll/bench/report"
	"atoll/bench/target"
)

func TestFlags(t *testing.T) {
	c, err := parseCompare([]string{"--targets", "atoll,nats", "--ops", "get", "--clients", "1, 7", "--value", "5,9", "--seconds", "0.5", "--rounds", "2"})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(c.targets, c.ops, c.clients, c.values, c.keys, c.duration, c.rounds)
	if want := "[atoll nats] [get] [1 7] [5 9] 10000 500ms 2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c, err = parseCompare(nil)
	if got, want := fmt.Sprint(c.targets, c.ops, c.clients, c.values, c.duration, c.rounds), "[atoll etcd nats zk] [put get mixed] [1 64 512] [100] 3s 5"; err != nil || got != want {
		t.Errorf("without flags: %s, %v; want %s", got, err, want)
	}
	for _, args := range []string{
		"--targets atoll,consul", "--targets etcd,etcd", "--ops cas", "--clients 0", "--clients many", "--seconds 0",
		"--rounds 0", "--keys 0", "--value -1", "--nosuch", "stray",
		"--value 5,5", "--targets atoll,atoll2",
	} {
		_, err := parseCompare(strings.Fields(args))
		if _, ok := errors.AsType[*usageError](err); !ok {
			t.Errorf("%s: got %v, want a usage error", args, err)
		}
	}
	if _, err := parseGap([]string{"-h"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	if s, err := parseSustained([]string{"-fill=false"}); err != nil || s.fill || s.keys != 1_000_000 || s.duration != time.Minute {
		t.Errorf("sustained: %+v, %v", s, err)
	}
}

// TestLargeValues: of large values there are fewer keys and fewer clients.
func TestLargeValues(t *testing.T) {
	c := comparison{clients: []int{1, 64, 512}, settings: settings{keys: 10_000}}
	for _, want := range []struct {
		value int
		cell  string
	}{
		{0, "10000 [1 64 512]"}, {100, "10000 [1 64 512]"}, {16 << 10, "10000 [1 64 512]"}, {1 << 20, "256 [1 64]"}, {1 << 30, "1 [1]"},
	} {
		if got := fmt.Sprint(c.keysOf(want.value), c.clientsOf(want.value)); got != want.cell {
			t.Errorf("%d bytes: %s, want %s", want.value, got, want.cell)
		}
	}
}

// TestOtherFlags: what the other commands refuse, and what they take.
func TestOtherFlags(t *testing.T) {
	parse := map[string]func([]string) error{
		"silent":      func(a []string) error { _, err := parseSilent(a); return err },
		"startup":     func(a []string) error { _, err := parseStartup(a); return err },
		"chaos":       func(a []string) error { _, err := parseChaos(a); return err },
		"connections": func(a []string) error { _, err := parseConnections(a); return err },
		"reconfigure": func(a []string) error { _, err := parseReconfigure(a); return err },
		"idle":        func(a []string) error { _, err := parseIdle(a); return err },
		"gap":         func(a []string) error { _, err := parseGap(a); return err },
		"replace":     func(a []string) error { _, err := parseReplace(a); return err },
	}
	for _, c := range []struct {
		command, args string
		taken         bool
	}{
		{"silent", "--modes silent,lossy --ops get --rounds 2", true},
		{"silent", "--modes deaf", false},
		{"idle", "--clients 100 --processes 4 --busy 8 --ops put", true},
		{"idle", "--clients 100 --processes 3", false},
		{"idle", "--busy 0", false},
		{"silent", "--targets etcd", false},
		{"silent", "--clients 0", false},
		{"startup", "--keys 5,6 --journal 0 --cold", true},
		{"startup", "--journal -1", false},
		{"startup", "--kill 64 --clients 512", true},
		{"startup", "--kill -1", false},
		{"startup", "--keys 0", false},
		{"chaos", "--kills 3 --members 5 --seed 7", true},
		{"chaos", "--members 1", false},
		{"chaos", "--members 27", false},
		{"chaos", "--kills 0", false},
		{"connections", "--clients 20 --processes 4 --shared", true},
		{"connections", "--clients 20 --processes 3", false},
		{"reconfigure", "--rate 0.5 --ops put,get --clients 8", true},
		{"reconfigure", "--rate 0", false},
		{"reconfigure", "--targets etcd", false},
		{"gap", "--stop --rounds 1", true},
		{"gap", "--rounds 0", false},
		{"replace", "--clients 0,64 --rates -1,0,16 --rounds 1 --plot x.svg", true},
		{"replace", "--rates -2", false},
		{"replace", "--targets etcd", false},
		{"replace", "--rounds 0", false},
	} {
		err := parse[c.command](strings.Fields(c.args))
		if _, usage := errors.AsType[*usageError](err); usage == c.taken || c.taken && err != nil {
			t.Errorf("%s %s: %v", c.command, c.args, err)
		}
	}
	s, err := parseSilent([]string{"--modes", "lossy"})
	if err != nil || len(s.modes) != 1 || s.modes[0].name != "lossy" {
		t.Errorf("one mode: %v, %v", s.modes, err)
	}
}

// TestWorker: a process of clients says why it can't connect, and what isn't a
// job.
func TestWorker(t *testing.T) {
	var out bytes.Buffer
	if err := runWorker(t.Context(), `{"Access":{"Target":"nosuch"},"Clients":2}`, strings.NewReader(""), &out); err != nil {
		t.Fatal(err)
	}
	if want := `no target \"nosuch\"`; !strings.Contains(out.String(), want) {
		t.Errorf("got %s, want it to say %s", &out, want)
	}
	if err := runWorker(t.Context(), "job", strings.NewReader(""), &out); err == nil {
		t.Error("nonsense was taken for a job")
	}
}

// fake is a target without nodes that notes who was asked.
type fake struct {
	name  string
	asked *[]string
}

func (f *fake) Client(i int) load.Client {
	*f.asked = append(*f.asked, fmt.Sprint(f.name, i))
	return instant{}
}
func (f *fake) Roaming(context.Context, int) (load.Client, io.Closer, error) {
	return nil, nil, errors.ErrUnsupported
}
func (f *fake) Fill(context.Context, []string, []byte) error   { return nil }
func (f *fake) Victim(context.Context, int) (int, bool, error) { return 0, false, nil }
func (f *fake) Access() target.Access                          { return target.Access{} }
func (f *fake) Victims() int                                   { return 1 }
func (f *fake) Nodes() []*target.Process                       { return nil }
func (f *fake) Version() string                                { return "1" }
func (f *fake) Stop()                                          {}

// instant is a client whose operations are done at once.
type instant struct{}

func (instant) Put(context.Context, string, []byte) error { return nil }
func (instant) Get(context.Context, string) error         { return nil }

// TestTurns: each round has every target once, begins with another one, and
// asks other connections; what is written can be read.
func TestTurns(t *testing.T) {
	var asked []string
	var out bytes.Buffer
	b := &bed{ctx: t.Context(), stdout: &out}
	all := []contestant{{"x", &fake{name: "x", asked: &asked}}, {"y", &fake{name: "y", asked: &asked}}}
	c := comparison{rounds: 3}
	spec := load.Spec{Op: load.Mixed, Clients: 1, Keys: keyNames(3), ValueSize: 9, Duration: time.Millisecond}
	if err := c.cell(b, all, spec); err != nil {
		t.Fatal(err)
	}
	if want := []string{"x0", "y0", "y1", "x1", "x2", "y2"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
	var read report.Records
	if err := read.Read(&out); err != nil {
		t.Fatal(err)
	}
	var turns []string
	for _, r := range read.Runs {
		turns = append(turns, fmt.Sprintf("%s%d%d", r.Target, r.Round, r.Turn))
		if r.Op != "mixed" || r.Clients != 1 || r.Keys != 3 || r.Value != 9 {
			t.Errorf("run %+v", r)
		}
	}
	if want := []string{"x00", "y01", "y10", "x11", "x20", "y21"}; !slices.Equal(turns, want) {
		t.Errorf("turns %v, want %v", turns, want)
	}
}

func TestRunReportRefuses(t *testing.T) {
	if _, ok := errors.AsType[*usageError](runReport(t.Context(), nil)); !ok {
		t.Error("no file is no usage error")
	}
	if err := runReport(t.Context(), []string{t.TempDir() + "/none"}); err == nil {
		t.Error("a missing file was reported")
	}
	for what, text := range map[string]string{"nothing": "", "prose": "# results\n\nall is well\n", "another object": "{}\n", "not JSON": "{what}\n"} {
		file := t.TempDir() + "/results"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := runReport(t.Context(), []string{file}); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("a file of %s: %v", what, err)
		}
	}
}
