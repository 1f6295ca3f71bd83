package synod

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/tags"
)

// The pauses between the rounds of a proposer that was overtaken: each is drawn
// from half of its length to one and a half, and the length doubles.
const (
	FirstPause = 10 * time.Millisecond
	MostPause  = time.Second
)

// ErrNothing is returned by Learn when nothing was accepted yet that could have
// been chosen, and nothing ever will be under a ballot of before.
var ErrNothing = errors.New("nothing was accepted")

// ClosedError says that the members of a configuration don't vote under its
// ballots any more: a later one is known. What it is the proposer's Known has
// been told.
type ClosedError struct {
	// Index is the configuration whose members were asked.
	Index quorum.ConfigIndex
	// Horizon is what they know.
	Horizon quorum.Horizon
}

// Error says so.
func (e *ClosedError) Error() string {
	return fmt.Sprintf("the members of configuration %d know of configuration %d, and vote under the earlier one no more",
		e.Index, e.Horizon.Next-1)
}

// Proposer is the caller's half, among the members of one configuration. It has
// no state of its own: use it from as many callers as you like.
type Proposer struct {
	Configuration *quorum.Configuration
	// Known is told what answers reveal of configurations.
	Known abd.Known
	Rules Rules
}

// Propose has a value decided, and returns what was: this one, or another that
// was proposed before it.
//
// The error is a *ClosedError when the configuration is out or on its way out,
// and else an *abd.QuorumError. With the Effect NotApplied no accept of the value
// has left, and it will never be chosen because of this call. Otherwise it may
// be chosen, now or later; whoever finds it accepted somewhere will propose it again. A
// *abd.SizeError says that the value or the name is too large: nothing was done.
func (p *Proposer) Propose(e env.Env, i Instance, value []byte) ([]byte, error) {
	if err := CheckValue(value); err != nil {
		return nil, err
	}
	return p.decide(e, i, value)
}

// Learn returns what was decided, and if that isn't sure yet, makes it so: it
// has what it finds accepted accepted by a quorum. With nothing accepted it
// returns ErrNothing. The other errors are those of Propose.
func (p *Proposer) Learn(e env.Env, i Instance) ([]byte, error) { return p.decide(e, i, nil) }

// decide runs rounds until one ends.
func (p *Proposer) decide(e env.Env, i Instance, value []byte) ([]byte, error) {
	if err := i.Check(); err != nil {
		return nil, err
	}
	a := attempt{Proposer: p, env: e, instance: i, own: value}
	for pause := FirstPause; ; pause = min(2*pause, MostPause) {
		got, err := a.round()
		if err != errAgain {
			return got, err
		}
		if err := e.Sleep(pause/2 + time.Duration(e.Rand()%uint64(pause))); err != nil {
			return nil, a.fail(&abd.QuorumError{Phase: "prepare", Cause: err})
		}
	}
}

// errAgain ends a round that was overtaken by another proposer's, or that met
// members which don't vote yet.
var errAgain = errors.New("another round is needed")

// attempt is one call of Propose or Learn.
type attempt struct {
	*Proposer
	env      env.Env
	instance Instance
	own      []byte // nil in a Learn
	sent     bool   // an accept of it may have reached some member
	seen     Round  // the largest that was heard of

	// Of the phase under way.
	taken, refused quorum.Tally
	refusals       []abd.NodeError
}

// round is one ballot: prepare, then accept.
func (a *attempt) round() ([]byte, error) {
	b, err := after(a.Configuration.Index(), a.seen, a.env.ID())
	if err != nil {
		return nil, err
	}
	if a.Rules.ReuseBallots {
		b.ID = tags.NewPID(0, 0, 1)
	}
	a.seen = b.Round
	highest, err := a.prepare(b)
	if err != nil {
		return nil, err
	}
	value, own := highest.Value, false
	if highest.IsZero() || a.Rules.IgnoreAccepted && a.own != nil {
		if value, own = a.own, true; value == nil {
			return nil, ErrNothing
		}
	}
	if err := a.accept(b, value, own); err != nil {
		return nil, err
	}
	a.env.Trace(env.Event{Name: "synod.chosen", Op: b.ID, Key: string(a.instance)})
	return value, nil
}

// prepare returns the vote of the highest ballot among those of a read quorum
// that has promised b. It meets every write quorum that anything was chosen by.
func (a *attempt) prepare(b Ballot) (highest Vote, err error) {
	take := func(answer env.Message) bool {
		m, ok := answer.(*Promise)
		if !ok || m.Ballot != b && !a.Rules.CountAnyBallot {
			return false
		}
		if highest.Ballot.Less(m.Accepted.Ballot) && (highest.IsZero() || !a.Rules.AnyAccepted) {
			highest = m.Accepted
		}
		return true
	}
	complete, possible := a.taken.HasRead, a.refused.LeavesRead
	if a.Rules.PrepareOnWrite {
		complete = a.taken.HasWrite
	}
	_, err = a.phase("prepare", &Prepare{a.instance, b, a.horizon()}, b, take, complete, possible)
	return highest, err
}

