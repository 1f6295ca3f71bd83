package rambo

import (
	"atoll/abd"
	"atoll/quorum"
	"atoll/repair"
	"atoll/synod"
)

// Knowledge is what a node durably knows and others should.
type Knowledge struct {
	// News are the config map and where the members are. Nil: none yet.
	News *quorum.News
	// Lives are those of all nodes that are known to be in a later one than
	// their first, sorted by node; the sender's own among them.
	Lives []abd.LifeOf
}

// Gossip tells a node what the sender knows. It answers with what it knows
// then.
type Gossip struct{ Knowledge }

// Gossiped answers Gossip.
type Gossiped struct{ Knowledge }

// Announce tells a node what was decided. It takes from it the configurations
// that follow its own, and not what is installed: that comes with lives.
type Announce struct{ News *quorum.News }

// Announced answers Announce: the node durably knows this much.
type Announced struct{ Horizon quorum.Horizon }

// Fence asks a member of a configuration to learn durably of the next one. It
// says both.
type Fence struct {
	Index quorum.ConfigIndex // of the configuration that is fenced
	Knowledge
}

// Fenced answers Fence, once that is so.
type Fenced struct {
	Index quorum.ConfigIndex
	Knowledge
}

// Install asks a member of a configuration to merge what the one before holds.
type Install struct {
	Index quorum.ConfigIndex // of the configuration that is to be installed
	Knowledge
}

// Installed answers Install, once that is done and durable.
type Installed struct{ Index quorum.ConfigIndex }

// HowFar asks a node how far it has come with merging.
type HowFar struct{}

// SoFar answers HowFar.
type SoFar struct{ Progress }

// The messages that follow are those of a node's tasks to the node itself, and
// its answers. They have no encoding.

// know asks the node what it knows.
type know struct{}

// known answers know.
type known struct {
	Knowledge
	merged merged
	others []quorum.NodeID // all that are known but the node itself, sorted
}

// changed is left in the mailboxes of the tasks that go by the config map when
// that has changed, or when the node has merged all.
type changed struct{}

// age tells the node that one more round has passed; see forget.go.
type age struct{}

// aged answers age.
type aged struct{}

// have asks for a page of the node's own tags, at most so many.
type have struct {
	After abd.Key
	Most  int
}

// stock answers have.
type stock struct {
	Items []abd.Item // sorted
	More  bool
}

// take stores those records that are larger than the node's own, and notes how
// far the merge of what a configuration held has come. Both are durable
// together.
type take struct {
	Entries []repair.Entry
	Votes   []synod.Carried // taken if their ballots are higher
	merged  merged
}

// taken answers take.
type taken struct{}

// retire marks a configuration as installed, and learns of the lives that the
// fenced members of the one before knew.
type retire struct {
	Index quorum.ConfigIndex
	Lives []abd.LifeOf
}

// retired answers retire.
type retired struct{}

// merged is how far a node has come with merging what the configuration before
// one held.
type merged struct {
	Index quorum.ConfigIndex // of the new configuration; 0: none yet
	After abd.Key            // all keys up to this one are merged
	Done  bool               // all are
	// Keys and Bytes were stored on the way.
	Keys, Bytes int64
}

// Message marks the type as a message.
func (*Gossip) Message() {}

// Message marks the type as a message.
func (*Gossiped) Message() {}

// Message marks the type as a message.
func (*Announce) Message() {}

// Message marks the type as a message.
func (*Announced) Message() {}

// Message marks the type as a message.
func (*Fence) Message() {}

// Message marks the type as a message.
func (*Fenced) Message() {}

// Message marks the type as a message.
func (*Install) Message() {}

// Message marks the type as a message.
func (*Installed) Message() {}

// Message marks the type as a message.
func (*HowFar) Message() {}

// Message marks the type as a message.
func (*SoFar) Message() {}

// Message marks the type as a message.
func (*know) Message() {}

// Message marks the type as a message.
func (*known) Message() {}

// Message marks the type as a message.
func (*changed) Message() {}

// Message marks the type as a message.
func (*have) Message() {}

// Message marks the type as a message.
func (*stock) Message() {}

// Message marks the type as a message.
func (*take) Message() {}

// Message marks the type as a message.
func (*taken) Message() {}

// Message marks the type as a message.
func (*retire) Message() {}

// Message marks the type as a message.
func (*retired) Message() {}

// Message marks the type as a message.
func (*age) Message() {}

// Message marks the type as a message.
func (*aged) Message() {}
