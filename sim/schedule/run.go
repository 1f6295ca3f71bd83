package schedule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/replica"
	"atoll/sim"
	"atoll/sim/history"
)

// clusterID is that of all clusters.
const clusterID = "schedules"

// worldSeed decides the few draws that a schedule leaves open.
const worldSeed = 2

// Vocabulary gives a run some of its words. It is called once for each run,
// before anything happens in it.
type Vocabulary func(*Run) Table

// Table is what a protocol adds to the commands of a schedule. No two tables of
// a run may have a word in common.
type Table struct {
	// Operations begin on a process: "write p k x".
	Operations map[string]sim.Operation
	// Commands end at once, and return what the transcript says of them.
	Commands map[string]func(args []string) (string, error)
	// Boot builds the stepper of a node, at most one for all tables. Nil: a
	// replica.Node with the configurations that are active on it.
	Boot sim.Boot
	// Describe puts a message into words, of which the first is its name; none
	// for one that it doesn't know. Nil knows none.
	Describe func(env.Message) string
	// Rules are pointers to structs of rules that Boot and the operations go by,
	// beside Run.Rules: of a protocol that isn't a part of replica.Node yet. A
	// mutant sets one of their fields.
	Rules []any
}

// Run is one run of a schedule's commands.
type Run struct {
	// Script is the world and what happens in it. It isn't there yet when
	// vocabularies are asked.
	Script *sim.Script
	// Rules are those of the nodes and of operations on them. A mutant breaks one.
	Rules replica.Rules
	// History is what clients saw of registers.
	History history.Recorder

	vocabularies   []Vocabulary
	mutant         string
	configurations []named
	active         quorum.Configurations // on all processes but
	activeOn       map[quorum.NodeID]quorum.Configurations
	known          map[quorum.NodeID]*rambo.CMap // by those who have run operations
	slowest        time.Duration                 // operation
	broken         string                        // what is wrong beside the history
	again          []*Run                        // to close
}

// named is a configuration and the name that the schedule calls it by.
type named struct {
	name string
	*quorum.Configuration
}

// New returns a run over an empty world, which lacks the named rule; none if the
// name is empty. The run must be closed.
func New(mutant string, vocabularies ...Vocabulary) (*Run, error) {
	r := &Run{vocabularies: vocabularies, mutant: mutant, activeOn: make(map[quorum.NodeID]quorum.Configurations), known: make(map[quorum.NodeID]*rambo.CMap)}
	all := Table{
		Operations: make(map[string]sim.Operation),
		Commands: map[string]func([]string) (string, error){
			"cluster":       r.cluster,
			"configuration": r.configure,
			"active":        r.activate,
		},
	}
	var kernel sim.Rules
	all.Rules = []any{&r.Rules, &kernel}
	var describe []func(env.Message) string
	for _, v := range vocabularies {
		t := v(r)
		if err := all.take(t); err != nil {
			return nil, err
		}
		if t.Describe != nil {
			describe = append(describe, t.Describe)
		}
	}
	if err := breakRule(mutant, all.Rules); err != nil {
		return nil, err
	}
	if all.Boot == nil {
		all.Boot = r.boot
	}
	r.Script = sim.NewScript(sim.ScriptConfig{
		World:      sim.Config{Rules: kernel, Seed: worldSeed},
		Boot:       func(p *sim.Process) (sim.Stepper, error) { return untask(all.Boot(p)) },
		Operations: all.Operations,
		Commands:   all.Commands,
		Describe: func(m env.Message) string {
			for _, d := range describe {
				if words := d(m); words != "" {
					return words
				}
			}
			return r.Script.World.Describe(m)
		},
	})
	return r, nil
}

// take adds a table to t.
func (t *Table) take(more Table) error {
	for _, word := range slices.Sorted(maps.Keys(more.Operations)) {
		if t.has(word) {
			return fmt.Errorf("two vocabularies have a word %q", word)
		}
		t.Operations[word] = more.Operations[word]
	}
	for _, word := range slices.Sorted(maps.Keys(more.Commands)) {
		if t.has(word) {
			return fmt.Errorf("two vocabularies have a word %q", word)
		}
		t.Commands[word] = more.Commands[word]
	}
	t.Rules = append(t.Rules, more.Rules...)
	switch {
	case more.Boot == nil:
	case t.Boot != nil:
		return errors.New("two vocabularies boot nodes")
	default:
		t.Boot = more.Boot
	}
	return nil
}

func (t *Table) has(word string) bool { return t.Operations[word] != nil || t.Commands[word] != nil }

// Close ends the run's world.
func (r *Run) Close() {
	for _, a := range r.again {
		a.Close()
	}
	r.Script.World.Close()
}

// Again returns another run with the same words and without the same rule, for
// a command that plays a whole schedule. It is closed with r.
func (r *Run) Again() (*Run, error) {
	a, err := New(r.mutant, r.vocabularies...)
	if err == nil {
		r.again = append(r.again, a)
	}
	return a, err
}

// Do runs commands, one a line, and returns what happened. An error is a line
// that begins with "error:".
func (r *Run) Do(commands string) string { return r.Script.Do(commands) }

// Fail notes that a promise is broken other than that of a register: the
// verdict will say so. Of several it says the first.
func (r *Run) Fail(format string, args ...any) {
	if r.broken == "" {
		r.broken = fmt.Sprintf(format, args...)
	}
}

// Took notes how long an operation took, for "verdict within", and returns the
// longest until now.
func (r *Run) Took(d time.Duration) (slowest time.Duration) {
	r.slowest = max(r.slowest, d)
	return r.slowest
}