// accept has a value accepted by a write quorum: then it is chosen.
func (a *attempt) accept(b Ballot, value []byte, own bool) error {
	take := func(answer env.Message) bool {
		m, ok := answer.(*Accepted)
		return ok && (m.Ballot == b || a.Rules.CountAnyBallot)
	}
	complete, possible := a.taken.HasWrite, a.refused.LeavesWrite
	if a.Rules.AcceptOnRead {
		complete = a.taken.HasRead
	}
	sent, err := a.phase("accept", &Accept{a.instance, b, value, a.horizon()}, b, take, complete, possible)
	if own && sent && !(a.Rules.RejectedIsFailure && err == errAgain) {
		a.sent = true
	}
	if q, ok := errors.AsType[*abd.QuorumError](err); ok {
		return a.fail(q)
	}
	return err
}

func (a *attempt) horizon() quorum.Horizon {
	if a.Known == nil {
		return quorum.Horizon{}
	}
	return a.Known.Map().Horizon()
}

// phase asks all members, and ends when those whose answer was taken are complete.
// It ends with errAgain when a member has promised more: that one may be needed,
// and the others may be silent for good. sent reports whether a copy of the
// request may have reached some member.
func (a *attempt) phase(name string, req env.Message, b Ballot, take func(env.Message) bool, complete, possible func() bool) (sent bool, err error) {
	cs := quorum.Configurations{a.Configuration}
	a.taken.Begin(cs)
	a.refused.Begin(cs)
	a.refusals = a.refusals[:0]
	var end error
	err = a.env.Ask(a.Configuration.Members(), req, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		end = a.hear(name, b, from, answer, possible)
		if end != nil {
			return true
		}
		if take(answer) {
			a.taken.Add(from)
		}
		return complete()
	})
	unfinished, ended := errors.AsType[*env.Unfinished](err)
	switch {
	case ended:
		q := &abd.QuorumError{Phase: name, Cause: unfinished.Cause}
		for _, t := range unfinished.Targets {
			sent = sent || t.Sent
			if !t.Answered {
				q.Nodes = append(q.Nodes, abd.NodeError{Node: t.Node, Text: t.Silence()})
			}
		}
		return sent, a.fail(q)
	case err != nil:
		return true, a.fail(&abd.QuorumError{Phase: name, Cause: err})
	}
	return true, end
}

// hear takes in what an answer says beside what was asked for. It returns with
// what the phase ends because of it, nil if it goes on.
func (a *attempt) hear(name string, b Ballot, from quorum.NodeID, answer env.Message, possible func() bool) error {
	if told := toldBy(answer); told != nil && told.News != nil && a.Known != nil {
		a.Known.Learn(told.News)
	}
	switch m := answer.(type) {
	case env.Woken:
		// Its members may be switched off by now, and nobody would say so.
		if h := a.horizon(); h.Next > a.Configuration.Index()+1 {
			return &ClosedError{Index: a.Configuration.Index(), Horizon: h}
		}
	case *Rejected:
		if m.Promised.Index == b.Index {
			a.seen = max(a.seen, m.Promised.Round)
		}
		if m.Ballot == b {
			return errAgain
		}
	case *Closed:
		if m.Horizon.Next > a.Configuration.Index()+1 {
			return &ClosedError{Index: a.Configuration.Index(), Horizon: m.Horizon}
		}
		text := fmt.Sprintf("configuration %d isn't installed there yet", a.Configuration.Index())
		return a.refuse(name, from, abd.NodeError{Node: from, Text: text}, possible)
	case *env.Refused:
		return a.refuse(name, from, abd.NodeError{Node: from, Text: m.Error(), Refused: m}, possible)
	}
	return nil
}

// refuse counts a member that doesn't vote. When the others can't make a
// quorum, the phase ends: for good, unless some of them only lag behind.
func (a *attempt) refuse(name string, from quorum.NodeID, said abd.NodeError, possible func() bool) error {
	if !a.refused.Has(from) {
		a.refused.Add(from)
		a.refusals = append(a.refusals, said)
	}
	switch lags := func(n abd.NodeError) bool { return n.Refused == nil }; {
	case possible():
		return nil
	case slices.ContainsFunc(a.refusals, lags):
		return errAgain
	}
	return a.fail(&abd.QuorumError{Phase: name, Cause: abd.ErrRefused})
}

// fail says in q whether the value may be chosen yet, and who has refused.
func (a *attempt) fail(q *abd.QuorumError) error {
	if a.sent {
		q.Effect = abd.Unknown
	}
	for _, r := range a.refusals {
		if !slices.ContainsFunc(q.Nodes, func(n abd.NodeError) bool { return n.Node == r.Node }) {
			q.Nodes = append(q.Nodes, r)
		}
	}
	slices.SortFunc(q.Nodes, func(x, y abd.NodeError) int { return strings.Compare(string(x.Node), string(y.Node)) })
	return q
}

func toldBy(answer env.Message) *Told {
	switch m := answer.(type) {
	case *Promise:
		return &m.Told
	case *Accepted:
		return &m.Told
	case *Rejected:
		return &m.Told
	case *Closed:
		return &m.Told
	}
	return nil
}
