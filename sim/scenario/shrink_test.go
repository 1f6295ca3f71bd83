package scenario_test

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"atoll/sim/scenario"
)

// A plan that breaks a rule is cut down to what breaks it.
func TestShrink(t *testing.T) {
	for _, c := range []struct {
		rule                  string
		seed                  uint64
		decisions, operations int // at most
	}{
		{"abd.NoWriteBack", 0, 2, 12},
		{"sim.BootEmpty", 7, 2, 4},
		{"abd.TimeoutIsFailure", 13, 6, 10},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := builtin(t, "registers")
			s.Rules = []string{c.rule}
			p := s.Draw(c.seed)
			before := mustRun(t, p, scenario.Options{})
			if before.Violation == nil {
				t.Fatalf("seed %d doesn't break %s", c.seed, c.rule)
			}
			small, r, err := scenario.Shrink(p, scenario.ShrinkOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("from %d decisions and %d operations: %v", len(p.Decisions), len(before.History), r.Violation)
			if r.Violation.Rule != before.Violation.Rule {
				t.Errorf("another rule: %v, was %v", r.Violation, before.Violation)
			}
			if len(small.Decisions) > c.decisions || len(r.History) > c.operations {
				t.Errorf("%d decisions and %d operations are left, want at most %d and %d",
					len(small.Decisions), len(r.History), c.decisions, c.operations)
			}
			// It replays from its file.
			again, err := scenario.ParsePlan(strings.NewReader(string(small.JSON())))
			if err != nil {
				t.Fatal(err)
			}
			if got := mustRun(t, again, scenario.Options{}); got.Hash != r.Hash || got.Violation == nil {
				t.Errorf("from its file: hash %x, %v; want %x and the same", got.Hash, got.Violation, r.Hash)
			}
		})
	}
}

func TestShrinkLeavesGoodPlansAlone(t *testing.T) {
	p := builtin(t, "quiet").Draw(1)
	small, r, err := scenario.Shrink(p, scenario.ShrinkOptions{})
	if err != nil || r.Violation != nil || string(small.JSON()) != string(p.JSON()) {
		t.Errorf("got %s, %v, %v", small.JSON(), r.Violation, err)
	}
}

func TestShrinkKeepsToItsBudget(t *testing.T) {
	s := builtin(t, "registers")
	s.Rules = []string{"abd.NoWriteBack"}
	runs := 0
	_, _, err := scenario.Shrink(s.Draw(0), scenario.ShrinkOptions{Runs: 10, Tried: func(n int, _ scenario.Plan) { runs = n }})
	if err != nil || runs > 10 {
		t.Errorf("%d runs, %v; want at most 10", runs, err)
	}
}

func TestGoTest(t *testing.T) {
	p := builtin(t, "registers").Draw(1)
	src := p.GoTest("TestFound")
	f, err := parser.ParseFile(token.NewFileSet(), "found_test.go", src, parser.ParseComments)
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	if f.Scope.Lookup("TestFound") == nil {
		t.Errorf("no TestFound in\n%s", src)
	}
	_, rest, _ := strings.Cut(src, "NewReader(`")
	file, _, _ := strings.Cut(rest, "`")
	if _, err := scenario.ParsePlan(strings.NewReader(file)); err != nil {
		t.Errorf("the plan in it: %v", err)
	}
}
