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

// Report is what is known of proposals for the next index, by a read quorum of
// the installed configuration.
type Report struct {
	Index quorum.ConfigIndex
	// Promised is the largest ballot that was promised: zero if nobody has
	// proposed anything.
	Promised synod.Ballot
	// Accepted are the configurations that members have accepted, that of the
	// highest ballot first. One of them may be decided already.
	Accepted []Candidate
	// Ready are those that members were ready for.
	Ready []Candidate
}

// Nothing reports whether nobody has heard of a proposal.
func (r *Report) Nothing() bool {
	return r.Unproposed() && len(r.Ready) == 0
}

// Unproposed reports whether nobody has heard of more than that members were asked
// whether they are ready: somebody is about to propose something, or has given up.
func (r *Report) Unproposed() bool { return r.Promised.IsZero() && len(r.Accepted) == 0 }

// Candidate is a configuration that was proposed, or was to be.
type Candidate struct {
	Configuration *quorum.Configuration
	// Ballot is the one under which it was accepted last.
	Ballot synod.Ballot
	// Nodes are the members that say so, sorted.
	Nodes []quorum.NodeID
}

// Pending asks the members of the installed configuration which proposals they
// know of. It changes nothing. Errors: *BusyError if the next configuration is
// decided already; *PastError; *abd.QuorumError.
func (p *Proposer) Pending(e env.Env) (*Report, error) {
	m := p.Known.Map()
	present := m.Installed()
	if m.Newest() != present {
		return nil, &BusyError{Decided: m.Newest()}
	}
	report := &Report{Index: present.Index() + 1}
	var heard, refused quorum.Tally
	heard.Begin(quorum.Configurations{present})
	refused.Begin(quorum.Configurations{present})
	q := &abd.QuorumError{Phase: "inquire", Cause: abd.ErrRefused}
	later, hopeless := false, false
	err := e.Ask(present.Members(), &Inquire{Horizon: m.Horizon()}, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		switch answer := answer.(type) {
		case env.Woken:
			later = p.Known.Map().Horizon().Next > report.Index
		case *Pending:
			if answer.News != nil {
				p.Known.Learn(answer.News)
			}
			switch later = answer.Index > report.Index; {
			case answer.Index < report.Index:
				q.Nodes = append(q.Nodes, abd.NodeError{Node: from, Text: fmt.Sprintf("configuration %d isn't installed there yet", present.Index())})
			case !later && !heard.Has(from):
				heard.Add(from)
				report.add(from, answer)
			}
		case *env.Refused:
			if !refused.Has(from) {
				refused.Add(from)
				q.Nodes = append(q.Nodes, abd.NodeError{Node: from, Text: answer.Error(), Refused: answer})
			}
			hopeless = !refused.LeavesRead()
		}
		return later || hopeless || heard.HasRead()
	})
	if unfinished, ok := errors.AsType[*env.Unfinished](err); ok {
		q.Cause = unfinished.Cause
		for _, t := range unfinished.Targets {
			if !t.Answered {
				q.Nodes = append(q.Nodes, abd.NodeError{Node: t.Node, Text: t.Silence()})
			}
		}
		hopeless = true
	}
	switch {
	case later:
		return nil, p.overtaken(report.Index)
	case hopeless:
		q.Nodes = byNode(q.Nodes)
		return nil, q
	case err != nil:
		return nil, err
	}
	report.sort()
	return report, nil
}

// byNode sorts what nodes said, and leaves out what one has said again.
func byNode(said []abd.NodeError) []abd.NodeError {
	slices.SortStableFunc(said, func(a, b abd.NodeError) int { return strings.Compare(string(a.Node), string(b.Node)) })
	return slices.CompactFunc(said, func(a, b abd.NodeError) bool { return a.Node == b.Node })
}

// overtaken returns the error of who has learned that an index is decided.
func (p *Proposer) overtaken(k quorum.ConfigIndex) error {
	m := p.Known.Map()
	if c, ok := m.Find(k); ok {
		return &BusyError{Decided: c}
	}
	if m.Installed().Index() > k {
		return &PastError{Index: k, Installed: m.Installed()}
	}
	return errUntold
}

