package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"atoll/env"
	"atoll/internal/identity"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/reconfig"
	"atoll/replica"
)

const (
	// refreshWait is how long a change waits at most for a read quorum to say which
	// configuration is the newest. With less it goes on with what is known: that
	// another one is newer comes out when it is proposed.
	refreshWait = 1500 * time.Millisecond
	// awaitPause is the pause between two questions whether a configuration is
	// installed, and settledWait how long the answers are waited for.
	awaitPause  = 50 * time.Millisecond
	settledWait = 500 * time.Millisecond
)

// Plan is a change of the members that can be proposed.
type Plan struct {
	// Present is the newest configuration that is known, and Target the one that is
	// to follow it: Present itself if there is nothing to change.
	Present, Target *quorum.Configuration
	// Force is that of the change.
	Force bool
	// Installed: Present is installed, as far as is known.
	Installed bool
}

// Done reports whether the newest configuration is as the change has it. It may
// not be installed yet.
func (p Plan) Done() bool { return p.Target == p.Present }

// MayChange returns an *env.Refused unless the client shows an admin's certificate, without
// which the members refuse a change. Propose and Abort begin with it.
func (c *Client) MayChange() error {
	if role := c.shows.Self().Role; role != identity.RoleAdmin {
		return &env.Refused{Reason: env.ReasonDenied, Text: fmt.Sprintf("%v: a %s may not change the members; an admin may, with admin.json", env.ReasonDenied, role)}
	}
	return nil
}

// Plan finds out what a change comes to, and changes nothing. Errors: *ChangeError,
// *NodeError, *FragileError, and *ConflictError if another change is under way.
func (c *Client) Plan(ctx context.Context, change Change) (Plan, error) {
	e, err := c.scope(ctx)
	if err != nil {
		return Plan{}, err
	}
	defer e.end()
	if err := c.refreshBy(e); err != nil {
		return Plan{}, err
	}
	known := c.known.Load()
	plan, err := c.planOver(known.Newest(), change)
	if err != nil {
		return plan, err
	}
	plan.Installed = known.Newest() == known.Installed()
	switch {
	case plan.Done():
		return plan, nil
	case !plan.Installed:
		return plan, c.busy(known.Newest())
	}
	if _, err := plan.proposal().Target(plan.Present); err != nil {
		return plan, c.changeFailure(e, plan.Target, err)
	}
	return plan, nil
}

// planOver is the plan for a change of a configuration.
func (c *Client) planOver(present *quorum.Configuration, change Change) (Plan, error) {
	members, system, err := change.target(present, c.allMembers())
	if err != nil {
		return Plan{}, err
	}
	if slices.Equal(members, present.Members()) && system.String() == present.System().String() {
		return Plan{Present: present, Target: present, Force: change.Force}, nil
	}
	target, err := quorum.NewConfiguration(present.Index()+1, members, system)
	if err != nil {
		text := c.withNames(strings.TrimPrefix(err.Error(), "quorum: "))
		if change.Quorum == "" {
			text += "; that is the quorum system of now: give another one, too (--quorum)"
		}
		return Plan{}, &ChangeError{text}
	}
	return Plan{Present: present, Target: target, Force: change.Force}, nil
}

// proposal is what is proposed.
func (p Plan) proposal() reconfig.Proposal {
	return reconfig.Proposal{Members: p.Target.Members(), System: p.Target.System(), Force: p.Force}
}

