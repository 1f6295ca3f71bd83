package abd_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/repair"
	"atoll/replica"
	"atoll/sim"
)

// The schedules in testdata break wrong implementations. Each is a transcript
// of the real code (rewritten by -rewrite), and then of its mutants, each of
// which lacks one rule and must do what the rule is there to prevent. Beside
// the commands of a sim.Script and of the type schedule there are
//
//	verdict          check that what the clients saw is linearizable
//	verdict ended    and that every operation has ended
//	verdict within D and that none took longer
//	mutant NAME      run all commands above once more without the rule NAME,
//	                 and show how the operations ended: the verdict must fail
func TestSchedules(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var commands, verdict []string
		s := newSchedule(t, "")
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "mutant":
				name := d.CmdArgs[0].Key
				ended, bad := runMutant(t, name, commands, verdict)
				if bad == "" {
					t.Errorf("mutant %s survives:\n%s", name, ended)
				}
				return ended + bad
			case "verdict":
				verdict = strings.Fields(d.FullCmd())[1:]
				if bad := s.judge(verdict); bad != "" {
					t.Errorf("%s: the real code is %s", d.Pos, bad)
					return bad
				}
				return strings.Join(append([]string{"linearizable"}, verdict...), " ")
			}
			block := d.FullCmd() + "\n" + d.Input
			commands = append(commands, block)
			out := s.do(block)
			if strings.Contains(out, "error: ") {
				t.Errorf("%s: %s", d.Pos, out)
			}
			return out
		})
		if verdict == nil && s.history.calls != nil {
			t.Errorf("%s has no verdict", path)
		}
	})
}

// runMutant runs the commands without a rule. It returns how the operations
// ended, and what is wrong with that.
func runMutant(t *testing.T, name string, commands, verdict []string) (ended, bad string) {
	m := newSchedule(t, name)
	for _, block := range commands {
		for line := range strings.Lines(m.do(block)) {
			if strings.HasPrefix(line, "done ") || strings.HasPrefix(line, "failed ") {
				ended += line
			}
		}
	}
	return ended, m.judge(verdict)
}

// judge returns what is wrong with what happened, or nothing.
func (s *schedule) judge(verdict []string) string {
	switch {
	case s.broken != "":
		return s.broken
	case !s.history.linearizable():
		return "not linearizable"
	case slices.Contains(verdict, "ended"):
		if pending := s.script.Do("pending"); pending != "" {
			return "not ended: " + strings.Join(strings.Fields(pending)[1:], " ")
		}
	case slices.Contains(verdict, "within"):
		if limit, err := time.ParseDuration(verdict[len(verdict)-1]); err != nil || s.slowest > limit {
			return fmt.Sprintf("slow: an operation took %v", s.slowest)
		}
	}
	return ""
}

// breakRule returns rules that lack the named one.
func breakRule(t *testing.T, name string) (node replica.Rules, kernel sim.Rules) {
	if name == "" {
		return node, kernel
	}
	for _, rules := range []any{&node.ABD, &node.Repair, &node, &kernel} {
		if f := reflect.ValueOf(rules).Elem().FieldByName(name); f.IsValid() {
			f.SetBool(true)
			return node, kernel
		}
	}
	t.Fatalf("there is no rule %q to break", name)
	return node, kernel
}

// schedule is a run of one script: nodes, and clients whose operations are
// remembered in a history. Beside the commands of a sim.Script it has
//
//	cluster SYSTEM   nodes under a quorum system: a, b and c, or those that
//	                 are named behind it
//	write p k x      the operations of package abd
//	delete p k
//	read p k
//	list p prefix n  all pages of n keys
//	retry p          the last write of p once more, under its handle
//	inline 4         from now on values of more bytes are sent by one member
//	heal a           node a heals the damage at one place, as its task would
//	pull a b         node a takes from b what it has missed, as its task would
//	work p k n       n operations one after the other, every second a write
//	permutations     see the method
type schedule struct {
	t         *testing.T
	script    *sim.Script
	rules     replica.Rules
	registers *abd.Registers
	history   history
	last      map[quorum.NodeID]*attempt
	mutant    string
	slowest   time.Duration // operation
	broken    string        // what is wrong beside the history
}

// attempt is the last write that a client began, which it may try again.
type attempt struct {
	op abd.Operation
	at int // in the history
}

