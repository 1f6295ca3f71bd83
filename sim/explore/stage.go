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
)

// stage is a sim.World with the processes of a scope. All of them act in it, or
// one of them alone.
type stage struct {
	*beginning
	w *sim.World

	alone      *sim.Process // nil: all act
	place      int          // of the one that does; everybody: -1
	nodes      []*node
	operations []operation

	happens func(event)       // is told what the judge wants to know
	answer  func(sim.Transit) // what the one answers others
	losing  bool              // what nodes answer is lost
	loud    bool              // a node has answered what it has acted upon
	wrote   uint64            // the nodes whose journals have grown, by index
	tell    func(string)      // of what happens; nil: nobody wants to know
}

// node is one of a stage's nodes.
type node struct {
	p     *sim.Process
	place int
	// journal has the tags that are stored of the register.
	journal succession.Journal[tags.Tag]
}

// operation is one of the scope's, on a stage.
type operation struct {
	*Operation
	p     *sim.Process
	scope *sim.Scope // nil: it hasn't begun in this life
	ended bool
}

// beginning is what the worlds of a scope have in common.
type beginning struct {
	scope  *Scope
	parts  parts
	rules  scenario.Mutants
	memory *sim.Memory
	plain  bool
	// disks are those of the nodes, when what was decided was told. Nil: that is
	// yet to be done.
	disks []*sim.Disk
}

// newBeginning plays what comes before the first move.
func newBeginning(scope *Scope, rules scenario.Mutants, plain bool) (*beginning, error) {
	p, err := scope.parts()
	if err != nil {
		return nil, err
	}
	b := &beginning{scope: scope, parts: p, rules: rules, plain: plain, memory: sim.NewMemory(forgets, turns)}
	if plain {
		b.memory = sim.NewMemory(forgets, func(env.Message) bool { return false })
	}
	x := b.stage(everybody)
	defer x.w.Close()
	if err := x.enter(); err != nil {
		return nil, err
	}
	asking := x.w.AddClient("oracle").Scope(time.Minute)
	asking.Start(x.decided)
	x.w.RunFor(instant)
	if !asking.Done() || asking.Err() != nil {
		return nil, fmt.Errorf("explore: to tell what was decided: %v", asking.Err())
	}
	for _, n := range x.nodes {
		b.disks = append(b.disks, n.p.Disk().Image())
	}
	return b, nil
}

// everybody is in the place of one who acts alone.
const everybody = -1

// stage returns a stage on which nobody has begun anything.
func (b *beginning) stage(alone int) *stage {
	x := &stage{beginning: b, place: alone, happens: func(event) {}}
	now := sim.Constant(0)
	x.w = sim.New(sim.Config{
		Link:      func(_, _ quorum.NodeID) sim.Link { return sim.Link{Delay: now} },
		Sync:      func(quorum.NodeID) sim.Delay { return now },
		Nearest:   func(_ *sim.Process, nodes []quorum.NodeID) []quorum.NodeID { return nodes },
		Rand:      func(*sim.Process) uint64 { return 1 }, // a salt makes no other message
		Hedge:     instant,
		Intercept: x.fate,
		Observe:   x.observe,
		Memory:    b.memory,
		Rules:     b.rules.World,
	})
	return x
}

