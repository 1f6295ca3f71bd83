package replica

import (
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/repair"
)

// Describe asks a node what it knows of the cluster. It is the first thing a
// client asks.
type Describe struct{}

// Description answers Describe.
type Description struct {
	Cluster quorum.ClusterID
	// Node is who answers.
	Node quorum.NodeID
	// Configurations are the active ones, in order of their index.
	Configurations quorum.Configurations
	// Members are all members of those, and where they are.
	Members []quorum.Member
	// MaxValue is the largest value in bytes that the cluster stores.
	MaxValue int
}

// StatusQuery asks a node how it is.
type StatusQuery struct{}

// Status answers StatusQuery.
type Status struct {
	Node    quorum.NodeID
	Version string
	// Process is the operating system's id of the node's process.
	Process int
	// Uptime is the time since it started.
	Uptime time.Duration
	// Configuration is the newest that the node knows.
	Configuration quorum.ConfigIndex
	// Horizon is what it knows of configurations, in two numbers. If more than
	// one is active, the step from one to the next is under way.
	Horizon quorum.Horizon
	// Role is what it is to the cluster, as far as it knows.
	Role Role
	// Merge is how far it has come, as a new member, with what it lacks.
	Merge rambo.Progress
	Usage Usage
	// Appended and Durable are positions in the node's journal.
	Appended, Durable env.Position
	// CertificateEnd is when the node's certificate ends, in seconds of Unix
	// time; 0 if that isn't known.
	CertificateEnd int64
	// Trouble says what keeps the node from taking writes at the moment, for
	// people. Empty: nothing does.
	Trouble string
	// Unreached says which others can't dial the node where it says that it is, and
	// what to do, for people. Empty: none has said so.
	Unreached string
	// Repair is what the node has done about records that it missed, and about
	// damaged ones.
	Repair repair.Progress
}

// Role is what a node is to its cluster.
type Role uint8

// The roles. RoleUnknown is that of an older version, and of one that is newer.
const (
	RoleUnknown Role = iota
	// RoleMember: an active configuration names the node.
	RoleMember
	// RoleStandby: none has named it yet. It votes in nothing.
	RoleStandby
	// RoleRemoved: one did, and none does now. It redirects who still asks it.
	RoleRemoved
)

// String returns the name of the role.
func (r Role) String() string {
	switch r {
	case RoleMember:
		return "member"
	case RoleStandby:
		return "standby"
	case RoleRemoved:
		return "removed"
	}
	return "unknown"
}

// Message marks the type as a message.
func (*Describe) Message() {}

// Message marks the type as a message.
func (*Description) Message() {}

// Message marks the type as a message.
func (*StatusQuery) Message() {}

// Message marks the type as a message.
func (*Status) Message() {}
