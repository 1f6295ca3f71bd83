package server

import "time"

const (
	// maxInbox is how many units of work (that of a get is 1) wait for the
	// loop, and maxQueue how many of one session; readers wait beyond.
	maxInbox = 1 << 16
	maxQueue = 1 << 12
	// maxInboxBytes and maxQueueBytes are the same in bytes of values. All four
	// hold for small items and for large ones, which wait on their own.
	maxInboxBytes = 64 << 20
	maxQueueBytes = 16 << 20
	// maxTurn is how many units the loop takes at a time, and maxShare how
	// many of one session before another has its turn.
	maxTurn  = 1 << 10
	maxShare = 1 << 6
	// maxBulkTurn is how many bytes of large items the loop takes at a time,
	// beside small ones, and at least one item.
	maxBulkTurn = 1 << 20
	// itemCost is about what a waiting message costs beyond its frame: decoded,
	// and with its place in the queue.
	itemCost = 256
	// keysPerUnit is how many keys of a list make a unit.
	keysPerUnit = 32
	// itemBytes is about what a key in a page costs.
	itemBytes = 128
	// maxAnswers is how many answers gather before they leave, and
	// maxAnswerBytes how many bytes of values.
	maxAnswers     = 1 << 10
	maxAnswerBytes = 1 << 20
	// maxHeld is how many answers wait for the disk; the loop waits beyond.
	maxHeld = 1 << 16
	// maxHeldBytes bounds the bytes of records that aren't durable yet, and of
	// the answers that wait for them; the loop waits beyond. Beyond
	// maxBulkHeld only large values wait: that is enough to keep the disk busy
	// with one batch while the next gathers, and small enough that a batch
	// fits into a segment of the journal and small writes don't wait long.
	maxHeldBytes = 64 << 20
	maxBulkHeld  = 8 << 20
	// greeting is how long a node waits before it serves for another one that
	// knows it, and maxEarly how many messages of others' greeting wait meanwhile.
	greeting = time.Second
	// parting is how long a node that ends in order waits for another one to hear
	// how far it came.
	parting  = 250 * time.Millisecond
	maxEarly = 256
	// joinRedial is the pause between two attempts to find the cluster at one
	// address of a ticket.
	joinRedial = time.Second
	// joinLogEvery is the least time between two lines in the log that the cluster
	// isn't found at one of them.
	joinLogEvery = 10 * time.Second
	// probeTimeout is how long it is tried to dial another node where it says that it
	// is; probeAgain after how long anew when that has failed, and probeFresh when it
	// hasn't; maxProbes is how many are tried at a time.
	probeTimeout = 5 * time.Second
	probeAgain   = 30 * time.Second
	probeFresh   = 10 * time.Minute
	maxProbes    = 16
	// stallAfter is how long a commit or a turn of the loop may last until the
	// node counts as not ready: the disk hangs, or is slower than is of use.
	stallAfter = time.Second
	// certificateCheck is how often it is looked at whether the node's
	// certificate ends soon.
	certificateCheck = time.Hour
	// denialLogEvery is the least time between two lines in the log about
	// messages that their sender's role doesn't allow.
	denialLogEvery = time.Second
	// damageLogEvery is the least time between two times at which the log is told of
	// damaged records.
	damageLogEvery = 5 * time.Second
	// blockRate is how many nanoseconds of waiting there are for each that is
	// recorded while the profile of blocking is taken, and mutexFraction the same
	// for waits for mutexes, in events; maxProfile is how long they may be taken.
	blockRate     = 10_000
	mutexFraction = 5
	maxProfile    = 10 * time.Minute
	// shutdownGrace bounds how long the metrics listener may take to close.
	shutdownGrace = time.Second
)
