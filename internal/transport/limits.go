package transport

import (
	"time"

	"github.com/quic-go/quic-go"
)

// Limits on what peers may cost. Sizes are in bytes.
const (
	// DefaultMaxPending is how much may wait for one node unless Config says
	// otherwise: half a second of a gigabit line. DefaultMaxPendingClient is
	// the same for clients, of whom there are more: two of the largest values.
	DefaultMaxPending       = 64 << 20
	DefaultMaxPendingClient = 16 << 20
	// DefaultMaxIncoming is how many connections may come in.
	DefaultMaxIncoming = 10_000
	// maxHandshakes is how many of those may be unfinished, and retryAbove is
	// how many before strangers must first prove that their address is theirs.
	maxHandshakes = 512
	retryAbove    = 64
	// maxPeers is how many nodes are dialed and remembered. A cluster's
	// members and those that it is moving to are far fewer.
	maxPeers = 1024
	// maxAddresses is how many addresses of one node, and of one name, are
	// tried.
	maxAddresses = 16
	// maxHello is the largest hello.
	maxHello = 1 << 10
	// maxReason is how much of a reason is sent with a close: it must fit
	// into one packet.
	maxReason = 400
	// flushAbove is how much Queue lets gather before it flushes by itself,
	// so that a large batch is on its way while the rest is encoded.
	flushAbove = 64 << 10
	// keepBuffer is the largest send buffer that is kept for reuse.
	keepBuffer = 1 << 20
	// minChunk and maxChunk bound the buffers into which small frames are
	// read, and minRead is how much free space is worth a read.
	minChunk = 4 << 10
	maxChunk = 64 << 10
	minRead  = 512
	// keepIncoming is how many slots for decoded messages a session keeps
	// between two reads.
	keepIncoming = 512
)

// Times.
const (
	// HandshakeTimeout is how long an address may be silent while it is
	// dialed. It bears two lost packets.
	HandshakeTimeout = 2 * time.Second
	// HelloTimeout is how long after the handshake the hello may take.
	HelloTimeout = 2 * time.Second
	// KeepAlive is how often the side that dialed makes an idle connection
	// speak. The other side sends nothing on its own: with thousands of idle
	// clients half the packets are enough.
	KeepAlive = 1500 * time.Millisecond
	// IdleTimeout is how long a peer may be silent before it counts as gone.
	// QUIC doesn't allow less.
	IdleTimeout = 5 * time.Second
	// DefaultStallTimeout is how long a peer may take nothing of what waits
	// for it, unless Config says otherwise. A peer that takes nothing and is
	// gone is noticed earlier, after IdleTimeout.
	DefaultStallTimeout = 10 * time.Second
	// DialStagger is the head start of each address over the next one.
	DialStagger = 50 * time.Millisecond
	// resolveTimeout is how long a name may take to resolve.
	resolveTimeout = 2 * time.Second
	// backoffBase is the first pause between two attempts to dial a node. It
	// doubles up to BackoffCap.
	backoffBase = 20 * time.Millisecond
	// BackoffCap is the longest pause between two attempts, and how long a
	// session must have lived for the next attempt to come without a pause.
	BackoffCap = time.Second
	// DuplicateLinger is how long the second session with one node stays
	// open.
	DuplicateLinger = time.Second
	// failureLogEvery is the least time between two log lines about
	// handshakes that failed: strangers must not fill the log.
	failureLogEvery = time.Second
)

// dialerConfig is the QUIC side of connections that go out. Who dialed opens
// the only stream.
func dialerConfig() *quic.Config {
	return &quic.Config{
		HandshakeIdleTimeout:  HandshakeTimeout,
		MaxIdleTimeout:        IdleTimeout,
		KeepAlivePeriod:       KeepAlive,
		MaxIncomingStreams:    -1,
		MaxIncomingUniStreams: -1,
	}
}

// acceptorConfig is the QUIC side of connections that come in: one stream,
// and no second one beside it.
func acceptorConfig() *quic.Config {
	return &quic.Config{
		HandshakeIdleTimeout:  HandshakeTimeout,
		MaxIdleTimeout:        IdleTimeout,
		MaxIncomingStreams:    1,
		MaxIncomingUniStreams: -1,
	}
}
