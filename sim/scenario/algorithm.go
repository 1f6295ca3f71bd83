package scenario

import (
	"errors"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim"
)

// Algorithm is a way to keep registers: what a node does with messages, and
// what a client does for an operation. It is all that a new algorithm must
// provide to run in the worlds of this package, under the same faults, checks
// and draws as the others.
type Algorithm interface {
	// Name is what scenarios call it.
	Name() string
	// About is one sentence for people.
	About() string
	// Traits says what may be expected of it.
	Traits() Traits
	// Node returns the step of a node over its store. It is called in each
	// life of the node: what is to last must be in the store. Where the
	// stepper is sim.Tasked, its tasks run in that life, as in production.
	Node(c Cluster, self quorum.NodeID, store replica.Store) (sim.Stepper, error)
	// Client returns the operations of a client. It is called in each life
	// of the client, which does one operation after another.
	Client(c Cluster) Client
}

// Client runs operations for one client. An error must wrap or be an
// *abd.QuorumError if the operation ended for want of a quorum: its Effect
// says whether the operation may have taken effect. After any other error of
// a write, it may have.
type Client interface {
	// Read returns the record of a key. Its Tag may be zero if the algorithm
	// has no tags.
	Read(e env.Env, key abd.Key) (abd.Record, error)
	// Write runs op, and returns it with what it has learned of it. An op
	// whose outcome is unknown may come again, as it was returned.
	Write(e env.Env, op abd.Operation) (abd.Operation, error)
}

// Lister is a Client that can list keys, as abd.Registers.List does. One that
// isn't a Lister reads a key where it should list.
type Lister interface {
	List(e env.Env, prefix, after abd.Key, limit int) (keys []abd.Listed, next abd.Key, more bool, err error)
}

// Cluster is what an algorithm is told of the cluster that it serves.
type Cluster struct {
	ID             quorum.ClusterID
	Configurations quorum.Configurations
	// Where members change: all nodes, and the config map that clients begin
	// with. Nil: the members are fixed.
	Nodes    []quorum.NodeID
	Map      *quorum.Map
	MaxValue int // bytes
	// Repair: nodes repair each other.
	Repair bool
	// Greets: where members change, nodes serve once another one has answered their
	// greeting, or after Greeting; 0: however long that takes.
	Greets   bool
	Greeting time.Duration
	// Run is a number of the node's present start.
	Run     uint64
	Mutants Mutants
}

// Traits are what may be expected of an algorithm.
type Traits struct {
	// Tags: records carry tags that order the writes of a key, in the store
	// and in what a Client returns. It makes a run check, at each event,
	// what package scenario says about tags. Without it histories alone are
	// checked.
	Tags bool
	// SingleWriter: only one client writes a key.
	SingleWriter bool
	// The most rounds (conversations, one after another) of an operation; 0
	// is no bound. ListRounds is for a list of n keys.
	ReadRounds, WriteRounds int
	ListRounds              func(n int) int
	// FetchRounds are how many more a read takes when values are larger than
	// abd.DefaultInline.
	FetchRounds int
	// Settles: when an operation ends, its tag or a larger one is durable on a
	// write quorum. It needs Tags.
	Settles bool
	// Membership: it goes on when its members change, as package rambo has
	// them change.
	Membership bool
	// Needs says which quorum must have answered a request before its
	// conversation may end. Nil: nothing is checked.
	Needs func(request env.Message) sim.Need
	// Rules are the rules of package abd that it has, by name ("abd.…", see
	// RuleNames): those that its nodes and clients heed. Check refuses a
	// scenario that names another.
	Rules []string
	// Size returns the encoded size in bytes of a message that
	// internal/wire doesn't know. Nil: such messages count as empty.
	Size func(m env.Message) int
}

// check returns an error if the traits contradict each other.
func (t Traits) check() error {
	if t.Settles && !t.Tags {
		return errors.New("Traits.Settles is about tags, and there is no Traits.Tags")
	}
	return nil
}

// Algorithms returns the algorithms that scenarios can name.
func Algorithms() []Algorithm {
	return []Algorithm{ABD{}, WriteBack{}, SingleWriterABD{}}
}

func algorithm(name string) Algorithm {
	for _, a := range Algorithms() {
		if a.Name() == name {
			return a
		}
	}
	return nil
}
