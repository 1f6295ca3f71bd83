package synod_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"atoll/env"
	"atoll/synod"
)

// unitMutants are killed by a few steps of one acceptor: each returns what is
// wrong.
var unitMutants = map[string]func(*testing.T, synod.Rules) string{
	"PromiseBackwards": func(t *testing.T, rules synod.Rules) string {
		a := synod.NewAcceptor(newMemory(), &guard{}, rules)
		step(t, a, prepare(ballot(3, 1)))
		step(t, a, prepare(ballot(2, 1)))
		return want(step(t, a, accept(ballot(2, 1), "x")), "rejected 2, promised 3")
	},
	"VoteWhenClosed": func(t *testing.T, rules synod.Rules) string {
		a := synod.NewAcceptor(newMemory(), &guard{closed: true}, rules)
		if bad := want(step(t, a, prepare(ballot(1, 1))), "closed, next 1"); bad != "" {
			return bad
		}
		return want(step(t, a, accept(ballot(1, 1), "x")), "closed, next 1")
	},
	"MergeOverwrites": func(t *testing.T, rules synod.Rules) string {
		a := synod.NewAcceptor(newMemory(), &guard{index: 1}, rules)
		step(t, a, vote("key/a", at(1, 1), "new"))
		if _, err := a.Merge(synod.Carried{Instance: "key/a", Vote: synod.Vote{Ballot: at(0, 9), Value: []byte("old")}}); err != nil {
			t.Fatal(err)
		}
		return want(step(t, a, &synod.Prepare{Instance: "key/a", Ballot: at(1, 2)}), "promise 2, new@1")
	},
	"EmptyVotes": func(t *testing.T, rules synod.Rules) string {
		m := newMemory()
		a := synod.NewAcceptor(m, &guard{}, rules)
		step(t, a, vote("key/a", at(0, 1), "x"))
		step(t, a, vote("key/b", at(0, 1), "y"))
		m.records["key/a"][9] ^= 1
		if votes, _, _, err := a.Votes("", 10); err == nil {
			return "votes were handed over, and one that can't be read was left out: " + string(votes[0].Instance)
		}
		return ""
	},
}

func want(out env.Out, answer string) string {
	if got := text(out.Message); got != answer {
		return "the answer is " + got + ", want " + answer
	}
	return ""
}

// TestMutants: each rule is missed by a schedule, by the random runs, or by a few
// steps, and these find nothing wrong where none is broken.
func TestMutants(t *testing.T) {
	for name, check := range unitMutants {
		if bad := check(t, synod.Rules{}); bad != "" {
			t.Errorf("%s: the real code: %s", name, bad)
		}
		rules, _ := breakRule(t, name)
		if check(t, rules) == "" {
			t.Errorf("the mutant %s survives", name)
		}
	}
	scheduled := mutantsOfSchedules(t)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[synod.Rules]()) {
		if unitMutants[f.Name] == nil && !slices.Contains(randomMutants, f.Name) && !slices.Contains(scheduled, f.Name) {
			t.Errorf("nothing kills the mutant %s", f.Name)
		}
	}
}

// mutantsOfSchedules returns the mutants that TestSchedules must see killed.
func mutantsOfSchedules(t *testing.T) (names []string) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^mutant (\w+)$`).FindAllSubmatch(b, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}
