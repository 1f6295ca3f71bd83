package transport

import (
	"errors"
	"os"
	"sync/atomic"

	"github.com/quic-go/quic-go"

	"atoll/internal/identity"
)

// Stats counts what a Transport did since it was made.
type Stats struct {
	// BytesIn and BytesOut are bytes of frames with their headers, without
	// what TLS, QUIC and UDP add.
	BytesIn, BytesOut uint64
	// FramesIn and FramesOut count messages that came, and those that were
	// given to QUIC.
	FramesIn, FramesOut uint64
	// BulkIn and BulkOut are those of them that had a stream of their own.
	BulkIn, BulkOut uint64
	// Reads and Writes count calls of the streams. Frames per write tell how
	// much is coalesced.
	Reads, Writes uint64
	// QueueFull counts messages that were refused with ErrQueueFull.
	QueueFull uint64
	// Memory is what all connections are counted to cost now, in bytes, and
	// MemoryClients what of it those of clients do. OverBudget counts what was
	// refused for want of it, and Evicted sessions that were closed to make room.
	Memory, MemoryClients int
	OverBudget, Evicted   uint64
	// BadFrames and Stalls count sessions that were closed for these reasons.
	BadFrames, Stalls uint64
	// Sessions is how many live now, Dialed and Accepted how many were made.
	Sessions         int
	Dialed, Accepted uint64
	// Dial counts attempts to reach an address that failed.
	Dial DialFailures
	// Incoming counts connections that came in, finished handshakes or not:
	// what it is more than Accepted was for nothing.
	Incoming uint64
	// Refused counts connections that were turned away for their number,
	// Handshakes those that came in and failed to prove who they are.
	Refused, Handshakes uint64
}

// DialFailures counts attempts to reach an address that failed, by reason.
type DialFailures struct {
	// Timeout: nobody answered in time.
	Timeout uint64
	// Certificate: one side didn't accept the other's certificate.
	Certificate uint64
	// WrongNode: another node was there.
	WrongNode uint64
	// Refused: the other side closed the connection.
	Refused uint64
	// Other: no such name, no route, no socket.
	Other uint64
}

// counters are the live Stats.
type counters struct {
	bytesIn, bytesOut, smallIn, smallOut, reads, writes atomic.Uint64
	bulkIn, bulkOut                                     atomic.Uint64
	queueFull, badFrames, stalls                        atomic.Uint64
	overBudget, evicted                                 atomic.Uint64
	dialed, accepted, incoming, refused, handshakes     atomic.Uint64
	dial                                                struct {
		timeout, certificate, wrongNode, refused, other atomic.Uint64
	}
}

// Stats returns the counts. They are not of one and the same moment.
func (t *Transport) Stats() Stats {
	c := &t.counters
	t.mu.RLock()
	sessions := len(t.mu.sessions)
	t.mu.RUnlock()
	memory, clients := t.budget.used()
	bulkIn, bulkOut := c.bulkIn.Load(), c.bulkOut.Load()
	return Stats{
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(),
		FramesIn: c.smallIn.Load() + bulkIn, FramesOut: c.smallOut.Load() + bulkOut,
		BulkIn: bulkIn, BulkOut: bulkOut,
		Reads: c.reads.Load(), Writes: c.writes.Load(),
		QueueFull: c.queueFull.Load(), BadFrames: c.badFrames.Load(), Stalls: c.stalls.Load(),
		Memory: memory, MemoryClients: clients, OverBudget: c.overBudget.Load(), Evicted: c.evicted.Load(),
		Sessions: sessions, Dialed: c.dialed.Load(), Accepted: c.accepted.Load(),
		Incoming: c.incoming.Load(), Refused: c.refused.Load(), Handshakes: c.handshakes.Load(),
		Dial: DialFailures{
			Timeout:     c.dial.timeout.Load(),
			Certificate: c.dial.certificate.Load(),
			WrongNode:   c.dial.wrongNode.Load(),
			Refused:     c.dial.refused.Load(),
			Other:       c.dial.other.Load(),
		},
	}
}

// dialFailed counts a failed attempt.
func (c *counters) dialFailed(err error) {
	var (
		wrong   *WrongNodeError
		closed  *ClosedError
		refused *quic.TransportError
	)
	switch {
	case errors.As(err, &wrong):
		c.dial.wrongNode.Add(1)
	case identity.ClassOf(err) == identity.Certificate:
		c.dial.certificate.Add(1)
	case errors.As(err, &closed), errors.As(err, &refused) && refused.Remote:
		c.dial.refused.Add(1)
	case errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		c.dial.timeout.Add(1)
	default:
		c.dial.other.Add(1)
	}
}

// isTimeout reports whether err, or what it wraps, says that it is a timeout.
func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
