package explore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"atoll/quorum"
)

// Scope is a small world: who is there and what they do, each once.
type Scope struct {
	// Name is a word for commands, and About a sentence for people.
	Name, About string
	// Configurations are written as "majority a b c", or "get=1,put=3 a b c". The
	// first is installed when it begins, the others were decided. Their members
	// are the nodes.
	Configurations []string
	// Told are the nodes that know all configurations from the beginning, of
	// those that are in the first.
	Told []quorum.NodeID
	// Operations are what there is to do.
	Operations []Operation
	// Crashes is how many processes die, at most, and begin another life at once.
	Crashes int
	// Mortal are those that may; if there are none, all nodes and clients.
	Mortal []quorum.NodeID
	// Lost is how many times, at most, what a node answers at one moment is lost.
	Lost int
}

// Operation is something that a process does once.
type Operation struct {
	// On is the process. A node, for what nodes do; otherwise a client of that
	// name. It does nothing else.
	On quorum.NodeID
	Do Deed
	// Value is what is written.
	Value string
	// After is how many of the scope's operations, the first ones, must have ended
	// before this one begins.
	After int
}

// Deed is what an operation does.
type Deed uint8

// The deeds. Registers are those of one key.
const (
	// Write and Read are a client's.
	Write Deed = iota + 1
	Read
	// Upgrade drives one step from a configuration to the next on a node: fence,
	// install, retire (R4). If the node dies, it does that again in its next life.
	Upgrade
)

// Scopes returns those that are built in, the smallest first.
func Scopes() []Scope {
	write := Operation{On: "p", Do: Write, Value: "x"}
	read := Operation{On: "q", Do: Read, After: 1}
	scope := func(name, about string, driver quorum.NodeID, configurations ...string) Scope {
		return Scope{Name: name, About: about, Configurations: configurations, Told: []quorum.NodeID{driver},
			Operations: []Operation{write, read, {On: driver, Do: Upgrade}}, Crashes: 1, Lost: 1}
	}
	one := scope("one", "one node takes over from one, and both know it", "a", "majority a", "majority b")
	one.Told = append(one.Told, "b")
	return []Scope{
		one,
		scope("leave", "of two nodes one goes", "a", "get=2,put=1 a b", "majority a"),
		scope("come", "two of which one is enough for a get take over from one", "c", "majority a", "get=1,put=2 b c"),
		scope("chain", "one node takes over from one, and another from that", "c", "majority a", "majority b", "majority c"),
		scope("get-all", "one takes over from two of which one is enough for a put", "c", "get=2,put=1 a b", "majority c"),
		scope("put-all", "one takes over from two of which one is enough for a get", "c", "get=1,put=2 a b", "majority c"),
		scope("two", "two nodes take over from two", "d", "majority a b", "majority c d"),
		scope("shrink", "one node takes over from three", "d", "majority a b c", "majority d"),
		scope("grow", "three nodes take over from two of which one is enough for a put", "e", "get=2,put=1 a b", "majority c d e"),
		scope("replace", "of three nodes one is replaced", "d", "majority a b c", "majority a b d"),
		scope("swap", "three nodes take over from three", "f", "majority a b c", "majority d e f"),
	}
}

// Find returns the scope that is built in under a name.
func Find(name string) (Scope, bool) {
	for _, s := range Scopes() {
		if s.Name == name {
			return s, true
		}
	}
	return Scope{}, false
}

// parts are a scope's configurations and nodes.
type parts struct {
	configurations quorum.Configurations
	nodes          []quorum.NodeID
}

// parts returns what the scope's texts mean.
func (s Scope) parts() (p parts, err error) {
	for i, text := range s.Configurations {
		words := strings.Fields(text)
		if len(words) < 2 {
			return p, fmt.Errorf("explore: configuration %q: want a quorum system and members", text)
		}
		system, err := quorum.ParseSystem(words[0])
		if err != nil {
			return p, err
		}
		var members []quorum.NodeID
		for _, id := range words[1:] {
			members = append(members, quorum.NodeID(id))
		}
		c, err := quorum.NewConfiguration(quorum.ConfigIndex(i), members, system)
		if err != nil {
			return p, err
		}
		p.configurations = append(p.configurations, c)
	}
	if len(p.configurations) == 0 {
		return p, errors.New("explore: a scope has a configuration")
	}
	p.nodes = p.configurations.Members()
	return p, s.check(p.nodes)
}

// Limits of a scope.
const (
	// maxOperations is how many operations it has.
	maxOperations = 8
	// maxProcesses is how many nodes and clients.
	maxProcesses = 12
	// maxBudget is how many processes die, and how many times answers are lost.
	maxBudget = 100
)

func (s Scope) check(nodes []quorum.NodeID) error {
	if len(s.Operations) > maxOperations {
		return fmt.Errorf("explore: a scope has %d operations at most", maxOperations)
	}
	if s.Crashes < 0 || s.Crashes > maxBudget || s.Lost < 0 || s.Lost > maxBudget {
		return fmt.Errorf("explore: in a scope 0 to %d processes die, and as many times answers are lost", maxBudget)
	}
	if len(nodes)+len(s.Operations) > maxProcesses {
		return fmt.Errorf("explore: a scope has %d processes at most", maxProcesses)
	}
	var on []quorum.NodeID
	for _, o := range s.Operations {
		switch is := slices.Contains(nodes, o.On); {
		case is != (o.Do == Upgrade):
			return fmt.Errorf("explore: %s can't do that", o.On)
		case slices.Contains(on, o.On):
			return fmt.Errorf("explore: %s does two things", o.On)
		}
		on = append(on, o.On)
	}
	return nil
}

// mortal reports whether a process may die.
func (s *Scope) mortal(id quorum.NodeID) bool {
	return len(s.Mortal) == 0 || slices.Contains(s.Mortal, id)
}
