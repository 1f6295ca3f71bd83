package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
)

var (
	// ErrNotFound: the key was never written, or it was deleted.
	ErrNotFound = errors.New("not found")
	// ErrClosed: the client was closed, before or during the operation.
	ErrClosed = errors.New("client closed")

	errNoPath = errors.New("client: the path of the context file is empty; is ATOLL_CONTEXT set?")
)

// UnreachableError says why no endpoint could be used. It unwraps to what is
// known of each of them.
type UnreachableError struct {
	// Endpoints has an error for each endpoint, which names it, in the order
	// of Config.Endpoints.
	Endpoints []error
}

// Error names every endpoint.
func (e *UnreachableError) Error() string {
	var b strings.Builder
	b.WriteString("cannot reach the cluster")
	separator := ": "
	for _, err := range e.Endpoints {
		b.WriteString(separator)
		b.WriteString(err.Error())
		separator = "; "
	}
	return b.String() + elsewhere
}

// elsewhere says what to do when no node is found at any address that is known.
const elsewhere = "; give an address where a node of the cluster lives: --endpoints, or endpoints in the context file"

// Unwrap returns an error for each endpoint.
func (e *UnreachableError) Unwrap() []error { return e.Endpoints }

// NoQuorumError says that an operation found no quorum and has certainly not
// taken effect: it may be tried again as a new one.
type NoQuorumError struct {
	// Members are those that didn't do what was asked, and why, by name.
	Members []MemberError
	// Cause is context.Canceled, context.DeadlineExceeded, ErrClosed or
	// abd.ErrRefused.
	Cause error
	// Within is how long the operation had until its deadline.
	Within time.Duration
	// Searched are the addresses at which this client looks for the cluster in vain:
	// those that it was given, and those of all nodes that it has heard of. None if it
	// is connected with a node.
	Searched []string

	reading bool // a question, which changes nothing anyway
}

// MemberError is what a member said, or why it is silent.
type MemberError struct {
	ID   quorum.NodeID
	Name string
	Text string
	// Refused is what Text is made of, nil if the member is silent.
	Refused *env.Refused
}

// Error names each member and what it said.
func (e *NoQuorumError) Error() string {
	if e.reading {
		return "no quorum: " + blame(e.Cause, e.Within, e.Members) + inVain(e.Searched)
	}
	return "no quorum, nothing was changed: " + blame(e.Cause, e.Within, e.Members) + inVain(e.Searched)
}

// maxNamed is how many addresses an error names.
const maxNamed = 8

// inVain says where the cluster was looked for.
func inVain(searched []string) string {
	if len(searched) == 0 {
		return ""
	}
	text := strings.Join(searched[:min(len(searched), maxNamed)], ", ")
	if more := len(searched) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "; no node is found at any address that is known: " + text + elsewhere
}

// Unwrap returns the cause.
func (e *NoQuorumError) Unwrap() error { return e.Cause }

// UnknownError says that a write or delete may have taken effect, now or
// later, or may not. Client.Resume tries the same operation again; calling
// Put or Delete again would be another one.
type UnknownError struct {
	Operation abd.Operation
	// The others are as in NoQuorumError.
	Members  []MemberError
	Cause    error
	Within   time.Duration
	Searched []string
}

// Error names each member and what it said.
func (e *UnknownError) Error() string {
	return "the outcome is unknown: " + blame(e.Cause, e.Within, e.Members) + inVain(e.Searched)
}

// Unwrap returns the cause.
func (e *UnknownError) Unwrap() error { return e.Cause }

func blame(cause error, within time.Duration, members []MemberError) string {
	var b strings.Builder
	b.WriteString(causeText(cause, within))
	for _, m := range members {
		fmt.Fprintf(&b, "; %s: %s", m.label(), m.Text)
	}
	return b.String()
}

// causeText says in words why an operation ended that had so long.
func causeText(cause error, within time.Duration) string {
	switch {
	case errors.Is(cause, context.Canceled):
		return "interrupted"
	case !errors.Is(cause, context.DeadlineExceeded):
		return cause.Error()
	case within <= 0:
		return "the time was up"
	}
	// In two digits: of 5 s some microseconds had passed before it began.
	unit := time.Duration(1)
	for within >= 100*unit {
		unit *= 10
	}
	return fmt.Sprintf("the time was up (%v)", within.Round(unit))
}

// unanswered is the error of a question to one node.
type unanswered struct{ cause error }

func (e *unanswered) Error() string { return "no answer: " + causeText(e.cause, 0) }

func (e *unanswered) Unwrap() error { return e.cause }

func (m MemberError) label() string {
	if m.Name == "" {
		return string(m.ID)
	}
	return m.Name
}

// readFailure turns what a protocol returned from a read within a scope into
// what a user of the client branches on.
func (c *Client) readFailure(s scope, err error) error {
	q, ok := errors.AsType[*abd.QuorumError](err)
	if !ok {
		return err
	}
	return &NoQuorumError{Members: c.blamed(q), Cause: cause(q.Cause), Within: s.within, Searched: c.searched(), reading: true}
}

// writeFailure does the same for op, as the protocol returned it with err.
func (c *Client) writeFailure(s scope, op abd.Operation, err error) error {
	q, ok := errors.AsType[*abd.QuorumError](err)
	switch {
	case !ok:
		return err
	case q.Effect == abd.Unknown:
		return &UnknownError{Operation: op, Members: c.blamed(q), Cause: cause(q.Cause), Within: s.within, Searched: c.searched()}
	}
	return &NoQuorumError{Members: c.blamed(q), Cause: cause(q.Cause), Within: s.within, Searched: c.searched()}
}

// searched are the addresses at which the client looks for the cluster, if it isn't
// connected with any node.
func (c *Client) searched() []string {
	for _, id := range c.nodes() {
		if c.transport.Connected(id) {
			return nil
		}
	}
	return c.addressBook()
}

func (c *Client) blamed(q *abd.QuorumError) []MemberError {
	members := make([]MemberError, len(q.Nodes))
	for i, n := range q.Nodes {
		members[i] = MemberError{ID: n.Node, Name: c.name(n.Node), Text: withoutNode(n.Text, n.Node), Refused: n.Refused}
	}
	slices.SortFunc(members, func(a, b MemberError) int { return strings.Compare(a.label(), b.label()) })
	return members
}

// withoutNode takes away from the front of a text which node it is about,
// where that is said already.
func withoutNode(text string, id quorum.NodeID) string {
	return strings.TrimPrefix(text, "node "+string(id)+": ")
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
