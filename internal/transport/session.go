package transport

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/wire"
	"atoll/quorum"
)

const shutdownText = "shutting down"

// A link is a connection on its way to be a session: who is there is known.
type link struct {
	conn   *quic.Conn
	stream *quic.Stream
	peer   identity.Peer
	dialed bool // by this side
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
	t     *Transport
	id    uint64
	node  quorum.NodeID
	limit int // of bytes that are pending or being written
	born  time.Time

	ready chan struct{} // holds a token when the writer has something to do
	over  chan struct{} // closed when Send no longer uses the session

	leaving bool // guarded by Transport.mu: another session has replaced it

	out struct {
		sync.Mutex
		encoder wire.Encoder
		pending *buffer // nil: nothing
		writing int     // bytes of the write that goes on
		watched bool    // Congested has said so, and Drained is owed
		err     error   // why nothing can be queued any more
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
// has gathered.
//
// The error is ErrQueueFull, or wraps ErrClosed when the session is over, or
// says why m can't be encoded (a *wire.LimitError when it is too large); then
// nothing was queued and the session is as it was. No error doesn't mean that
// m arrives.
func (s *Session) Queue(conversation uint64, m env.Message) error {
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
		o.pending = s.t.buffers.get()
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
	if before+o.writing > 0 && len(b)+o.writing > s.limit {
		o.pending.bytes = b[:before]
		s.t.counters.queueFull.Add(1)
		return before, ErrQueueFull
	}
	o.pending.bytes = b
	o.pending.frames++
	return len(b), nil
}

// Congested reports that half of what may wait for the peer does: it takes
// less than it gets. If so, and the Handler is a Drainer, that is told when it
// is over, or the session is.
func (s *Session) Congested() bool {
	s.out.Lock()
	defer s.out.Unlock()
	if s.out.err != nil || s.waiting() < s.limit/2 {
		return false
	}
	s.out.watched = true
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
// given, and returns that.
func (s *Session) end(err error) error {
	s.out.Lock()
	defer s.out.Unlock()
	if s.out.err == nil {
		s.out.err = err
	}
	return s.out.err
}

// run is the session's life, from Up to Down. It is the reader.
func (s *Session) run() {
	var writer sync.WaitGroup
	done, stop := context.WithCancel(context.Background())
	writer.Go(func() { s.write(done) })

	s.t.cfg.Handler.Up(s)
	err := s.end(sessionError(s.read()))
	s.link.close(closeCode(err))
	stop()
	writer.Wait()
	s.t.remove(s)
	s.t.log.Debug("session ended", "id", s.id, "peer", s.peer.String(), "remote", s.Remote(), "err", err)
	s.t.cfg.Handler.Down(s, err)
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
	if f, ok := errors.AsType[*frameError](err); ok {
		return CodeBadFrame, f.Error()
	}
	return CodeShutdown, "session over"
}
