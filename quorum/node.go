package quorum

import (
	"fmt"
	"strings"
)

// MaxNodeID is the largest length of a NodeID in bytes.
const MaxNodeID = 64

// NodeID names a node for good: it is derived from the node's key and never
// from its address, so a node keeps it wherever it moves, and a node that has
// lost its disk gets another one. It has 1 to [MaxNodeID] characters of
// [a-z0-9-] and begins with a letter or a digit.
type NodeID string

// ParseNodeID reads a NodeID from a person or a peer.
func ParseNodeID(s string) (NodeID, error) {
	if s == "" || len(s) > MaxNodeID {
		return "", fmt.Errorf("quorum: a node id has 1 to %d characters, %.80q has %d", MaxNodeID, s, len(s))
	}
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	if i := strings.IndexFunc(s, bad); i >= 0 || s[0] == '-' {
		return "", fmt.Errorf("quorum: %q is not a node id: only a-z, 0-9 and, not in front, - are allowed", s)
	}
	return NodeID(s), nil
}

// ClusterID names a cluster for good. Two clusters never share one, so that a
// node or client of one that reaches the other's address is refused.
type ClusterID string
