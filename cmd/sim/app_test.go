package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/internal/cli"
)

// sim runs the program in this process.
func sim(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return simWith(t, "", args...)
}

func simWith(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	t.Setenv(cli.Environment(cli.FlagOutput), "")
	var out, errs bytes.Buffer
	a := app()
	a.Reader, a.Writer, a.ErrWriter = strings.NewReader(stdin), &out, &errs
	code = cli.RunContext(context.Background(), a, append([]string{"sim"}, args...))
	return out.String(), errs.String(), code
}

// file writes a file for one test and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// aPlan is a plan in which clients reach nobody.
const aPlan = `{"seed": 1, "scenario": {"name": "deaf", "nodes": 3, "clients": 1, "keys": 1, "duration": "100ms", "timeout": "50ms"},
"decisions": [{"at": "0s", "do": "isolate", "on": ["p1"], "to": ["n*"]}]}`

// TestRefused: what is wrong is said in one line, on stderr, before anything
// runs.
func TestRefused(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "no", "such", "file")
	for _, c := range []struct {
		args []string
		want []string // in the line
		code int
	}{
		{[]string{"run"}, []string{"sim: run: SCENARIO is missing"}, cli.ExitUsage},
		{[]string{"run", "registers", "quiet"}, []string{`unexpected argument "quiet"`}, cli.ExitUsage},
		{[]string{"run", "registres"}, []string{`no scenario or file "registres"`, `did you mean "registers"?`}, cli.ExitUsage},
		{[]string{"run", "zzzzzzzzzz"}, []string{`"zzzzzzzzzz"`, "there are registers"}, cli.ExitUsage},
		{[]string{"run", ""}, []string{`no scenario or file ""`}, cli.ExitUsage},
		{[]string{"run", "registers", "--seeds", "9..3"}, []string{"--seeds 9..3: the first seed is larger than the last; write 3..9"}, cli.ExitUsage},
		{[]string{"run", "registers", "--seeds", "1-5"}, []string{`--seeds "1-5": write FIRST..LAST`}, cli.ExitUsage},
		{[]string{"run", "registers", "--seeds", "1.."}, []string{`a seed is missing`}, cli.ExitUsage},
		{[]string{"run", "registers", "--seeds", "-3..5"}, []string{`"-3" is no whole number`}, cli.ExitUsage},
		{[]string{"run", "registers", "--seeds", "0..99999999999"}, []string{`more than 1000000000 seeds`}, cli.ExitUsage},
		{[]string{"run", "registers", "--seed", "x"}, []string{`--seed: "x" is no whole number`}, cli.ExitUsage},
		{[]string{"run", "registers", "--seed", ""}, []string{`--seed: a seed is missing`}, cli.ExitUsage},
		{[]string{"run", "registers", "--seed", "1", "--seeds", "1..2"}, []string{"--seed and --seeds exclude each other"}, cli.ExitUsage},
		{[]string{"run", "registers", "--algorithm", "abdd"}, []string{`--algorithm: no algorithm "abdd"; did you mean "abd"?`, "swabd"}, cli.ExitUsage},
		{[]string{"run", "registers", "--compare", "abd-writebak"}, []string{`--compare: no algorithm or scenario "abd-writebak"; did you mean "abd-writeback"?`}, cli.ExitUsage},
		{[]string{"run", "registers", "--mutant", "abd.NoWriteback"}, []string{`--mutant: no rule "abd.NoWriteback"; did you mean "abd.NoWriteBack"?`, "sim.ReuseIDs"}, cli.ExitUsage},
		{[]string{"run", "registers", "-o", "xml"}, []string{`--output "xml": this command prints table|json|jsonl|csv`}, cli.ExitUsage},
		{[]string{"run", "registers", "--history", nowhere}, []string{"--history is for a single run"}, cli.ExitUsage},
		{[]string{"run", "registers", "--seed", "1", "--history", nowhere}, []string{"--history", nowhere}, cli.ExitPrecondition},
		{[]string{"run", "registers", "--seed", "1", "--operations", nowhere}, []string{"--operations", nowhere}, cli.ExitPrecondition},
		{[]string{"run", "registers", "--sed", "1"}, []string{"unknown flag --sed; did you mean --seed?"}, cli.ExitUsage},
		{[]string{"run", nowhere}, []string{"the scenario", nowhere}, cli.ExitPrecondition},
		{[]string{"run", filepath.Dir(filepath.Dir(filepath.Dir(nowhere)))}, []string{"is a directory"}, cli.ExitPrecondition},
		{[]string{"run", file(t, "s.json", "")}, []string{"s.json"}, cli.ExitPrecondition},
		{[]string{"run", file(t, "s.json", "# a scenario\n")}, []string{"s.json", "line 1"}, cli.ExitPrecondition},
		{[]string{"run", file(t, "s.json", "{\n  \"name\": \"x\",\n  \"nodez\": 3\n}")}, []string{"s.json", "line 3", "nodez"}, cli.ExitPrecondition},
		{[]string{"run", file(t, "s.json", "{\n  \"name\": \"x\",\n  \"nodes\": \"three\"\n}")}, []string{"s.json", "line 3", "nodes"}, cli.ExitPrecondition},
		{[]string{"run", file(t, "s.json", "{\n  \"name\": \"x\",\n  \"duration\": \"long\"\n}")}, []string{"s.json", "line 3", `"long"`}, cli.ExitPrecondition},
		{[]string{"run", file(t, "s.json", "{\n  \"name\": \"x\",\n  \"nodes\": -1\n}")}, []string{"s.json", "nodes", "-1"}, cli.ExitPrecondition},
		{[]string{"run", file(t, "s.json", "{\n  \"name\": \"x\"\n} {}")}, []string{"s.json"}, cli.ExitPrecondition},
		{[]string{"run", file(t, "s.json", "{\n  \"name\": \"x\",\n  \"quorum\": \"get=1,put=1\"\n}")}, []string{"s.json", "intersect"}, cli.ExitPrecondition},
		{[]string{"replay"}, []string{"PLAN is missing"}, cli.ExitUsage},
		{[]string{"replay", nowhere}, []string{"the plan", nowhere}, cli.ExitPrecondition},
		{[]string{"replay", file(t, "p.json", "{\n \"seed\": 1,\n \"sceanrio\": {}\n}")}, []string{"p.json", "line 3", "sceanrio"}, cli.ExitPrecondition},
		{[]string{"replay", file(t, "p.json", `{"seed": 1, "scenario": {"name": "x"}, "decisions": [{"at": "1s", "do": "explode", "on": ["n1"]}]}`)}, []string{"decision 1", "explode"}, cli.ExitPrecondition},
		{[]string{"replay", file(t, "p.json", `{"seed": 1, "scenario": {"name": "x"}, "decisions": [{"at": "1s", "do": "crash", "on": ["n77"]}]}`)}, []string{"decision 1", "n77"}, cli.ExitPrecondition},
		{[]string{"shrink", "registers"}, []string{"--seed is missing"}, cli.ExitUsage},
		{[]string{"shrink", "--plan", "p", "--seed", "1"}, []string{"don't go with --plan"}, cli.ExitUsage},
		{[]string{"shrink", "registers", "--seed", "1", "--runs", "0"}, []string{"--runs must be from 1 to"}, cli.ExitUsage},
		{[]string{"show", "registers", "--seed", "-1"}, []string{`"-1" is no whole number`}, cli.ExitUsage},
		{[]string{"show", "registers", "-o", "json"}, []string{"unknown flag -o"}, cli.ExitUsage},
		{[]string{"check"}, []string{"HISTORY|- is missing"}, cli.ExitUsage},
		{[]string{"check", nowhere}, []string{"the history", nowhere}, cli.ExitPrecondition},
		{[]string{"check", file(t, "h", "{\"op\":\"read\",\"key\":\"k\",\"call\":1,\"return\":2}\n\n{\"op\":\"reed\"}\n")}, []string{"line 3", "reed"}, cli.ExitPrecondition},
		{[]string{"check", file(t, "h", "{\"op\":\"read\",\"key\":\"k\",\"call\":1,\"return\":2,\"colour\":3}\n")}, []string{"line 1", "colour"}, cli.ExitPrecondition},
		{[]string{"check", file(t, "h", "{\"op\":\"write\",\"key\":\"k\",\"value\":\"v\",\"call\":1,\"return\":2}\n\n{\"op\":\"write\",\"key\":\"k\",\"value\":\"v\",\"call\":5,\"return\":6}\n")},
			[]string{"operation 2 of the file", `write "v" of key "k"`}, cli.ExitPrecondition},
		{[]string{"check", file(t, "h", "\n")}, []string{"has no operations"}, cli.ExitPrecondition},
		{[]string{"check", "-"}, []string{"stdin has no operations"}, cli.ExitPrecondition},
		{[]string{"run", file(t, "p.json", aPlan)}, []string{"p.json: that is a plan: sim replay runs it"}, cli.ExitPrecondition},
		{[]string{"replay", file(t, "s.json", quick)}, []string{"s.json: that is a scenario: sim run runs it"}, cli.ExitPrecondition},
		{[]string{"run", "registers", "--mutant", "nowriteback"}, []string{`did you mean "abd.NoWriteBack"?`}, cli.ExitUsage},
		{[]string{"ckeck", "h"}, []string{`unknown command "ckeck"; did you mean "check"?`}, cli.ExitUsage},
	} {
		stdout, stderr, code := sim(t, c.args...)
		first, rest, _ := strings.Cut(stderr, "\n")
		if code == cli.ExitUsage {
			_, rest, _ = strings.Cut(rest, "\n")
		}
		if stdout != "" || rest != "" || code != c.code || !strings.HasPrefix(first, "sim: ") {
			t.Errorf("sim %.90q: exit %d, want %d; stdout %.200q, stderr:\n%.1000s", c.args, code, c.code, stdout, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(first, want) {
				t.Errorf("sim %.90q: %.600s\nhas no %s", c.args, first, want)
			}
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, name := range []string{"run", "list", "show", "replay", "shrink", "check", "version"} {
		stdout, stderr, code := sim(t, name, "--help")
		for _, want := range []string{"sim " + name + ": ", "USAGE", "EXAMPLES", "EXIT CODES"} {
			if !strings.Contains(stdout, want) || stderr != "" || code != cli.ExitDone {
				t.Errorf("sim %s --help: exit %d, no %q in:\n%s%s", name, code, want, stdout, stderr)
			}
		}
	}
	if stdout, _, code := sim(t, "version"); !strings.Contains(stdout, "atoll/1") || code != cli.ExitDone {
		t.Errorf("sim version: exit %d, %s", code, stdout)
	}
}

// TestHelpSaysWhatCodesMean: of this program, not of all.
func TestHelpSaysWhatCodesMean(t *testing.T) {
	for name, want := range map[string]string{
		"run":    "    1  a promise was broken, or any other error\n",
		"replay": "    1  a promise was broken, or any other error\n",
		"check":  "    1  the history isn't linearizable, or any other error\n",
		"show":   "    3  a file can't be read or written, or isn't what it should be\n",
		"shrink": "    4  nothing to shrink: the run keeps all promises\n",
	} {
		if stdout, _, _ := sim(t, name, "--help"); !strings.Contains(stdout, want) {
			t.Errorf("sim %s --help has no %q:\n%s", name, want, stdout)
		}
	}
}

// TestWarnsOfNothing: a run in which nothing ended well broke no promise, and
// says so with a warning.
func TestWarnsOfNothing(t *testing.T) {
	const want = "sim: replay: warning: no operation ended well: that no promise was broken says nothing\n"
	if stdout, stderr, code := sim(t, "replay", file(t, "p.json", aPlan)); code != cli.ExitDone || stderr != want {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
}

func TestList(t *testing.T) {
	for _, format := range []string{"table", "json", "jsonl"} {
		stdout, stderr, code := sim(t, "list", "-o", format)
		for _, want := range []string{"registers", "abd-writeback", "swabd", "powerloss", "abd.NoWriteBack", "a read ends after its get phase"} {
			if !strings.Contains(stdout, want) {
				t.Errorf("sim list -o %s has no %s", format, want)
			}
		}
		if stderr != "" || code != cli.ExitDone {
			t.Errorf("sim list -o %s: exit %d, %s", format, code, stderr)
		}
	}
}

const (
	goodHistory = `{"client":"a","op":"write","key":"k","value":"1","call":0,"return":10}
{"client":"b","op":"read","key":"k","value":"1","call":5,"return":15}
`
	badHistory = goodHistory + `{"client":"b","op":"read","key":"k","call":20,"return":30}
`
)

func TestCheck(t *testing.T) {
	good, bad := file(t, "good.jsonl", goodHistory), file(t, "bad.jsonl", badHistory)
	for _, c := range []struct {
		stdin string
		args  []string
		code  int
		want  string // on stdout
	}{
		{"", []string{good}, cli.ExitDone, "linearizable: 2 operations on 1 key\n"},
		{goodHistory, []string{"-"}, cli.ExitDone, "linearizable: 2 operations on 1 key\n"},
		{"", []string{good, "-o", "jsonl"}, cli.ExitDone, `{"linearizable":true,"operations":2,"keys":1,"violation":null}` + "\n"},
		{"", []string{bad}, cli.ExitOther, "not linearizable: 3 operations on 1 key\n"},
		{badHistory, []string{"-", "-o", "jsonl"}, cli.ExitOther, `{"linearizable":false,"operations":3,"keys":1,"violation":{"rule":"`},
	} {
		stdout, stderr, code := simWith(t, c.stdin, append([]string{"check"}, c.args...)...)
		if !strings.HasPrefix(stdout, c.want) || code != c.code || (stderr == "") != (code == cli.ExitDone) {
			t.Errorf("sim check %q: exit %d, stdout:\n%s\nstderr: %s\nwant exit %d and:\n%s", c.args, code, stdout, stderr, c.code, c.want)
		}
	}
}
