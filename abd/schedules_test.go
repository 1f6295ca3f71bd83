package abd_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim"
)

// The schedules in testdata break wrong implementations. Each is a transcript
// of the real code (rewritten by -rewrite), and then of its mutants, each of
// which lacks one rule and must do what the rule is there to prevent. Beside
// the commands of a sim.Script there are
//
//	cluster SYSTEM   nodes under a quorum system: a, b and c, or those that
//	                 are named behind it
//	verdict          say whether what the clients saw is linearizable: it must
//	mutant NAME      run all commands above once more without the rule NAME,
//	                 and show how the operations ended: it must not be
func TestSchedules(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var commands []string
		s := newSchedule(t, "")
		judged := false
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "mutant":
				return runMutant(t, d.CmdArgs[0].Key, commands)
			case "verdict":
				judged = true
				if !s.history.linearizable() {
					t.Errorf("%s: the real code isn't linearizable", d.Pos)
				}
				return "linearizable"
			}
			block := d.FullCmd() + "\n" + d.Input
			commands = append(commands, block)
			out := s.do(block)
			if strings.Contains(out, "error: ") {
				t.Errorf("%s: %s", d.Pos, out)
			}
			return out
		})
		if !judged {
			t.Errorf("%s has no verdict", path)
		}
	})
}

// runMutant runs the commands without a rule.
func runMutant(t *testing.T, name string, commands []string) string {
	m := newSchedule(t, name)
	var ended strings.Builder
	for _, block := range commands {
		for line := range strings.Lines(m.do(block)) {
			if strings.HasPrefix(line, "done ") || strings.HasPrefix(line, "failed ") {
				ended.WriteString(line)
			}
		}
	}
	if m.history.linearizable() {
		t.Errorf("mutant %s survives:\n%s", name, ended.String())
	}
	return ended.String() + "not linearizable"
}

// Every rule that can be broken has a schedule which shows why it is there.
func TestEveryMutantHasASchedule(t *testing.T) {
	var all strings.Builder
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	for _, rules := range []any{abd.Rules{}, replica.Rules{}, sim.Rules{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(rules)) {
			if f.Type.Kind() == reflect.Bool && !strings.Contains(all.String(), "\nmutant "+f.Name+"\n") {
				t.Errorf("no schedule kills the mutant %s", f.Name)
			}
		}
	}
}

// breakRule returns rules that lack the named one.
func breakRule(t *testing.T, name string) (node replica.Rules, kernel sim.Rules) {
	if name == "" {
		return node, kernel
	}
	for _, rules := range []any{&node.ABD, &node, &kernel} {
		if f := reflect.ValueOf(rules).Elem().FieldByName(name); f.IsValid() {
			f.SetBool(true)
			return node, kernel
		}
	}
	t.Fatalf("there is no rule %q to break", name)
	return node, kernel
}

// schedule is a run of one script: three nodes, and clients whose operations
// are remembered in a history.
type schedule struct {
	t         *testing.T
	script    *sim.Script
	rules     replica.Rules
	registers *abd.Registers
	history   history
	last      map[quorum.NodeID]*attempt
}

// attempt is the last write that a client began, which it may try again.
type attempt struct {
	op abd.Operation
	at int // in the history
}

func newSchedule(t *testing.T, mutant string) *schedule {
	s := &schedule{t: t, last: make(map[quorum.NodeID]*attempt)}
	var kernel sim.Rules
	s.rules, kernel = breakRule(t, mutant)
	s.script = sim.NewScript(sim.ScriptConfig{
		World: sim.Config{Rules: kernel, Seed: 2},
		Boot:  s.boot,
		Operations: map[string]sim.Operation{
			"write":  s.write,
			"delete": s.write,
			"retry":  s.retry,
			"read":   s.read,
			"list":   s.list,
		},
	})
	t.Cleanup(s.script.World.Close)
	return s
}

