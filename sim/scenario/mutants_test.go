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
	"abd.TrustWhenWoken":         "the same, of a configuration that is out (woken-and-refused)",
	"abd.CountForgotten":         "an acknowledgement must be on its way, or given, while its node is healed; one seed in a hundred or so (heal-taken-back)",
	"rambo.LeaveBehind":          "one seed of churn in some thousand: the others that could give the page must be dead (rambo/testdata/told)",
	"rambo.LeaveGaps":            "one seed of churn in a thousand or so (rambo/testdata/page-becomes-shorter)",
	"rambo.CountLocated":         "a merge must have some pages, and members that hold other things (rambo/testdata/located)",
	"rambo.CountByKeys":          "the same (rambo/testdata/located-newer)",
	"rambo.StoreUnfetched":       "too many must refuse a page, and others lack what they have (rambo/testdata/page-not-fetched)",
	"rambo.SkipUnstored":         "a disk must be full while its node merges, for a moment (rambo/testdata/page-not-stored)",
	"rambo.StoreBehind":          "the same (rambo/testdata/page-behind-one-not-stored)",
	"rambo.ForgetPosition":       "one seed of churn in ten thousand or so (rambo/testdata/fence-unsaved-full)",
	"abd.ForgetWhoAnswered":      "one seed of churn in a thousand or so (rambo/testdata/back-after-anew)",
	"abd.FastOnNewest":           "one seed of churn in a hundred or so: who writes must die between two configurations (s3-fast-on-newest)",
	"abd.FollowOthers":           "a client does one operation at a time here (lives-of-another-operation)",
	"abd.WakeByMap":              "a client does one operation at a time here, and learns from nobody else (lives-by-waking)",
	"abd.SleepOn":                "the same (woken)",
	"abd.MovedTellsNothing":      "a node must heal while its configuration goes out (lives-by-moved)",
	"abd.DropInTheMiddle":        "one seed of churn in a hundred or so (s1-dropped-in-the-middle)",
	"abd.CountEarly":             "the answer of a new member must be under way while it merges and all others end that (s1-begun-anew)",
	"abd.ServeTheOutdated":       "all clients here can hear of configurations (outdated-caller)",
	"repair.SkipTheDamaged":      "a record must be damaged while its node gives a page (damaged-page)",
	"rambo.FenceTooEarly":        "members vote on the next configuration only once theirs is installed, so nobody comes to it (s7-fenced-too-early)",
	"rambo.MergeWriteQuorum":     "one seed of churn in a hundred or so (7-old-read-quorum)",
	"rambo.DropVotes":            "nobody votes on keys (votes-travel)",
	"rambo.DropLives":            "a node must heal, go and come back while a put sleeps (lives-forgotten)",
	"rambo.ForgetLives":          "a node must heal while its configuration goes out (lives-retired)",
	"rambo.AttestForTheOutdated": "a node must heal while its configuration goes out (attest-outdated)",
	"reconfig.TolerateNothing":   "operators force what they propose (reconfig.TestMutants)",
	"reconfig.NewUnready":        "what is not ready is healed in the end (reconfig.TestMutants)",
	"reconfig.QuorumUnready":     "what is not ready is healed in the end (reconfig.TestMutants)",
	"reconfig.ReadyUnsynced":     "a node must lose power between its word and its disk (reconfig.TestMutants)",
	"reconfig.VoteOnAny":         "no proposer has another configuration than the voters (reconfig.TestMutants)",
	"reconfig.AcceptAnything":    "no proposer proposes what is no configuration (reconfig.TestMutants)",
	"reconfig.AbortBlindly":      "nobody aborts (reconfig.TestMutants)",
	"reconfig.FinishAtOnce":      "it costs messages, and breaks no promise (reconfig.TestMutants)",
	"synod.RevealUnsynced":       "a node must lose power between its word and its disk (synod.TestMutants)",
	"synod.DamagedIsAbsent":      "votes are not damaged here (synod.TestMutants)",
	"synod.MergeOverwrites":      "votes do not travel here (synod.TestMutants)",
	"synod.EmptyVotes":           "votes are not damaged here (synod.TestMutants)",
	"synod.AnyAccepted":          "three ballots must meet in one prepare phase (synod.TestMutants)",
	"synod.CountAnyBallot":       "an answer to an earlier ballot must come late (synod.TestMutants)",
	"synod.PrepareOnWrite":       "the quorums that differ must meet a race (synod.TestMutants)",
	"synod.AcceptOnRead":         "the quorums that differ must meet a race (synod.TestMutants)",
	"synod.RejectedIsFailure":    "operators take no failure for certain (synod.TestMutants)",
	"join.AnyInstance":           "no ticket is used twice (join/testdata/j1-second-use)",
	"join.AnswerUnsaved":         "the same (j1-note-unsaved)",
	"join.OneIsEnough":           "the same (j2-one-note)",
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
	case "join.AnyPosition":
		s = builtin(t, "copies")
	case "abd.IgnoreNews":
		s = builtin(t, "churn")
	case "rambo.FenceUnsaved", "rambo.FenceReadQuorum", "rambo.ServeUnfenced", "rambo.PageUnsaved", "repair.TrustSketch", "rambo.MergeFromOne", "rambo.MergedUnsaved", "rambo.InstallTooFew", "rambo.StayersHaveAll",
		"reconfig.ProposeUnready", "reconfig.ReadyUnsaved", "reconfig.ReadyForAny",
		"synod.PromiseUnsaved", "synod.AcceptBelowPromise", "synod.PromiseBackwards", "synod.VoteWhenClosed", "synod.IgnoreAccepted", "synod.ReuseBallots":
		s = racing(t)
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

// racing is churn with many proposals at the same time, and the faults that
// hurt those.
func racing(t *testing.T) scenario.Scenario {
	s := builtin(t, "churn")
	s.Name, s.Quorum = "racing", "majority"
	s.Membership.Operators, s.Membership.Every = 4, scenario.Duration(30*time.Millisecond)
	s.Faults = scenario.Faults{Kinds: []string{"crash", "powerloss", "lossy", "minimal", "cut", "slowdisk"}, All: true,
		Every: scenario.Duration(100 * time.Millisecond)}
	return s
}

// TestMutants shows that runs notice each rule that is broken, within a few
// seeds.
func TestMutants(t *testing.T) {
	const budget = 200
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
