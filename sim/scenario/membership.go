package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/join"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/reconfig"
	"atoll/replica"
	"atoll/sim"
)

// Membership has the members change while everything goes on.
type Membership struct {
	// Operators are the processes o1, o2 and so on that propose
	// configurations. Default 0: members don't change. Two race.
	Operators int `json:"operators,omitempty"`
	// Blank is how many nodes there are beside Nodes that belong to nothing
	// at first, and know nothing.
	Blank int `json:"blank,omitempty"`
	// Every is the mean time between two proposals. Default 200ms.
	Every Duration `json:"every,omitempty"`
}

const (
	defaultChange = Duration(200 * time.Millisecond)
	maxOperators  = 100
	// proposalLimit is how long an operator tries to have one proposal
	// decided.
	proposalLimit = time.Second
)

// changes reports whether members change.
func (s Scenario) changes() bool { return s.Membership.Operators > 0 }

// pool is how many nodes there are.
func (s Scenario) pool() int { return s.Nodes + s.Membership.Blank }

func (s Scenario) operator(i int) string { return fmt.Sprintf("o%d", i+1) }

// isOperator tells from its name whether a process is an operator.
func isOperator(name string) bool { return letterOf(name) == 'o' }

// checkMembership is given a scenario with its defaults.
func (s Scenario) checkMembership(a Algorithm) []error {
	var errs []error
	m := s.Membership
	switch {
	case m.Operators < 0 || m.Operators > maxOperators:
		errs = append(errs, fmt.Errorf("membership.operators: %d is not from 0 to %d", m.Operators, maxOperators))
	case m.Blank < 0 || s.pool() > quorum.MaxMembers:
		errs = append(errs, fmt.Errorf("membership.blank: there are 0 to %d nodes in all, not %d", quorum.MaxMembers, s.pool()))
	case !s.changes() && m != (Membership{}):
		errs = append(errs, errors.New("membership: without operators nothing comes of it"))
	case s.changes() && s.Clusters > 1:
		errs = append(errs, errors.New("membership: members change in a single cluster only"))
	case s.changes() && a != nil && !a.Traits().Membership:
		errs = append(errs, fmt.Errorf("membership: algorithm %q has fixed members", a.Name()))
	}
	return errs
}

// proposal returns what a decision of the kind "propose" proposes. It needn't
// tolerate any death: who scripts that means it.
func (d Decision) proposal() (reconfig.Proposal, error) {
	text := d.Quorum
	if text == "" {
		text = "majority"
	}
	system, err := quorum.ParseSystem(text)
	if err != nil {
		return reconfig.Proposal{}, err
	}
	p := reconfig.Proposal{System: system, Force: true}
	for _, name := range d.To {
		p.Members = append(p.Members, quorum.NodeID(name))
	}
	return p, nil
}

// target returns what comes of it, under some index.
func (d Decision) target() (*quorum.Configuration, error) {
	p, err := d.proposal()
	if err != nil {
		return nil, err
	}
	return quorum.NewConfiguration(1, p.Members, p.System)
}

// checkProposal returns an error if a proposal makes no sense.
func (d Decision) checkProposal() error {
	for _, name := range d.To {
		if isClient(name) || isOperator(name) {
			return fmt.Errorf("%s can't be a member", name)
		}
	}
	_, err := d.target()
	return err
}

// operator proposes configurations: one at a time.
type operator struct {
	c     *cluster
	p     *sim.Process
	known *rambo.CMap // of its present life
	life  int
	busy  *sim.Scope
}

func (c *cluster) addOperator(i int) {
	r := c.r
	o := &operator{c: c, p: r.w.AddClient(quorum.NodeID(r.s.operator(i)))}
	x := &process{p: o.p, operator: o}
	c.operators = append(c.operators, x)
	r.byIndex = append(r.byIndex, x)
}

// propose begins a proposal, unless the operator is down or has one.
func (o *operator) propose(d Decision) {
	if !o.p.Up() || o.busy != nil && !o.busy.Done() {
		return
	}
	p, err := d.proposal()
	if err != nil {
		panic(err) // Check has looked at it
	}
	if o.known == nil || o.life != o.p.Life() {
		o.known, o.life = rambo.NewCMap(o.c.told.Map), o.p.Life()
	}
	rules := o.c.told.Mutants.Replica
	proposer := &reconfig.Proposer{Cluster: o.c.told.ID, Known: o.known, Members: o.c.told.addresses(), Rules: rules.Reconfig, Synod: rules.Synod}
	o.busy = o.p.Scope(proposalLimit)
	o.busy.Start(func(e env.Env) error { return o.run(e, proposer, p) })
}

// run tries until something was decided.
func (o *operator) run(e env.Env, proposer *reconfig.Proposer, p reconfig.Proposal) error {
	for {
		d, err := rambo.Recon(e, proposer, p)
		if d.Configuration != nil {
			o.c.succession.Decided(d.Configuration, string(o.p.ID()))
		}
		if _, ended := errors.AsType[*env.Unfinished](err); ended || d.Configuration != nil {
			return err
		}
		// The last change isn't through, its map is old, or too many aren't
		// ready: answers tell which.
		if err := o.look(e); err != nil {
			return err
		}
		if err := e.Sleep(proposalLimit / 50); err != nil {
			return err
		}
	}
}

