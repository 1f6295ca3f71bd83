package wire

import (
	"math"

	"atoll/quorum"
)

// Hello is the first frame each way on a connection, in conversation 0: who
// speaks, so that what a certificate allows is held against what its owner
// claims, and a node of another cluster is told so in words.
type Hello struct {
	// Version is the sender's version of the wire format. It stands first and
	// stays first, whatever becomes of the rest.
	Version uint16
	// Cluster is the cluster that the sender belongs to.
	Cluster quorum.ClusterID
	// Node is the sender's id, empty for a client.
	Node quorum.NodeID
	// Bulk: the sender takes large frames on a stream of their own.
	Bulk bool
}

// Message marks the type as a message.
func (*Hello) Message() {}

func encodeHello(e *Encoder, m *Hello) {
	e.array(4)
	e.uint(uint64(m.Version))
	e.string("cluster", string(m.Cluster), maxCluster)
	e.string("node", string(m.Node), quorum.MaxNodeID)
	e.bool(m.Bulk)
}

func decodeHello(d *Decoder) *Hello {
	n := d.begin("hello", 3)
	m := &Hello{
		Version: uint16(d.uint("version", math.MaxUint16)),
		Cluster: quorum.ClusterID(d.string("cluster", maxCluster)),
	}
	if id := d.string("node", quorum.MaxNodeID); id != "" {
		var err error
		m.Node, err = quorum.ParseNodeID(id)
		d.wrap("node", err)
	}
	if n > 3 {
		m.Bulk = d.bool("bulk")
	}
	d.end(n - 4)
	return m
}
