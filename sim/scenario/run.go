package scenario

import (
	"fmt"
	"slices"
	"time"

	"atoll/abd"
	"atoll/quorum"
	"atoll/sim"
	"atoll/sim/history"
	"atoll/sim/succession"
	"atoll/tags"
)

// Run runs a plan to its end, or to the first promise that is broken. The
// error says that the plan makes no sense.
func Run(p Plan, o Options) (Result, error) {
	if err := p.Check(); err != nil {
		return Result{}, err
	}
	r, err := newRun(p, o)
	if err != nil {
		return Result{}, err
	}
	r.whole()
	return r.result(), nil
}

// run is a plan that is being run.
type run struct {
	plan      Plan
	s         Scenario // with defaults
	o         Options
	algorithm Algorithm
	traits    Traits
	mutants   Mutants
	bounds    [kinds]int // rounds
	link      sim.Link
	census    *census
	skip      *skip
	ways      []*way

	w        *sim.World
	clusters []*cluster
	byIndex  []*process // by sim.Process.Index
	byName   map[string]*process
	arrived  arrival
	sizer    *sizer

	recorder  history.Recorder
	writes    []write // by number
	deletes   map[tags.PID]int
	failed    bool // there is a violation
	violation *Violation
	figures   Figures
	pending   int // operations under way
	// over: no further operation begins. healed: the faults have ended.
	over, healed bool
}

// process is what a run knows of a process of the world.
type process struct {
	p        *sim.Process
	node     *node   // or:
	client   *client // or:
	operator *operator
	ways     []*way // to others, that faults have touched

	// How many faults are going on that keep it down, and so on.
	down, paused, off, stalled, full int
	buried                           bool // it is down, or frozen, as long as there are faults
	// The factors of those that slow it down, and its disk.
	gray, slow int
}

// arrival is the answer that is arriving.
type arrival struct {
	from         *node
	conversation uint64
}

// cluster is one cluster of the world.
type cluster struct {
	r             *run
	number        int // from 0
	told          Cluster
	configuration *quorum.Configuration
	all           quorum.Set
	nodes         []*node // by place in the configuration, and then those that are in none
	byID          map[quorum.NodeID]*node
	operators     []*process
	clients       []*client
	registers     []*register
	pending       int
	changing      bool // members change, as succession watches
	succession    *succession.Watch
	progress      time.Duration // when an operation ended last, or the first of those under way began
}

// register is one key of a cluster.
type register struct {
	c   *cluster
	key abd.Key
	// name is the key in the history, which has those of all clusters.
	name string
	// writer is who writes it, where there is only one.
	writer *client
	// durable are the tags that nodes hold durably, by place.
	durable []tags.Tag
	// completed is the largest tag of an operation that has ended.
	completed tags.Tag
	// bound are the numbers of the writes of tags.
	bound map[tags.Tag]int
}

// node is one node of a cluster.
type node struct {
	c     *cluster
	place int
	x     *process
	p     *sim.Process
	// journal is what the checks are told when it is durable.
	journal succession.Journal[stored]

	in       bool    // it greets: it has durably joined
	copied   *copied // nil: there is no copy of its disk
	restored bool    // it has had that copy for its disk since
}

// stored is a record that a node has stored.
type stored struct {
	register *register
	tag      tags.Tag
	healed   bool // in the place of a damaged one
}

// newRun builds the world of a plan.
func newRun(p Plan, o Options) (*run, error) {
	r := &run{plan: p, s: p.Scenario.WithDefaults(), o: o, algorithm: o.Algorithm, deletes: make(map[tags.PID]int), byName: make(map[string]*process)}
	if r.algorithm == nil {
		r.algorithm = algorithm(r.s.Algorithm)
	}
	r.traits = r.algorithm.Traits()
	if err := r.traits.check(); err != nil {
		return nil, fmt.Errorf("algorithm %q: %w", r.algorithm.Name(), err)
	}
	r.s.SingleWriter = r.s.SingleWriter || r.traits.SingleWriter
	r.mutants, _ = r.s.rules() // Check has looked at them
	r.bounds = r.roundBounds()
	if o.Bytes {
		r.sizer = &sizer{other: r.traits.Size}
	}
	r.figures.DelayBound = r.s.DelayBound()
	r.census, r.skip = r.s.census(), p.skips()
	r.link = r.s.link()
	sync := r.s.Disk.Sync.mustParse()
	cfg := sim.Config{
		Seed:        p.Seed,
		Link:        func(_, _ quorum.NodeID) sim.Link { return r.link },
		Sync:        func(quorum.NodeID) sim.Delay { return sync },
		ResendFirst: time.Duration(r.s.Network.ResendFirst),
		ResendMost:  time.Duration(r.s.Network.ResendMost),
		Hedge:       2 * r.figures.DelayBound, // there and back; zero is the default
		Observe:     r.observe,
		Rules:       r.mutants.World,
	}
	if p.has("reach") {
		cfg.Intercept = r.intercept
	}
	r.w = sim.New(cfg)
	if p.has("minimal") {
		r.w.Narrow(r.toMinimal)
	}
	for number := range r.s.Clusters {
		if err := r.addCluster(number); err != nil {
			r.w.Close()
			return nil, err
		}
	}
	return r, nil
}

func (r *run) roundBounds() [kinds]int {
	b := [kinds]int{Read: r.traits.ReadRounds, Write: r.traits.WriteRounds, Delete: r.traits.WriteRounds}
	if r.traits.ListRounds != nil {
		b[List] = r.traits.ListRounds(r.s.Keys)
	}
	if r.s.changes() {
		b = [kinds]int{} // each configuration that is discovered takes more
	}
	if r.s.ValueSize > abd.DefaultInline && !r.s.changes() {
		b[Read] += r.traits.FetchRounds
		b[List] += r.traits.FetchRounds * r.s.Keys
	}
	set := func(k Kind, most int) {
		if most > 0 {
			b[k] = most
		}
	}
	set(Read, r.s.Bounds.ReadRounds)
	set(Write, r.s.Bounds.WriteRounds)
	set(Delete, r.s.Bounds.WriteRounds)
	set(List, r.s.Bounds.ListRounds)
	return b
}

