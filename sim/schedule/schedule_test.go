package schedule_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
	"atoll/sim/schedule"
)

// question and reply are a protocol that isn't a part of replica.Node: a node
// says its own name.
type question struct{}
type reply struct{ name quorum.NodeID }

func (*question) Message() {}
func (*reply) Message()    {}

// Rules are those of that protocol.
type Rules struct {
	// Lie: a node says that it is another one.
	Lie bool
	// NoWriteBack has a namesake in package abd.
	NoWriteBack bool
}

// namer is a node.
type namer struct {
	self  quorum.NodeID
	rules *Rules
}

func (n namer) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	if _, ok := m.(*question); !ok {
		return out, fmt.Errorf("unexpected %T", m)
	}
	name := n.self
	if n.rules.Lie {
		name = "nobody"
	}
	return append(out, env.Out{To: from, Message: &reply{name}}), nil
}

// names is that protocol's vocabulary.
func names(r *schedule.Run) schedule.Table {
	rules := new(Rules)
	return schedule.Table{
		Rules: []any{rules},
		Boot:  func(p *sim.Process) (sim.Stepper, error) { return namer{p.ID(), rules}, nil },
		Describe: func(m env.Message) string {
			switch m := m.(type) {
			case *question:
				return "who?"
			case *reply:
				return "I'm " + string(m.name)
			}
			return ""
		},
		Operations: map[string]sim.Operation{
			"ask": func(_ quorum.NodeID, e env.Env, args []string) (name string, err error) {
				node := quorum.NodeID(args[0])
				err = e.Ask([]quorum.NodeID{node}, &question{}, func(_ env.Conversation, _ quorum.NodeID, m env.Message) bool {
					name = string(m.(*reply).name)
					return true
				})
				if err == nil && name != args[0] {
					r.Fail("%s says that it is %s", node, name)
				}
				return name, err
			},
		},
	}
}

