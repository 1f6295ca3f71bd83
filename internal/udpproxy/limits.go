package udpproxy

import "time"

// Limits of a Proxy.
const (
	// MaxFlows is how many clients a proxy serves at a time. Datagrams of
	// others are lost.
	MaxFlows = 1024
	// FlowTimeout is how long the server may send nothing to a client before
	// the flow is forgotten. When the client speaks again, the server sees
	// another port.
	FlowTimeout = time.Minute
	// MaxDatagram is the size of the largest datagram in bytes: what UDP
	// allows.
	MaxDatagram = 65507
	// MaxWaiting is how many bytes may be under way in one direction because
	// of a Delay or a Rate. What arrives beyond is lost.
	MaxWaiting = 8 << 20
	// MaxDelay is the longest delay that can be asked for.
	MaxDelay = time.Minute
	// socketBuffer is what the system is asked for, in bytes, for what
	// arrives in a burst. It may grant less.
	socketBuffer = 4 << 20
)
