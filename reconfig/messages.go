package reconfig

import (
	"atoll/quorum"
	"atoll/synod"
)

// Ready asks a node whether it is ready to be a member of a configuration, which
// is to be proposed.
type Ready struct {
	Cluster       quorum.ClusterID
	Configuration *quorum.Configuration
	Horizon       quorum.Horizon // of the asker
	// News is what the asker knows of the configurations: a node that is new may
	// lag behind.
	News *quorum.News
}

// Readied answers Ready: the node has durably noted that the configuration names
// it.
type Readied struct {
	Facts
	synod.Told
}

// Facts are what a node says of itself to who wants it as a member.
type Facts struct {
	Node quorum.NodeID
	// Build is its version, for people.
	Build string
	// Wire is the version of the wire protocol that it speaks.
	Wire uint16
	// Keys is how many registers it holds already.
	Keys int64
}

// Unready answers Ready when the configuration's index isn't the next that the
// node can be asked about.
type Unready struct {
	Text string // why, for people
	synod.Told
}

// Inquire asks a node what it knows of proposals for the next index.
type Inquire struct {
	Horizon quorum.Horizon // of the asker
}

// Pending answers Inquire.
type Pending struct {
	// Index is the next one, as far as the node knows.
	Index quorum.ConfigIndex
	// Ready are the configurations that the node was ready for.
	Ready []*quorum.Configuration
	// Promised is the largest ballot that its acceptor has promised.
	Promised synod.Ballot
	// Accepted is what its acceptor has accepted, nil if nothing, and Ballot the
	// one under which it has.
	Accepted *quorum.Configuration
	Ballot   synod.Ballot
	synod.Told
}

// Wakes implements env.Wakeable.
func (*Ready) Wakes() {}

// Wakes implements env.Wakeable.
func (*Inquire) Wakes() {}

// Message marks the type as a message.
func (*Ready) Message() {}

// Message marks the type as a message.
func (*Readied) Message() {}

// Message marks the type as a message.
func (*Unready) Message() {}

// Message marks the type as a message.
func (*Inquire) Message() {}

// Message marks the type as a message.
func (*Pending) Message() {}
