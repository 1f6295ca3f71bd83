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
	// DefaultMaxBulk and DefaultMaxBulkClient are the same for large frames,
	// which wait on their own. It is little on purpose: what waits here is sent
	// even if its operation has ended by then, and where a network or disk is
	// slower than what is asked of it, those that come later would wait behind
	// it until their time is up, too. Whoever finds no room asks again, as long
	// as it wants an answer.
	DefaultMaxBulk       = 16 << 20
	DefaultMaxBulkClient = 16 << 20
	// BulkAbove is the size above which a frame is large: it goes on a stream
	// of its own, so that small ones needn't wait for it.
	BulkAbove = 64 << 10
	// DefaultMaxIncoming is how many connections may come in: each client has
	// one with every node. nodeReserve is how many more there may be of nodes,
	// which must reach each other however many clients there are; until a
	// certificate is seen, anybody may have such a place.
	DefaultMaxIncoming = 16_384
	nodeReserve        = 256
	// maxHandshakes is how many of those may be unfinished, and retryAbove is
	// how many before strangers must first prove that their address is theirs.
	// Those that are let in must be done within HandshakeTimeout, also where a
	// handshake takes 3 ms and there is a third of a processor: if too many are, all
	// are late, try again, and none gets in.
	maxHandshakes = 192
	retryAbove    = 32
	// maxHandshakesPerHost is how many of the unfinished ones may come from one
	// IP address, or one /64 of IPv6: a host that begins and never finishes
	// leaves room for the others.
	maxHandshakesPerHost = maxHandshakes / 2
	// DefaultMemory is what all connections together may cost, see budget. A
	// nodePart'th of it is reserved for nodes, and a leavingPart'th is left free
	// for what those have that are being closed to make room.
	DefaultMemory = 4 << 30
	nodePart      = 4
	leavingPart   = 8
	// leastMemory is the least that may be set: less would be no use to anybody.
	leastMemory = 16 << 20
	// connectionCost is about what an idle connection takes, with what QUIC may
	// hold unread at first; freeBuffer is how much of its buffers is in that.
	connectionCost = 128 << 10
	freeBuffer     = 4 << 10
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
	// packetBatch is how many datagrams are received at a time. quic-go asks for
	// no more.
	packetBatch = 8
	// keepBuffer is the largest send buffer that is kept for reuse.
	keepBuffer = 1 << 20
	// bulkStep is what send buffers of large frames are rounded up to.
	bulkStep = 64 << 10
	// bulkChunk is how much room is made for a large frame before more than
	// its first bytes have come, and trustedChunk how much at most for a peer
	// that has sent a whole one as large.
	bulkChunk    = 256 << 10
	trustedChunk = 1 << 20
	// minChunk and maxChunk bound the buffers into which small frames are
	// read, and minRead is how much free space is worth a read.
	minChunk = 1 << 10
	maxChunk = 64 << 10
	minRead  = 512
	// maxIncoming is how many decoded messages the handler gets at once: of a
	// full chunk of the smallest, all would be two megabytes.
	maxIncoming = 512
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
	// ClientKeepAlive and ClientIdleTimeout are the same for clients, of whom
	// there may be ten thousand, each connected with all nodes. A client that
	// waits for something notices silence after IdleTimeout nevertheless (see
	// silence), in which it looks silenceLooks times. Clients that are idle find
	// out that a node was restarted within ClientKeepAlive, not all at once. More
	// than 30 s make many a middlebox forget the path (RFC 9000, 10.1.2), and each
	// packet wakes a sleeping process.
	ClientKeepAlive   = 25 * time.Second
	ClientIdleTimeout = 60 * time.Second
	silenceLooks      = 5
	// DefaultStallTimeout is how long a peer may take nothing of what waits
	// for it, or acknowledge nothing, unless Config says otherwise. A node that is
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
	// RedialSpread is within which time clients dial a node again whose session
	// has ended, at random, unless they have something to send to it: when a node
	// ends, thousands of idle clients are told at the same moment. It is spreadGrowth
	// times as long after each attempt that fails, up to LongestSpread: in that time a
	// node must be able to take in all clients that it may have, beside its work. Three ms of
	// a processor for each of DefaultMaxIncoming are a fifth of one.
	RedialSpread  = 2 * time.Second
	LongestSpread = 256 * time.Second
	spreadGrowth  = 4
	// DuplicateLinger is how long the second session with one node stays
	// open.
	DuplicateLinger = time.Second
	// failureLogEvery is the least time between two log lines about
	// handshakes that failed: strangers must not fill the log.
	failureLogEvery = time.Second
)

// What of a connection may be on its way or unread, in bytes; QUIC goes from
// the first to the second as the path needs it and, where connections come in,
// the budget allows: so they begin with little there. Two streams come in at most,
// and a connection's window always exceeds that of the one for large frames,
// so that small frames have room even while nobody reads those.
const (
	streamWindow        = 512 << 10
	maxStreamWindow     = 6 << 20
	connectionWindow    = 768 << 10
	maxConnectionWindow = 15 << 20

	acceptedStreamWindow     = 32 << 10
	acceptedConnectionWindow = 48 << 10
	// packetSize is what packets begin with, the least that a path must carry
	// for QUIC. More is tried out later. (quic-go's own 1280 doesn't get
	// through a path for IP packets of 1280 bytes, as tunnels often are.)
	packetSize = 1200
)

// quicConfig is what both sides of a connection have in common: beside the
// first stream each may open one in its own direction, for large frames.
func quicConfig() *quic.Config {
	return &quic.Config{
		HandshakeIdleTimeout:           HandshakeTimeout,
		MaxIdleTimeout:                 IdleTimeout,
		InitialStreamReceiveWindow:     streamWindow,
		MaxStreamReceiveWindow:         maxStreamWindow,
		InitialConnectionReceiveWindow: connectionWindow,
		MaxConnectionReceiveWindow:     maxConnectionWindow,
		InitialPacketSize:              packetSize,
		MaxIncomingUniStreams:          1,
	}
}

// dialerConfig is for connections that go out, of a client or a node. Who
// dialed opens the first stream, and keeps the connection alive.
func dialerConfig(client bool) *quic.Config {
	c := quicConfig()
	c.KeepAlivePeriod = KeepAlive
	if client {
		c.KeepAlivePeriod, c.MaxIdleTimeout = ClientKeepAlive, ClientIdleTimeout
	}
	c.MaxIncomingStreams = -1
	return c
}

// acceptorConfig is for connections that come in. widen is asked whether more of
// one may be unread.
func acceptorConfig(widen func(*quic.Conn, uint64) bool) *quic.Config {
	c := quicConfig()
	c.InitialStreamReceiveWindow = acceptedStreamWindow
	c.InitialConnectionReceiveWindow = acceptedConnectionWindow
	c.AllowConnectionWindowIncrease = widen
	c.MaxIncomingStreams = 1
	c.MaxIdleTimeout = ClientIdleTimeout // nodes ask for less, and get it
	return c
}
