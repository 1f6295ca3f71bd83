package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/abd"
	"atoll/quorum"
	"atoll/reconfig"
)

// FragileError says that a target wasn't proposed because the death of some one
// member would stop reads or writes. Nothing was changed.
type FragileError struct {
	*reconfig.FragileError
	text string
}

// Error says what the target would tolerate.
func (e *FragileError) Error() string { return e.text }

// Unwrap returns the error with ids in place of names.
func (e *FragileError) Unwrap() error { return e.FragileError }

// NotReadyError says that a target wasn't proposed because some of its members
// aren't ready. Nothing was changed.
type NotReadyError struct {
	Target *quorum.Configuration
	// Members are those that aren't ready, and why, by name.
	Members []MemberError
	// Cause and Within are as in NoQuorumError.
	Cause  error
	Within time.Duration
}

// Error names each that isn't ready.
func (e *NotReadyError) Error() string {
	return "not proposed, nothing was changed: nodes that are needed aren't ready: " + blame(e.Cause, e.Within, e.Members)
}

// Unwrap returns the cause.
func (e *NotReadyError) Unwrap() error { return e.Cause }

// ConflictError says that something else was decided than what was asked for, or is
// under way.
type ConflictError struct {
	// Configuration is what was decided.
	Configuration *quorum.Configuration
	text          string
}

// Error says what was decided.
func (e *ConflictError) Error() string { return e.text }

// ChangeUnknownError says that a change of the members may be decided, now or
// later, or may not. The same change again finds out.
type ChangeUnknownError struct {
	Target *quorum.Configuration
	// The others are as in NoQuorumError.
	Members []MemberError
	Cause   error
	Within  time.Duration
}

// Error names each member and what it said.
func (e *ChangeUnknownError) Error() string {
	return "the outcome is unknown, the same command again finds out: " + blame(e.Cause, e.Within, e.Members)
}

// Unwrap returns the cause.
func (e *ChangeUnknownError) Unwrap() error { return e.Cause }

// ConfigurationText describes a configuration with the members' names: "3: majority
// of a b d", sorted; of a grid they are in its order, row by row.
func (c *Client) ConfigurationText(of *quorum.Configuration) string {
	var names []string
	for _, id := range of.Members() {
		names = append(names, c.label(id))
	}
	if of.System().Kind != quorum.Grid {
		slices.Sort(names)
	}
	return fmt.Sprintf("%d: %s of %s", of.Index(), of.System().Text(c.label), strings.Join(names, " "))
}

// ToleranceText is what a configuration tolerates, with the members' names.
func (c *Client) ToleranceText(t quorum.Tolerance) string {
	return t.Text(func(id quorum.NodeID) string { return c.label(id) })
}

// Name is what people call a node; "" if it isn't known by a name.
func (c *Client) Name(id quorum.NodeID) string { return c.name(id) }

// label is what people call a node.
func (c *Client) label(id quorum.NodeID) string {
	if name := c.name(id); name != "" {
		return name
	}
	return string(id)
}

// withNames puts names in the place of the ids of nodes in a text.
func (c *Client) withNames(text string) string {
	for _, m := range c.allMembers() {
		if m.Name != "" {
			text = strings.ReplaceAll(text, string(m.ID), m.Name)
		}
	}
	return text
}

func (c *Client) busy(decided *quorum.Configuration) error {
	return &ConflictError{decided, fmt.Sprintf("another change of the members is under way: configuration %s is decided and not installed yet; nothing was changed",
		c.ConfigurationText(decided))}
}

func (c *Client) overtaken(decided *quorum.Configuration) error {
	return &ConflictError{decided, fmt.Sprintf("another change of the members was faster: configuration %s is decided", c.ConfigurationText(decided))}
}

// changeFailure turns what a proposer returned within a scope into what a user of
// the client branches on.
func (c *Client) changeFailure(s scope, target *quorum.Configuration, err error) error {
	if e, ok := errors.AsType[*reconfig.FragileError](err); ok {
		return &FragileError{e, fmt.Sprintf("not proposed: configuration %s would tolerate these deaths: %s (now: %s); if that is what you want, force it (--force)",
			c.ConfigurationText(e.Target), c.ToleranceText(e.Tolerance), c.ToleranceText(e.Present))}
	}
	if e, ok := errors.AsType[*reconfig.BusyError](err); ok {
		return c.busy(e.Decided)
	}
	if e, ok := errors.AsType[*reconfig.PastError](err); ok {
		return c.overtaken(e.Installed)
	}
	if e, ok := errors.AsType[*reconfig.TooLateError](err); ok {
		return &ConflictError{e.Decided, fmt.Sprintf("too late: configuration %s is decided", c.ConfigurationText(e.Decided))}
	}
	if e, ok := errors.AsType[*reconfig.NotReadyError](err); ok {
		return &NotReadyError{Target: target, Members: c.blamed(&abd.QuorumError{Nodes: e.Missing}), Cause: cause(e.Cause), Within: s.within}
	}
	q, ok := errors.AsType[*abd.QuorumError](err)
	switch {
	case !ok:
		return cause(err)
	case q.Effect == abd.Unknown:
		return &ChangeUnknownError{Target: target, Members: c.blamed(q), Cause: cause(q.Cause), Within: s.within}
	}
	return &NoQuorumError{Members: c.blamed(q), Cause: cause(q.Cause), Within: s.within}
}
