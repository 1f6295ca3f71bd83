package abd

import (
	"errors"
	"slices"
	"strings"

	"atoll/env"
	"atoll/quorum"
)

// Registers runs operations on the registers that the active configurations
// hold. It has no state of its own: use it from as many callers as you like.
type Registers struct {
	// Known is the config map.
	Known Known
	// MaxValue is the largest value in bytes.
	MaxValue int
	// Inline is the largest value in bytes that a read takes from each member
	// that it asks. A larger one is sent by one of them. 0: DefaultInline.
	Inline int
	Rules  Rules
}

// errOut ends a get phase that has learned that a configuration which it began
// with is out.
var errOut = errors.New("a configuration that the phase began with is out")

// A phase is one request to members and the tally of what comes back. It ends
// when what answered contains a quorum of every active configuration that it
// has heard of (R2): at a fixed point, since answers reveal newer ones. A put
// phase asks all. A get phase asks first a read quorum, of those that are
// expected to answer soonest, and the spare if that won't do (R2).
type phase struct {
	name     string
	known    Known
	config   *quorum.Map // whose quorums the phase needs
	first    []quorum.NodeID
	spare    []quorum.NodeID
	answered quorum.Tally
	away     []quorum.NodeID // have answered or refused, and are in none of the configurations
	refused  quorum.Tally
	refusals []refusedBy
	sent     bool // a copy of the request may have reached some member
	lives    lives
	rules    Rules
	woken    bool // members of configurations were asked that it hadn't heard of

	// lasting: what was answered counts whatever configurations are out since.
	lasting bool
	dropped bool // some are
	// grow is told when the phase needs the quorums of other configurations.
	grow func(quorum.Configurations)
	// again, if there is one, forgets what was answered: the phase begins anew
	// where it stands, over other configurations. Since then an answer counts only
	// of who knows that the configuration since is installed.
	again func(quorum.Configurations)
	since quorum.ConfigIndex
}

// begin returns a phase over the active configurations.
func (r *Registers) begin(name string) phase {
	return phase{name: name, known: r.Known, config: r.Known.Map(), rules: r.Rules}
}

type refusedBy struct {
	node    quorum.NodeID
	refused *env.Refused
	copies  int // of the request, handed to the transport in all
}

