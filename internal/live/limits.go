package live

import "time"

// Limits of a Runtime.
const (
	// MaxConversations is how many conversations may be open at a time. Ask
	// waits for a place when there are more.
	MaxConversations = 1<<placeBits - 1

	// MaxMail is how many envelopes wait in a mailbox. Those that come when it
	// is full are dropped: whoever sent them asks again.
	MaxMail = 4096

	// MaxMailboxes is how many mailboxes arriving messages may create. Those
	// to further ones are dropped, until a task has called Receive on them.
	MaxMailboxes = 4096

	// FirstResend is how long after a request was sent it is sent again,
	// unless it was answered. Each further time it takes twice as long, up to
	// MaxResend. A request to a node that is up is answered within a few
	// milliseconds or lost with its connection, which PeerUp sees to; what
	// remains is a node that is overloaded, where to ask too often does harm.
	FirstResend = 250 * time.Millisecond
	MaxResend   = 2 * time.Second

	// minSweep is the least time between two sweeps, so that conversations
	// that become due one after the other are resent together.
	minSweep = 25 * time.Millisecond
)

// The parts of a conversation's number, from the lowest bit up. See the
// package's documentation.
const (
	placeBits      = 20
	redirectBits   = 4
	generationBits = 64 - placeBits - redirectBits

	maxRedirects = 1<<redirectBits - 1
	placeMask    = 1<<placeBits - 1
	redirectMask = maxRedirects << placeBits
)