func run(t *testing.T, mutant string, words ...schedule.Vocabulary) *schedule.Run {
	r, err := schedule.New(mutant, words...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// A protocol brings its own nodes, operations, words for messages and rules, and
// a mutant of it is noticed by what the operations say.
func TestVocabulary(t *testing.T) {
	const commands = "cluster majority a\nclient p\nask p a\nexchange\n"
	r := run(t, "", names)
	const want = `send    p->a: who?
deliver p->a: who?
send    a->p: I'm a
deliver a->p: I'm a
done    p: ask a: a
`
	if got := r.Do(commands); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if bad := r.Judge([]string{"ended"}); bad != "" {
		t.Error(bad)
	}
	s := schedule.Schedule{Commands: []string{commands}, Verdict: []string{"ended"}}
	ended, bad, err := s.Without("Lie", names)
	if err != nil || ended != "done    p: ask a: nobody\n" || bad != "a says that it is nobody" {
		t.Errorf("the mutant: %q, %q, %v", ended, bad, err)
	}
	if _, bad, err := s.Without("schedule_test.NoWriteBack", names); err != nil || bad != "" {
		t.Errorf("a mutant that does nothing wrong: %q, %v", bad, err)
	}
}

// What can't be meant is an error, and says why.
func TestNew(t *testing.T) {
	for _, c := range []struct {
		mutant string
		words  []schedule.Vocabulary
		want   string
	}{
		{"Liar", nil, `there is no rule "Liar" to break`},
		{"NoWriteBack", []schedule.Vocabulary{names}, `rule "NoWriteBack" may be abd.NoWriteBack or schedule_test.NoWriteBack`},
		{"", []schedule.Vocabulary{schedule.Registers, schedule.Registers}, `two vocabularies have a word "delete"`},
		{"", []schedule.Vocabulary{names, boots}, "two vocabularies boot nodes"},
		{"", []schedule.Vocabulary{clusters}, `two vocabularies have a word "cluster"`},
	} {
		if _, err := schedule.New(c.mutant, c.words...); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	if r, err := schedule.New("abd.NoWriteBack", names); err != nil || !r.Rules.ABD.NoWriteBack {
		t.Errorf("the full name: %v", err)
	}
}

func boots(*schedule.Run) schedule.Table {
	return schedule.Table{Boot: func(*sim.Process) (sim.Stepper, error) { return nil, errors.New("never") }}
}

func clusters(*schedule.Run) schedule.Table {
	return schedule.Table{Commands: map[string]func([]string) (string, error){
		"cluster": func([]string) (string, error) { return "", nil },
	}}
}

// Every rule that a struct of rules holds has a name, also those within it.
func TestRuleNames(t *testing.T) {
	got := schedule.RuleNames(Rules{}, struct{ ABD abd.Rules }{})
	for _, want := range []string{"schedule_test.Lie", "schedule_test.NoWriteBack", "abd.NoWriteBack", "abd.DamagedIsAbsent"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
}

// Processes work over the configurations that are active on them, a node may be
// a member of none, and a process may have several operations under way.
func TestConfigurations(t *testing.T) {
	r := run(t, "", schedule.Registers, schedule.Repair)
	out := r.Do("cluster get=2,put=4 a b c d e\nconfiguration next 1 majority d e f\nnode x\nactive c0 next on f p\nnode f\nclient p q")
	if strings.Contains(out, "error") {
		t.Fatal(out)
	}
	for process, want := range map[quorum.NodeID]string{
		"p": "0: get=2,put=4 of a b c d e, 1: majority of d e f",
		"f": "0: get=2,put=4 of a b c d e, 1: majority of d e f",
		"q": "0: get=2,put=4 of a b c d e",
		"x": "0: get=2,put=4 of a b c d e",
	} {
		var got []string
		for _, c := range r.Active(process) {
			got = append(got, c.String())
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s works over %s, want %s", process, strings.Join(got, ", "), want)
		}
	}
	out = r.Do("write p k x\nwrite p l y\nexchange\nread q k\nlist q k 1\npull x a\nexchange")
	for _, want := range []string{"done    p: write k x: 1@p.1", "done    p: write l y: 1@p.2", "done    q: read k: x", "done    q: list k 1: [k]",
		"failed  x: pull a: not a member"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if bad := r.Judge([]string{"ended"}); bad != "" {
		t.Error(bad)
	}
	// From here on it is next alone, on all.
	if out := r.Do("active next"); out != "" || r.Active("p")[0] != r.Configuration("next") || len(r.Active("q")) != 1 {
		t.Errorf("%q, p works over %v", out, r.Active("p"))
	}
}

// A command that makes no sense says why.
func TestBadCommands(t *testing.T) {
	for commands, want := range map[string]string{
		"cluster":                            "want a quorum system, and perhaps nodes",
		"cluster most":                       `quorum: "most" is not a quorum system: unknown kind (examples: majority; get=2,put=4; weights=a:3,b:1,c:1; grid=3x3)`,
		"cluster majority":                   "there is a configuration c0 already",
		"configuration c1 1 majority":        "want a name, an index, a quorum system and members",
		"configuration c1 one majority a":    `strconv.ParseUint: parsing "one": invalid syntax`,
		"configuration c1 1 get=1,put=1 a b": "quorum: get=1,put=1: a get quorum of 1 and a put quorum of 1 out of 2 members need not intersect; get+put must exceed 2",
		"active":                             "want a configuration",
		"active c0 on":                       "want processes behind on",
		"active c7":                          `no configuration "c7"`,
		"active c0 c0":                       "want configurations in the order of their indices",
		"write p":                            "",
		"inline":                             "want a number of bytes",
	} {
		r := run(t, "", schedule.Registers)
		if commands != "cluster" && commands != "cluster most" {
			r.Do("cluster majority\nclient p")
		}
		got := r.Do(commands)
		if want == "" {
			want = "failed  p: write: want a key, and a value to write"
		} else {
			want = "error: " + commands + ": " + want
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%s: got\n%swant\n%s", commands, got, want)
		}
	}
}

// What isn't a verdict is no verdict, and an operation that never ends, or takes
// too long, is noticed.
func TestJudge(t *testing.T) {
	r := run(t, "", schedule.Registers)
	r.Do("cluster majority\nclient p\nwrite p k x\nadvance 3s\nexchange")
	for verdict, want := range map[string]string{
		"":          "",
		"ended":     "",
		"within 3s": "",
		"within 1s": "slow: an operation took 3s",
		"finished":  `judged by what isn't a verdict: ["finished"]`,
		"within":    `judged by what isn't a verdict: ["within"]`,
	} {
		if got := r.Judge(strings.Fields(verdict)); got != want {
			t.Errorf("%q: got %q, want %q", verdict, got, want)
		}
	}
	r.Do("write p k y")
	if got, want := r.Judge([]string{"ended"}), "not ended: p: write k y"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r.Fail("the sky is falling")
	r.Fail("again")
	if got, want := r.Judge(nil), "the sky is falling"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
