package main

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"atoll/internal/cli"
	"atoll/sim/scenario"
)

// The page that researchers read says what the code says.

func simulatorPage(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/SIMULATOR.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPageNamesEverything(t *testing.T) {
	page := simulatorPage(t)
	l := everythingNamed()
	for _, n := range slices.Concat(l.Scenarios, l.Faults, l.Mutants, l.Scopes) {
		if !strings.Contains(page, "| `"+n.Name+"` |") {
			t.Errorf("docs/SIMULATOR.md has no row for %s", n.Name)
		}
	}
	for _, f := range figures() {
		if !strings.Contains(page, "`"+f.name+"`") {
			t.Errorf("docs/SIMULATOR.md has no figure %s", f.name)
		}
	}
	names := strings.Join(regexp.MustCompile("(?m)^\\| (`[^|]+) \\|").FindAllString(page, -1), "")
	for _, part := range []any{scenario.Scenario{}, scenario.Mix{}, scenario.Network{}, scenario.Disk{}, scenario.Faults{}, scenario.Bounds{}, scenario.Membership{}, scenario.Plan{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(part)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeOf(scenario.Scenario{}) {
				name += "."
			}
			if !regexp.MustCompile("[`.]" + regexp.QuoteMeta(name) + "([`.]|\\b)").MatchString(names) {
				t.Errorf("docs/SIMULATOR.md has no field %s of %T", name, part)
			}
		}
	}
}

// TestPageRuns: the files on the page are files, and the algorithm is the one
// that the tests run.
func TestPageRuns(t *testing.T) {
	page := simulatorPage(t)
	files := 0
	for _, m := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(page, -1) {
		switch text := m[1]; {
		case strings.Contains(text, `"decisions"`):
			files++
			if stdout, stderr, code := sim(t, "replay", file(t, "plan.json", text)); code != 0 {
				t.Errorf("%s%s%s", text, stdout, stderr)
			}
		case strings.Contains(text, `"name"`):
			files++
			if stdout, stderr, code := sim(t, "run", file(t, "scenario.json", text), "--seed", "1"); code != 0 {
				t.Errorf("%s%s%s", text, stdout, stderr)
			}
		case strings.Contains(text, `"op"`):
			files++
			if stdout, stderr, code := sim(t, "check", file(t, "history.jsonl", text)); code != 1 {
				t.Errorf("exit %d: %s%s%s", code, text, stdout, stderr)
			}
		}
	}
	if files < 3 {
		t.Errorf("%d files on the page, a scenario, a plan and a history are wanted", files)
	}
	b, err := os.ReadFile("../../sim/scenario/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page, "```go\n"+string(b)+"```\n") {
		t.Error("the algorithm on the page isn't that of sim/scenario/example_test.go")
	}
}

// TestPageCommands: every command line on the page is one that is understood.
func TestPageCommands(t *testing.T) {
	lines := regexp.MustCompile(`(?m)^    (?:bin/)?sim (.*)$`).FindAllStringSubmatch(simulatorPage(t), -1)
	if len(lines) < 10 {
		t.Fatalf("%d command lines", len(lines))
	}
	for _, m := range lines {
		words := strings.Fields(strings.Split(m[1], " > ")[0])
		if _, err := cli.Reorder(app(), append([]string{"sim"}, words...)); err != nil {
			t.Errorf("sim %s: %v", m[1], err)
		}
	}
}
