package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
)

// BodySize reads a frame's header, and returns the size of the body that
// follows it, 1 to MaxFrame bytes.
func BodySize(header [HeaderSize]byte) (int, error) {
	n := binary.BigEndian.Uint32(header[:])
	if n == 0 || n > MaxFrame {
		return 0, &FormatError{Field: "header", Problem: fmt.Sprintf("a body of %d bytes, want 1 to %d", n, MaxFrame)}
	}
	return int(n), nil
}

// Decoder decodes frames. It holds what one decoding can reuse from the one
// before it. The zero Decoder is ready; it must not be copied after its first
// use, nor used by two goroutines at once.
type Decoder struct {
	in   reader
	mp   *msgpack.Decoder // reads from in
	kind Kind             // of this frame, for errors
	err  error            // the first thing that went wrong in this frame
	ack  *abd.PutAck      // the last plain one, for all answers that are that
}

// DecodeFrame is Decoder.DecodeFrame for those who decode one frame only.
func DecodeFrame(body []byte) (conversation uint64, m env.Message, err error) {
	return new(Decoder).DecodeFrame(body)
}

// DecodeFrame decodes the body of one frame. A value in the message is a part
// of body and not a copy: from here on body is as immutable as the message,
// and lives as long. Keys and other strings are copies.
//
// The error is a *FormatError; or an *UnknownKindError when all is well but
// for a message of an unknown kind, and then conversation is valid.
func (d *Decoder) DecodeFrame(body []byte) (conversation uint64, m env.Message, err error) {
	if d.mp == nil {
		d.mp = msgpack.NewDecoder(&d.in)
	}
	d.in, d.kind, d.err = reader{b: body}, 0, nil
	defer func() { d.in = reader{} }()
	if len(body) > MaxFrame {
		d.fail("frame", "%d bytes, at most %d are allowed", len(body), MaxFrame)
	}
	n := d.begin("frame", 3)
	d.kind = Kind(d.uint("kind", math.MaxUint16))
	conversation = d.uint("conversation", math.MaxUint64)
	m = d.decode(d.kind)
	unknown := m == nil
	if unknown {
		d.skip(1)
	}
	d.end(n - 3)
	if d.err == nil && d.in.left() > 0 {
		d.fail("frame", "%d bytes behind its end", d.in.left())
	}
	switch {
	case d.err != nil:
		return 0, nil, d.err
	case unknown:
		return conversation, nil, &UnknownKindError{Kind: d.kind}
	}
	return conversation, m, nil
}

// reader is the body being decoded. The msgpack decoder uses an io.ByteScanner
// as it is, without a buffer of its own; so what is before off is what was
// decoded, and a value can be taken out of b without a copy.
type reader struct {
	b   []byte
	off int
}

func (r *reader) left() int { return len(r.b) - r.off }

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if r.left() == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b[r.off:])
	r.off += n
	return n, nil
}

// ReadByte implements io.ByteReader.
func (r *reader) ReadByte() (byte, error) {
	if r.left() == 0 {
		return 0, io.EOF
	}
	r.off++
	return r.b[r.off-1], nil
}

// UnreadByte implements io.ByteScanner.
func (r *reader) UnreadByte() error {
	if r.off == 0 {
		return io.EOF
	}
	r.off--
	return nil
}

// take returns the next n bytes, which the caller knows to be there.
func (r *reader) take(n int) []byte {
	r.off += n
	return r.b[r.off-n : r.off : r.off]
}

// After a failure every method below returns zero and reads nothing, so that
// decoders need to look at d.err only where they loop. What is short is read
// here, as an answer may have thousands of records of a dozen parts each; the rest
// is left to the msgpack decoder.

// fail notes the first problem, at the place that was read last.
func (d *Decoder) fail(field, format string, args ...any) {
	if d.err == nil {
		d.err = &FormatError{Kind: d.kind, Field: field, Offset: d.in.off, Problem: fmt.Sprintf(format, args...)}
	}
}

// wrap is fail with an error of another package.
func (d *Decoder) wrap(field string, err error) {
	if d.err == nil && err != nil {
		d.err = &FormatError{Kind: d.kind, Field: field, Offset: d.in.off, Err: err}
	}
}

// code returns the next byte, which says what comes, without reading it. The
// msgpack decoder takes nil for zero, a bin for a string and -1 for a uint64,
// so each method looks at the code before it lets it decode.
func (d *Decoder) code(field string) (byte, bool) {
	if d.err != nil {
		return 0, false
	}
	if d.in.left() == 0 {
		d.wrap(field, io.ErrUnexpectedEOF)
		return 0, false
	}
	return d.in.b[d.in.off], true
}

// begin begins an array of fields, of which the first least must be there, and
// returns how many there are.
func (d *Decoder) begin(field string, least int) int {
	n := d.arrayLen(field, 1)
	if d.err == nil && n < least {
		d.fail(field, "%d fields, at least %d are needed", n, least)
	}
	return n
}

// end ends an array that has extra more fields than this build knows.
func (d *Decoder) end(extra int) {
	if extra > 0 {
		d.skip(extra)
	}
}

