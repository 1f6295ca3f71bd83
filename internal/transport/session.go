package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/wire"
	"atoll/quorum"
)

const (
	shutdownText = "shutting down"
	unwantedText = "no longer wanted"
)

// A link is a connection on its way to be a session: who is there is known.
type link struct {
	conn    *quic.Conn
	stream  *quic.Stream
	peer    identity.Peer
	account *account // of the memory that it costs
	dialed  bool     // by this side
	bulk    bool     // the peer takes large frames on a stream of their own
}

// close closes the connection and tells the peer why.
func (l *link) close(code Code, text string) {
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "")
	}
	// It returns nil always.
	_ = l.conn.CloseWithError(quic.ApplicationErrorCode(code), text)
}

// Session is a connection with one peer. Its methods may be called by any
// goroutine.
type Session struct {
	link
	t         *Transport
	id        uint64
	node      quorum.NodeID
	limit     int // of bytes that are pending or being written
	bulkLimit int // the same of large frames
	born      time.Time

	silence *silence

	ready chan struct{}  // holds a token when the writer has something to do
	over  chan struct{}  // closed when Send no longer uses the session
	work  sync.WaitGroup // the session's goroutines, but for the one that is run

	leaving bool // guarded by Transport.mu: another session has replaced it

	out struct {
		sync.Mutex
		encoder wire.Encoder
		pending *buffer // nil: nothing
		writing int     // bytes of the write that goes on
		watched bool    // Congested has said so, and Drained is owed
		bulk    bulkLane
		err     error // why nothing can be queued any more
	}
}

// ID is the session's number, unique in this process and never 0.
func (s *Session) ID() uint64 { return s.id }

// Peer is who is at the other end, as its certificate says.
func (s *Session) Peer() identity.Peer { return s.peer }

// Node is the peer's node id, or "client-" and the session's number for a peer
// that isn't a node.
func (s *Session) Node() quorum.NodeID { return s.node }

// Dialed reports whether this side dialed.
func (s *Session) Dialed() bool { return s.dialed }

// Remote is the peer's address, for logs.
func (s *Session) Remote() string { return s.conn.RemoteAddr().String() }

// Queue encodes m behind what is pending for the peer. It doesn't block, and m
// may be used again when it returns. Nothing leaves before Flush, unless much
// has gathered. A frame of more than BulkAbove bytes waits on its own, and
// leaves at once; what was queued before or after may arrive earlier or later.
//
// The error wraps ErrQueueFull (an *OverBudgetError as well, when it isn't for
// this session's own limit), or ErrClosed when the session is over, or
// says why m can't be encoded (a *wire.LimitError when it is too large); then
// nothing was queued and the session is as it was. No error doesn't mean that
// m arrives.
func (s *Session) Queue(conversation uint64, m env.Message) error {
	if s.bulk && wire.ValueSize(m) > BulkAbove {
		return s.queueBulk(conversation, m)
	}
	s.out.Lock()
	size, err := s.queue(conversation, m)
	s.out.Unlock()
	if size >= flushAbove {
		s.Flush()
	}
	return err
}

// queue is Queue with s.out locked. It returns how much is pending.
func (s *Session) queue(conversation uint64, m env.Message) (int, error) {
	o := &s.out
	if o.err != nil {
		return 0, o.err
	}
	if o.pending == nil {
		o.pending = s.lend()
	}
	before := len(o.pending.bytes)
	if before+o.writing >= s.limit {
		s.t.counters.queueFull.Add(1)
		return before, ErrQueueFull
	}
	b, err := o.encoder.AppendFrame(o.pending.bytes, conversation, m)
	if err != nil {
		return before, err
	}
	if s.bulk && len(b)-before > BulkAbove { // many keys, not a large value
		o.pending.bytes = b[:before]
		return before, s.addBulk(bulkFrame{conversation, slices.Clone(b[before:])})
	}
	if before+o.writing > 0 && len(b)+o.writing > s.limit {
		o.pending.bytes = b[:before]
		s.t.counters.queueFull.Add(1)
		return before, ErrQueueFull
	}
	if err := s.account.pay(&o.pending.charged, cap(b)-freeBuffer); err != nil {
		// What has grown is let go; what was pending is still in the old one.
		s.t.counters.queueFull.Add(1)
		return before, fmt.Errorf("%w: %w", ErrQueueFull, err)
	}
	o.pending.bytes = b
	o.pending.frames++
	return len(b), nil
}

