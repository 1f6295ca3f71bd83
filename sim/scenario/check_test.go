package scenario_test

import (
	"strings"
	"testing"
	"time"

	"atoll/sim/scenario"
)

func TestScenarioCheck(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(s *scenario.Scenario)
	}{
		{"all defaults", "", func(s *scenario.Scenario) { *s = scenario.Scenario{Name: "x"} }},
		{"no name", "name", func(s *scenario.Scenario) { s.Name = "" }},
		{"spaces", "name", func(s *scenario.Scenario) { s.Name = "a b" }},
		{"algorithm", `no algorithm "paxos"`, func(s *scenario.Scenario) { s.Algorithm = "paxos" }},
		{"nodes", "nodes: 257", func(s *scenario.Scenario) { s.Nodes = 257 }},
		{"clusters", "clusters: -1", func(s *scenario.Scenario) { s.Clusters = -1 }},
		{"mix", "mix", func(s *scenario.Scenario) { s.Mix = scenario.Mix{Read: 1, Write: -1} }},
		{"negative", "negative", func(s *scenario.Scenario) { s.Mix = scenario.Mix{Read: 5, Write: -1} }},
		{"quorum", "quorum", func(s *scenario.Scenario) { s.Quorum = "most" }},
		{"quorums that miss each other", "need not intersect", func(s *scenario.Scenario) { s.Quorum = "get=2,put=2" }},
		{"fault", `no kind "earthquake"`, func(s *scenario.Scenario) { s.Faults.Kinds = []string{"earthquake"} }},
		{"rule", `no rule "abd.Nice"`, func(s *scenario.Scenario) { s.Rules = []string{"abd.Nice"} }},
		{"delay of a kind that isn't", `no distribution "gauss"; there are 1ms; uniform`, func(s *scenario.Scenario) { s.Network.Delay = "gauss 5ms 1ms" }},
		{"delay with too little", "is none of", func(s *scenario.Scenario) { s.Network.Delay = "uniform 1ms" }},
		{"nothing arrives", "loss: 1000000 is not", func(s *scenario.Scenario) { s.Network.Loss = 1_000_000 }},
		{"resends that fall", "resend_first: 2s is more than resend_most, 1s", func(s *scenario.Scenario) {
			s.Network.ResendFirst, s.Network.ResendMost = scenario.Duration(2*time.Second), scenario.Duration(time.Second)
		}},
		{"a fault twice", `"crash" is there twice`, func(s *scenario.Scenario) { s.Faults.Kinds = []string{"crash", "lossy", "crash"} }},
		{"all of no faults", "without kinds", func(s *scenario.Scenario) { s.Faults.All = true }},
		{"no faults, often", "without kinds", func(s *scenario.Scenario) { s.Faults.Every = scenario.Duration(time.Second) }},
		{"delay that falls", "must rise", func(s *scenario.Scenario) { s.Network.Delay = "uniform 2ms 1ms" }},
		{"duration", "duration", func(s *scenario.Scenario) { s.Duration = scenario.Duration(48 * time.Hour) }},
		{"time stands still", "time would stand still", func(s *scenario.Scenario) { s.Network.Delay, s.Think = "0s", 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := builtin(t, "quiet")
			c.change(&s)
			err := s.Check()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "time would") && c.name != "time stands still" {
				t.Errorf("%v: that follows from the other error, or is wrong", err)
			}
		})
	}
}

func TestRulesOfAlgorithms(t *testing.T) {
	for _, c := range []struct {
		algorithm, rule string
		has             bool
	}{
		{"abd", "abd.NoWriteBack", true},
		{"abd-writeback", "abd.NoWriteBack", false},
		{"abd-writeback", "abd.PutOneShort", true},
		{"swabd", "abd.NoWriteBack", false},
		{"swabd", "abd.StoreAnything", true},
		{"swabd", "replica.AckBeforeSync", true},
		{"swabd", "sim.RetrySync", true},
	} {
		t.Run(c.algorithm+"/"+c.rule, func(t *testing.T) {
			s := builtin(t, "quiet")
			s.Algorithm, s.Rules = c.algorithm, []string{c.rule}
			_, err := scenario.Run(s.Draw(1), scenario.Options{})
			switch {
			case c.has && err != nil:
				t.Error(err)
			case !c.has && (err == nil || !strings.Contains(err.Error(), "abd.StoreAnything") || strings.Count(err.Error(), c.rule) != 1):
				t.Errorf("got %v, want an error that names %s once, and the rules that there are", err, c.rule)
			}
		})
	}
	for _, a := range scenario.Algorithms() {
		for _, rule := range a.Traits().Rules {
			if scenario.RuleAbout(rule) == "" {
				t.Errorf("%s has a rule %q that isn't there", a.Name(), rule)
			}
		}
	}
}

