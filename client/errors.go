package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
)

var (
	// ErrNotFound: the key was never written, or it was deleted.
	ErrNotFound = errors.New("not found")
	// ErrClosed: the client was closed, before or during the operation.
	ErrClosed = errors.New("client closed")
)

// NoQuorumError says that an operation found no quorum and has certainly not
// taken effect: it may be tried again as a new one.
type NoQuorumError struct {
	// Members are those that didn't do what was asked, and why.
	Members []MemberError
	// Cause is context.Canceled, context.DeadlineExceeded, ErrClosed or
	// abd.ErrRefused.
	Cause error
}

// MemberError is what a member said, or why it is silent.
type MemberError struct {
	ID   quorum.NodeID
	Name string
	Text string
}

// Error names each member and what it said.
func (e *NoQuorumError) Error() string {
	return "no quorum, nothing was changed: " + blame(e.Cause, e.Members)
}

// Unwrap returns the cause.
func (e *NoQuorumError) Unwrap() error { return e.Cause }

// UnknownError says that a write or delete may have taken effect, now or
// later, or may not. Client.Resume tries the same operation again; calling
// Put or Delete again would be another one.
type UnknownError struct {
	Operation abd.Operation
	Members   []MemberError
	Cause     error // as in NoQuorumError
}

// Error names each member and what it said.
func (e *UnknownError) Error() string {
	return "the outcome is unknown: " + blame(e.Cause, e.Members)
}

// Unwrap returns the cause.
func (e *UnknownError) Unwrap() error { return e.Cause }

func blame(cause error, members []MemberError) string {
	var b strings.Builder
	b.WriteString(cause.Error())
	for _, m := range members {
		fmt.Fprintf(&b, "; %s: %s", m.label(), m.Text)
	}
	return b.String()
}

func (m MemberError) label() string {
	if m.Name == "" {
		return string(m.ID)
	}
	return m.Name
}

// failure turns what a protocol returned into what a user of the client
// branches on.
func (c *Client) failure(op abd.Operation, err error) error {
	q, ok := errors.AsType[*abd.QuorumError](err)
	if !ok {
		return err
	}
	members := make([]MemberError, len(q.Nodes))
	for i, n := range q.Nodes {
		members[i] = MemberError{ID: n.Node, Name: c.name(n.Node), Text: n.Text}
	}
	cause := cause(q.Cause)
	if q.Effect == abd.Unknown {
		return &UnknownError{Operation: op, Members: members, Cause: cause}
	}
	return &NoQuorumError{Members: members, Cause: cause}
}

// cause gives the ends of a scope the names that Go programs know.
func cause(err error) error {
	switch {
	case errors.Is(err, env.ErrCanceled):
		return context.Canceled
	case errors.Is(err, env.ErrDeadline):
		return context.DeadlineExceeded
	case errors.Is(err, env.ErrStopped):
		return ErrClosed
	}
	return err
}