// Propose has the target of a plan decided, by the members of the configuration
// before it; its members are asked first whether they are ready. An admin's
// certificate is needed. It returns when it is decided, which can't be undone;
// Await waits until it is installed.
//
// Errors: *FragileError, *NotReadyError, *ConflictError and *NoQuorumError: the
// target wasn't proposed, or something else was decided. *ChangeUnknownError: it
// may be decided yet; the same change again finds out.
func (c *Client) Propose(ctx context.Context, plan Plan) (reconfig.Decision, error) {
	if plan.Done() {
		return reconfig.Decision{Configuration: plan.Target, Proposed: true}, nil
	}
	if err := c.MayChange(); err != nil {
		return reconfig.Decision{}, err
	}
	e, err := c.scope(ctx)
	if err != nil {
		return reconfig.Decision{}, err
	}
	defer e.end()
	p := c.proposer(plan.Target)
	if newest := p.Known.Map().Newest(); newest != plan.Present && !newest.Equal(plan.Present) && !newest.Equal(plan.Target) {
		return reconfig.Decision{}, c.overtaken(newest)
	}
	d, err := rambo.Recon(e, p, plan.proposal())
	if d.Configuration == nil {
		return d, c.changeFailure(e, plan.Target, err)
	}
	// It is decided. What telling the members came to doesn't matter.
	c.decided(d.Configuration)
	if !d.Proposed || !d.Configuration.Equal(plan.Target) {
		return d, c.overtaken(d.Configuration)
	}
	return d, nil
}

// Reconfigure changes the members, and waits until the new configuration is
// installed: from then on those that are no members any more may be switched off. It
// is Plan, Propose and Await. A context without a deadline bounds the last by
// nothing.
func (c *Client) Reconfigure(ctx context.Context, change Change) (*quorum.Configuration, error) {
	plan, err := c.Plan(ctx, change)
	if err != nil {
		return nil, err
	}
	if _, err := c.Propose(ctx, plan); err != nil {
		return nil, err
	}
	if !plan.Done() {
		_ = c.runtime.Scope(ctx).Sleep(awaitPause) // no step is faster; Await says why if that ended
	}
	return plan.Target, c.Await(ctx, plan.Target.Index(), nil)
}

// Progress is how far a step from one configuration to the next has come.
type Progress struct {
	// Active are the configurations whose quorums operations need, the installed one
	// first: if that is all, no step is under way.
	Active quorum.Configurations
	// Members are those of all of them, sorted by name.
	Members []MemberStatus
}

// Merging are the members of the configuration that is to be installed next that
// aren't members of the installed one: they merge what that holds.
func (p Progress) Merging() []MemberStatus {
	if len(p.Active) < 2 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Members), func(m MemberStatus) bool {
		_, old := p.Active[0].Place(m.ID)
		_, next := p.Active[1].Place(m.ID)
		return old || !next
	})
}

// Progress asks the members how far the step to a new configuration has come. It
// waits for a read quorum of the installed one 1.5 s at most, and for those that
// don't answer as long as Status does.
func (c *Client) Progress(ctx context.Context) (Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, refreshWait+statusPatience)
	defer cancel()
	e, err := c.scope(ctx)
	if err != nil {
		return Progress{}, err
	}
	defer e.end()
	if err := c.refreshBy(e); err != nil {
		return Progress{}, err
	}
	p := Progress{Active: c.known.Load().Active()}
	said, err := c.ask(ctx, p.Active.Members())
	if err != nil {
		return Progress{}, err
	}
	for _, id := range p.Active.Members() {
		p.Members = append(p.Members, MemberStatus{Member: c.member(id), Status: said[id]})
	}
	slices.SortFunc(p.Members, func(a, b MemberStatus) int { return strings.Compare(a.Label(), b.Label()) })
	return p, nil
}

// Silent are those members of a plan's target that don't answer while Status would
// wait for them, sorted. It is nil if there is nothing to change.
func (c *Client) Silent(ctx context.Context, plan Plan) ([]quorum.NodeID, error) {
	if plan.Done() {
		return nil, nil
	}
	said, err := c.ask(ctx, plan.Target.Members())
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(plan.Target.Members()), func(id quorum.NodeID) bool { return said[id] != nil }), nil
}

