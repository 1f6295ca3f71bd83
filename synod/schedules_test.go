package synod_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
	"atoll/synod"
)

// The schedules in testdata break wrong implementations. Each is a transcript
// of the real code (rewritten by -rewrite), and then of its mutants, each of
// which lacks one rule and must do what the rule is there to prevent. Beside
// the commands of a sim.Script there are
//
//	kernel RULE      from the start, this rule of the kernel is broken
//	cluster SYSTEM   nodes a, b and c under a quorum system
//	propose p x      p has x decided
//	learn p          p learns what was decided
//	flip a           a bit flips in the acceptor's record of a
//	verdict          check that one value at most was chosen, and what proposers were told
//	mutant NAME      run all commands above once more without the rule NAME
func TestSchedules(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var commands []string
		judged := false
		s := newSchedule(t, "")
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "mutant":
				bad := runMutant(t, d.CmdArgs[0].Key, commands)
				if bad == "" {
					t.Errorf("%s: the mutant survives", d.Pos)
				}
				return bad
			case "verdict":
				judged = true
				if bad := s.judge(); bad != "" {
					t.Errorf("%s: the real code: %s", d.Pos, bad)
				}
				return fmt.Sprintf("chosen: %q, told: %q", s.twin.values, s.results)
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

func runMutant(t *testing.T, name string, commands []string) string {
	m := newSchedule(t, name)
	for _, block := range commands {
		m.do(block)
	}
	return m.judge()
}

// schedule is a run of one script.
type schedule struct {
	t        *testing.T
	script   *sim.Script
	rules    synod.Rules
	kernel   sim.Rules
	config   *quorum.Configuration
	twin     *chosen
	nodes    map[quorum.NodeID]*observed
	proposed []string
	results  []string
	denied   []string // of which a proposer was told that they are certainly not chosen
}

func newSchedule(t *testing.T, mutant string) *schedule {
	s := &schedule{t: t, nodes: make(map[quorum.NodeID]*observed)}
	s.rules, s.kernel = breakRule(t, mutant)
	return s
}

func (s *schedule) do(block string) string {
	switch words := strings.Fields(block); words[0] {
	case "kernel":
		reflect.ValueOf(&s.kernel).Elem().FieldByName(words[1]).SetBool(true)
		return ""
	case "cluster":
		return s.cluster(words[1])
	case "flip":
		s.flip(words[1])
		return ""
	}
	out := ""
	for line := range strings.Lines(block) {
		out += s.script.Do(line)
		for _, id := range s.config.Members() {
			if o := s.nodes[id]; o != nil {
				o.settle()
			}
		}
	}
	return out
}

func (s *schedule) cluster(system string) string {
	s.config = configuration(s.t, 0, system, "a", "b", "c")
	s.twin = newChosen(s.config)
	s.script = sim.NewScript(sim.ScriptConfig{
		World: sim.Config{Seed: 3, Rules: s.kernel},
		Boot: func(p *sim.Process) (sim.Stepper, error) {
			o := &observed{Acceptor: synod.NewAcceptor(cells{p.Disk()}, &guard{}, s.rules), s: s, node: p}
			s.nodes[p.ID()] = o // what an earlier life held back is gone
			return o, nil
		},
		Operations: map[string]sim.Operation{"propose": s.propose, "learn": s.learn},
	})
	s.t.Cleanup(s.script.World.Close)
	return s.script.Do("node a b c")
}

func (s *schedule) flip(node string) {
	disk := s.script.World.Process(quorum.NodeID(node)).Disk()
	record, _ := disk.Cell("synod." + string(instance))
	record = slices.Clone(record)
	record[len(record)/2] ^= 1
	if _, err := disk.SetCell("synod."+string(instance), record); err != nil {
		s.t.Fatal(err)
	}
}

func (s *schedule) propose(_ quorum.NodeID, e env.Env, args []string) (string, error) {
	s.proposed = append(s.proposed, args[0])
	got, err := s.result((&synod.Proposer{Configuration: s.config, Rules: s.rules}).Propose(steady{e}, instance, []byte(args[0])))
	if q, ok := errors.AsType[*abd.QuorumError](err); ok {
		if q.Effect == abd.NotApplied {
			s.denied = append(s.denied, args[0])
			return "", fmt.Errorf("%w (not applied)", err)
		}
		return "", fmt.Errorf("%w (unknown)", err)
	}
	return got, err
}

func (s *schedule) learn(_ quorum.NodeID, e env.Env, _ []string) (string, error) {
	return s.result((&synod.Proposer{Configuration: s.config, Rules: s.rules}).Learn(steady{e}, instance))
}

func (s *schedule) result(got []byte, err error) (string, error) {
	if err == nil {
		s.results = append(s.results, string(got))
	}
	return string(got), err
}

// steady is an Env whose pauses are all the same, so that a script can wait for
// their end.
type steady struct{ env.Env }

func (steady) Rand() uint64 { return 0 }

// observed is an acceptor that tells the twin of each vote that may leave: the
// disk is durable up to where it must be.
type observed struct {
	*synod.Acceptor
	s    *schedule
	node *sim.Process
	held []env.Out
}

func (o *observed) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	if accept, ok := m.(*synod.Accept); ok {
		o.s.twin.proposed[accept.Ballot] = string(accept.Value)
	}
	before := len(out)
	out, err := o.Acceptor.Step(from, m, out)
	o.held = append(o.held, out[before:]...)
	return out, err
}

// settle tells the twin of what has left.
func (o *observed) settle() {
	_, durable := o.node.Disk().Positions()
	o.held = slices.DeleteFunc(o.held, func(out env.Out) bool {
		if out.After > durable {
			return false
		}
		o.s.twin.observe(sim.Observation{What: sim.Sent, Transit: sim.Transit{From: o.node, Message: out.Message}})
		return true
	})
}

func (s *schedule) judge() string {
	for _, v := range s.denied {
		if slices.Contains(s.twin.values, v) {
			return fmt.Sprintf("%q is chosen, and its proposer was told that it isn't", v)
		}
	}
	return s.twin.judge(s.proposed, s.results)
}
