package transport

import (
	"fmt"
	"slices"
	"sync"

	"github.com/quic-go/quic-go"

	"atoll/env"
	"atoll/internal/wire"
)

// Large frames go on a stream of their own, in one direction, which the side
// that has one to send opens when it sends its first. QUIC lets streams take
// turns packet by packet, so a small frame waits for a packet or two of a
// large one, and not for all of it. Nor does it wait in the sender's memory,
// for its encoding, or for the receiver's decoding: each kind has its own
// queue, writer and reader.

// A bulkLane is what waits of a session's large frames. It is guarded by
// Session.out.
type bulkLane struct {
	frames  []bulkFrame // in order; the first may be being written
	bytes   int         // of them
	writing bool        // a goroutine writes them
	watched bool        // BulkCongested has said so, and Drained is owed

	// Of the goroutine that writes.
	stream   *quic.SendStream // nil: not opened yet
	deadline writeDeadline
}

// A bulkFrame is a large frame, encoded.
type bulkFrame struct {
	conversation uint64
	bytes        []byte
}

// queueBulk is Queue for a message with a large value. It is encoded before
// the lock is taken, so that small messages don't wait for that.
func (s *Session) queueBulk(conversation uint64, m env.Message) error {
	room := wire.FrameRoom(m)
	s.out.Lock()
	waits, err := s.bulkRoom(conversation, room)
	s.out.Unlock()
	if err != nil || waits {
		return err
	}
	b, err := s.t.bulk.encode(conversation, m, room)
	if err != nil {
		return err
	}
	s.out.Lock()
	defer s.out.Unlock()
	return s.addBulk(bulkFrame{conversation, b})
}

// bulkRoom returns why a large frame of some size can't be queued. It reports
// that the same request waits already: who asks again because no answer came
// doesn't know that the first copy hasn't left yet, and a second one would
// only hold up others. s.out is locked.
func (s *Session) bulkRoom(conversation uint64, size int) (waits bool, err error) {
	o := &s.out
	if o.err != nil {
		return false, o.err
	}
	if conversation != 0 && slices.ContainsFunc(o.bulk.frames, func(f bulkFrame) bool { return f.conversation == conversation }) {
		return true, nil
	}
	if o.bulk.bytes > 0 && o.bulk.bytes+size > s.bulkLimit {
		s.t.counters.queueFull.Add(1)
		return false, ErrQueueFull
	}
	return false, nil
}

// addBulk queues a large frame, and sees to it that it is written. s.out is
// locked.
func (s *Session) addBulk(f bulkFrame) error {
	waits, err := s.bulkRoom(f.conversation, len(f.bytes))
	if err != nil || waits {
		s.t.bulk.put(f.bytes)
		return err
	}
	if err := s.account.take(cap(f.bytes), false); err != nil {
		s.t.bulk.put(f.bytes)
		s.t.counters.queueFull.Add(1)
		return fmt.Errorf("%w: %w", ErrQueueFull, err)
	}
	l := &s.out.bulk
	l.frames = append(l.frames, f)
	l.bytes += len(f.bytes)
	if !l.writing {
		// Only while there is something: an idle session has no such
		// goroutine. Once s.out.err is set none is started any more.
		l.writing = true
		s.work.Go(s.writeBulk)
	}
	return nil
}

// writeBulk writes large frames, one after the other, until there are none or
// the session is over.
func (s *Session) writeBulk() {
	l := &s.out.bulk
	if l.stream == nil {
		stream, err := s.conn.OpenUniStream()
		if err != nil {
			s.writeFailed(err)
			return
		}
		l.stream, l.deadline = stream, writeDeadline{stall: s.t.cfg.StallTimeout}
	}
	c := &s.t.counters
	for f, ok := s.firstBulk(); ok; f, ok = s.bulkWritten() {
		c.writes.Add(1)
		c.bulkOut.Add(1)
		c.bytesOut.Add(uint64(len(f.bytes)))
		s.silence.sent()
		if err := l.deadline.writeAll(l.stream, f.bytes); err != nil {
			s.writeFailed(err)
			return
		}
	}
}

// firstBulk returns the frame to write next. If there is none, the goroutine
// that asks ends.
func (s *Session) firstBulk() (bulkFrame, bool) {
	s.out.Lock()
	defer s.out.Unlock()
	return s.nextBulk()
}

// nextBulk is firstBulk with s.out locked.
func (s *Session) nextBulk() (bulkFrame, bool) {
	l := &s.out.bulk
	if len(l.frames) == 0 || s.out.err != nil {
		l.writing = false
		return bulkFrame{}, false
	}
	return l.frames[0], true
}

// bulkWritten notes that the first frame was written, and returns the next.
func (s *Session) bulkWritten() (bulkFrame, bool) {
	s.out.Lock()
	l := &s.out.bulk
	done := l.frames[0]
	l.frames = slices.Delete(l.frames, 0, 1)
	l.bytes -= len(done.bytes)
	drained := l.watched && l.bytes < s.bulkLimit/2
	if drained {
		l.watched = false
	}
	next, ok := s.nextBulk()
	s.out.Unlock()
	s.account.give(cap(done.bytes))
	s.t.bulk.put(done.bytes)
	if d, is := s.t.cfg.Handler.(Drainer); is && drained {
		d.Drained(s)
	}
	return next, ok
}

// readBulk gives the handler the peer's large frames, until the session ends.
func (s *Session) readBulk() {
	stream, err := s.conn.AcceptUniStream(s.conn.Context())
	if err == nil {
		err = s.read(stream, frameReader{next: minChunk, trust: bulkChunk, account: s.account}, &s.t.counters.bulkIn)
	}
	s.finish(err)
}

// bulkPool lends what large frames are encoded with and into. Their buffers are
// large enough from the start, and used again: fresh memory of this size costs
// more than encoding into it.
type bulkPool struct{ encoders, buffers sync.Pool }

// encode returns the frame of a message in a buffer of the pool.
func (p *bulkPool) encode(conversation uint64, m env.Message, room int) ([]byte, error) {
	e, ok := p.encoders.Get().(*wire.Encoder)
	if !ok {
		e = new(wire.Encoder)
	}
	defer p.encoders.Put(e)
	var b []byte
	// One that is far larger would be charged to a session that has no use
	// for it.
	if kept, ok := p.buffers.Get().(*[]byte); ok && cap(*kept) >= room && cap(*kept) <= 2*room+bulkStep {
		b = *kept
	} else {
		b = make([]byte, 0, (room+bulkStep-1)/bulkStep*bulkStep)
	}
	b, err := e.AppendFrame(b, conversation, m)
	if err != nil {
		p.put(b)
		return nil, err
	}
	return b, nil
}

// put takes a buffer back.
func (p *bulkPool) put(b []byte) {
	b = b[:0]
	p.buffers.Put(&b)
}
