package scenario_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/abd"
	"atoll/sim/scenario"
)

// scripted are the rules that no seed of these scenarios breaks noticeably;
// each has a schedule that kills it (package sim/schedule).
var scripted = map[string]string{
	"sim.ReuseIDs":               "a client must die in the middle of the first write of two lives running (schedule 2)",
	"abd.KeepSpares":             "nothing may be late but what was refused: the kernel asks the spares anyway (21-flipped-bits)",
	"abd.WaitForHolder":          "who alone holds a tag must die between saying so and sending the value (large-value-holder-dies)",
	"abd.TrustRefusals":          "all members must refuse, while copies are on their way to one that will not (refused-by-all)",
	"abd.CountForgotten":         "an acknowledgement must be on its way, or given, while its node is healed; one seed in a hundred or so (heal-taken-back)",
	"abd.FastOnNewest":           "members don't change here (rambo/testdata/s3-fast-on-newest)",
	"abd.IgnoreNews":             "members don't change here (8-fixed-point)",
	"abd.FollowOthers":           "members don't change here (lives-of-another-operation)",
	"abd.MovedTellsNothing":      "members don't change here (lives-by-moved)",
	"abd.DropInTheMiddle":        "members don't change here (s1-dropped-in-the-middle)",
	"abd.ServeTheOutdated":       "members don't change here (outdated-caller)",
	"repair.SkipTheDamaged":      "members don't change here (damaged-page)",
	"rambo.FenceUnsaved":         "members don't change here (fence-unsaved)",
	"rambo.FenceTooEarly":        "members don't change here (s7-fenced-too-early)",
	"rambo.FenceReadQuorum":      "members don't change here (6-old-write-quorum)",
	"rambo.ServeUnfenced":        "members don't change here (7b-unfenced-source)",
	"rambo.MergeFromOne":         "members don't change here (merge-from-one)",
	"rambo.MergeWriteQuorum":     "members don't change here (7-old-read-quorum)",
	"rambo.MergedUnsaved":        "members don't change here (merged-unsaved)",
	"rambo.InstallTooFew":        "members don't change here (install-too-few)",
	"rambo.StayersHaveAll":       "members don't change here (stayers)",
	"rambo.ForgetLives":          "members don't change here (lives-retired)",
	"rambo.AttestForTheOutdated": "members don't change here (attest-outdated)",
	"repair.TrustTags":           "a put must be sent once more to a node between its new life and its healing (heal-value)",
	"repair.HealOneKey":          "a key must be damaged in its own bytes, which no fault here does (heal-key)",
}

// worldOf returns the scenario whose seeds kill a mutant.
func worldOf(t *testing.T, rule string) scenario.Scenario {
	s := builtin(t, "registers")
	switch rule {
	case "abd.ValueFromAnyone", "abd.TrustSecondAnswer":
		s.ValueSize = abd.DefaultInline + 1
	case "abd.MergeWholePages":
		s = builtin(t, "lists")
	case "abd.DamagedIsAbsent", "repair.HealInSameLife", "repair.RenewOnce", "repair.AttestUnsaved", "repair.HealFromAny", "repair.HealFromSelf", "repair.MergeAnything":
		s = builtin(t, "healing")
		s.Faults.Kinds, s.Faults.All = []string{"damage", "minimal", "reach", "lossy"}, true
	case "sim.TrustTorn":
		// A torn record shows only until the key is written anew.
		s = builtin(t, "disks")
		s.Name, s.Keys = "torn", 40
		s.Faults = scenario.Faults{Kinds: []string{"torn", "stall"}, All: true,
			Every: scenario.Duration(100 * time.Millisecond), Lasts: scenario.Duration(10 * time.Millisecond)}
	}
	s.Rules = []string{rule}
	return s
}

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
			s := worldOf(t, rule)
			began := time.Now()
			for seed := range uint64(budget) {
				if r := mustRun(t, s.Draw(seed), scenario.Options{}); r.Violation != nil {
					t.Logf("%-26s killed by seed %2d of %s after %4d ms: %s", rule, seed, s.Name, time.Since(began).Milliseconds(), r.Violation.Rule)
					return
				}
			}
			t.Errorf("%s survives %d seeds of %s", rule, budget, s.Name)
		})
	}
}

// Every rule that there is has a name, but for those of consensus, which no
// scenario comes to.
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
	want = slices.DeleteFunc(want, func(name string) bool {
		return strings.HasPrefix(name, "synod.") || strings.HasPrefix(name, "reconfig.")
	})
	got := scenario.RuleNames()
	for _, name := range got {
		if scenario.RuleAbout(name) == "" {
			t.Errorf("nothing is said about %s", name)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
