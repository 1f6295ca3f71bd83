package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// kindOfFault is what Decision.Do names.
type kindOfFault struct {
	name  string
	about string // what it does, for people
	nodes bool   // it may happen to a node
	// clients: it may happen to a client.
	clients bool
	two     bool // it has other ends, Decision.To
	key     bool // it is about a key
	// operators: it may happen to an operator only. That is no fault, and isn't
	// drawn as one.
	operators bool
	signed    bool // N may be negative
	// most is the largest N; 0: it has none.
	most int
}

func faultKinds() []kindOfFault {
	return []kindOfFault{
		{name: "crash", nodes: true, clients: true,
			about: "the processes die, as by kill -9, and come back afterwards"},
		{name: "powerloss", nodes: true, most: 1 << 20,
			about: "the nodes lose power, and of what wasn't synced all but the first n groups; they come back afterwards"},
		{name: "torn", nodes: true, most: 1 << 20,
			about: "as powerloss, which catches the disk while it writes the group behind the first n"},
		{name: "failsync", nodes: true,
			about: "the next fsync of the nodes fails: they stop, nobody knows what is on the disk, and they are started again at once"},
		{name: "lose", nodes: true,
			about: "the nodes die and lose their disks; an old identity with an empty disk must not vote, so they must not come back"},
		{name: "pause", nodes: true, clients: true,
			about: "the processes are frozen, as by SIGSTOP"},
		{name: "jump", nodes: true, clients: true, signed: true, most: 86_400_000,
			about: "the clocks of the processes jump by n milliseconds"},
		{name: "drift", nodes: true, clients: true, signed: true, most: 500_000,
			about: "the clocks of the processes run faster by n parts per million"},
		{name: "cut", nodes: true, clients: true, two: true,
			about: "what \"on\" sends to \"to\" is lost, and not what comes back"},
		{name: "isolate", nodes: true, clients: true, two: true,
			about: "what \"on\" and \"to\" send to each other is lost"},
		{name: "disconnect", nodes: true, clients: true,
			about: "the processes are off the network, and whoever sends to them is told"},
		{name: "break", nodes: true, clients: true, two: true,
			about: "the connections between \"on\" and \"to\" end, with all that is on its way, and are there again afterwards"},
		{name: "slow", nodes: true, clients: true, two: true, most: 1000,
			about: "what \"on\" and \"to\" send to each other takes n times as long on top"},
		{name: "gray", nodes: true, most: 1000,
			about: "all that the nodes send and get takes n times as long on top"},
		{name: "lossy", nodes: true, clients: true, two: true, most: million,
			about: "what \"on\" and \"to\" send to each other is lost with a chance of n per million"},
		{name: "double", nodes: true, clients: true, two: true, most: million,
			about: "what \"on\" and \"to\" send to each other arrives twice with a chance of n per million"},
		{name: "slowdisk", nodes: true, most: 1000,
			about: "commits of the nodes take n times as long on top"},
		{name: "stall", nodes: true,
			about: "no commit of the nodes ends"},
		{name: "full", nodes: true,
			about: "the disks of the nodes take no more"},
		{name: "damage", nodes: true, key: true,
			about: "the record of the key can't be read any more on the nodes' disks"},
		{name: "misdirect", nodes: true, key: true,
			about: "the next record that the nodes store lands where that of the key was"},
		{name: "minimal", clients: true,
			about: "the first copies of each request of the clients reach exactly a minimal quorum, for each request another"},
		{name: "reach", clients: true, most: 256,
			about: "each request of the clients reaches exactly n nodes, for each request others, however often it is sent"},
		{name: "rot", nodes: true, key: true,
			about: "the value of the key's record can't be read any more on the nodes' disks; its tag can"},
		{name: "restore", nodes: true,
			about: "the nodes are started again behind a copy of their disks, and later run over that copy, if all others know better by then; they must end before they serve, and not come back"},
		{name: "propose", operators: true, two: true,
			about: "the operators propose that the nodes \"to\", under the system \"quorum\", are the members from now on"},
	}
}

func faultKind(name string) (kindOfFault, bool) {
	kinds := faultKinds()
	i := slices.IndexFunc(kinds, func(k kindOfFault) bool { return k.name == name })
	if i < 0 {
		return kindOfFault{}, false
	}
	return kinds[i], true
}

