package join

import (
	"cmp"
	"fmt"
	"strings"

	"atoll/quorum"
)

// wayOut is what becomes of a node that must not go on.
const wayOut = "this identity can't be used again: make a ticket with client member ticket, start a new node with replica join, and let it take this one's place"

// OutcastError says that a node must not go on, because another one knows that it
// has lost what it had acknowledged.
type OutcastError struct {
	From    quorum.NodeID // who says so
	Name    string        // what people call that node; "" if it isn't known
	Verdict Verdict
	// Known is what that node remembers, and Own what this one says.
	Known, Own Life
}

// Error says in one line what is wrong and what to do.
func (e *OutcastError) Error() string {
	if e.Verdict == SecondCopy {
		return e.Reason() + "; stop the other one, too, if it has served meanwhile; " + wayOut
	}
	return e.Reason() + "; " + wayOut
}

// Reason says what is wrong.
func (e *OutcastError) Reason() string {
	from := cmp.Or(e.Name, string(e.From))
	switch e.Verdict {
	case OtherStore:
		return fmt.Sprintf("node %s knows this node by another store, %s, and this is %s", from, e.Known.Instance, e.Own.Instance)
	case SecondCopy:
		return fmt.Sprintf("node %s knows another process in start %d of this node: this folder is a copy, and the other one was started, or is running", from, e.Own.Starts)
	default:
		return fmt.Sprintf("node %s knows this node in start %d at journal position %d, and this is start %d at %d: the folder was restored from an older copy",
			from, e.Known.Starts, e.Known.Position, e.Own.Starts, e.Own.Position)
	}
}

// RefusedError says that a cluster doesn't let a node in.
type RefusedError struct {
	// Texts are what members have said, those that said the same together.
	Texts []string
}

// Error returns what the members have said.
func (e *RefusedError) Error() string {
	return "the cluster doesn't let this node in: " + strings.Join(e.Texts, "; ")
}

// UnreachableError says that nobody has decided about a node by the end of its time.
// It unwraps to what is known of each address.
type UnreachableError struct {
	Cluster quorum.ClusterID
	// Endpoints has an error for each address at which the cluster isn't found,
	// which names it.
	Endpoints []error
}

// Error names every address.
func (e *UnreachableError) Error() string {
	texts := make([]string, len(e.Endpoints))
	for i, err := range e.Endpoints {
		texts[i] = err.Error()
	}
	if len(texts) == 0 {
		return fmt.Sprintf("cluster %s is there, but no read and write quorum of it has answered", e.Cluster)
	}
	return fmt.Sprintf("cluster %s isn't found: %s", e.Cluster, strings.Join(texts, "; "))
}

// Unwrap returns an error for each address.
func (e *UnreachableError) Unwrap() []error { return e.Endpoints }
