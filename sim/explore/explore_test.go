package explore_test

import (
	"reflect"
	"slices"
	"testing"

	"atoll/sim/explore"
)

// scope returns a scope that is built in, with so many crashes and lost answers.
func scope(t *testing.T, name string, crashes, lost int) explore.Scope {
	t.Helper()
	s, ok := explore.Find(name)
	if !ok {
		t.Fatalf("there is no scope %q", name)
	}
	s.Crashes, s.Lost = crashes, lost
	return s
}

func mustExplore(t *testing.T, s explore.Scope, o explore.Options) explore.Report {
	t.Helper()
	r, err := explore.Explore(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// complete are scopes that are seen as a whole in a moment.
var complete = []struct {
	name          string
	crashes, lost int
}{
	{"one", 1, 1},
	{"leave", 1, 1},
	{"chain", 1, 0},
	{"get-all", 0, 0},
}

// TestNothingIsBroken explores small scopes to the end.
func TestNothingIsBroken(t *testing.T) {
	for _, c := range complete {
		r := mustExplore(t, scope(t, c.name, c.crashes, c.lost), explore.Options{Workers: 2})
		if r.Violation != nil {
			t.Errorf("%s: %+v", c.name, *r.Violation)
		}
		if !r.Complete || r.Ends == 0 {
			t.Errorf("%s: %+v: want all of it", c.name, r)
		}
	}
}

// TestPartsAndWhole: what processes do each by itself, put together, is what they
// do in a whole world: there are as many states, as many moves between them, and
// they end in the same ways.
func TestPartsAndWhole(t *testing.T) {
	for _, c := range []struct {
		name          string
		crashes, lost int
	}{
		{"one", 1, 0},
		{"leave", 0, 1},
		{"leave", 1, 0},
		{"chain", 0, 0},
	} {
		s := scope(t, c.name, c.crashes, c.lost)
		parts := mustExplore(t, s, explore.Options{Plain: true})
		whole, err := explore.ExploreWhole(s)
		if err != nil {
			t.Fatal(err)
		}
		parts.Local, parts.Depth, whole.Depth = 0, 0, 0
		if !reflect.DeepEqual(parts, whole) {
			t.Errorf("%s: in parts %+v; as a whole %+v", c.name, parts, whole)
		}
	}
}

// TestNothingIsLeftOut: states that are left out because others cover them end in
// no other way.
func TestNothingIsLeftOut(t *testing.T) {
	for _, c := range complete {
		s := scope(t, c.name, c.crashes, c.lost)
		less, all := mustExplore(t, s, explore.Options{}), mustExplore(t, s, explore.Options{Plain: true})
		if !slices.Equal(less.Outcomes, all.Outcomes) || !less.Complete || !all.Complete {
			t.Errorf("%s: %q; with every state %q", c.name, less.Outcomes, all.Outcomes)
		}
		if less.States >= all.States {
			t.Errorf("%s: %d states, and with every state %d: nothing was left out", c.name, less.States, all.States)
		}
	}
}

// TestMutants: the rules of a step from a configuration to the next that show in
// a scope which is small. The path that is found leads there again.
func TestMutants(t *testing.T) {
	for _, m := range []struct {
		scope, rule   string
		crashes, lost int
		broken        string
	}{
		{"chain", "rambo.FenceTooEarly", 0, 0, "fenced"},
		{"put-all", "rambo.FenceReadQuorum", 0, 0, "fenced"},
		{"get-all", "rambo.ServeUnfenced", 0, 0, "fence-before-merge"},
		{"get-all", "rambo.MergeFromOne", 0, 0, "lost-at-retirement"},
		{"get-all", "rambo.MergeWriteQuorum", 0, 0, "lost-at-retirement"},
		{"leave", "rambo.StayersHaveAll", 0, 0, "lost-at-retirement"},
		{"one", "abd.IgnoreNews", 0, 0, "operation-failed"},
		{"one", "abd.PutOneShort", 0, 0, "durable-on-quorum"},
		{"one", "abd.NoWriteBack", 1, 0, "durable-on-quorum"},
		{"come", "reconfig.ReadyUnsaved", 0, 0, "operation-failed"},
		{"put-all", "rambo.FenceUnsaved", 1, 0, "fenced"},
		{"come", "rambo.MergedUnsaved", 1, 0, "lost-at-retirement"},
		{"one", "abd.FastOnNewest", 1, 0, "durable-on-quorum"},
	} {
		s := scope(t, m.scope, m.crashes, m.lost)
		r := mustExplore(t, s, explore.Options{Rules: []string{m.rule}})
		if plain := mustExplore(t, s, explore.Options{Rules: []string{m.rule}, Plain: true}); plain.Violation == nil {
			t.Errorf("%s survives in %s, when every state is looked at", m.rule, m.scope)
		}
		if r.Violation == nil {
			t.Errorf("%s survives in %s: %+v", m.rule, m.scope, r)
			continue
		}
		t.Logf("%s: %s in %s, after %d moves", m.rule, r.Violation.Rule, m.scope, r.Moves)
		if r.Violation.Rule != m.broken {
			t.Errorf("%s breaks %s in %s, want %s: %s", m.rule, r.Violation.Rule, m.scope, m.broken, r.Violation.Text)
		}
		lines, again, err := explore.Replay(s, []string{m.rule}, r.Violation.Path)
		if err != nil || again == nil || *again != *r.Violation || len(lines) == 0 {
			t.Errorf("%s: %s: again it is %+v, %v, want %+v", m.rule, r.Violation.Path, again, err, *r.Violation)
		}
	}
}

// TestPathsThatMakeNoSense are errors, and no panics.
func TestPathsThatMakeNoSense(t *testing.T) {
	s := scope(t, "one", 1, 1)
	for _, path := range []string{"", "a0..a0", "x1", "a", "a-1", "a0x", "h0", "h0:99", "a99", "d99", "t1"} {
		if _, _, err := explore.Replay(s, nil, path); err == nil {
			t.Errorf("path %q: no error", path)
		}
	}
}

// TestScopesThatMakeNoSense are errors.
func TestScopesThatMakeNoSense(t *testing.T) {
	for name, change := range map[string]func(*explore.Scope){
		"no configuration":       func(s *explore.Scope) { s.Configurations = nil },
		"a configuration of two": func(s *explore.Scope) { s.Configurations[0] = "grid=2x2 a b" },
		"no members":             func(s *explore.Scope) { s.Configurations[0] = "majority" },
		"a client that upgrades": func(s *explore.Scope) { s.Operations[2].On = "p" },
		"two deeds of one":       func(s *explore.Scope) { s.Operations[1].On = "p" },
		"too many crashes":       func(s *explore.Scope) { s.Crashes = 1000 },
		"a rule":                 nil,
	} {
		s, rules := scope(t, "one", 0, 0), []string(nil)
		if change == nil {
			rules = []string{"abd.Nothing"}
		} else {
			change(&s)
		}
		if _, err := explore.Explore(s, explore.Options{Rules: rules}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestItEndsWhenItMust(t *testing.T) {
	s := scope(t, "replace", 1, 1)
	if r := mustExplore(t, s, explore.Options{MaxStates: 10}); r.Complete || r.States < 10 || r.States > 1000 {
		t.Errorf("%+v: want 10 states of many, and those as deep", r)
	}
	if r := mustExplore(t, s, explore.Options{Stop: func() bool { return true }}); r.Complete || r.States != 1 {
		t.Errorf("%+v: want one state of many", r)
	}
}
