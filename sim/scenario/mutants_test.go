package scenario_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/sim/scenario"
)

// scripted are the rules that no seed of these scenarios breaks noticeably;
// each has a schedule in abd/testdata that kills it.
var scripted = map[string]string{
	"sim.ReuseIDs":      "a client must die in the middle of the first write of two lives running (schedule 2)",
	"abd.TrustRefusals": "all members must refuse, while copies are on their way to one that will not (refused-by-all)",
}

// killedBy names the scenario whose seeds kill a mutant, where it isn't
// registers.
var killedBy = map[string]string{"abd.MergeWholePages": "lists"}

// TestMutants shows that runs notice each rule that is broken, within a few
// seeds.
func TestMutants(t *testing.T) {
	const budget = 60
	for _, rule := range scenario.RuleNames() {
		if why := scripted[rule]; why != "" {
			continue
		}
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			name := "registers"
			if other := killedBy[rule]; other != "" {
				name = other
			}
			s := builtin(t, name)
			s.Rules = []string{rule}
			began := time.Now()
			for seed := range uint64(budget) {
				if r := mustRun(t, s.Draw(seed), scenario.Options{}); r.Violation != nil {
					t.Logf("%-26s killed by seed %2d of %s after %4d ms: %s", rule, seed, name, time.Since(began).Milliseconds(), r.Violation.Rule)
					return
				}
			}
			t.Errorf("%s survives %d seeds of %s", rule, budget, name)
		})
	}
}

// Every rule that there is has a name.
func TestEveryRuleHasAName(t *testing.T) {
	var want []string
	var collect func(prefix string, v reflect.Type)
	collect = func(prefix string, v reflect.Type) {
		for i := range v.NumField() {
			f := v.Field(i)
			if f.Type.Kind() == reflect.Struct {
				pkg := f.Type.PkgPath()
				collect(pkg[strings.LastIndexByte(pkg, '/')+1:], f.Type)
			} else {
				want = append(want, prefix+"."+f.Name)
			}
		}
	}
	collect("", reflect.TypeFor[scenario.Mutants]())
	got := scenario.RuleNames()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