// Congested reports that half of what may wait for the peer does, large frames
// aside: it takes less than it gets. If so, and the Handler is a Drainer, that
// is told when it is over, or the session is.
func (s *Session) Congested() bool {
	s.out.Lock()
	defer s.out.Unlock()
	if s.out.err != nil || s.waiting() < s.limit/2 {
		return false
	}
	s.out.watched = true
	return true
}

// BulkCongested is Congested for large frames.
func (s *Session) BulkCongested() bool {
	if !s.bulk { // large frames go with the others
		return s.Congested()
	}
	s.out.Lock()
	defer s.out.Unlock()
	if s.out.err != nil || s.out.bulk.bytes < s.bulkLimit/2 {
		return false
	}
	s.out.bulk.watched = true
	return true
}

// waiting is how many bytes wait for the peer. s.out is locked.
func (s *Session) waiting() int {
	if s.out.pending == nil {
		return s.out.writing
	}
	return len(s.out.pending.bytes) + s.out.writing
}

// Flush sends everything that was queued, in one write if nothing is being
// written. It doesn't block.
func (s *Session) Flush() {
	select {
	case s.ready <- struct{}{}:
	default: // the writer will look anyway
	}
}

// Close closes the session and tells the peer why. What is pending is lost.
// Only the first call counts, and Handler.Down gets its reason.
func (s *Session) Close(code Code, text string) {
	s.end(&ClosedError{Code: code, Text: text})
	s.link.close(code, text)
}

// end refuses what is queued from now on, for the first reason that it is
// given, and returns that. A handler that left the session alone because it was
// congested is told that it no longer is: it may have the reader waiting, and
// until that returns nobody says Down.
func (s *Session) end(err error) error {
	s.out.Lock()
	owed := false
	if s.out.err == nil && err != nil {
		s.out.err = err
		owed = s.out.watched || s.out.bulk.watched
		s.out.watched, s.out.bulk.watched = false, false
	}
	err = s.out.err
	s.out.Unlock()
	if d, ok := s.t.cfg.Handler.(Drainer); ok && owed {
		d.Drained(s)
	}
	return err
}

// run is the session's life, from Up to Down. It is the reader of small
// frames.
func (s *Session) run() {
	done, stop := context.WithCancel(context.Background())
	defer s.silence.stop()
	s.work.Go(func() { s.write(done) })

	s.t.cfg.Handler.Up(s)
	if s.bulk {
		s.work.Go(s.readBulk)
	}
	err := s.finish(s.read(s.stream, frameReader{next: minChunk, account: s.account}, &s.t.counters.smallIn))
	stop()
	s.work.Wait()
	s.t.remove(s)
	s.t.log.Debug("session ended", "id", s.id, "peer", s.peer.String(), "remote", s.Remote(), "err", err)
	s.t.cfg.Handler.Down(s, err)
	s.account.close()
}

// evict ends the session to make room for others.
func (s *Session) evict(why *OverBudgetError) { s.Close(CodeOverBudget, why.Error()) }

// Charge counts n bytes of memory that a Handler keeps of what the peer sent,
// until Discharge. When there is none left for all sessions, the one that has
// the most is closed. If that would be this one, it is closed and gets an
// *OverBudgetError, and the handler must let go what it wanted to keep. Charge
// may wait for memory that comes free; it is for Handler.Messages.
func (s *Session) Charge(n int) error {
	err := s.account.take(n, true)
	if err != nil {
		s.finish(err)
	}
	return err
}

// ChargeAgain counts n bytes that were discharged, and are kept on after all.
func (s *Session) ChargeAgain(n int) { s.account.charge(n) }

// Discharge takes back what Charge counted.
func (s *Session) Discharge(n int) { s.account.give(n) }

// finish ends the session for what a reader returned, and returns why it ended,
// which may be another reason that came first.
func (s *Session) finish(cause error) error {
	err := s.end(sessionError(cause))
	s.link.close(closeCode(err))
	return err
}

// sessionError is explain for the end of a session: whatever it was, the
// session is closed.
func sessionError(err error) error {
	if err = explain(err); errors.Is(err, ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrClosed, err)
}

// closeCode is what the peer is told about an end that began with err here.
// When the connection is gone already, nobody hears it.
func closeCode(err error) (Code, string) {
	if c, ok := errors.AsType[*ClosedError](err); ok {
		return c.Code, c.Text
	}
	if b, ok := errors.AsType[*OverBudgetError](err); ok {
		return CodeOverBudget, b.Error()
	}
	if f, ok := errors.AsType[*frameError](err); ok {
		return CodeBadFrame, f.Error()
	}
	return CodeShutdown, "session over"
}