// prefer makes the phase one that asks a read quorum first. While members change,
// those are asked before others that more configurations need: fewer make up a
// quorum of each then, and they hold what new ones have yet to merge, so that more
// reads end after one round.
func (p *phase) prefer(e env.Env) {
	cs := p.config.Active()
	p.first, p.spare = cs.ReadQuorum(cs.SharedFirst(e.Nearest(cs.Members())))
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
func (p *phase) run(e env.Env, req env.Message, accept func(from quorum.NodeID, answer env.Message) bool,
	void func(quorum.NodeID), complete func() bool, possible func() bool) error {

	p.answered.Begin(p.config.Active())
	p.refused.Begin(p.config.Active())
	hopeless, out := false, false
	if p.rules.WaitForAll {
		complete = p.answered.HasAll
	}
	err := e.AskSome(p.first, p.spare, req, func(c env.Conversation, from quorum.NodeID, answer env.Message) bool {
		if _, woken := answer.(env.Woken); woken {
			p.wake(c, req)
			return false
		}
		refused, isRefused := answer.(*env.Refused)
		if s := standingOf(answer); s != nil {
			var counts bool
			if counts, out = p.hear(c, req, from, s); out {
				return true
			}
			_, moved := answer.(*Moved)
			switch {
			case !counts:
				p.bringIn(c)
				return false
			// What a node that is out tells of lives counts as well: it may be the
			// one from whom the phase hears that a configuration is out (H5).
			case !(moved && p.rules.MovedTellsNothing) && !p.stands(c, req, from, s, void):
				return false
			case moved:
				refused, isRefused = &env.Refused{Reason: env.ReasonNotMember}, true
			}
		}
		if isRefused {
			p.refuse(from, refused)
			if hopeless = !possible(); hopeless {
				p.countCopies(c)
				return true
			}
			p.bringIn(c)
			return complete() // without a configuration that is out now, maybe
		}
		if !accept(from, answer) {
			p.bringIn(c)
			return false // not an answer to this: the node counts as silent
		}
		if p.answered.Add(from); !p.answered.Has(from) {
			p.away = append(p.away, from)
		}
		return complete()
	})
	unfinished, ended := errors.AsType[*env.Unfinished](err)
	switch {
	case ended:
		return p.scopeEnded(unfinished)
	case err != nil:
		p.sent = true
		return p.blame(&QuorumError{Phase: p.name, Cause: err})
	case out:
		return errOut
	case hopeless:
		return p.allRefused()
	}
	p.sent = true
	return nil
}

// hear takes in what an answer reveals of the configurations (R2). It reports
// whether the answer may count, and whether the phase must begin again.
//
// A configuration that was decided meanwhile is added, and its members are
// asked: what has been answered still counts. But when one is out with which a
// get phase began, that phase can't go on with the others: who has answered
// for the newer ones may have done so before these held what was in the older
// one (S1). A put phase goes on: what a member stores durably it has, whenever
// it did so.
//
// A get phase doesn't have to ask once more for that, if the first member of the
// newer ones who answers tells: that answer isn't too early. So it begins anew with
// that, and those of all who know as much. When one comes of somebody who doesn't,
// it may have been given too early, and the phase begins again.
//
// It goes by what its own answers reveal, and not by what others that share the
// config map have learned meanwhile: with the news that a configuration is out
// comes what its members knew of lives, for the phase that is told (H5).
func (p *phase) hear(c env.Conversation, req env.Message, from quorum.NodeID, s *Standing) (counts, out bool) {
	if s.Horizon.Installed < p.since && !p.rules.CountEarly {
		return false, true
	}
	if !p.config.Horizon().Behind(s.Horizon) || p.rules.IgnoreNews {
		return true, false
	}
	m := p.config
	if s.News != nil {
		if all := p.known.Learn(s.News); p.rules.FollowOthers {
			m = all
		} else if own, err := m.Merge(s.News.Map); err == nil {
			m = own
		}
	}
	if m.Horizon().Behind(s.Horizon) {
		return false, false // it knows of something, and doesn't say what
	}
	switch {
	case m.Installed().Index() == p.config.Installed().Index(), p.lasting, p.rules.DropInTheMiddle:
		p.follow(c, req, m)
	case p.again != nil && p.fresh(from, m) && m.Installed().Index() <= s.Horizon.Installed:
		p.anew(c, m)
	default:
		return false, true
	}
	return true, false
}

// fresh reports whether a phase can begin anew where it stands with an answer of
// from, over the configurations of m: from is a member of one, and no other has
// answered or refused so far.
func (p *phase) fresh(from quorum.NodeID, m *quorum.Map) bool {
	return m.Has(from) && !slices.ContainsFunc(p.answered.Nodes(), m.Has) && !slices.ContainsFunc(p.away, m.Has) &&
		!slices.ContainsFunc(p.refusals, func(r refusedBy) bool { return m.Has(r.node) })
}

// anew makes the phase one over the configurations that are active in m, which has
// no answer yet. Who has answered is away, and is asked again when back.
func (p *phase) anew(c env.Conversation, m *quorum.Map) {
	cs := m.Active()
	p.config, p.since = m, m.Installed().Index()
	p.away = append(p.away, p.answered.Nodes()...)
	for _, r := range p.refusals {
		p.away = append(p.away, r.node)
	}
	if p.refusals = nil; p.rules.ForgetWhoAnswered {
		p.away = nil
	}
	p.answered.Begin(cs)
	p.refused.Begin(cs)
	p.again(cs)
	c.Add(cs.Members()...)
}

// wake is called when the process has learned of configurations otherwise than
// by an answer in this phase. If one is installed that the phase hasn't heard of,
// those that it waits for may be switched off by now, and would never say so. The
// members of the newer ones will, and so they are asked, also those that have
// answered before they knew it.
//
// The phase still goes by what it is answered, and not by the map alone: with the
// news comes what they know of lives (H5).
func (p *phase) wake(c env.Conversation, req env.Message) {
	m := p.known.Map()
	switch {
	case m.Installed().Index() <= p.config.Installed().Index(), p.rules.SleepOn, p.rules.IgnoreNews:
		return
	case p.rules.WakeByMap && p.lasting:
		p.follow(c, req, m)
		return
	}
	p.woken = true
	for _, id := range m.Active().Members() {
		c.Redirect(id, req)
	}
}

// follow makes the phase need the quorums of the configurations that are active
// in m. A node that is back, having been in none of them for a while, is asked
// anew.
func (p *phase) follow(c env.Conversation, req env.Message, m *quorum.Map) {
	p.dropped = p.dropped || m.Installed().Index() > p.config.Installed().Index()
	p.config = m
	cs := m.Active()
	p.away = append(p.away, p.answered.Grow(cs)...)
	p.refused.Begin(cs)
	for _, r := range p.refusals {
		if r.refused.Reason == env.ReasonNotMember {
			p.away = append(p.away, r.node)
		} else {
			p.refused.Add(r.node)
		}
	}
	p.refusals = slices.DeleteFunc(p.refusals, func(r refusedBy) bool { return r.refused.Reason == env.ReasonNotMember })
	if p.grow != nil {
		p.grow(cs)
	}
	c.Add(cs.Members()...)
	p.away = slices.DeleteFunc(p.away, func(id quorum.NodeID) bool {
		back := m.Has(id)
		if back && !p.answered.Has(id) {
			c.Redirect(id, req)
		}
		return back
	})
}

// bringIn asks the spare.
func (p *phase) bringIn(c env.Conversation) {
	if !p.rules.KeepSpares {
		c.Add(p.spare...)
	}
}

// stands reports whether an answer counts, and takes those back that no longer
// do (H3). Whoever gave one of them is asked again.
func (p *phase) stands(c env.Conversation, req env.Message, from quorum.NodeID, s *Standing, void func(quorum.NodeID)) bool {
	if p.rules.CountForgotten {
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
// a node that has changed its mind. Members of a configuration that is out
// since may have taken it, too, and those of one that the phase was woken for.
func (p *phase) allRefused() error {
	p.sent = !p.refused.HasAll() || p.dropped || p.woken && !p.rules.TrustWhenWoken
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
	p := r.begin("put")
	p.first, p.lasting = p.config.Active().Members(), true
	accept := func(_ quorum.NodeID, answer env.Message) bool {
		_, ok := answer.(*PutAck)
		return ok
	}
	complete := p.answered.HasWrite
	if r.Rules.PutOneShort {
		complete = func() bool { return true }
	}
	if r.Rules.ConfirmEarly {
		e.Tell(p.first, &Confirm{Key: key, Tag: record.Tag})
	}
	req := &Put{Key: key, Record: record, Horizon: p.config.Horizon()}
	err = p.run(e, req, accept, func(quorum.NodeID) {}, complete, p.refused.LeavesWrite)
	if cs := p.config.Active(); err == nil && !cs.ReadsAreWrites() {
		// Where a read quorum alone can't show that a write quorum holds the
		// tag, say so, once it is true. With majorities it can, and the hint
		// would cost a message a member for nothing.
		e.Tell(cs.Members(), &Confirm{Key: key, Tag: record.Tag})
	}
	return p.sent, err
}
