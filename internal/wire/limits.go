package wire

import (
	"atoll/abd"
	"atoll/quorum"
)

// Version is the version of the wire format, sent in a Hello.
const Version = 1

// ALPN is the name under which version 1 is negotiated in the TLS handshake.
const ALPN = "atoll/1"

const (
	// HeaderSize is the length of a frame's header in bytes.
	HeaderSize = 4
	// MaxFrame is the largest body of a frame in bytes: the largest value,
	// and room for the key and whatever stands around them.
	MaxFrame = abd.LargestMaxValue + 64<<10
)

// Limits of single fields. Those of keys, values, pages and configurations
// are the protocols' own. Lengths are in bytes.
const (
	maxCluster = 64  // a cluster id
	maxName    = 256 // what an operator calls a node
	maxAddress = 300 // "host:port": a DNS name has at most 253 characters
	maxVersion = 128 // a build's version
	maxTrouble = 512 // what keeps a node from taking writes, or others from dialing it
	maxText    = 512 // why something was refused; longer ones are cut
	maxSystem  = len("weights=") + quorum.MaxMembers*(quorum.MaxNodeID+len(":4294967295,"))

	digestSize   = 8        // of a key and its tag
	instanceSize = 16       // of a store's id
	keyPiece     = 16 << 10 // bytes of keys of one list that share their memory
	maxSignature = 64       // of a ticket, by the cluster's CA
	maxProof     = 256      // a node's signature under its addresses, with what it takes to check it

	maxAddresses      = 16 // of one node
	maxConfigurations = quorum.MaxActive
	maxKnown          = maxConfigurations * quorum.MaxMembers
)

// The fewest bytes that an element of a list takes. A count that the bytes
// left can't hold is refused before room is made for it; with these, no list
// takes more than a few times the memory of its bytes.
const (
	minString        = 1
	minTag           = 1 + 1 + 2 + 16 + 1               // seq pid rmw
	minItem          = 1 + 2 + minTag + 1               // key tag deleted
	minEntry         = 1 + 2 + 1 + minTag + 1 + 1       // key [tag deleted value]
	minVote          = 1 + minString + 1 + 1            // [instance [ballot value]]
	minLife          = 1 + minString + 1                // node life
	minConfiguration = 1 + 1 + minString + 1            // index system [node…]
	minMember        = 1 + minString + minString + 1    // node name [address…]
	minSeen          = 1 + minString + 2 + instanceSize // node instance
)
