package transport

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// buffer holds frames that wait to be written.
type buffer struct {
	bytes   []byte
	frames  int
	charged int // to the session that has it
}

// bufferPool lends send buffers to sessions, so that an idle session holds
// none and a busy one allocates none.
type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) get() *buffer {
	if b, ok := p.pool.Get().(*buffer); ok {
		return b
	}
	return new(buffer)
}

func (p *bufferPool) put(b *buffer) {
	if cap(b.bytes) > keepBuffer {
		return
	}
	b.bytes, b.frames, b.charged = b.bytes[:0], 0, 0
	p.pool.Put(b)
}

// lend returns a buffer for what is pending. One of the pool may be larger than
// there is memory for; then the session gets one that grows as it must.
func (s *Session) lend() *buffer {
	b := s.t.buffers.get()
	if s.account.pay(&b.charged, cap(b.bytes)-freeBuffer) == nil {
		return b
	}
	s.t.buffers.put(b)
	return new(buffer)
}

// giveBack gives a buffer back that was written.
func (s *Session) giveBack(b *buffer) {
	if b.charged > 0 {
		s.account.give(b.charged)
	}
	s.t.buffers.put(b)
}

// write is the session's writer: whenever there is something, it takes all of
// it and gives it to QUIC in one write. It returns when the session is over.
func (s *Session) write(over context.Context) {
	deadline := writeDeadline{stall: s.t.cfg.StallTimeout}
	for {
		select {
		case <-s.ready:
		case <-over.Done():
			return
		}
		b := s.take()
		if b == nil {
			continue
		}
		c := &s.t.counters
		c.writes.Add(1)
		c.smallOut.Add(uint64(b.frames))
		c.bytesOut.Add(uint64(len(b.bytes)))
		s.silence.sent()
		if err := deadline.writeAll(s.stream, b.bytes); err != nil {
			s.writeFailed(err)
			return
		}
		s.giveBack(b)
		s.written()
	}
}

// written notes that a write has ended.
func (s *Session) written() {
	s.out.Lock()
	s.out.writing = 0
	drained := s.out.watched && s.waiting() < s.limit/2
	if drained {
		s.out.watched = false
	}
	s.out.Unlock()
	if d, ok := s.t.cfg.Handler.(Drainer); ok && drained {
		d.Drained(s)
	}
}

// take takes what is pending.
func (s *Session) take() *buffer {
	s.out.Lock()
	defer s.out.Unlock()
	b := s.out.pending
	if b == nil || len(b.bytes) == 0 {
		return nil
	}
	s.out.pending, s.out.writing = nil, len(b.bytes)
	return b
}

// sendStream is what a writer needs of a stream.
type sendStream interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}

// writeDeadline moves a stream's deadline ahead now and then, and not at each
// write: a write that QUIC takes at once shouldn't pay for a timer.
type writeDeadline struct {
	stall time.Duration
	at    time.Time
}

// writeAll gives b to QUIC. It waits while the peer's window is full, and
// fails with os.ErrDeadlineExceeded when the peer took nothing for half the
// stall timeout at least.
func (d *writeDeadline) writeAll(stream sendStream, b []byte) error {
	for {
		if now := time.Now(); d.at.Sub(now) < d.stall/2 {
			d.at = now.Add(d.stall)
			if err := stream.SetWriteDeadline(d.at); err != nil {
				return err
			}
		}
		n, err := stream.Write(b)
		if n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		b = b[n:] // slow, and alive
	}
}

// writeFailed ends the session after a failed write. The reader notices.
func (s *Session) writeFailed(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.stalled()
		return
	}
	s.end(sessionError(err))
	s.link.close(CodeShutdown, "session over")
}

// stalled ends a session whose peer takes nothing. A writer and the watch may
// both find it.
func (s *Session) stalled() {
	why := &ClosedError{Code: CodeStalled, Text: "the peer took nothing for " + s.t.cfg.StallTimeout.String()}
	if s.end(why) == error(why) {
		s.t.counters.stalls.Add(1)
	}
	s.link.close(why.Code, why.Text)
}
