package explore

import (
	"fmt"
	"slices"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/reconfig"
	"atoll/repair"
	"atoll/replica"
	"atoll/sim"
	"atoll/sim/history"
	"atoll/sim/scenario"
	"atoll/sim/succession"
	"atoll/tags"
)

const (
	// cluster is the name of the cluster.
	cluster quorum.ClusterID = "explored"
	// theKey is the one register of a scope.
	theKey abd.Key = "k"
	// instant is what passes after each move: enough for what is due at once, and
	// for late members to be given up.
	instant = time.Nanosecond
	// maxSteps is how many events one move lets happen in time, until something
	// comes of it.
	maxSteps = 64
)

// world is a scope that is being run, move by move.
type world struct {
	*beginning
	w *sim.World

	nodes      []*node
	watch      *succession.Watch
	recorder   history.Recorder
	operations []operation
	violation  *Violation
	crashes    int // that are left
	lost       int
	hanging    *sim.Process // a node whose disk hangs

	losing bool // what nodes answer is lost
	effect effect
	tell   func(string) // of what happens; nil: nobody wants to know
}

// node is one of a world's nodes.
type node struct {
	p       *sim.Process
	place   int
	durable tags.Tag
}

// operation is one of the scope's, in a world.
type operation struct {
	*Operation
	p      *sim.Process
	scope  *sim.Scope // nil: it may not begin yet
	begun  bool       // for the history
	at     int        // there
	before uint64     // those on the register that had ended before it began
	result uint64     // of a read
	ended  bool
}

// effect is what a move has done.
type effect struct {
	touched uint64 // the processes to which something has happened, by index
	looked  uint64 // the nodes that were asked what they hold, and no more
	seen    bool   // it shows in what is checked
	stored  bool   // a node has stored a record
	loud    bool   // a node has answered what it has acted upon
	wrote   uint64 // the nodes whose journals have grown, by index
}

// beginning is what the worlds of a scope have in common.
type beginning struct {
	scope  *Scope
	parts  parts
	rules  scenario.Mutants
	memory *sim.Memory
	// disks are those of the nodes, when what was decided was told. Nil: that is
	// yet to be done.
	disks []*sim.Disk
}

// newBeginning plays what comes before the first move.
func newBeginning(scope *Scope, rules scenario.Mutants) (*beginning, error) {
	p, err := scope.parts()
	if err != nil {
		return nil, err
	}
	b := &beginning{scope: scope, parts: p, rules: rules, memory: sim.NewMemory(forgets)}
	x, err := b.world(nil)
	if err != nil {
		return nil, err
	}
	defer x.w.Close()
	asking := x.w.AddClient("oracle").Scope(time.Minute)
	asking.Start(x.decided)
	x.settle()
	if !asking.Done() || asking.Err() != nil {
		return nil, fmt.Errorf("explore: to tell what was decided: %v", asking.Err())
	}
	for _, n := range x.nodes {
		b.disks = append(b.disks, n.p.Disk().Image())
	}
	return b, nil
}

// world returns a world that is about to make its first move.
func (b *beginning) world(tell func(string)) (*world, error) {
	x := &world{beginning: b, crashes: b.scope.Crashes, lost: b.scope.Lost}
	now := sim.Constant(0)
	x.w = sim.New(sim.Config{
		Link:      func(_, _ quorum.NodeID) sim.Link { return sim.Link{Delay: now} },
		Sync:      func(quorum.NodeID) sim.Delay { return now },
		Nearest:   func(_ *sim.Process, nodes []quorum.NodeID) []quorum.NodeID { return nodes },
		Hedge:     instant,
		Intercept: x.fate,
		Observe:   x.observe,
		Memory:    b.memory,
		Rules:     b.rules.World,
	})
	var err error
	x.watch, err = succession.New(succession.Config{
		First: b.parts.configurations[0], Nodes: b.parts.nodes, Registers: 1,
		Holds:  func(node, _ int) tags.Tag { return x.nodes[node].durable },
		Text:   x.w.TagText,
		Broken: func(rule string, _ int, text string) { x.violate(rule, text) },
	})
	if err != nil {
		return nil, err
	}
	if err := x.begin(); err != nil {
		x.w.Close()
		return nil, err
	}
	if x.tell = tell; b.disks != nil {
		x.start()
		x.settle()
	}
	return x, nil
}