// Judge returns what is wrong with what happened, or nothing. The verdict is
// the words behind that command.
func (r *Run) Judge(verdict []string) string {
	if r.broken != "" {
		return r.broken
	}
	violation, err := history.Check(r.History.History())
	switch {
	case err != nil:
		return err.Error()
	case violation != nil:
		return "not linearizable"
	case len(verdict) == 0:
		return ""
	case len(verdict) == 1 && verdict[0] == "ended":
		if pending := r.Do("pending"); pending != "" {
			return "not ended: " + strings.Join(strings.Fields(pending)[1:], " ")
		}
		return ""
	case len(verdict) == 2 && verdict[0] == "within":
		if limit, err := time.ParseDuration(verdict[1]); err != nil || r.slowest > limit {
			return fmt.Sprintf("slow: an operation took %v", r.slowest)
		}
		return ""
	}
	return fmt.Sprintf("judged by what isn't a verdict: %q", verdict)
}

// used reports whether clients used registers, here or in a run of Again.
func (r *Run) used() bool {
	return len(r.History.History()) > 0 || slices.ContainsFunc(r.again, (*Run).used)
}

// praise is what the transcript says when nothing is wrong.
func (r *Run) praise() string {
	if r.used() {
		return "linearizable"
	}
	return "as promised"
}

// Active returns the configurations over which a process works, in order.
func (r *Run) Active(process quorum.NodeID) quorum.Configurations {
	if cs, ok := r.activeOn[process]; ok {
		return cs
	}
	return r.active
}

// Known returns the config map of a process: at first the configurations that
// are active on it, and what answers have revealed since.
func (r *Run) Known(process quorum.NodeID) abd.Known {
	if c := r.known[process]; c != nil {
		return c
	}
	m, err := quorum.NewMap(r.Active(process)...)
	if err != nil {
		panic(err) // a command has checked that they follow each other
	}
	c := rambo.NewCMap(m)
	c.OnChange = func(*quorum.Map) { r.Script.World.Process(process).Wake() }
	r.known[process] = c
	return c
}

// mapOn returns the config map that a node has on its disk.
func (r *Run) mapOn(node quorum.NodeID) (*quorum.Map, error) {
	p := r.Script.World.Process(node)
	if p == nil || p.Disk() == nil {
		return nil, fmt.Errorf("%s is no node", node)
	}
	return rambo.MapOf(p.Disk())
}

// Configuration returns the configuration of that name, nil if there is none.
func (r *Run) Configuration(name string) *quorum.Configuration {
	for _, c := range r.configurations {
		if c.name == name {
			return c.Configuration
		}
	}
	return nil
}

// cluster is "cluster majority" and "cluster get=2,put=3 a b c d".
func (r *Run) cluster(args []string) (string, error) {
	if len(args) == 0 {
		return "", errors.New("want a quorum system, and perhaps nodes")
	}
	nodes := args[1:]
	if len(nodes) == 0 {
		nodes = []string{"a", "b", "c"}
	}
	if _, err := r.configure(append([]string{"c0", "0", args[0]}, nodes...)); err != nil {
		return "", err
	}
	r.active = quorum.Configurations{r.Configuration("c0")}
	return "", r.Script.AddNodes(nodes)
}

// configure is "configuration c1 1 majority d e".
func (r *Run) configure(args []string) (string, error) {
	if len(args) < 4 {
		return "", errors.New("want a name, an index, a quorum system and members")
	}
	if r.Configuration(args[0]) != nil {
		return "", fmt.Errorf("there is a configuration %s already", args[0])
	}
	index, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return "", err
	}
	system, err := quorum.ParseSystem(args[2])
	if err != nil {
		return "", err
	}
	var members []quorum.NodeID
	for _, m := range args[3:] {
		members = append(members, quorum.NodeID(m))
	}
	c, err := quorum.NewConfiguration(quorum.ConfigIndex(index), members, system)
	if err != nil {
		return "", err
	}
	r.configurations = append(r.configurations, named{args[0], c})
	return "", nil
}

// activate is "active c0 c1" and "active c1 on p q".
func (r *Run) activate(args []string) (string, error) {
	names, on := args, []string(nil)
	if i := slices.Index(args, "on"); i >= 0 {
		names, on = args[:i], args[i+1:]
		if len(on) == 0 {
			return "", errors.New("want processes behind on")
		}
	}
	if len(names) == 0 {
		return "", errors.New("want a configuration")
	}
	var cs quorum.Configurations
	for _, name := range names {
		c := r.Configuration(name)
		switch {
		case c == nil:
			return "", fmt.Errorf("no configuration %q", name)
		case len(cs) > 0 && c.Index() <= cs[len(cs)-1].Index():
			return "", errors.New("want configurations in the order of their indices")
		}
		cs = append(cs, c)
	}
	if _, err := quorum.NewMap(cs...); err != nil {
		return "", err
	}
	if on == nil {
		r.active = cs
		clear(r.activeOn)
		clear(r.known)
	}
	for _, process := range on {
		r.activeOn[quorum.NodeID(process)] = cs
		delete(r.known, quorum.NodeID(process))
	}
	return "", nil
}

func (r *Run) boot(p *sim.Process) (sim.Stepper, error) {
	active := r.Active(p.ID())
	if !slices.Contains(active.Members(), p.ID()) {
		active = nil // it knows nothing, until somebody tells it
	}
	return replica.New(replica.Config{
		Updates:        true,
		Cluster:        clusterID,
		Self:           p.ID(),
		Configurations: active,
		MaxValue:       abd.DefaultMaxValue,
		Rules:          r.Rules,
	}, p.Disk())
}

// untasked is a stepper whose tasks don't run: a schedule says when.
type untasked struct{ sim.Stepper }

func untask(s sim.Stepper, err error) (sim.Stepper, error) { return untasked{s}, err }