// look asks the members for their config map.
func (o *operator) look(e env.Env) error {
	m := o.known.Map()
	return e.Ask(m.Active().Members(), &abd.Get{Key: keyName(0), Horizon: m.Horizon()}, func(_ env.Conversation, _ quorum.NodeID, answer env.Message) bool {
		switch a := answer.(type) {
		case *abd.GetAck:
			if a.News != nil {
				o.known.Learn(a.News)
			}
		case *abd.Moved:
			o.known.Learn(a.News)
		}
		return true
	})
}

// addresses are all nodes, as nodes know of each other.
func (c Cluster) addresses() []quorum.Member {
	var all []quorum.Member
	for _, id := range c.Nodes {
		all = append(all, quorum.Member{ID: id})
	}
	return all
}

// reconfiguring is a node that does what it must when members change, and
// doesn't repair beside. It joins if it isn't one of the first members, which it
// asks first, and greets.
type reconfiguring struct {
	*replica.Node
	first []quorum.NodeID
}

// Tasks implements sim.Tasked.
func (n reconfiguring) Tasks() []replica.Task {
	tasks := slices.DeleteFunc(n.Node.Tasks(), func(t replica.Task) bool {
		return strings.HasPrefix(t.Name, "repair.")
	})
	if n.Joined() {
		return tasks
	}
	return append(tasks, replica.Task{Name: "join", Run: n.join})
}

// join joins, and then waits.
func (n reconfiguring) join(e env.Env) error {
	if err := (join.Tasks{}).Join(e, n.first); err != nil {
		return err
	}
	_, err := e.Receive("joined")
	return err
}

// reconfigurationPace is that of worlds that live for seconds, and have few keys: a
// merge has several pages all the same, and those under way overtake each other.
func reconfigurationPace() rambo.Pace {
	return rambo.Pace{Gossip: 100 * time.Millisecond, Turn: 20 * time.Millisecond, Patience: 300 * time.Millisecond,
		Finish: 200 * time.Millisecond, Again: 10 * time.Millisecond, Rate: -1, Page: 1}
}

// proposals draws what operators propose. Each begins from the members that
// the one before proposed, whatever became of that, and leaves a quorum among
// the nodes that will be healed: of whichever are decided, something goes on.
func (d *drawing) proposals() {
	d.dice = newDice(d.seed, "proposals")
	var present []string
	for i := range d.s.Nodes {
		present = append(present, string(d.s.node(d.number, i)))
	}
	for at := d.around(d.s.Membership.Every); at < d.s.Duration; at += d.around(d.s.Membership.Every) {
		one := Decision{At: at.whole(), Do: "propose", On: []string{d.s.operator(d.below(d.s.Membership.Operators))}}
		for range maxDraws {
			one.To = d.members(present)
			one.Quorum = d.system(len(one.To))
			if c, err := one.target(); err == nil && d.healing.leaves(c) == nil {
				present = one.To
				d.decisions = append(d.decisions, one)
				break
			}
		}
	}
}

// healBlank draws which of the nodes that belong to nothing at first aren't
// healed: most of them are, or nothing could be proposed.
func (d *drawing) healBlank() {
	for i := range d.s.Membership.Blank {
		if name := string(d.s.node(d.number, d.s.Nodes+i)); d.one(5) {
			d.healing.Dead = append(d.healing.Dead, name)
		}
	}
}

// maxDraws is how often a proposal is drawn anew that can't be made.
const maxDraws = 20

// members draws members: a node more, one less, another in the place of one,
// all others, as many as there are, or any.
func (d *drawing) members(present []string) []string {
	var others []string
	for i := range d.s.pool() {
		if name := string(d.s.node(d.number, i)); !slices.Contains(present, name) {
			others = append(others, name)
		}
	}
	next := slices.Clone(present)
	shuffle(d.dice, next)
	shuffle(d.dice, others)
	switch d.below(6) {
	case 0: // add
		next = append(next, others[:min(1, len(others))]...)
	case 1: // remove
		next = next[:max(1, len(next)-1)]
	case 2: // replace
		if len(others) > 0 {
			next[0] = others[0]
		}
	case 3: // swap the whole set
		if len(others) > 0 {
			next = others[:min(len(others), 1+d.below(maxTarget))]
		}
	case 4: // the same members, maybe under other quorums
	default:
		next = append(next, others...)
		shuffle(d.dice, next)
		next = next[:min(len(next), 1+d.below(maxTarget))]
	}
	slices.Sort(next)
	return next
}

// maxTarget is the most members of a configuration that is drawn.
const maxTarget = 5

// system draws a quorum system of n members.
func (d *drawing) system(n int) string {
	if d.one(2) {
		return ""
	}
	get := d.between(1, n)
	return fmt.Sprintf("get=%d,put=%d", get, d.between(n-get+1, n))
}