func (r *run) addCluster(number int) error {
	configuration, err := r.s.configuration(number)
	if err != nil {
		return err
	}
	c := &cluster{r: r, number: number, configuration: configuration, byID: make(map[quorum.NodeID]*node), changing: r.s.changes(), told: Cluster{
		ID:             quorum.ClusterID(fmt.Sprintf("c%d", number+1)),
		Repair:         r.s.Repair == repairOn,
		Configurations: quorum.Configurations{configuration},
		MaxValue:       max(r.s.ValueSize, abd.DefaultMaxValue),
		Greets:         r.plan.has("restore"),
		Greeting:       greeting,
		Mutants:        r.mutants,
	}}
	if c.changing {
		if err := c.begin(); err != nil {
			return err
		}
	}
	r.clusters = append(r.clusters, c)
	for k := range r.s.Keys {
		g := &register{c: c, key: keyName(k), durable: make([]tags.Tag, r.s.pool()), bound: make(map[tags.Tag]int)}
		g.name = string(g.key)
		if r.s.Clusters > 1 {
			g.name = fmt.Sprintf("c%d/%s", number+1, g.key)
		}
		c.registers = append(c.registers, g)
	}
	pool := slices.Clone(configuration.Members())
	for i := range r.s.Membership.Blank {
		pool = append(pool, r.s.node(number, r.s.Nodes+i))
	}
	for place, id := range pool {
		n := &node{c: c, place: place}
		c.all = c.all.Add(place)
		c.nodes = append(c.nodes, n)
		c.byID[id] = n
		n.x = &process{node: n}
		r.byIndex = append(r.byIndex, n.x)
		if n.p, err = r.w.AddNode(id, n.boot); err != nil {
			return err
		}
		n.x.p = n.p
	}
	for i := range r.s.Clients {
		r.addClient(c, r.s.client(number, i), i)
	}
	for i := range r.s.Membership.Operators {
		c.addOperator(i)
	}
	for _, x := range r.byIndex {
		r.byName[string(x.p.ID())] = x
	}
	for k, g := range c.registers {
		g.writer = c.clients[k%len(c.clients)]
	}
	return nil
}

func (r *run) addClient(c *cluster, id quorum.NodeID, i int) *client {
	cl := newClient(c, i, r.w.AddClient(id))
	cl.x = &process{p: cl.p, client: cl}
	c.clients = append(c.clients, cl)
	r.byIndex = append(r.byIndex, cl.x)
	return cl
}

// whole runs everything.
func (r *run) whole() {
	defer r.w.Close()
	defer r.caught()
	for _, d := range r.plan.Decisions {
		r.decide(d)
	}
	for _, c := range r.clusters {
		for _, cl := range c.clients {
			cl.idle = slices.Contains(r.plan.Idle, cl.name)
			cl.live()
		}
	}
	r.w.At(time.Duration(r.s.Duration), func() { r.over = true })
	r.until(func() bool { return r.over || r.idle() })
	r.over = true
	for _, step := range []func(){r.heal, r.end, r.agree, r.readBack, r.readLast, r.judge} {
		if r.failed {
			return
		}
		step()
	}
}

// caught makes a violation of a panic: of the algorithm, or of the kernel,
// which panics when its rules are broken or when time stands still.
func (r *run) caught() {
	switch v := recover().(type) {
	case nil:
	case *sim.NoProgress:
		r.violate("no-progress", nil, "seed %d: %v", r.plan.Seed, v)
	default:
		r.violate("panic", nil, "%v", v)
	}
}

// until lets the world go on until done says so, something was broken, or
// nothing is left to happen.
func (r *run) until(done func() bool) {
	for !r.failed && !done() && r.w.Step() {
	}
}

// idle reports whether every client has done all of its operations.
func (r *run) idle() bool {
	if r.s.Operations == 0 || r.pending > 0 {
		return false
	}
	for _, c := range r.clusters {
		for _, cl := range c.clients {
			if cl.next < r.s.Operations && !cl.idle {
				return false
			}
		}
	}
	return true
}

// judge asks the oracle about the whole history.
func (r *run) judge() {
	v, err := history.Check(r.recorder.History())
	if err != nil {
		panic(err) // the harness makes no such histories
	}
	if v != nil {
		r.failed = true
		r.violation = &Violation{Rule: "linearizable", Text: string(v.Rule), Key: v.Key, At: r.w.Now(), Operations: v.String()}
	}
}

// violate notes the first promise that was broken.
func (r *run) violate(rule string, g *register, format string, args ...any) {
	if r.failed {
		return
	}
	r.failed = true
	r.violation = &Violation{Rule: rule, Text: fmt.Sprintf(format, args...), At: r.w.Now()}
	if g != nil {
		r.violation.Cluster, r.violation.Key = g.c.number+1, g.name
		r.violation.Operations = r.operationsOf(g)
	}
}

func (r *run) result() Result {
	r.figures.Events, r.figures.Messages = r.w.Events()
	r.figures.Simulated = r.w.Now()
	for _, c := range r.clusters {
		if c.changing {
			r.figures.Installed += c.succession.Installed()
		}
	}
	return Result{
		Hash:        r.w.Hash(),
		Checkpoints: r.w.Checkpoints(),
		Violation:   r.violation,
		Figures:     r.figures,
		History:     r.recorder.History(),
	}
}
