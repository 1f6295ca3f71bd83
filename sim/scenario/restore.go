package scenario

import (
	"errors"
	"time"

	"atoll/env"
	"atoll/join"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim"
)

// The fault "restore": a node comes back over an older copy of its disk, as a folder
// does that is restored from a backup, and has forgotten what it acknowledged since.
// No rule of the protocols bears that; peers are to find it out (join, J3). What can
// be promised is this:
//
//	If every other node that can still come back has durably welcomed a later start
//	than the one in the copy, then the copy never serves: the first answer to its
//	greeting, whoever gives it, ends it. (A copy of a node that hadn't joined yet
//	doesn't greet before it has: it is found out after that.)
//
// So the copy is taken between two starts, and is put back only if that is so by then;
// if it isn't, nothing happens. Without it, who answers first may know no better.
//
// Nodes greet before they serve in such runs, as the server has them do (gate). The
// copy waits for an answer without a limit: a node that hears nobody for so long goes
// on, and nothing can keep it from that.

// copied is the copy of a node's disk.
type copied struct {
	image *sim.Disk
	// welcomed are the nodes that have welcomed a start after it.
	welcomed quorum.Set
}

// copy takes a copy of a node's disk, one at a time, and starts the node again behind
// it.
func (n *node) copy() {
	if n.x.down > 0 || !n.p.Up() || n.gone() || !n.in || n.copied != nil {
		return
	}
	n.copied = &copied{image: n.p.Disk().Image()}
	n.p.Crash()
	n.c.r.restart(n.x)
}

// putBack gives a node its copy, if all others know better, and starts it.
func (n *node) putBack() {
	c := n.copied
	n.copied = nil
	if c == nil || n.gone() {
		return
	}
	for _, m := range n.c.nodes {
		if m != n && !m.gone() && !m.x.buried && !c.welcomed.Has(m.place) {
			return
		}
	}
	n.restored = true
	n.c.r.figures.Restored++
	n.p.RestoreDisk(c.image)
	if err := n.p.Restart(); err != nil {
		n.c.r.violate("boot", nil, "%s doesn't come up over its copy: %v", n.p.ID(), err)
	}
	if n.x.paused > 0 {
		n.p.Pause()
	}
}

// gone reports whether the node must not come back with the identity that it had:
// its disk is lost, or an older one.
func (n *node) gone() bool { return n.restored || n.p.Disk().Lost() }

// welcomes notes the answers to greetings, and that who was restored sends nothing but
// greetings.
func (c *cluster) welcomes(o *sim.Observation) {
	from, to := c.r.byIndex[o.From.Index()].node, c.r.byIndex[o.To.Index()].node
	greeted, answers := o.Message.(*join.Greeted)
	if from != nil && from.restored && from != to && !answers {
		if _, greets := o.Message.(*join.Greet); !greets {
			c.r.violate("copy-serves", nil, "%s runs over an older copy of its disk, and sends a %T to %s", from.p.ID(), o.Message, o.To.ID())
		}
	}
	if answers && from != nil && to != nil && greeted.Verdict == join.Welcome {
		if to.in = true; to.copied != nil {
			to.copied.welcomed = to.copied.welcomed.Add(from.place)
		}
	}
}

// isOutcast reports whether a node has stopped because others know it further.
func isOutcast(err error) bool {
	_, ok := errors.AsType[*join.OutcastError](err)
	return ok
}

// tasked is a node that does more than answer.
type tasked interface {
	sim.Stepper
	sim.Tasked
}

// gate is a node that greets others before it serves, and waits for the first of them
// to answer, as the server has it do.
type gate struct {
	tasked
	self  quorum.NodeID
	limit time.Duration // of the wait; 0: none
	open  bool
}

// Step implements sim.Stepper. Until the node serves, others that greet are answered,
// and all else is lost: who asked asks again.
func (g *gate) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	if _, greets := m.(*join.Greet); !g.open && !greets && from.Node != g.self {
		return out, nil
	}
	return g.tasked.Step(from, m, out)
}

// Tasks implements sim.Tasked: they begin when the node serves.
func (g *gate) Tasks() []replica.Task {
	return []replica.Task{{Name: "serve", Run: g.serve}}
}

func (g *gate) serve(e env.Env) error {
	hello := e.Go("hello", join.Tasks{}.Hello)
	if g.limit > 0 {
		limit := e.Go("limit", func(e env.Env) error {
			if err := e.Sleep(g.limit); err != nil {
				return err
			}
			hello.Cancel()
			return nil
		})
		defer func() {
			limit.Cancel()
			_ = limit.Join()
		}()
	}
	if err := hello.Join(); err != nil && e.Sleep(0) != nil {
		return err
	}
	g.open = true
	var tasks []env.Task
	for _, t := range g.tasked.Tasks() {
		tasks = append(tasks, e.Go(t.Name, func(e env.Env) error { return t.Keep(e, func(error) {}) }))
	}
	for _, t := range tasks {
		_ = t.Join() // each ends with the node
	}
	return e.Sleep(0)
}
