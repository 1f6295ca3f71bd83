package scenario_test

import (
	"testing"

	"atoll/sim/scenario"
)

func TestShrink(t *testing.T) {
	s := builtin(t, "registers")
	for _, rule := range scenario.RuleNames() {
		s.Rules = []string{rule}
		for seed := range uint64(20) {
			p := s.Draw(seed)
			if r := mustRun(t, p, scenario.Options{}); r.Violation == nil {
				continue
			}
			small, r, err := scenario.Shrink(p, scenario.ShrinkOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s %d ops, %d decisions, %d nodes %d clients, idle %d\n%s", rule, len(r.History), len(small.Decisions), small.Scenario.Nodes, small.Scenario.Clients, len(small.Idle), r.Violation)
			if rule == "abd.NoWriteBack" {
				t.Log(small.GoTest("TestX"))
			}
			break
		}
	}
}
