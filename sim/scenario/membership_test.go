package scenario_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"atoll/sim/scenario"
)

// What churn draws is what it is there for: members that are added, removed and
// replaced, sets that have nothing in common, other quorum systems; and much of
// it comes about.
func TestChurnChanges(t *testing.T) {
	s := builtin(t, "churn")
	seen := make(map[string]bool)
	installed := 0
	for seed := range uint64(20) {
		p := s.Draw(seed)
		present := []string{"n1", "n2", "n3"}
		for _, d := range p.Decisions {
			if d.Do != "propose" {
				continue
			}
			stay := slices.DeleteFunc(slices.Clone(d.To), func(n string) bool { return !slices.Contains(present, n) })
			fresh, gone := len(d.To)-len(stay), len(present)-len(stay)
			seen["add"] = seen["add"] || fresh > 0 && gone == 0
			seen["remove"] = seen["remove"] || fresh == 0 && gone > 0
			seen["replace"] = seen["replace"] || fresh == 1 && gone == 1
			seen["swap"] = seen["swap"] || len(stay) == 0
			seen["system"] = seen["system"] || fresh == 0 && gone == 0 && d.Quorum != ""
			seen["by "+d.On[0]] = true
			present = d.To
		}
		if err := p.Check(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		installed += mustRun(t, p, scenario.Options{}).Figures.Installed
	}
	for _, what := range []string{"add", "remove", "replace", "swap", "system", "by o1", "by o2"} {
		if !seen[what] {
			t.Errorf("nothing is drawn that is %q", what)
		}
	}
	if installed < 20 {
		t.Errorf("only %d configurations were installed in 20 runs", installed)
	}
}

// TestLadder: members grow from one to two, three and five, and shrink back to one
// that wasn't there at first, while clients work and a node dies or is cut off in
// each step. Nothing is broken, and no step is left out. All but the first are
// proposed twice: an operator that proposes anew finds what was decided last.
func TestLadder(t *testing.T) {
	text, err := os.ReadFile("testdata/ladder.json")
	if err != nil {
		t.Fatal(err)
	}
	p, err := scenario.ParsePlan(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	const steps = 6
	for p.Seed = range 4 {
		r := mustRun(t, p, scenario.Options{})
		if r.Violation != nil {
			t.Errorf("seed %d: %v", p.Seed, r.Violation)
		}
		if r.Figures.Installed != steps || r.Figures.Operations() < 100 {
			t.Errorf("seed %d: %d of %d configurations were installed, and %d operations ended", p.Seed, r.Figures.Installed, steps, r.Figures.Operations())
		}
	}
	p.Scenario.Rules = []string{"abd.IgnoreNews"}
	if v := mustRun(t, p, scenario.Options{}).Violation; v == nil {
		t.Error("clients stay with the first member, and nobody notices")
	}
}

// A plan that breaks a rule of reconfiguration shrinks to a few decisions, most of
// them to a single one, and what is left can be written down and run again.
func TestChurnShrinks(t *testing.T) {
	s := racing(t)
	s.Rules = []string{"rambo.InstallTooFew"}
	var small scenario.Plan
	var r scenario.Result
	for seed, tried := uint64(1), 0; ; seed++ {
		p := s.Draw(seed)
		if v := mustRun(t, p, scenario.Options{}).Violation; v == nil || v.Rule != "lost-at-retirement" {
			if seed == 30 {
				t.Fatalf("no seed up to %d breaks the promise", seed)
			}
			continue
		}
		var err error
		if small, r, err = scenario.Shrink(p, scenario.ShrinkOptions{Runs: 200}); err != nil {
			t.Fatal(err)
		}
		if len(small.Decisions) > 4 || r.Violation.Rule != "lost-at-retirement" {
			t.Errorf("shrunk to %v, which gives %v", small.Decisions, r.Violation)
		}
		proposals := 0
		for _, d := range small.Decisions {
			if d.Do == "propose" {
				proposals++
			}
		}
		if proposals == 1 {
			break
		}
		if tried++; tried == 3 {
			t.Fatalf("none of %d plans shrinks to one proposal; the last to %v", tried, small.Decisions)
		}
	}
	again, err := scenario.ParsePlan(bytes.NewReader(small.JSON()))
	if err != nil {
		t.Fatal(err)
	}
	if replayed := mustRun(t, again, scenario.Options{}); replayed.Hash != r.Hash || replayed.Violation == nil {
		t.Errorf("replayed: hash %x, %v; it was %x", replayed.Hash, replayed.Violation, r.Hash)
	}
}

func TestMembershipCheck(t *testing.T) {
	propose := scenario.Decision{At: 1, Do: "propose", On: []string{"o1"}, To: []string{"n2", "n4"}}
	for _, c := range []struct {
		name, want string
		change     func(p *scenario.Plan)
	}{
		{"as it is", "", func(*scenario.Plan) {}},
		{"several clusters", "single cluster", func(p *scenario.Plan) { p.Scenario.Clusters = 2 }},
		{"fixed members", `"swabd" has fixed members`, func(p *scenario.Plan) { p.Scenario.Algorithm = "swabd" }},
		{"nobody proposes", "without operators", func(p *scenario.Plan) { p.Scenario.Membership.Operators = 0 }},
		{"too many nodes", "membership.blank", func(p *scenario.Plan) { p.Scenario.Membership.Blank = 1000 }},
		{"no such node", `no process "n9"`, func(p *scenario.Plan) { p.Decisions[0].To = []string{"n9"} }},
		{"a client as a member", "p1 can't be a member", func(p *scenario.Plan) { p.Decisions[0].To = []string{"p1"} }},
		{"a node that proposes", "propose can't happen to n1", func(p *scenario.Plan) { p.Decisions[0].On = []string{"n1"} }},
		{"an operator without power", "powerloss can't happen to o1", func(p *scenario.Plan) {
			p.Decisions[0] = scenario.Decision{At: 1, Do: "powerloss", On: []string{"o1"}}
		}},
		{"a system that doesn't fit", "need not intersect", func(p *scenario.Plan) { p.Decisions[0].Quorum = "get=1,put=1" }},
		{"a crash under a system", `"quorum" is for proposals`, func(p *scenario.Plan) {
			p.Decisions[0] = scenario.Decision{At: 1, Do: "crash", On: []string{"o1"}, Quorum: "majority"}
		}},
		{"a target that isn't healed", "if decision 1", func(p *scenario.Plan) {
			p.Healing = []scenario.Healing{{Cluster: 1, Dead: []string{"n4"}}}
		}},
		{"a blank node that isn't healed", "", func(p *scenario.Plan) {
			p.Healing = []scenario.Healing{{Cluster: 1, Dead: []string{"n5"}}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := builtin(t, "churn")
			s.Quorum, s.Repair, s.Faults = "majority", "off", scenario.Faults{}
			p := scenario.Plan{Scenario: s, Decisions: []scenario.Decision{propose}}
			c.change(&p)
			err := p.Check()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
		})
	}
}
