package abd

import (
	"errors"
	"slices"
	"strings"

	"atoll/env"
	"atoll/quorum"
)

// Registers runs operations on the registers that a set of configurations
// holds. It has no state: use it from as many callers as you like.
type Registers struct {
	// Configurations are the active ones; at least one.
	Configurations quorum.Configurations
	// MaxValue is the largest value in bytes.
	MaxValue int
	// Inline is the largest value in bytes that a read takes from each member
	// that it asks. A larger one is sent by one of them. 0: DefaultInline.
	Inline int
	Rules  Rules
}

// A phase is one request to members and the tally of what comes back. It ends
// when what answered contains a quorum of every configuration (R2). A put phase
// asks all. A get phase asks first a read quorum, of those that are expected to
// answer soonest, and the spare if that won't do (R2).
type phase struct {
	name     string
	first    []quorum.NodeID
	spare    []quorum.NodeID
	answered quorum.Tally
	refused  quorum.Tally
	refusals []refusedBy
	sent     bool // a copy of the request may have reached some member
	lives    lives
	rules    Rules
}

type refusedBy struct {
	node    quorum.NodeID
	refused *env.Refused
	copies  int // of the request, handed to the transport in all
}

// prefer makes the phase one that asks a read quorum first.
func (p *phase) prefer(e env.Env, cs quorum.Configurations) {
	p.first, p.spare = cs.ReadQuorum(e.Nearest(cs.Members()))
	if p.rules.WaitForAll {
		p.first, p.spare = cs.Members(), nil
	}
}

// run asks first, and spare if need be, and calls accept with each answer that
// isn't a refusal. accept reports whether the answer is one that the phase
// asked for. The phase ends when complete says so, or when the members that
// haven't refused can't make it complete (possible). When an answer that was
// accepted counts no more, run calls void.
//
// The kernel brings in the spare when first is late or out of reach. That an
// answer is no help is for the phase to notice: a member that has refused has
// answered, and nobody waits for it (R2).
func (p *phase) run(e env.Env, cs quorum.Configurations, req env.Message, accept func(from quorum.NodeID, answer env.Message) bool,
	void func(quorum.NodeID), complete func() bool, possible func() bool) error {

	p.answered.Begin(cs)
	p.refused.Begin(cs)
	hopeless := false
	if p.rules.WaitForAll {
		complete = p.answered.HasAll
	}
	err := e.AskSome(p.first, p.spare, req, func(c env.Conversation, from quorum.NodeID, answer env.Message) bool {
		if refused, ok := answer.(*env.Refused); ok {
			p.refuse(from, refused)
			if hopeless = !possible(); hopeless {
				p.countCopies(c)
				return true
			}
			p.bringIn(c)
			return false
		}
		if !p.stands(c, req, from, answer, void) {
			return false
		}
		if !accept(from, answer) {
			p.bringIn(c)
			return false // not an answer to this: the node counts as silent
		}
		p.answered.Add(from)
		return complete()
	})
	unfinished, ended := errors.AsType[*env.Unfinished](err)
	switch {
	case ended:
		return p.scopeEnded(unfinished)
	case err != nil:
		p.sent = true
		return p.blame(&QuorumError{Phase: p.name, Cause: err})
	case hopeless:
		return p.allRefused(cs)
	}
	p.sent = true
	return nil
}

// bringIn asks the spare.
func (p *phase) bringIn(c env.Conversation) {
	if !p.rules.KeepSpares {
		c.Add(p.spare...)
	}
}

// stands reports whether an answer counts, and takes those back that no longer
// do (H3). Whoever gave one of them is asked again.
func (p *phase) stands(c env.Conversation, req env.Message, from quorum.NodeID, answer env.Message, void func(quorum.NodeID)) bool {
	s := standingOf(answer)
	if s == nil || p.rules.CountForgotten {
		return true
	}
	forgotten, counts := p.lives.learn(from, s)
	for _, node := range forgotten {
		void(node)
		if p.answered.Has(node) {
			p.answered.Remove(node)
			c.Redirect(node, req)
		}
	}
	if !counts {
		c.Redirect(from, req)
	}
	return counts
}

func (p *phase) refuse(from quorum.NodeID, refused *env.Refused) {
	p.refused.Add(from)
	for _, r := range p.refusals {
		if r.node == from {
			return
		}
	}
	p.refusals = append(p.refusals, refusedBy{node: from, refused: refused})
}

// countCopies is called when the phase is over, and not when a member refuses:
// one whose connection broke since then was asked again.
func (p *phase) countCopies(c env.Conversation) {
	for i := range p.refusals {
		p.refusals[i].copies = c.Sent(p.refusals[i].node)
	}
}

func (p *phase) scopeEnded(u *env.Unfinished) error {
	q := &QuorumError{Phase: p.name, Cause: u.Cause}
	believed := p.rules.TimeoutIsFailure && errors.Is(u.Cause, env.ErrDeadline)
	for _, t := range u.Targets {
		p.sent = p.sent || t.Sent && !believed
		if !t.Answered {
			q.Nodes = append(q.Nodes, NodeError{Node: t.Node, Text: t.Silence()})
		}
	}
	return p.blame(q)
}

// allRefused is the end of a phase that refusals made impossible. Nothing was
// done only if every member refused, and each the only copy of the request
// that it was ever sent: a second copy may still be on its way, and be met by
// a node that has changed its mind.
func (p *phase) allRefused(cs quorum.Configurations) error {
	p.sent = !p.refused.HasAll()
	for _, r := range p.refusals {
		p.sent = p.sent || r.copies > 1 && !p.rules.TrustRefusals
	}
	return p.blame(&QuorumError{Phase: p.name, Cause: ErrRefused})
}

// blame adds the refusals to q and sorts what it says by node.
func (p *phase) blame(q *QuorumError) error {
	for _, r := range p.refusals {
		q.Nodes = append(q.Nodes, NodeError{Node: r.node, Text: r.refused.Error(), Refused: r.refused})
	}
	slices.SortFunc(q.Nodes, func(a, b NodeError) int { return strings.Compare(string(a.Node), string(b.Node)) })
	return q
}

// put runs a put phase. It reports whether a copy of the put may have reached
// a member, which is so whenever it succeeds.
func (r *Registers) put(e env.Env, key Key, record Record) (sent bool, err error) {
	p := phase{name: "put", first: r.Configurations.Members(), rules: r.Rules}
	accept := func(_ quorum.NodeID, answer env.Message) bool {
		_, ok := answer.(*PutAck)
		return ok
	}
	complete := p.answered.HasWrite
	if r.Rules.PutOneShort {
		complete = func() bool { return true }
	}
	if r.Rules.ConfirmEarly {
		e.Tell(r.Configurations.Members(), &Confirm{Key: key, Tag: record.Tag})
	}
	err = p.run(e, r.Configurations, &Put{Key: key, Record: record}, accept, func(quorum.NodeID) {}, complete, p.refused.LeavesWrite)
	if err == nil && !r.Configurations.ReadsAreWrites() {
		// Where a read quorum alone can't show that a write quorum holds the
		// tag, say so, once it is true. With majorities it can, and the hint
		// would cost a message a member for nothing.
		e.Tell(r.Configurations.Members(), &Confirm{Key: key, Tag: record.Tag})
	}
	return p.sent, err
}