// ask asks nodes how they are, and waits for them as long as Status does.
func (c *Client) ask(ctx context.Context, ids []quorum.NodeID) (map[quorum.NodeID]*replica.Status, error) {
	ctx, enough := context.WithTimeout(ctx, statusPatience)
	defer enough()
	said := make(map[quorum.NodeID]*replica.Status)
	err := c.runtime.Scope(ctx).Ask(ids, &replica.StatusQuery{}, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		if s, ok := answer.(*replica.Status); ok {
			said[from] = s
		}
		return len(said) == len(ids)
	})
	if err != nil && !errors.Is(err, env.ErrDeadline) {
		return nil, cause(err)
	}
	return said, nil
}

// Await waits until a configuration, or a later one, is installed, and meanwhile
// tells each how far that has come, if that isn't nil: on the caller's goroutine. It
// ends early only with ctx or the client.
//
// A write quorum of it must say so: if only one knew and died, the others would
// have to ask those who may be switched off now.
func (c *Client) Await(ctx context.Context, index quorum.ConfigIndex, each func(Progress)) error {
	reports := make(chan Progress)
	if each != nil {
		watching, enough := context.WithCancel(ctx)
		var watch sync.WaitGroup
		defer watch.Wait()
		defer enough()
		watch.Go(func() { c.report(watching, reports) })
	}
	for {
		settled, err := c.settled(ctx, index)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("configuration %d is decided, and isn't installed yet: %w", index, ctx.Err())
		case errors.Is(err, ErrClosed):
			return err
		case settled:
			return nil
		}
		select {
		case p := <-reports:
			each(p)
		default:
		}
		if err := c.runtime.Scope(ctx).Sleep(awaitPause); err != nil {
			return cause(err)
		}
	}
}

// report says how far a step has come, whenever somebody takes it, until ctx ends or
// the client. It has time for members that are slow to answer, which who waits for
// the end of the step hasn't.
func (c *Client) report(ctx context.Context, reports chan<- Progress) {
	for ctx.Err() == nil {
		p, err := c.Progress(ctx)
		switch {
		case errors.Is(err, ErrClosed):
			return
		case err != nil || len(p.Active) < 2:
			_ = c.runtime.Scope(ctx).Sleep(awaitPause) // the loop looks at why that ended
			continue
		}
		select {
		case reports <- p:
		case <-ctx.Done():
		}
	}
}

// settled asks the members whether a write quorum of the installed configuration
// knows that the one of an index is installed, or a later one. It ends as soon as
// that is certain, and waits for those that don't answer at most half a second.
func (c *Client) settled(ctx context.Context, index quorum.ConfigIndex) (settled bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, settledWait)
	defer cancel()
	e, err := c.scope(ctx)
	if err != nil {
		return false, err
	}
	defer e.end()
	ids := c.known.Load().Active().Members()
	said := make(map[quorum.NodeID]bool) // whether it is installed
	err = e.Ask(ids, &replica.Describe{}, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		d, ok := answer.(*replica.Description)
		if !ok || !c.hear(d) {
			return false
		}
		said[from] = d.Configurations[0].Index() >= index
		var know quorum.Tally
		know.Begin(quorum.Configurations{c.known.Load().Installed()})
		for id, installed := range said {
			if installed {
				know.Add(id)
			}
		}
		settled = know.HasWrite()
		return settled || len(said) == len(ids)
	})
	return settled, err
}

// Pending asks which changes of the members were proposed that aren't decided. It
// changes nothing, and an admin's certificate is needed. Errors: *ConflictError if
// one is decided and isn't installed yet; *NoQuorumError.
func (c *Client) Pending(ctx context.Context) (*reconfig.Report, error) {
	e, err := c.scope(ctx)
	if err != nil {
		return nil, err
	}
	defer e.end()
	if err := c.refreshBy(e); err != nil {
		return nil, err
	}
	r, err := c.proposer(nil).Pending(e)
	if err != nil {
		err = c.changeFailure(e, nil, err)
		if q, ok := errors.AsType[*NoQuorumError](err); ok {
			q.reading = true
		}
		return nil, err
	}
	return r, nil
}

