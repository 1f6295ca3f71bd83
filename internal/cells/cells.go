// Package cells reads and writes the small values that a node keeps about
// itself: in the cells of its store, and what is agreed on as a value.
//
// A value is a row of fields without names: unsigned varints, and bytes with
// their number before them, or as many as the reader knows. Each protocol begins
// its values with a format of its own, and says in its package what follows. What
// is written to a disk may come back damaged, so a reader believes nothing: a
// field that can't be is an error that stays, and all fields behind it are zero.
package cells

import (
	"encoding/binary"
	"math"
)

// AppendNumber appends a number.
func AppendNumber(b []byte, n uint64) []byte { return binary.AppendUvarint(b, n) }

// AppendBytes appends a string or bytes, with their number before them.
func AppendBytes[T ~string | ~[]byte](b []byte, bytes T) []byte {
	return append(AppendNumber(b, uint64(len(bytes))), bytes...)
}

// AppendBool appends a number that is 1 if v is true.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return AppendNumber(b, 1)
	}
	return AppendNumber(b, 0)
}

// Reader reads the fields of a value, one after the other.
type Reader struct {
	rest   []byte
	failed bool
}

// Read returns a reader of b. What it returns is a part of b.
func Read(b []byte) Reader { return Reader{rest: b} }

// Fail makes the value one that makes no sense.
func (r *Reader) Fail() { r.rest, r.failed = nil, true }

// OK reports whether all fields made sense so far.
func (r *Reader) OK() bool { return !r.failed }

// Left returns how many bytes haven't been read.
func (r *Reader) Left() int { return len(r.rest) }

// Done reports whether all fields made sense, and nothing is left.
func (r *Reader) Done() bool { return !r.failed && len(r.rest) == 0 }

// Format reads a byte, which must be want.
func (r *Reader) Format(want byte) {
	if got := r.Take(1); r.failed || got[0] != want {
		r.Fail()
	}
}

// Number reads a number of most at most.
func (r *Reader) Number(most uint64) uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > most {
		r.Fail()
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// Any reads any number.
func (r *Reader) Any() uint64 { return r.Number(math.MaxUint64) }

// Take reads n bytes; nil for none.
func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.Fail()
	}
	if r.failed || n == 0 {
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// Bytes reads bytes, most at most, that have their number before them; nil for
// none.
func (r *Reader) Bytes(most uint64) []byte { return r.Take(r.Number(most)) }

// String reads them as a string, of any length.
func (r *Reader) String() string { return string(r.Bytes(math.MaxUint64)) }