func (s *schedule) do(block string) string {
	if words := strings.Fields(block); words[0] == "cluster" {
		return s.cluster(words[1], words[2:])
	}
	return s.script.Do(block)
}

func (s *schedule) cluster(system string, nodes []string) string {
	q, err := quorum.ParseSystem(system)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(nodes) == 0 {
		nodes = []string{"a", "b", "c"}
	}
	var members []quorum.NodeID
	for _, n := range nodes {
		members = append(members, quorum.NodeID(n))
	}
	c, err := quorum.NewConfiguration(0, members, q)
	if err != nil {
		s.t.Fatal(err)
	}
	s.registers = &abd.Registers{Configurations: quorum.Configurations{c}, MaxValue: abd.DefaultMaxValue, Rules: s.rules.ABD}
	return s.script.Do("node " + strings.Join(nodes, " "))
}

func (s *schedule) boot(p *sim.Process) (sim.Stepper, error) {
	return replica.New(replica.Config{
		Cluster:        "schedules",
		Self:           p.ID(),
		Configurations: s.registers.Configurations,
		MaxValue:       s.registers.MaxValue,
		Rules:          s.rules,
	}, p.Disk())
}

// write is "write p key value" and "delete p key".
func (s *schedule) write(process quorum.NodeID, e env.Env, args []string) (string, error) {
	op := abd.Operation{Key: abd.Key(args[0])}
	if len(args) > 1 {
		op.Value = []byte(args[1])
	} else {
		op.Delete = true
	}
	a := &attempt{op: op, at: s.history.begin(call{write: true, key: args[0], value: string(op.Value)})}
	s.last[process] = a
	return s.try(e, a)
}

// retry is "retry p": the last write of p once more, under its handle.
func (s *schedule) retry(process quorum.NodeID, e env.Env, _ []string) (string, error) {
	a := s.last[process]
	if a == nil {
		return "", errors.New("nothing to retry")
	}
	return s.try(e, a)
}

func (s *schedule) try(e env.Env, a *attempt) (string, error) {
	var err error
	a.op, err = s.registers.Write(e, a.op)
	if err != nil {
		if q, ok := errors.AsType[*abd.QuorumError](err); ok {
			if q.Effect == abd.NotApplied {
				s.history.drop(a.at)
				return "", fmt.Errorf("%w (not applied)", err)
			}
			return "", fmt.Errorf("%w (unknown)", err)
		}
		return "", err
	}
	s.history.end(a.at, string(a.op.Value))
	return s.script.World.TagText(a.op.Tag), nil
}

// read is "read p key".
func (s *schedule) read(_ quorum.NodeID, e env.Env, args []string) (string, error) {
	at := s.history.begin(call{key: args[0]})
	r, err := s.registers.Read(e, abd.Key(args[0]))
	if err != nil {
		return "", err
	}
	value := string(r.Value)
	s.history.end(at, value)
	if r.Absent() {
		return "absent", nil
	}
	return value, nil
}

// list is "list p prefix limit": all pages. A list is a read of each key that
// anybody has begun to write: of those that it lacks, one that finds nothing.
func (s *schedule) list(process quorum.NodeID, e env.Env, args []string) (string, error) {
	limit, err := strconv.Atoi(args[1])
	if err != nil {
		return "", err
	}
	begun := make(map[string]int)
	for _, key := range s.history.keys(args[0]) {
		begun[key] = s.history.begin(call{key: key})
	}
	var listed []string
	after, more := abd.Key(""), true
	for more {
		var page []abd.Listed
		page, after, more, err = s.registers.List(e, abd.Key(args[0]), after, limit)
		if err != nil {
			return "", err
		}
		for _, item := range page {
			listed = append(listed, string(item.Key))
			s.history.end(begun[string(item.Key)], s.history.valueOf(s, item))
		}
	}
	for key, at := range begun {
		if !slices.Contains(listed, key) {
			s.history.end(at, "")
		}
	}
	return fmt.Sprint(listed), nil
}