func (r *Report) add(from quorum.NodeID, m *Pending) {
	if r.Promised.Less(m.Promised) {
		r.Promised = m.Promised
	}
	if m.Accepted != nil {
		r.Accepted = with(r.Accepted, m.Accepted, m.Ballot, from)
	}
	for _, c := range m.Ready {
		r.Ready = with(r.Ready, c, synod.Ballot{}, from)
	}
}

func with(all []Candidate, c *quorum.Configuration, b synod.Ballot, from quorum.NodeID) []Candidate {
	i := slices.IndexFunc(all, func(o Candidate) bool { return o.Configuration.Equal(c) })
	if i < 0 {
		return append(all, Candidate{c, b, []quorum.NodeID{from}})
	}
	if all[i].Nodes = append(all[i].Nodes, from); all[i].Ballot.Less(b) {
		all[i].Ballot = b
	}
	return all
}

func (r *Report) sort() {
	for _, all := range [][]Candidate{r.Accepted, r.Ready} {
		for i := range all {
			slices.Sort(all[i].Nodes)
		}
		slices.SortFunc(all, func(a, b Candidate) int {
			if c := b.Ballot.Compare(a.Ballot); c != 0 {
				return c
			}
			return strings.Compare(a.Configuration.String(), b.Configuration.String())
		})
	}
}

// Abort sees to it that no proposal that is pending now is decided: it has the
// present members decided anew under the next index. That they are ready needn't
// be asked, since a read and a write quorum of them decides it. It returns what was
// decided, also when that was done before and isn't installed yet. A change of which
// members were only asked whether they are ready takes an index as well: whoever
// asked has their answers, and may propose it at any time.
//
// Errors: *TooLateError if a change is decided, or was accepted by somebody and
// so had to be; ErrNothingPending if nobody has heard of one; *PastError; and
// those of synod.Proposer.Propose.
func (p *Proposer) Abort(e env.Env) (*quorum.Configuration, error) {
	m := p.Known.Map()
	target := again(m.Installed())
	report, err := p.Pending(e)
	busy, decided := errors.AsType[*BusyError](err)
	switch {
	case decided && busy.Decided.Equal(target):
		return busy.Decided, nil
	case decided:
		return nil, &TooLateError{Decided: busy.Decided}
	case err != nil:
		return nil, err
	case report.Nothing():
		return nil, ErrNothingPending
	}
	d, err := p.propose(e, m.Installed(), target)
	switch {
	case err != nil:
		return nil, err
	case !d.Proposed && !p.Rules.AbortBlindly:
		return nil, &TooLateError{Decided: d.Configuration}
	}
	return d.Configuration, nil
}

// Finish is a task of a node: it waits until the node's own acceptor has held
// the same vote for as long as a pause, with nothing decided, so that whoever
// proposed it has probably died, and then learns what is decided, which makes it so. It
// returns that. Meanwhile another proposer may do the same: both are right. The
// pause is drawn anew each time, up to twice as long.
//
// A vote of which a read quorum knows nothing decides nothing, and is left alone.
func (p *Proposer) Finish(e env.Env, pause time.Duration) (*quorum.Configuration, error) {
	var before, orphan synod.Ballot
	pause = max(pause, 1)
	for {
		m := p.Known.Map()
		state, err := env.AskOne[*Pending](e, e.Self(), &Inquire{Horizon: m.Horizon()})
		if err != nil {
			return nil, err
		}
		held := state.Ballot
		if state.Accepted == nil || held == orphan || state.Index != m.Installed().Index()+1 {
			held = synod.Ballot{}
		}
		if !held.IsZero() && (held == before || p.Rules.FinishAtOnce) {
			s := synod.Proposer{Configuration: m.Installed(), Known: p.Known, Rules: p.Synod}
			value, err := s.Learn(e, Instance(state.Index))
			if err != synod.ErrNothing {
				return p.learned(m.Installed(), value, err)
			}
			orphan = held
		}
		before = held
		// Not all nodes at once.
		if err := e.Sleep(pause + time.Duration(e.Rand()%uint64(pause))); err != nil {
			return nil, err
		}
	}
}

func (p *Proposer) learned(present *quorum.Configuration, value []byte, err error) (*quorum.Configuration, error) {
	if _, closed := errors.AsType[*synod.ClosedError](err); closed {
		if c, ok := p.Known.Map().Find(present.Index() + 1); ok {
			return c, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return quorum.ParseConfiguration(value)
}
