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

	// FirstResend is how long after a request was handed to a live connection
	// it is sent again, unless it was answered. Each further time it takes
	// twice as long, up to MaxResend. Such a connection loses nothing while it
	// lives, and PeerDown and PeerUp see to what is lost with it. What remains
	// is an answer that the node dropped because too much waited to be sent to
	// this process already. To ask sooner would do harm: a large value may be
	// on its way for a second, and copies behind it hold up all others.
	FirstResend = 2 * time.Second
	MaxResend   = 8 * time.Second

	// FirstRetry is how long after the network didn't take a request, because
	// there is no connection or its queue is full, it is tried again, unless
	// an earlier copy is on its way. Each further time it takes twice as long,
	// up to MaxRetry.
	FirstRetry = 50 * time.Millisecond
	MaxRetry   = time.Second

	// minSweep is the least time between two sweeps, so that conversations
	// that become due one after the other are resent together. Where spares
	// wait to be asked, it is minHedgeSweep.
	minSweep      = 25 * time.Millisecond
	minHedgeSweep = 2 * time.Millisecond
)

// When AskSome asks its spares, and whom Nearest puts first.
const (
	// HedgeLeast is the shortest time after which those who were asked first
	// are late, unless Config says another, and HedgeMost the longest. Between
	// the two it is hedgeTimes what the slowest of them usually takes: seldom
	// enough passed by answers that are on their way.
	HedgeLeast = 5 * time.Millisecond
	HedgeMost  = time.Second
	hedgeTimes = 3

	// UnknownLatency is what a node is supposed to take that hasn't answered
	// yet, UnknownPerKiB what it takes beside for each KiB of an answer that
	// is env.Bulky, 10 MiB a second.
	UnknownLatency = 10 * time.Millisecond
	UnknownPerKiB  = 100 * time.Microsecond

	// similarTimes: nodes that take no more than so many times what the
	// fastest takes share the work.
	similarTimes = 2

	// ProbeEvery is how often a node that isn't asked first, because it is
	// slow, is asked with the others, to see whether it still is.
	ProbeEvery = 250 * time.Millisecond

	// averageOver is how many answers a moving average is over; what is older
	// than forgetAfter counts for nothing in it. rankEvery is how often nodes
	// are put in order while no more is news than what they take.
	averageOver = 8
	forgetAfter = ProbeEvery / 2
	rankEvery   = 20 * time.Millisecond

	// MaxPaces is for how many nodes it is kept how fast they answer.
	MaxPaces = 4096
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
