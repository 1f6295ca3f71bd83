package wire

import (
	"encoding/binary"
	"io"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// skip reads n elements of any type and forgets them: fields that a later
// version added, or a message that this one doesn't know.
//
// Nested arrays and maps are not entered but counted: the element that opens
// one leaves as many more to skip. So nesting costs no stack, which is how a
// recursive skipper dies of a few megabytes of 0x91 (an array of one), and
// there is no depth to limit. Each element takes at least a byte, so a count
// that exceeds what is left is refused at once, and skipping takes time in
// proportion to the bytes.
func (d *Decoder) skip(n int) {
	for pending := uint64(n); pending > 0 && d.err == nil; {
		if pending > uint64(d.in.left()) {
			d.wrap("skipped field", io.ErrUnexpectedEOF)
			return
		}
		code, _ := d.in.ReadByte()
		size, elements, ok := d.extent(code)
		pending += elements - 1
		switch {
		case !ok:
			d.fail("skipped field", "code %#02x is not MessagePack", code)
		case size > uint64(d.in.left()):
			d.wrap("skipped field", io.ErrUnexpectedEOF)
		default:
			d.in.take(int(size))
		}
	}
}

// extent returns what follows a code: size bytes, then elements. It reads the
// length that belongs to the code, but nothing of what follows.
func (d *Decoder) extent(code byte) (size, elements uint64, ok bool) {
	switch {
	case msgpcode.IsFixedNum(code):
		return 0, 0, true
	case msgpcode.IsFixedString(code):
		return uint64(code & msgpcode.FixedStrMask), 0, true
	case msgpcode.IsFixedArray(code):
		return 0, uint64(code & msgpcode.FixedArrayMask), true
	case msgpcode.IsFixedMap(code):
		return 0, 2 * uint64(code&msgpcode.FixedMapMask), true
	case msgpcode.IsFixedExt(code):
		return 1 + 1<<(code-msgpcode.FixExt1), 0, true // the ext's type, then 1, 2, 4, 8 or 16 bytes
	}
	switch code {
	case msgpcode.Nil, msgpcode.False, msgpcode.True:
		return 0, 0, true
	case msgpcode.Uint8, msgpcode.Int8:
		return 1, 0, true
	case msgpcode.Uint16, msgpcode.Int16:
		return 2, 0, true
	case msgpcode.Uint32, msgpcode.Int32, msgpcode.Float:
		return 4, 0, true
	case msgpcode.Uint64, msgpcode.Int64, msgpcode.Double:
		return 8, 0, true
	case msgpcode.Bin8, msgpcode.Str8:
		return d.length(1), 0, true
	case msgpcode.Bin16, msgpcode.Str16:
		return d.length(2), 0, true
	case msgpcode.Bin32, msgpcode.Str32:
		return d.length(4), 0, true
	case msgpcode.Ext8:
		return 1 + d.length(1), 0, true
	case msgpcode.Ext16:
		return 1 + d.length(2), 0, true
	case msgpcode.Ext32:
		return 1 + d.length(4), 0, true
	case msgpcode.Array16:
		return 0, d.length(2), true
	case msgpcode.Array32:
		return 0, d.length(4), true
	case msgpcode.Map16:
		return 0, 2 * d.length(2), true
	case msgpcode.Map32:
		return 0, 2 * d.length(4), true
	}
	return 0, 0, false
}

// length reads a big-endian length of 1, 2 or 4 bytes.
func (d *Decoder) length(width int) uint64 {
	if width > d.in.left() {
		d.wrap("skipped field", io.ErrUnexpectedEOF)
		return 0
	}
	var b [8]byte
	copy(b[8-width:], d.in.take(width))
	return binary.BigEndian.Uint64(b[:])
}
