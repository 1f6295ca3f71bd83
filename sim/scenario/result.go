package scenario

import (
	"fmt"
	"strings"
	"time"

	"atoll/sim/history"
)

// Options are what a run is told beside its plan.
type Options struct {
	// Algorithm, when set, runs in place of the one that the plan names.
	Algorithm Algorithm
	// Bytes makes the run count the encoded size of messages, which takes
	// time.
	Bytes bool
	// Ended, when set, is called with each operation that has ended, in
	// order.
	Ended func(Ended)

	// begun is told the name of each operation that begins.
	begun func(name string)
}

// Ended is an operation that has ended, or one try of it.
type Ended struct {
	Client string
	// Key is empty for a list.
	Key     string
	Kind    Kind
	Outcome history.Outcome
	// Began and Ended are times of the world.
	Began, Ended time.Duration
	Rounds       int // conversations
	Messages     int // sent to nodes and to the client meanwhile
	Bytes        int // of those, if Options.Bytes is set
}

// Kind is a kind of operation.
type Kind uint8

// The kinds of operations.
const (
	Read Kind = iota
	Write
	Delete
	List
	kinds
)

// Kinds are all kinds of operations.
func Kinds() []Kind { return []Kind{Read, Write, Delete, List} }

// String returns "read", "write", "delete" or "list".
func (k Kind) String() string {
	return [...]string{"read", "write", "delete", "list"}[k]
}

// Result is what came of a run.
type Result struct {
	// Hash is the trace hash, and Checkpoints are its values after every
	// thousandth event.
	Hash        uint64
	Checkpoints []uint64
	// Violation is the first promise that was broken, nil if none was.
	Violation *Violation
	Figures   Figures
	// History is what clients saw. In it, the key k1 of the second of several
	// clusters is "c2/k1".
	History history.History
}

// Figures are the measurements of a run.
type Figures struct {
	// Events and Messages count what happened, Messages those that arrived.
	Events, Messages uint64
	// Simulated is the time that passed in the world.
	Simulated time.Duration
	// DelayBound is d, see Scenario.DelayBound.
	DelayBound time.Duration
	// ByKind are the figures of each Kind.
	ByKind [kinds]KindFigures
	// Stalls counts the times in which no operation of a cluster ended for
	// longer than the scenario's Bounds.Stall, though some were under way;
	// LongestStall is the longest of all such times, long enough or not.
	Stalls       int
	LongestStall time.Duration
	// Decisions is how many decisions of the plan happened: faults, and
	// proposals.
	Decisions int
	// Installed is how many configurations took over from another one.
	Installed int
	// Restored is how many nodes ran over an older copy of their disk, and Outcast how
	// many of them have ended because others knew better.
	Restored, Outcast int
}

// Operations returns how many operations have ended well, of all kinds.
func (f *Figures) Operations() (n uint64) {
	for i := range f.ByKind {
		n += uint64(len(f.ByKind[i].Latencies))
	}
	return n
}

// KindFigures are the figures of one kind of operation.
type KindFigures struct {
	// Failed and Unknown count the tries that ended so, those of clients that
	// died included.
	Failed, Unknown uint64
	// Messages and Bytes are what was sent to nodes and to clients for all of
	// them, however they ended: repeats, what got lost and what came too late
	// included. Bytes are of the encoded frames, if Options.Bytes is set.
	Messages, Bytes uint64
	// Rounds are the conversations of the operations that ended well, and
	// OneRound counts those of these that took one.
	Rounds, OneRound uint64
	// Latencies are the simulated times of those that ended well, in the order
	// of their ends.
	Latencies []time.Duration
}

// Violation is a promise that was broken.
type Violation struct {
	// Rule names the promise: one word, and always the same one for the same
	// promise. Shrink keeps to it.
	Rule string
	// Text says what happened, in a sentence.
	Text string
	// At is when it was noticed.
	At time.Duration
	// Cluster is the number of the cluster, from 1; 0 if it is about none.
	Cluster int
	// Key is the register, empty if it is about none, and Operations what
	// clients saw of it, as text.
	Key        string
	Operations string
}

// Error returns all of it, in several lines.
func (v *Violation) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.Rule, v.Text)
	if v.Key != "" {
		fmt.Fprintf(&b, " (key %s)", v.Key)
	}
	fmt.Fprintf(&b, ", at %v", v.At)
	if v.Operations != "" {
		fmt.Fprintf(&b, "\n%s", v.Operations)
	}
	return b.String()
}
