package reconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/synod"
)

// Proposer has configurations decided. It has no state of its own.
type Proposer struct {
	Cluster quorum.ClusterID
	// Known is the config map, and is told what answers reveal. What they say
	// that is installed comes without lives (H5): on a node it must be a map of
	// the caller's own, not the node's.
	Known abd.Known
	// Members are where nodes are, for those that are told of the configurations.
	Members []quorum.Member
	Rules   Rules
	Synod   synod.Rules
}

// Decision is what was decided.
type Decision struct {
	Configuration *quorum.Configuration
	// Proposed: it is what was proposed here, though perhaps by somebody else.
	Proposed bool
	// Ready are what those of its members said of themselves that were ready,
	// sorted by node; none if it was decided before they were asked.
	Ready []Facts
}

// Recon has the configuration that follows the installed one decided, by its
// members, and returns it: the one proposed, or another's that was faster.
//
// Errors: those of Proposal.Target; *BusyError while an earlier change is under
// way; *PastError; *NotReadyError; and those of synod.Proposer.Propose, by which
// an *abd.QuorumError with the Effect Unknown means that the proposal may be
// decided yet.
func (p *Proposer) Recon(e env.Env, proposal Proposal) (Decision, error) {
	m := p.Known.Map()
	target, err := proposal.target(m.Installed(), p.Rules)
	if err != nil {
		return Decision{}, err
	}
	if m.Newest() != m.Installed() {
		return p.underWay(m, target)
	}
	var ready []Facts
	if !p.Rules.ProposeUnready {
		switch ready, err = p.ready(e, m, target); {
		case err == errKnown:
			return p.decided(target)
		case err != nil:
			return Decision{}, err
		}
	}
	d, err := p.propose(e, m.Installed(), target)
	d.Ready = ready
	return d, err
}

// underWay is the end of a Recon when a change is decided already. A command
// that is given twice finds its own.
func (p *Proposer) underWay(m *quorum.Map, target *quorum.Configuration) (Decision, error) {
	if next, ok := m.Find(target.Index()); ok && next.Equal(target) {
		return Decision{Configuration: next, Proposed: true}, nil
	}
	return Decision{}, &BusyError{Decided: m.Newest()}
}

// propose has a configuration decided among the members of the present one.
func (p *Proposer) propose(e env.Env, present, target *quorum.Configuration) (Decision, error) {
	s := synod.Proposer{Configuration: present, Known: p.Known, Rules: p.Synod}
	value, err := s.Propose(e, Instance(target.Index()), target.Append(nil))
	if _, closed := errors.AsType[*synod.ClosedError](err); closed {
		d, known := p.decided(target)
		if _, past := errors.AsType[*PastError](known); known == nil || past {
			return d, known
		}
	}
	if err != nil {
		return Decision{}, err
	}
	c, err := quorum.ParseConfiguration(value)
	if err != nil {
		return Decision{}, err
	}
	return Decision{Configuration: c, Proposed: c.Equal(target)}, nil
}

// errUntold: somebody knows a later configuration, and hasn't said which.
var errUntold = errors.New("reconfig: a later configuration is known to a member, which didn't say which it is")

// decided returns what is known to be decided under the index of target.
func (p *Proposer) decided(target *quorum.Configuration) (Decision, error) {
	m := p.Known.Map()
	if c, ok := m.Find(target.Index()); ok {
		return Decision{Configuration: c, Proposed: c.Equal(target)}, nil
	}
	if m.Installed().Index() > target.Index() {
		return Decision{}, &PastError{Index: target.Index(), Installed: m.Installed()}
	}
	return Decision{}, errUntold
}

// errKnown ends a ready phase that has learned what is decided.
var errKnown = errors.New("the next configuration is known")

// errLags ends a ready phase that can't do without a node which hasn't heard yet
// of the configurations that the proposer knows: gossip will tell it.
var errLags = errors.New("a member lags behind")

// lagPause is how long it is before such a node is asked again.
const lagPause = 200 * time.Millisecond