// Abort sees to it that no change of the members that is pending now is decided: it
// has the present ones decided once more, as the configuration that it returns: a
// number is used up, nothing else changes. An admin's certificate is needed. Errors: reconfig.ErrNothingPending; *ConflictError
// if it is too late; *NoQuorumError and *ChangeUnknownError.
func (c *Client) Abort(ctx context.Context) (*quorum.Configuration, error) {
	if err := c.MayChange(); err != nil {
		return nil, err
	}
	e, err := c.scope(ctx)
	if err != nil {
		return nil, err
	}
	defer e.end()
	if err := c.refreshBy(e); err != nil {
		return nil, err
	}
	again, err := rambo.Abort(e, c.proposer(nil))
	if again == nil {
		return nil, c.changeFailure(e, c.known.Load().Installed(), err)
	}
	c.decided(again)
	return again, nil
}

// proposer has configurations decided. It tells what the client knows of the
// members now, and of those of target.
func (c *Client) proposer(target *quorum.Configuration) *reconfig.Proposer {
	m := c.known.Load()
	all := slices.DeleteFunc(c.allMembers(), func(n quorum.Member) bool {
		named := m.Has(n.ID)
		if target != nil && !named {
			_, named = target.Place(n.ID)
		}
		return !named || len(n.Addresses) == 0
	})
	return &reconfig.Proposer{Cluster: c.cluster.Load().Cluster, Known: (*known)(c), Members: all}
}

// decided takes in what was decided.
func (c *Client) decided(next *quorum.Configuration) {
	if m, err := c.known.Load().Decide(next); err == nil {
		(*known)(c).Learn(&quorum.News{Map: m})
	}
}

// refreshBy asks the members what they know of the cluster, until a read quorum of
// the installed configuration has answered, or it has waited long enough.
func (c *Client) refreshBy(e scope) error {
	ctx, cancel := context.WithTimeout(e.ctx, refreshWait)
	defer cancel()
	active := c.known.Load().Active()
	var heard quorum.Tally
	heard.Begin(active[:1])
	var told []*replica.Description
	err := c.runtime.Scope(ctx).Ask(active.Members(), &replica.Describe{}, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		if d, ok := answer.(*replica.Description); ok && !heard.Has(from) {
			heard.Add(from)
			told = append(told, d)
		}
		return heard.HasRead()
	})
	c.takeIn(told...)
	if err == nil || errors.Is(err, env.ErrDeadline) {
		return nil // with what is known
	}
	return cause(err)
}

// hear learns what a node says of the cluster, and reports whether it is this one.
func (c *Client) hear(d *replica.Description) bool {
	m, err := quorum.NewMap(d.Configurations...)
	if err != nil || d.Cluster != c.cluster.Load().Cluster {
		return false
	}
	(*known)(c).Learn(&quorum.News{Map: m, Members: d.Members})
	return true
}

// takeIn learns what nodes say of the cluster, if it is this one: all that were
// asked at a time.
func (c *Client) takeIn(told ...*replica.Description) {
	current := make(map[quorum.NodeID]bool)
	for _, d := range told {
		if c.hear(d) {
			for _, m := range d.Members {
				current[m.ID] = true
			}
		}
	}
	if len(current) > 0 {
		c.mu.Lock()
		c.mu.current = current
		c.mu.Unlock()
	}
}

// allMembers are the members and the nodes that the cluster speaks of, sorted by id.
func (c *Client) allMembers() []quorum.Member {
	var all []quorum.Member
	for _, id := range c.nodes() {
		if c.speaksOf(id) {
			all = append(all, c.member(id))
		}
	}
	slices.SortFunc(all, func(a, b quorum.Member) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return all
}

// speaksOf reports whether a node is a member, or one of which the cluster spoke
// last. The others it has forgotten: they were removed, and answer nobody.
func (c *Client) speaksOf(id quorum.NodeID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.current[id] || c.known.Load().Has(id)
}