func newSchedule(t *testing.T, mutant string) *schedule {
	s := &schedule{t: t, last: make(map[quorum.NodeID]*attempt), mutant: mutant}
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
			"work":   s.work,
			"heal":   s.heal,
			"pull":   s.pull,
		},
	})
	t.Cleanup(s.script.World.Close)
	return s
}

func (s *schedule) do(block string) string {
	switch words := strings.Fields(block); words[0] {
	case "cluster":
		return s.cluster(words[1], words[2:])
	case "permutations":
		return s.permutations()
	case "inline":
		n, err := strconv.Atoi(words[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.registers.Inline = n
		return ""
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
	n, err := replica.New(replica.Config{
		Cluster:        "schedules",
		Self:           p.ID(),
		Configurations: s.registers.Configurations,
		MaxValue:       s.registers.MaxValue,
		Rules:          s.rules,
	}, p.Disk())
	return untasked{n}, err
}

// untasked is a stepper whose tasks don't run: a script says when.
type untasked struct{ sim.Stepper }

func (s *schedule) tasks() repair.Tasks {
	return repair.Tasks{Configurations: s.registers.Configurations, Rules: s.rules.Repair}
}

// heal is "heal a".
func (s *schedule) heal(_ quorum.NodeID, e env.Env, _ []string) (string, error) {
	healed, err := s.tasks().HealGap(e)
	if err == nil && !healed {
		return "nothing to heal", nil
	}
	return "", err
}

// pull is "pull a b".
func (s *schedule) pull(_ quorum.NodeID, e env.Env, args []string) (string, error) {
	return "", s.tasks().Pass(e, quorum.NodeID(args[0]))
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
	began := e.Now()
	a.op, err = s.registers.Write(e, a.op)
	s.slowest = max(s.slowest, e.Now()-began)
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
	began := e.Now()
	r, err := s.registers.Read(e, abd.Key(args[0]))
	s.slowest = max(s.slowest, e.Now()-began)
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

// work is "work p key n".
func (s *schedule) work(process quorum.NodeID, e env.Env, args []string) (string, error) {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return "", err
	}
	for i := range n {
		if i%2 == 0 {
			_, err = s.write(process, e, []string{args[0], fmt.Sprintf("%s%d", process, i)})
		} else {
			_, err = s.read(process, e, args[:1])
		}
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("the slowest took %v", s.slowest), nil
}

// permutations is schedule 27: a write has reached a alone when its client
// dies. Then the three nodes are stopped in every order, and started in every
// order, and whenever two of them live somebody reads. Each line is one run:
// what was read after the first stop, and after the second and third start.
func (s *schedule) permutations() string {
	var out strings.Builder
	orders := [][]string{{"a", "b", "c"}, {"a", "c", "b"}, {"b", "a", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"c", "b", "a"}}
	wrong := 0
	for _, stop := range orders {
		for _, start := range orders {
			run := newSchedule(s.t, s.mutant)
			reads := run.stopAndStart(stop, start)
			fmt.Fprintf(&out, "stop %s, start %s: %s\n", strings.Join(stop, " "), strings.Join(start, " "), strings.Join(reads, ", "))
			if !run.history.linearizable() {
				wrong++
			}
		}
	}
	if wrong > 0 {
		s.broken = fmt.Sprintf("not linearizable in %d of %d", wrong, len(orders)*len(orders))
	}
	return out.String()
}

func (s *schedule) stopAndStart(stop, start []string) (reads []string) {
	s.cluster("majority", nil)
	s.script.Do(strings.Join([]string{"client p q", "write p k x", "deliver-all p->* get-tag", "deliver-all *->p get-ack",
		"deliver p->a put", "crash p", "drop-all p->*", "drop-all *->p"}, "\n"))
	read := func() {
		const said = "q: read k: "
		out := s.script.Do("read q k\nexchange")
		_, result, ok := strings.Cut(out, said)
		if !ok {
			s.t.Errorf("two nodes live, and a read doesn't end:\n%s", out)
		}
		result, _, _ = strings.Cut(result, "\n")
		reads = append(reads, result)
	}
	for i, id := range stop {
		s.script.Do("crash " + id)
		if i == 0 {
			read()
		}
	}
	for i, id := range start {
		s.script.Do("restart " + id)
		if i > 0 {
			read()
		}
	}
	return reads
}
