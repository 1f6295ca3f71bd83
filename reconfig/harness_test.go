package reconfig_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/reconfig"
	"atoll/sim"
	"atoll/synod"
)

// known is a Known that takes what it is told.
type known struct{ m *quorum.Map }

func (k *known) Map() *quorum.Map { return k.m }

func (k *known) Learn(n *quorum.News) *quorum.Map {
	if m, err := k.m.Merge(n.Map); err == nil {
		k.m = m
	}
	return k.m
}

var _ abd.Known = (*known)(nil)

// fixture is a world of nodes that know a configuration 0, and of a few that are
// its members.
type fixture struct {
	*sim.World
	t       testing.TB
	present *quorum.Configuration
	rules   reconfig.Rules
	news    map[quorum.NodeID]*quorum.News // of nodes; nil: present
	twin    *twin
}

// nodes of a fixture.
var nodes = []quorum.NodeID{"a", "b", "c", "d", "e"}

func newFixture(t testing.TB, cfg sim.Config, rules reconfig.Rules, present *quorum.Configuration) *fixture {
	f := &fixture{t: t, present: present, rules: rules, news: make(map[quorum.NodeID]*quorum.News)}
	f.twin = &twin{present: present, proposed: make(map[synod.Ballot]*quorum.Configuration), accepted: make(map[synod.Ballot]quorum.Set),
		asked: make(map[*reconfig.Readied]*quorum.Configuration), ready: make(map[string][]quorum.NodeID)}
	observe := cfg.Observe
	cfg.Observe = func(o sim.Observation) {
		f.twin.observe(o)
		if observe != nil {
			observe(o)
		}
	}
	f.World = sim.New(cfg)
	t.Cleanup(f.Close)
	for _, id := range nodes {
		if _, err := f.AddNode(id, f.boot); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// node tells the twin what a Readied is about.
type node struct {
	*reconfig.Replica
	f  *fixture
	id quorum.NodeID
}

func (f *fixture) boot(p *sim.Process) (sim.Stepper, error) {
	return &node{newReplica(p.Disk(), p.ID(), f.rules), f, p.ID()}, nil
}

func (n *node) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	about := n.f.news[n.id]
	if about == nil {
		about = news(n.f.t, n.f.present)
	}
	n.Stand(about, 0)
	out, err := n.Replica.Step(from, m, out)
	if req, ok := m.(*reconfig.Ready); ok {
		if readied, ok := out[len(out)-1].Message.(*reconfig.Readied); ok {
			n.f.twin.asked[readied] = req.Configuration
		}
	}
	return out, err
}

// proposer returns a proposer that knows configuration 0 to begin with.
func (f *fixture) proposer() *reconfig.Proposer {
	return &reconfig.Proposer{Cluster: "c1", Known: &known{news(f.t, f.present).Map}, Rules: f.rules}
}

// run runs an operation on a process to its end, for so long at most.
func (f *fixture) run(on quorum.NodeID, limit time.Duration, op func(e env.Env) error) error {
	f.t.Helper()
	scope := f.Process(on).Scope(limit)
	scope.Start(op)
	if err := f.Wait(limit+time.Minute, scope); err != nil {
		f.t.Fatal(err)
	}
	return scope.Err()
}

// recon has p propose majorities of some members.
func (f *fixture) recon(p *reconfig.Proposer, on quorum.NodeID, members ...quorum.NodeID) (d reconfig.Decision, err error) {
	f.t.Helper()
	err = f.run(on, time.Second, func(e env.Env) (err error) {
		d, err = p.Recon(e, reconfig.Proposal{Members: members})
		return err
	})
	return d, err
}

// twin is the definition: a configuration is decided when all members of a write
// quorum of the present one have said that they accepted it under one ballot. It
// is told of every message that leaves a node.
type twin struct {
	present  *quorum.Configuration
	proposed map[synod.Ballot]*quorum.Configuration
	accepted map[synod.Ballot]quorum.Set
	asked    map[*reconfig.Readied]*quorum.Configuration
	ready    map[string][]quorum.NodeID // who was, by the text of a configuration
	decided  []*quorum.Configuration    // each once
	wrong    string
}

func (w *twin) observe(o sim.Observation) {
	// What a node says to itself is seen when it arrives.
	if to := o.To; o.What != sim.Sent && (to == nil || o.From != to || o.What != sim.Arrived && o.What != sim.ArrivedTooLate) {
		return
	}
	switch m := o.Message.(type) {
	case *reconfig.Readied:
		c := w.asked[m].String()
		w.ready[c] = append(w.ready[c], o.From.ID())
	case *synod.Accept:
		c, err := quorum.ParseConfiguration(m.Value)
		if err != nil {
			w.wrong = err.Error()
			return
		}
		w.proposed[m.Ballot] = c
		if bad := w.unready(c); bad != "" {
			w.wrong = bad
		}
	case *synod.Accepted:
		place, _ := w.present.Place(o.From.ID())
		set := w.accepted[m.Ballot].Add(place)
		w.accepted[m.Ballot] = set
		if c := w.proposed[m.Ballot]; w.present.IsWrite(set) && !slices.ContainsFunc(w.decided, c.Equal) {
			w.decided = append(w.decided, c)
		}
	}
}

// unready returns what is wrong with who is ready for what is proposed. (An
// abort proposes the present members, whom nobody asks.)
func (w *twin) unready(c *quorum.Configuration) string {
	if slices.Equal(c.Members(), w.present.Members()) {
		return ""
	}
	var t quorum.Tally
	t.Begin(quorum.Configurations{c})
	for _, id := range w.ready[c.String()] {
		t.Add(id)
	}
	for _, id := range c.Members() {
		if _, stays := w.present.Place(id); !stays && !t.Has(id) {
			return fmt.Sprintf("%v was proposed, and its new member %s wasn't ready", c, id)
		}
	}
	if !t.HasRead() || !t.HasWrite() {
		return fmt.Sprintf("%v was proposed, and ready were %v", c, w.ready[c.String()])
	}
	return ""
}

// judge returns what is wrong with what was decided and with what callers were
// told, or nothing.
func (w *twin) judge(told []*quorum.Configuration) string {
	switch {
	case len(w.decided) > 1:
		return fmt.Sprintf("decided: %v, and %v", w.decided[0], w.decided[1])
	case w.wrong != "":
		return w.wrong
	}
	for _, c := range told {
		if len(w.decided) == 0 || !w.decided[0].Equal(c) {
			return fmt.Sprintf("somebody was told %v, and decided is %v", c, w.decided)
		}
	}
	return ""
}

// breakRule returns rules that lack the named one.
func breakRule(t testing.TB, name string) (rules reconfig.Rules) {
	t.Helper()
	if name == "" {
		return rules
	}
	f := reflect.ValueOf(&rules).Elem().FieldByName(name)
	if !f.IsValid() {
		t.Fatalf("there is no rule %q to break", name)
	}
	f.SetBool(true)
	return rules
}