// ready asks the members of target whether they are, and returns what they said
// when enough are: all that are new, and with them a read and a write quorum. A
// decision can't be undone, and nothing goes on without those quorums.
func (p *Proposer) ready(e env.Env, m *quorum.Map, target *quorum.Configuration) ([]Facts, error) {
	for {
		r, err := p.askReady(e, m, target)
		if err != errLags {
			return r.facts, err
		}
		if err := e.Sleep(lagPause); err != nil {
			return nil, r.fail(err)
		}
	}
}

// askReady is one round of that.
func (p *Proposer) askReady(e env.Env, m *quorum.Map, target *quorum.Configuration) (*readiness, error) {
	r := &readiness{Proposer: p, target: target}
	r.ready.Begin(quorum.Configurations{target})
	r.refused.Begin(quorum.Configurations{target})
	for _, id := range target.Members() {
		if _, stays := m.Installed().Place(id); !stays {
			r.fresh = append(r.fresh, id)
		}
	}
	req := &Ready{Cluster: p.Cluster, Configuration: target, Horizon: m.Horizon(), News: &quorum.News{Map: m, Members: p.Members}}
	var end error
	err := e.Ask(target.Members(), req, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		end = r.hear(from, answer)
		return end != nil || r.complete()
	})
	if unfinished, ok := errors.AsType[*env.Unfinished](err); ok {
		for _, t := range unfinished.Targets {
			if !t.Answered {
				r.missing = append(r.missing, abd.NodeError{Node: t.Node, Text: t.Silence()})
			}
		}
		return r, r.fail(unfinished.Cause)
	}
	switch {
	case err != nil:
		return r, err
	case end == abd.ErrRefused:
		return r, r.fail(end)
	case end != nil:
		return r, end
	}
	slices.SortFunc(r.facts, func(a, b Facts) int { return strings.Compare(string(a.Node), string(b.Node)) })
	return r, nil
}

// readiness is what members of a target have said so far.
type readiness struct {
	*Proposer
	target         *quorum.Configuration
	fresh          []quorum.NodeID // those that aren't members yet
	ready, refused quorum.Tally
	facts          []Facts
	missing        []abd.NodeError // those that refused
}

// hear takes an answer, and returns with what the phase ends because of it.
func (r *readiness) hear(from quorum.NodeID, answer env.Message) error {
	switch m := answer.(type) {
	case env.Woken:
		if r.Known.Map().Horizon().Next > r.target.Index() {
			return errKnown
		}
	case *Readied:
		if m.Node != from {
			return r.refuse(from, abd.NodeError{Node: from, Text: fmt.Sprintf("it calls itself %q", string(m.Node))})
		}
		if !r.ready.Has(from) {
			r.ready.Add(from)
			r.facts = append(r.facts, m.Facts)
		}
	case *Unready:
		if m.News != nil {
			r.Known.Learn(m.News)
		}
		if r.Known.Map().Horizon().Next > r.target.Index() {
			return errKnown
		}
		err := r.refuse(from, abd.NodeError{Node: from, Text: m.Text})
		if err != nil && m.Horizon.Behind(r.Known.Map().Horizon()) {
			return errLags
		}
		return err
	case *env.Refused:
		return r.refuse(from, abd.NodeError{Node: from, Text: m.Error(), Refused: m})
	}
	return nil
}

// refuse counts a member that isn't ready. It ends the phase if that one is
// needed.
func (r *readiness) refuse(from quorum.NodeID, said abd.NodeError) error {
	if !r.refused.Has(from) {
		r.refused.Add(from)
		r.missing = append(r.missing, said)
	}
	needed := slices.Contains(r.fresh, from) && !r.Rules.NewUnready
	if needed || !r.refused.LeavesRead() || !r.refused.LeavesWrite() {
		return abd.ErrRefused
	}
	return nil
}

func (r *readiness) complete() bool {
	quorums := r.ready.HasRead() && r.ready.HasWrite()
	fresh := !slices.ContainsFunc(r.fresh, func(id quorum.NodeID) bool { return !r.ready.Has(id) })
	return (quorums || r.Rules.QuorumUnready) && (fresh || r.Rules.NewUnready)
}

func (r *readiness) fail(cause error) error {
	return &NotReadyError{Target: r.target, Cause: cause, Missing: byNode(r.missing)}
}
