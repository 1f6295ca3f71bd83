package abd

import (
	"errors"
	"fmt"
	"strings"

	"atoll/env"
	"atoll/quorum"
)

// ErrRefused is the cause of a QuorumError when so many members refused that
// the others can't make a quorum.
var ErrRefused = errors.New("those that refused leave no quorum")

// Effect says what an operation that failed has done to the register.
type Effect uint8

const (
	// NotApplied: the operation has not taken effect and never will.
	NotApplied Effect = iota
	// Unknown: the operation has taken effect, or may yet, or may not.
	Unknown
)

// QuorumError is returned by an operation one of whose phases found no
// quorum.
type QuorumError struct {
	// Phase is "get", "put" or "list".
	Phase string
	// Cause is one of env.ErrCanceled, env.ErrDeadline, env.ErrStopped and
	// ErrRefused.
	Cause  error
	Effect Effect
	// Nodes are the members that didn't do what was asked, sorted, and what
	// is known of each.
	Nodes []NodeError
}

// NodeError is what a node said, or why it is silent.
type NodeError struct {
	Node quorum.NodeID
	Text string
	// Refused is what Text is made of, nil if the node is silent.
	Refused *env.Refused
}

// Error names each node and what it said.
func (e *QuorumError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no %s quorum: %v", e.Phase, e.Cause)
	for _, n := range e.Nodes {
		fmt.Fprintf(&b, "; %s: %s", n.Node, n.Text)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *QuorumError) Unwrap() error { return e.Cause }
