package wire

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
)

// Encoder encodes messages. It holds what one encoding can reuse from the one
// before it, so that none allocates. The zero Encoder is ready; it must not be
// copied after its first use, nor used by two goroutines at once.
type Encoder struct {
	out sink
	mp  *msgpack.Encoder // writes to out
	err error            // the first thing that went wrong in this frame
}

// AppendFrame appends the frame of m, header included, to b. It keeps neither
// b nor m, and allocates only where b has no room (and for the text of a
// quorum system in a Description).
//
// The error is a *LimitError, or says that m is of a type that has no
// encoding; then b is returned as it was.
func (e *Encoder) AppendFrame(b []byte, conversation uint64, m env.Message) ([]byte, error) {
	if e.mp == nil {
		e.mp = msgpack.NewEncoder(&e.out)
	}
	start := len(b)
	e.out.b, e.err = append(b, 0, 0, 0, 0), nil
	e.encode(conversation, m)
	size := len(e.out.b) - start - HeaderSize
	if e.err == nil {
		e.check("frame", size, MaxFrame)
	}
	b, e.out.b = e.out.b, nil
	if e.err != nil {
		return b[:start], e.err
	}
	binary.BigEndian.PutUint32(b[start:], uint32(size))
	return b, nil
}

// sink is the byte slice that the msgpack encoder appends to.
type sink struct{ b []byte }

// Write appends p; it can't fail, so the msgpack encoder's errors, which are
// the writer's, can't occur.
func (s *sink) Write(p []byte) (int, error) {
	s.b = append(s.b, p...)
	return len(p), nil
}

// WriteByte appends c.
func (s *sink) WriteByte(c byte) error {
	s.b = append(s.b, c)
	return nil
}

func (e *Encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// check fails unless n is in 0 to most.
func (e *Encoder) check(field string, n, most int) {
	if n < 0 || n > most {
		e.fail(&LimitError{Field: field, Size: int64(n), Max: int64(most)})
	}
}

// open begins a frame: [kind, conversation, and the message is next.
func (e *Encoder) open(k Kind, conversation uint64) {
	e.array(3)
	e.uint(uint64(k))
	e.uint(conversation)
}

func (e *Encoder) array(n int) { _ = e.mp.EncodeArrayLen(n) }

// list begins a list of n elements.
func (e *Encoder) list(field string, n, most int) {
	e.check(field, n, most)
	e.array(n)
}

func (e *Encoder) bool(v bool) { _ = e.mp.EncodeBool(v) }

// uint writes n in its shortest form.
func (e *Encoder) uint(n uint64) { _ = e.mp.EncodeUint(n) }

// count writes a number, 0 to most, that Go keeps in a signed integer.
func (e *Encoder) count(field string, n, most int64) {
	if n < 0 || n > most {
		e.fail(&LimitError{Field: field, Size: n, Max: most})
	}
	e.uint(uint64(n))
}

func (e *Encoder) string(field, s string, most int) {
	e.check(field, len(s), most)
	_ = e.mp.EncodeString(s)
}

// node writes a node id. Decoders refuse a bad one, so it mustn't leave.
func (e *Encoder) node(field string, id quorum.NodeID) {
	if _, err := quorum.ParseNodeID(string(id)); err != nil {
		e.fail(fmt.Errorf("wire: %s: %w", field, err))
	}
	_ = e.mp.EncodeString(string(id))
}

// text writes a text for people, cut where it is too long: a refusal that
// says too much must not be lost for it.
func (e *Encoder) text(s string, most int) {
	if len(s) > most {
		cut := most
		for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	_ = e.mp.EncodeString(s)
}

// key writes a key as bin: it is any bytes.
func (e *Encoder) key(field string, k abd.Key) {
	e.check(field, len(k), abd.MaxKey)
	_ = e.mp.EncodeBytesLen(len(k))
	e.out.b = append(e.out.b, k...)
}

// value writes a value as bin. The msgpack encoder's own EncodeBytes would
// write nil for a nil slice, and nil and empty are the same here.
func (e *Encoder) value(field string, v []byte) {
	e.check(field, len(v), abd.LargestMaxValue)
	if e.err != nil {
		return // don't copy what is refused anyway
	}
	_ = e.mp.EncodeBytesLen(len(v))
	e.out.b = append(e.out.b, v...)
}

// bin writes any bytes.
func (e *Encoder) bin(field string, b []byte, most int) {
	e.check(field, len(b), most)
	_ = e.mp.EncodeBytesLen(len(b))
	e.out.b = append(e.out.b, b...)
}