// begin starts all processes.
func (x *world) begin() error {
	for place, id := range x.parts.nodes {
		n := &node{place: place}
		x.nodes = append(x.nodes, n)
		var err error
		if n.p, err = x.w.AddNode(id, func(p *sim.Process) (sim.Stepper, error) { return x.boot(n, p) }); err != nil {
			return err
		}
	}
	for i := range x.scope.Operations {
		o := &x.scope.Operations[i]
		p := x.w.Process(o.On)
		if p == nil {
			p = x.w.AddClient(o.On)
		}
		x.operations = append(x.operations, operation{Operation: o, p: p})
	}
	return nil
}

// decided does what Recon leaves behind: the members of the second configuration
// have said that they are ready for it, and then it was decided.
func (x *world) decided(e env.Env) error {
	cs := x.parts.configurations
	if len(cs) == 1 {
		return nil
	}
	first, err := quorum.NewMap(cs[0])
	if err != nil {
		return err
	}
	ready := &reconfig.Ready{Cluster: cluster, Configuration: cs[1], Horizon: first.Horizon(), News: &quorum.News{Map: first}}
	for _, id := range x.parts.nodes { // who has joined knows the configuration that there is
		if _, err := env.AskOne[*rambo.Gossiped](e, id, &rambo.Gossip{Knowledge: rambo.Knowledge{News: ready.News}}); err != nil {
			return err
		}
	}
	for _, id := range cs[1].Members() {
		if _, err := env.AskOne[*reconfig.Readied](e, id, ready); err != nil {
			return err
		}
	}
	all, err := quorum.NewMap(cs...)
	if err != nil {
		return err
	}
	for _, id := range x.scope.Told {
		if _, err := env.AskOne[*rambo.Announced](e, id, &rambo.Announce{News: &quorum.News{Map: all}}); err != nil {
			return err
		}
	}
	return nil
}

// boot begins a life of a node. Of its tasks those run that merge, and no others:
// see the package's page.
func (x *world) boot(n *node, p *sim.Process) (sim.Stepper, error) {
	if n.p = p; p.Life() == 1 && x.disks != nil {
		*p.Disk() = *x.disks[n.place].Image()
		m, err := rambo.MapOf(p.Disk())
		if err != nil {
			return nil, err
		}
		x.watch.Begins(n.place, m)
	}
	_, at := p.Disk().Positions()
	x.watch.Durable(n.place, at)
	x.watch.Restarted(n.place, p.Disk())
	first := quorum.Configurations{x.parts.configurations[0]}
	if _, member := first[0].Place(p.ID()); !member {
		first = nil
	}
	r, err := replica.New(replica.Config{
		Cluster: cluster, Self: p.ID(), Configurations: first, MaxValue: abd.DefaultMaxValue,
		Reconfiguration: x.pace(), Rules: x.rules.Replica,
	}, &store{p.Disk(), x, n})
	if err != nil || x.disks == nil {
		return untasked{r}, err
	}
	return merging{r}, nil
}

func (x *world) pace() rambo.Pace { return rambo.Pace{Rate: -1} }

// untasked is a node that does nothing beside answering.
type untasked struct{ sim.Stepper }

// merging is a node that merges, and does nothing else beside answering.
type merging struct{ *replica.Node }

// Tasks implements sim.Tasked.
func (m merging) Tasks() []replica.Task {
	return slices.DeleteFunc(m.Node.Tasks(), func(t replica.Task) bool { return t.Name != "rambo.install" })
}

// store is a node's store, seen by the checks.
type store struct {
	disk
	x *world
	n *node
}