// enter starts all processes.
func (x *stage) enter() error {
	for place, id := range x.parts.nodes {
		n := &node{place: place}
		x.nodes = append(x.nodes, n)
		if _, err := x.w.AddNode(id, func(p *sim.Process) (sim.Stepper, error) { return x.boot(n, p) }); err != nil {
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
	if x.place != everybody {
		x.alone = x.w.Processes()[x.place]
	}
	return nil
}

// decided does what Recon leaves behind: the members of the second configuration
// have said that they are ready for it, and then it was decided.
func (x *stage) decided(e env.Env) error {
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
func (x *stage) boot(n *node, p *sim.Process) (sim.Stepper, error) {
	n.p = p
	if x.place != everybody && x.place != n.place {
		return idle{}, nil
	}
	if p.Life() == 1 && x.disks != nil {
		*p.Disk() = *x.disks[n.place].Image()
	}
	m, err := rambo.MapOf(p.Disk())
	if err != nil {
		return nil, err
	}
	n.journal.Lose()
	x.happens(event{what: holds, by: n.place, tag: p.Disk().Durable(theKey).Tag})
	if m != nil {
		x.happens(event{what: learns, by: n.place, known: m})
	}
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

// idle is a node that does nothing, where another one is alone.
type idle struct{}

// Step implements sim.Stepper.
func (idle) Step(_ env.Address, _ env.Message, out []env.Out) ([]env.Out, error) { return out, nil }

func (x *stage) pace() rambo.Pace { return rambo.Pace{Rate: -1, Patience: patience} }

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
	x *stage
	n *node
}

type disk interface{ replica.Store }

// Store implements abd.View.
func (s *store) Store(key abd.Key, r abd.Record) (env.Position, error) {
	s.x.wrote |= bit(s.n.p)
	at, err := s.disk.Store(key, r)
	if err == nil && key == theKey {
		s.n.journal.Record(at, r.Tag)
	}
	return at, err
}

// SetCell implements replica.Store.
func (s *store) SetCell(name string, value []byte) (env.Position, error) {
	s.x.wrote |= bit(s.n.p)
	at, err := s.disk.SetCell(name, value)
	if err == nil {
		if err := s.n.journal.Cell(at, name, value); err != nil {
			s.x.violate("config-map", fmt.Sprintf("%s: %v", s.n.p.ID(), err))
		}
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

// turns is true of the answers to who merges that make it ask the node something
// else, and are of no use beyond: a node that knows too little is told, one that has
// been told is asked again, and one that has other records is asked for them. Who was
// told is seen by how often it was asked.
func turns(m env.Message) bool {
	switch m := m.(type) {
	case *env.Refused:
		return m.Reason == env.ReasonBehind
	case *rambo.Gossiped, *repair.Summary:
		return true
	}
	return false
}

// fate holds requests, and lets answers pass, or lose them.
func (x *stage) fate(t sim.Transit) sim.Fate {
	switch {
	case x.disks == nil, x.alone != nil && t.From != x.alone:
		return sim.Pass
	case !t.Answer:
		return sim.Hold
	case x.alone != nil:
		x.answer(t)
		return sim.Lose
	case !acted(t.Message), !t.To.Waits(t.Conversation):
		return sim.Pass
	case x.losing:
		return sim.Lose
	}
	x.loud = true
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

// ofPage reports whether a message is about a page of records: the judge goes by no
// other messages.
func ofPage(m env.Message) bool {
	switch m.(type) {
	case *repair.Offer, *repair.Summarize, *repair.Missing, *repair.Summary:
		return true
	}
	return false
}

// observe is told what happens in the world.
func (x *stage) observe(o sim.Observation) {
	switch o.What {
	case sim.Sent:
		if i := o.From.Index(); o.Answer && i < len(x.nodes) && ofPage(o.Message) {
			x.happens(event{what: answers, by: i, in: succession.Asked{By: o.To.Index(), Conversation: o.Conversation}, message: o.Message})
		}
	case sim.Arrived, sim.ArrivedTooLate:
		if !o.Answer && o.From != o.To && ofPage(o.Message) {
			x.happens(event{what: asked, in: succession.Asked{By: o.From.Index(), Conversation: o.Conversation}, message: o.Message})
		}
		x.say(&o)
	case sim.Lost:
		x.say(&o)
	case sim.Synced:
		x.synced(x.nodes[o.Process.Index()])
	case sim.Failed:
		x.violate("node-stopped", fmt.Sprintf("%s: %v", o.Process.ID(), o.Process.Failure()))
	}
}

// synced is called when a commit of a node has ended.
func (x *stage) synced(n *node) {
	_, durable := n.p.Disk().Positions()
	n.journal.Durable(durable,
		func(t tags.Tag) { x.happens(event{what: holds, by: n.place, tag: t}) },
		func(m *quorum.Map) { x.happens(event{what: learns, by: n.place, known: m}) })
}

// violate tells that a promise is broken, whatever others do.
func (x *stage) violate(rule, text string) { x.happens(event{what: breaks, rule: rule, text: text}) }

func (x *stage) sayf(format string, args ...any) {
	if x.tell != nil {
		x.tell(fmt.Sprintf(format, args...))
	}
}

// say tells of a message.
func (x *stage) say(o *sim.Observation) {
	if x.tell == nil || o.From == o.To {
		return
	}
	what := "arrives"
	switch {
	case o.What == sim.Lost:
		what = "is lost"
	case o.What == sim.ArrivedTooLate:
		what = "comes too late"
	}
	indent := ""
	if o.Answer {
		indent = "    "
	}
	x.tell(fmt.Sprintf("%s%s->%s %s: %s", indent, o.From.ID(), o.To.ID(), what, x.w.Describe(o.Message)))
}
