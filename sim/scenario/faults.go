package scenario

import (
	"errors"
	"fmt"
	"slices"
)

// kindOfFault is what Decision.Do names.
type kindOfFault struct {
	name string
	// about says what it does, for people.
	about string
	// two: it has other ends, Decision.To.
	two bool
	// clients: it may happen to a client.
	clients bool
	// nodes: it may happen to a node.
	nodes bool
	// key: it is about a key.
	key bool
}

func faultKinds() []kindOfFault {
	return []kindOfFault{
		{name: "crash", about: "the processes die, as by kill -9, and come back after For", nodes: true, clients: true},
		{name: "powerloss", about: "the nodes lose power, and of what wasn't synced all but N groups; they come back after For", nodes: true},
		{name: "lose", about: "the nodes lose their disks; an old identity with an empty disk must not vote, so they stay down", nodes: true},
		{name: "cut", about: "what On sends to To is lost, not what To sends to On", two: true, nodes: true, clients: true},
		{name: "isolate", about: "what On and To send to each other is lost", two: true, nodes: true, clients: true},
		{name: "disconnect", about: "the processes are off the network, and whoever sends to them is told", nodes: true, clients: true},
		{name: "slow", about: "what On and To send to each other takes N times as long", two: true, nodes: true, clients: true},
		{name: "lossy", about: "what On and To send to each other is lost with a chance of N per million", two: true, nodes: true, clients: true},
		{name: "stall", about: "no commit of the nodes ends", nodes: true},
		{name: "full", about: "the disks of the nodes take no more", nodes: true},
		{name: "damage", about: "the record of Key on the nodes' disks can't be read any more", nodes: true, key: true},
		{name: "minimal", about: "each request of the clients reaches exactly a minimal quorum, another one for each request", clients: true},
		{name: "reach", about: "each request of the clients reaches exactly N nodes, others for each request", clients: true},
	}
}

// FaultKinds returns the names of the faults that a plan can have. FaultAbout
// says what each does.
func FaultKinds() []string {
	var names []string
	for _, k := range faultKinds() {
		names = append(names, k.name)
	}
	return names
}

// FaultAbout says what a kind of fault does.
func FaultAbout(kind string) string {
	for _, k := range faultKinds() {
		if k.name == kind {
			return k.about
		}
	}
	return ""
}

func (d Decision) check(names, keys map[string]bool) error {
	i := slices.IndexFunc(faultKinds(), func(k kindOfFault) bool { return k.name == d.Do })
	if i < 0 {
		return fmt.Errorf("no fault %q", d.Do)
	}
	k := faultKinds()[i]
	for _, name := range slices.Concat(d.On, d.To) {
		if !names[name] {
			return fmt.Errorf("no process %q", name)
		}
		if client := isClient(name); client && !k.clients || !client && !k.nodes {
			return fmt.Errorf("%s can't happen to %s", d.Do, name)
		}
	}
	switch {
	case len(d.On) == 0:
		return errors.New("it happens to nobody")
	case k.two != (len(d.To) > 0):
		return errors.New("\"to\" is for faults that have two ends, and needed there")
	case k.key != (d.Key != ""):
		return errors.New("\"key\" is for faults that are about one, and needed there")
	case k.key && !keys[d.Key]:
		return fmt.Errorf("no key %q", d.Key)
	case d.At < 0 || d.For < 0 || d.N < 0:
		return errors.New("a time or number is negative")
	}
	return nil
}

// isClient tells from its name whether a process is a client.
func isClient(name string) bool {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] < '0' || name[i] > '9' {
			return name[i] == 'p'
		}
	}
	return false
}

func (h Healing) check(s Scenario) error {
	if h.Cluster < 1 || h.Cluster > s.Clusters {
		return errors.New("no such cluster")
	}
	c, err := s.configuration(h.Cluster - 1)
	if err != nil {
		return err
	}
	var t tally
	t.begin(c)
	for _, name := range h.rest() {
		if !t.add(name) {
			return fmt.Errorf("%q is no node of it, or named twice", name)
		}
	}
	if !t.LeavesRead() || !t.LeavesWrite() {
		return errors.New("what is healed contains no quorum")
	}
	return nil
}