// FaultKinds returns the names of the faults that a plan can have.
func FaultKinds() []string {
	var names []string
	for _, k := range faultKinds() {
		if k.operators {
			continue
		}
		names = append(names, k.name)
	}
	return names
}

// FaultAbout says what a kind of fault does, empty for an unknown one.
func FaultAbout(kind string) string {
	k, _ := faultKind(kind)
	return k.about
}

// census are the names of all processes of a scenario, in order.
type census struct {
	names []string
	at    map[string]int
}

func (s Scenario) census() *census {
	c := &census{at: make(map[string]int)}
	add := func(name string) {
		c.at[name] = len(c.names)
		c.names = append(c.names, name)
	}
	for number := range s.Clusters {
		for i := range s.pool() {
			add(string(s.node(number, i)))
		}
		for i := range s.Clients {
			add(string(s.client(number, i)))
		}
		for i := range s.Membership.Operators {
			add(s.operator(i))
		}
	}
	return c
}

// named returns the names that a pattern stands for: a name, or what the names
// begin with and a star.
func (c *census) named(pattern string) []string {
	prefix, star := strings.CutSuffix(pattern, "*")
	if !star {
		if _, ok := c.at[pattern]; ok {
			return []string{pattern}
		}
		return nil
	}
	var found []string
	for _, name := range c.names {
		if strings.HasPrefix(name, prefix) {
			found = append(found, name)
		}
	}
	return found
}

func (c *census) all(patterns []string) []string {
	var found []string
	for _, p := range patterns {
		found = append(found, c.named(p)...)
	}
	return found
}

func (d Decision) check(s Scenario, c *census) error {
	k, ok := faultKind(d.Do)
	if !ok {
		return fmt.Errorf("no fault %q", d.Do)
	}
	for _, pattern := range slices.Concat(d.On, d.To) {
		if len(c.named(pattern)) == 0 {
			return fmt.Errorf("no process %q", pattern)
		}
	}
	for _, name := range c.all(d.On) {
		if !k.happensTo(name) {
			return fmt.Errorf("%s can't happen to %s", d.Do, name)
		}
	}
	low := 0
	if k.signed {
		low = -k.most
	}
	if d.Do == "propose" {
		if err := d.checkProposal(); err != nil {
			return err
		}
	}
	number := keyNumber(keyOf(d.Key))
	switch {
	case len(d.On) == 0:
		return errors.New("it happens to nobody")
	case k.two != (len(d.To) > 0):
		return errors.New("\"to\" is for faults that have two ends, and needed there")
	case k.key != (d.Key != ""):
		return errors.New("\"key\" is for faults that are about one, and needed there")
	case k.key && (number < 0 || number >= s.Keys):
		return fmt.Errorf("no key %q", d.Key)
	case d.Quorum != "" && d.Do != "propose":
		return errors.New("\"quorum\" is for proposals")
	case d.At < 0 || d.For < 0:
		return errors.New("a time is negative")
	case d.N < low || d.N > k.most:
		return fmt.Errorf("n must be from %d to %d", low, k.most)
	}
	return nil
}

// happensTo reports whether it may happen to the process of that name. To an
// operator may happen what may happen to both nodes and clients.
func (k kindOfFault) happensTo(name string) bool {
	switch {
	case isOperator(name):
		return k.operators || k.nodes && k.clients
	case isClient(name):
		return k.clients
	}
	return k.nodes
}

// isClient tells from its name whether a process is a client.
func isClient(name string) bool { return letterOf(name) == 'p' }

// letterOf returns the letter before the number at the end of a name: what kind
// of process it is. The zero byte is none.
func letterOf(name string) byte {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] < '0' || name[i] > '9' {
			return name[i]
		}
	}
	return 0
}

// check also sees to it that what lost its disk, or a part of it, isn't counted
// upon: that would be no fault that a quorum system bears.
func (h Healing) check(s Scenario) error {
	if h.Cluster < 1 || h.Cluster > s.Clusters {
		return errors.New("no such cluster")
	}
	c, err := s.configuration(h.Cluster - 1)
	if err != nil {
		return err
	}
	if err := h.names(s); err != nil {
		return err
	}
	return h.leaves(c)
}