type disk interface{ replica.Store }

// Store implements abd.View.
func (s *store) Store(key abd.Key, r abd.Record) (env.Position, error) {
	s.x.effect.stored = true
	s.x.effect.wrote |= bit(s.n.p)
	return s.disk.Store(key, r)
}

// SetCell implements replica.Store.
func (s *store) SetCell(name string, value []byte) (env.Position, error) {
	at, err := s.disk.SetCell(name, value)
	if err == nil {
		s.x.effect.seen = true
		s.x.effect.wrote |= bit(s.n.p)
		s.x.watch.Cell(s.n.place, name, value, at)
	}
	return at, err
}

func bit(p *sim.Process) uint64 { return 1 << p.Index() }

// forgets is true of the requests that say all that their asker still knows. A
// put has the record that is to be stored, whoever writes it or writes it back. A
// get phase that begins again, because a configuration is out, has forgotten all.
// What a node's task about configurations asks its own node says how far it has
// come; the drivers for whom it waits wait still, and the lives that a fence has
// brought are a part of the world's state.
func forgets(m env.Message) bool {
	switch m := m.(type) {
	case *abd.Put:
		return true
	case *abd.Get:
		return m.AnswerBytes() == 0
	}
	return rambo.IsOwn(m)
}

// fate holds requests, and lets answers pass, or lose them.
func (x *world) fate(t sim.Transit) sim.Fate {
	switch {
	case x.disks == nil:
		return sim.Pass
	case !t.Answer:
		return sim.Hold
	case !acted(t.Message):
		return sim.Pass
	case x.losing:
		return sim.Lose
	}
	x.effect.loud = true
	return sim.Pass
}

// acted reports whether an answer says that a node has done something. What it
// would say of others, it says as well when it is asked later.
func acted(answer env.Message) bool {
	switch answer.(type) {
	case *abd.PutAck, *rambo.Gossiped, *rambo.Announced, *rambo.Fenced, *rambo.Installed:
		return true
	}
	return false
}

// onlyReads reports whether a request changes nothing where it arrives.
func onlyReads(m env.Message) bool {
	switch m.(type) {
	case *abd.Get, *abd.List, *repair.Offer, *repair.Summarize:
		return true
	}
	return false
}

// observe is told what happens in the world.
func (x *world) observe(o sim.Observation) {
	switch o.What {
	case sim.Sent:
		x.sent(&o)
	case sim.Arrived, sim.ArrivedTooLate:
		if !o.Answer && onlyReads(o.Message) {
			x.effect.looked |= bit(o.To)
		} else {
			x.effect.touched |= bit(o.To)
		}
		x.say(&o)
	case sim.Lost:
		x.say(&o)
	case sim.Synced:
		x.synced(o.Process)
	case sim.Failed:
		x.violate("node-stopped", fmt.Sprintf("%s: %v", o.Process.ID(), o.Process.Failure()))
	}
}

func (x *world) sent(o *sim.Observation) {
	if !o.Answer {
		x.watch.Asks(succession.Asked{By: o.From.Index(), Conversation: o.Conversation}, o.Message)
	} else if i := o.From.Index(); i < len(x.nodes) {
		x.watch.Answers(succession.Asked{By: o.To.Index(), Conversation: o.Conversation}, i, o.Message)
	}
}

// synced is called when a commit of a node has ended.
func (x *world) synced(p *sim.Process) {
	n := x.nodes[p.Index()]
	tag := p.Disk().Durable(theKey).Tag
	if tag.Less(n.durable) {
		x.violate("durable-tag-falls", fmt.Sprintf("%s durably held %s, and now %s", p.ID(), x.w.TagText(n.durable), x.w.TagText(tag)))
	}
	n.durable = tag
	_, at := p.Disk().Positions()
	x.watch.Durable(n.place, at)
}

func (x *world) violate(rule, text string) {
	if x.violation == nil {
		x.violation = &Violation{Rule: rule, Text: text}
	}
}
