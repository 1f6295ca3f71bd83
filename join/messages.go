package join

import (
	"encoding/hex"

	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
)

// Instance is the id of a node's store: random, drawn when that was made.
type Instance [16]byte

// String returns it in hexadecimal digits.
func (i Instance) String() string { return hex.EncodeToString(i[:]) }

// Grant is the word of the cluster's CA that a node may join, as its ticket has
// it. What it means only package identity knows.
type Grant struct {
	Name      string
	Expires   int64 // seconds of Unix time
	Signature []byte
}

// Join asks a member to note that a node has come, with this instance.
type Join struct {
	Instance Instance
	// Member is what the node says of itself.
	Member quorum.Member
	Grant  Grant
	// Horizon is what the node knows of the configurations: who knows more says
	// so, and its answer doesn't count.
	Horizon quorum.Horizon
}

// Joined answers Join, once that is durable.
type Joined struct {
	Horizon quorum.Horizon
	// Seen are the nodes that the member knows by their instances.
	Seen []Seen
}

// Seen is a node and the instance that it is.
type Seen struct {
	Node     quorum.NodeID
	Instance Instance
}

// Life is a node's word of itself in one process.
type Life struct {
	Instance Instance
	// Starts is how often the node has been started, this time included.
	Starts uint64
	// Run is a number that this process drew: it tells apart two that run on
	// copies of one folder.
	Run uint64
	// Position is one up to which the journal was durable.
	Position env.Position
}

// Greet tells another node of the sender's life, and where it is.
type Greet struct {
	Life   Life
	Member quorum.Member
}

// Greeted answers Greet.
type Greeted struct {
	Verdict Verdict
	// Life is the largest that the node remembers of the one that greets.
	Life Life
	// Seen is as in Joined.
	Seen []Seen
	// Unreached says why the node can't dial the one that greets where that says
	// that it is. Empty: it can, or doesn't know yet.
	Unreached string
}

// Verdict is what a node thinks of another one's life.
type Verdict uint8

// The verdicts. One that isn't known counts as Welcome: it is of a newer version,
// and this is no more than a help.
const (
	Welcome Verdict = iota
	// OtherStore: the node is known by another instance.
	OtherStore
	// OlderCopy: the node was further once than it is now.
	OlderCopy
	// SecondCopy: another process is in the same life of the same node.
	SecondCopy
)

// The messages that follow are those of a node's tasks to the node itself, and
// its answers. They have no encoding.

// know asks the node what it is.
type know struct{}

// known answers know.
type known struct {
	Greet
	news   *quorum.News
	others []quorum.NodeID // all that are known but this one, sorted
	joined bool            // or of the first configuration
	mute   bool            // it couldn't count its start, and must not greet
	grant  Grant
}

// horizon is what the node knows of the configurations.
func (k *known) horizon() quorum.Horizon {
	if k.news == nil {
		return quorum.Horizon{}
	}
	return k.news.Map.Horizon()
}

// hear tells the node what another one answered.
type hear struct {
	from    quorum.NodeID
	greeted *Greeted
}

// enter tells the node that it has joined.
type enter struct{ seen []Seen }

// done answers hear and enter.
type done struct{}

// Wakes implements env.Wakeable.
func (*Join) Wakes() {}

// Message marks the type as a message.
func (*Join) Message() {}

// Message marks the type as a message.
func (*Joined) Message() {}

// Message marks the type as a message.
func (*Greet) Message() {}

// Message marks the type as a message.
func (*Greeted) Message() {}

// Message marks the type as a message.
func (*know) Message() {}

// Message marks the type as a message.
func (*known) Message() {}

// Message marks the type as a message.
func (*hear) Message() {}

// Message marks the type as a message.
func (*enter) Message() {}

// Message marks the type as a message.
func (*done) Message() {}

// IsOwn reports whether m is a request that a node's own tasks make, and that
// nobody else may.
func IsOwn(m env.Message) bool {
	switch m.(type) {
	case *know, *hear, *enter:
		return true
	}
	return false
}

// Directory is what a node knows of configurations and of where nodes are.
// *rambo.Replica is one.
type Directory interface {
	Map() *quorum.Map
	News() (*quorum.News, env.Position)
	Own() quorum.Member
	Hear(quorum.Member) (known bool, at env.Position, err error)
}

var _ Directory = (*rambo.Replica)(nil)