// list begins a list of at most most elements of at least size bytes each.
func (d *Decoder) list(field string, most, size int) int {
	n := d.arrayLen(field, size)
	if d.err == nil && n > most {
		d.fail(field, "%d elements, at most %d are allowed", n, most)
	}
	if d.err != nil {
		return 0
	}
	return n
}

// arrayLen reads the length of an array whose elements take at least size
// bytes each.
func (d *Decoder) arrayLen(field string, size int) int {
	c, ok := d.code(field)
	if !ok {
		return 0
	}
	n := int(c & msgpcode.FixedArrayMask)
	switch {
	case msgpcode.IsFixedArray(c):
		d.in.off++
	case c == msgpcode.Array16 || c == msgpcode.Array32:
		var err error
		n, err = d.mp.DecodeArrayLen()
		d.wrap(field, err)
	default:
		d.fail(field, "code %#02x is not an array", c)
		return 0
	}
	if d.err == nil && (n < 0 || n > d.in.left()/size) { // < 0: a count that int can't hold
		d.fail(field, "%d elements in %d bytes", n, d.in.left())
	}
	if d.err != nil {
		return 0
	}
	return n
}

func (d *Decoder) bool(field string) bool {
	c, ok := d.code(field)
	if !ok {
		return false
	}
	if c != msgpcode.False && c != msgpcode.True {
		d.fail(field, "code %#02x is not a boolean", c)
		return false
	}
	d.in.off++
	return c == msgpcode.True
}

// uint reads an unsigned number of any width.
func (d *Decoder) uint(field string, most uint64) uint64 {
	c, ok := d.code(field)
	if !ok {
		return 0
	}
	if c > msgpcode.PosFixedNumHigh && (c < msgpcode.Uint8 || c > msgpcode.Uint64) {
		d.fail(field, "code %#02x is not an unsigned number", c)
		return 0
	}
	n := uint64(c)
	if c <= msgpcode.PosFixedNumHigh {
		d.in.off++
	} else {
		var err error
		n, err = d.mp.DecodeUint64()
		d.wrap(field, err)
	}
	if d.err == nil && n > most {
		d.fail(field, "%d, at most %d is allowed", n, most)
	}
	if d.err != nil {
		return 0
	}
	return n
}

// count reads a number, 0 to most, that Go keeps in a signed integer.
func (d *Decoder) count(field string, most int64) int64 { return int64(d.uint(field, uint64(most))) }

// string reads a str and copies it.
func (d *Decoder) string(field string, most int) string {
	c, ok := d.code(field)
	if !ok {
		return ""
	}
	if !msgpcode.IsString(c) {
		d.fail(field, "code %#02x is not a string", c)
		return ""
	}
	return string(d.bytes(field, most))
}

// bin reads a bin, as a part of the body.
func (d *Decoder) bin(field string, most int) []byte {
	c, ok := d.code(field)
	if !ok {
		return nil
	}
	if !msgpcode.IsBin(c) {
		d.fail(field, "code %#02x is not bin", c)
		return nil
	}
	return d.bytes(field, most)
}

// bytes reads a str or bin, as a part of the body.
func (d *Decoder) bytes(field string, most int) []byte {
	n := 0
	if b := d.in.b[d.in.off:]; len(b) > 1 && b[0] == msgpcode.Bin8 {
		n = int(b[1])
		d.in.off += 2
	} else {
		var err error
		n, err = d.mp.DecodeBytesLen()
		d.wrap(field, err)
	}
	switch {
	case d.err != nil:
		return nil
	case n < 0 || n > most: // < 0: a length that int can't hold
		d.fail(field, "%d bytes, at most %d are allowed", n, most)
		return nil
	case n > d.in.left():
		d.wrap(field, io.ErrUnexpectedEOF)
		return nil
	}
	return d.in.take(n)
}

// key reads a key and copies it. A key that were a part of the body, by way
// of package unsafe, would save one small allocation a message, and keep a
// body of up to MaxFrame bytes alive wherever the key goes: into the index of
// a store, or into what a client keeps of a list.
func (d *Decoder) key(field string) abd.Key { return abd.Key(d.bin(field, abd.MaxKey)) }

// sharedKey is key for one of many: up to keyPiece bytes of them share a piece of
// memory, which each of them keeps alive.
func (d *Decoder) sharedKey(field string, piece *strings.Builder, left int) abd.Key {
	b := d.bin(field, abd.MaxKey)
	if piece.Cap()-piece.Len() < len(b) {
		*piece = strings.Builder{}
		piece.Grow(max(len(b), min(left*len(b), keyPiece)))
	}
	begin := piece.Len()
	piece.Write(b)
	return abd.Key(piece.String()[begin:])
}

// value reads a value, as a part of the body. An empty one is nil: a slice of
// no bytes would keep the body alive for nothing.
func (d *Decoder) value(field string) []byte {
	v := d.bin(field, abd.LargestMaxValue)
	if len(v) == 0 {
		return nil
	}
	return v
}

// node reads and checks a node id.
func (d *Decoder) node(field string) quorum.NodeID {
	s := d.string(field, quorum.MaxNodeID)
	if d.err != nil {
		return ""
	}
	id, err := quorum.ParseNodeID(s)
	d.wrap(field, err)
	return id
}
