package transport

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"atoll/env"
	"atoll/internal/wire"
)

// read gives the handler what comes on a stream, and counts it, until the
// session ends. It returns why.
func (s *Session) read(stream io.Reader, frames frameReader, count *atomic.Uint64) error {
	var (
		decoder wire.Decoder
		in      []Incoming
		c       = &s.t.counters
	)
	for {
		n, err := frames.fill(stream)
		c.reads.Add(1)
		c.bytesIn.Add(uint64(n))
		for more := true; more; {
			var bad error
			in, more, bad = s.decode(&frames, &decoder, in[:0])
			if len(in) > 0 {
				count.Add(uint64(len(in)))
				s.t.cfg.Handler.Messages(s, in)
				clear(in)
			}
			if bad != nil {
				c.badFrames.Add(1)
				return &frameError{bad}
			}
		}
		if errors.Is(err, io.EOF) {
			return &ClosedError{Remote: true, Text: "end of the stream"}
		}
		if err != nil {
			return err
		}
	}
}

// decode appends the messages of the frames that have come whole, maxIncoming at
// most, and reports whether there may be more. An error means that the rest of
// the stream can't be trusted.
func (s *Session) decode(frames *frameReader, d *wire.Decoder, in []Incoming) (_ []Incoming, more bool, _ error) {
	for len(in) < maxIncoming {
		body, err := frames.body()
		if body == nil || err != nil {
			return in, false, err
		}
		conversation, m, err := d.DecodeFrame(body)
		if unknown, ok := errors.AsType[*wire.UnknownKindError](err); ok {
			s.refuse(conversation, unknown)
			continue
		}
		if err != nil {
			return in, false, err
		}
		if _, ok := m.(*wire.Hello); ok {
			return in, false, errors.New("a second hello")
		}
		in = append(in, Incoming{Conversation: conversation, Message: m, Size: wire.HeaderSize + len(body)})
	}
	return in, true, nil
}

// refuse answers a message of a kind that this build doesn't know: the sender
// is newer, and can go on without. It is a request: what answers a request
// that this build knows is of a kind that it knows, too.
func (s *Session) refuse(conversation uint64, unknown *wire.UnknownKindError) {
	s.t.log.Debug("message not known here", "peer", s.peer.String(), "err", unknown)
	if conversation == 0 {
		return
	}
	err := s.Queue(conversation, &env.Refused{Reason: env.ReasonBadRequest, Text: unknown.Error()})
	if err != nil {
		s.t.log.Debug("refusal not sent", "peer", s.peer.String(), "err", err)
		return
	}
	s.Flush()
}

// A frameReader cuts a stream into the bodies of frames. The bodies are parts
// of the chunks that it reads into, and no byte is ever used twice. Small
// frames share a chunk, sized so that it holds a few reads; a frame that is
// larger than that gets a chunk of just its size, so that a large value
// doesn't keep others alive, nor they it.
type frameReader struct {
	chunk      []byte
	start, end int // of what is read and not cut off yet
	next       int // size of the next chunk
	reads      int // into this chunk
	// trust is how much room is made for a frame of which little has come; 0 where
	// frames are small.
	trust   int
	account *account
	charged int // of the chunk, to the account
}

// fill reads once.
func (f *frameReader) fill(r io.Reader) (int, error) {
	if err := f.makeRoom(); err != nil {
		return 0, err
	}
	n, err := r.Read(f.chunk[f.end:])
	f.end += n
	f.reads++
	return n, err
}

// makeRoom sees to it that the chunk has room for a read, and for the frame
// that has begun, and that the account can pay for it.
func (f *frameReader) makeRoom() error {
	have, free, whole := f.end-f.start, len(f.chunk)-f.end, f.whole()
	switch {
	case have == 0 && free >= minRead:
		return nil
	case have > 0 && free > 0 && f.start+whole <= len(f.chunk):
		return nil // the rest of the frame fits
	case have > 0 && free > 0 && f.start == 0:
		return nil // it doesn't, and the chunk that has begun with it gets filled first
	}
	switch {
	case f.trust > 0: // next needs room for a header, and so little is copied
	case f.reads == 1:
		f.next = min(2*f.next, maxChunk)
	case f.reads > 8:
		f.next = max(f.next/2, minChunk)
	}
	size := f.next
	if whole > size {
		// The peer says that the frame is this large, which costs it nothing:
		// room grows with what has come.
		size = min(whole, max(maxChunk, f.trust, 4*have))
	}
	if f.account != nil {
		if err := f.account.change(&f.charged, size-freeBuffer); err != nil {
			return err
		}
	}
	chunk := make([]byte, size)
	copy(chunk, f.chunk[f.start:f.end])
	f.chunk, f.start, f.end, f.reads = chunk, 0, have, 0
	return nil
}

// whole is the size of the frame that has begun, or of as much as is known.
func (f *frameReader) whole() int {
	if f.end-f.start < wire.HeaderSize {
		return f.end - f.start
	}
	// A bad header was found by body before another read.
	n, err := wire.BodySize([wire.HeaderSize]byte(f.chunk[f.start:]))
	if err != nil {
		panic(fmt.Sprintf("transport: a bad frame was read on: %v", err))
	}
	return wire.HeaderSize + n
}

// body returns the body of the next frame, nil if it hasn't come whole.
func (f *frameReader) body() ([]byte, error) {
	if f.end-f.start < wire.HeaderSize {
		return nil, nil
	}
	n, err := wire.BodySize([wire.HeaderSize]byte(f.chunk[f.start:]))
	if err != nil {
		return nil, err
	}
	from := f.start + wire.HeaderSize
	if f.end-from < n {
		return nil, nil
	}
	f.start = from + n
	if f.trust > 0 {
		f.trust = max(f.trust, min(wire.HeaderSize+n, trustedChunk))
	}
	return f.chunk[from:f.start:f.start], nil
}