func TestPlanCheck(t *testing.T) {
	at := scenario.Duration(time.Millisecond)
	on := func(names ...string) []string { return names }
	for _, c := range []struct {
		name, want string
		change     func(p *scenario.Plan)
	}{
		{"nothing", "", func(*scenario.Plan) {}},
		{"unknown fault", `no fault "melt"`, func(p *scenario.Plan) {
			p.Decisions = []scenario.Decision{{At: at, Do: "melt", On: on("n1")}}
		}},
		{"unknown process", `no process "n9"`, func(p *scenario.Plan) {
			p.Decisions = []scenario.Decision{{At: at, Do: "crash", On: on("n9")}}
		}},
		{"a client's disk", "can't happen to p1", func(p *scenario.Plan) {
			p.Decisions = []scenario.Decision{{At: at, Do: "stall", On: on("p1")}}
		}},
		{"nobody", "nobody", func(p *scenario.Plan) { p.Decisions = []scenario.Decision{{At: at, Do: "crash"}} }},
		{"one end", "two ends", func(p *scenario.Plan) {
			p.Decisions = []scenario.Decision{{At: at, Do: "cut", On: on("n*")}}
		}},
		{"two ends", "", func(p *scenario.Plan) {
			p.Decisions = []scenario.Decision{{At: at, Do: "cut", On: on("n*"), To: on("p1", "p2")}}
		}},
		{"no key", `no key "k99"`, func(p *scenario.Plan) {
			p.Decisions = []scenario.Decision{{At: at, Do: "damage", On: on("n1"), Key: "k99"}}
		}},
		{"n", "n must be from", func(p *scenario.Plan) {
			p.Decisions = []scenario.Decision{{At: at, Do: "reach", On: on("p1"), N: 1000}}
		}},
		{"damage that is counted on", "among those that aren't healed", func(p *scenario.Plan) {
			p.Decisions = []scenario.Decision{{At: at, Do: "damage", On: on("n1"), Key: "k1"}}
		}},
		{"damage that isn't", "", func(p *scenario.Plan) {
			p.Decisions = []scenario.Decision{{At: at, Do: "damage", On: on("n1"), Key: "k1"}}
			p.Healing = []scenario.Healing{{Cluster: 1, Mute: on("n1")}}
		}},
		{"a lost disk that comes back", "must be dead", func(p *scenario.Plan) {
			p.Decisions = []scenario.Decision{{At: at, Do: "lose", On: on("n1")}}
			p.Healing = []scenario.Healing{{Cluster: 1, Deaf: on("n1")}}
		}},
		{"full, and no timeout", "without a timeout", func(p *scenario.Plan) {
			p.Scenario.Timeout = 0
			p.Decisions = []scenario.Decision{{At: at, Do: "full", On: on("n1")}}
		}},
		{"no core", "no quorum", func(p *scenario.Plan) {
			p.Healing = []scenario.Healing{{Cluster: 1, Dead: on("n1"), Deaf: on("n2"), Mute: on("n3")}}
		}},
		{"no such cluster", "no such cluster", func(p *scenario.Plan) { p.Healing = []scenario.Healing{{Cluster: 2}} }},
		{"named twice", "named twice", func(p *scenario.Plan) {
			p.Healing = []scenario.Healing{{Cluster: 1, Dead: on("n1"), Deaf: on("n1")}}
		}},
		{"no idle client", `no client "n1"`, func(p *scenario.Plan) { p.Idle = on("n1") }},
		{"no quorum system", "open", func(p *scenario.Plan) { p.Scenario.Quorum = "any" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := builtin(t, "quiet").Draw(1)
			c.change(&p)
			_, err := scenario.Run(p, scenario.Options{})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
		})
	}
}

// What faults do is seen from outside: a plan with one fault has the stall, or
// the failures, that belong to it.
func TestFaultsHappen(t *testing.T) {
	ms := func(n int) scenario.Duration { return scenario.Duration(n) * scenario.Duration(time.Millisecond) }
	all := []string{"n*"}
	three := []string{"n1", "n2", "n3"}
	for _, d := range []scenario.Decision{
		{Do: "crash", On: three},
		{Do: "powerloss", On: three},
		{Do: "torn", On: three},
		{Do: "pause", On: three},
		{Do: "cut", On: []string{"p*"}, To: three},
		{Do: "cut", On: three, To: []string{"p*"}},
		{Do: "isolate", On: three, To: []string{"p*"}},
		{Do: "disconnect", On: three},
		{Do: "break", On: three, To: []string{"p*"}},
		{Do: "slow", On: all, To: []string{"p*"}, N: 200},
		{Do: "gray", On: all, N: 100},
		{Do: "lossy", On: all, To: []string{"p*"}, N: 1_000_000},
		{Do: "stall", On: three},
		{Do: "slowdisk", On: all, N: 500},
		{Do: "reach", On: []string{"p*"}, N: 2},
	} {
		t.Run(d.Do, func(t *testing.T) {
			s := builtin(t, "quiet")
			s.Timeout, s.Duration = 0, ms(900)
			d.At, d.For = ms(200), ms(400)
			r := mustRun(t, scenario.Plan{Seed: 1, Scenario: s, Decisions: []scenario.Decision{d}}, scenario.Options{})
			if r.Violation != nil {
				t.Fatal(r.Violation)
			}
			if f := r.Figures; f.LongestStall < 200*time.Millisecond || f.LongestStall > time.Second || f.Decisions != 1 {
				t.Errorf("%d decisions, the longest stall took %v; want one, and about 400ms", f.Decisions, f.LongestStall)
			}
		})
	}
}
