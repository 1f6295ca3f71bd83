package reconfig

import (
	"encoding/binary"
	"hash/crc32"

	"atoll/quorum"
)

// notesFormat is the first byte of the cell of notes. Then follow how many, as an
// unsigned varint, each with its length before it, the oldest first, and at last a
// CRC-32 (IEEE) over all before it.
const notesFormat = 1

const checksumBytes = 4

func encodeNotes(notes []*quorum.Configuration) []byte {
	b := []byte{notesFormat}
	b = binary.AppendUvarint(b, uint64(len(notes)))
	for _, c := range notes {
		note := c.Append(nil)
		b = append(binary.AppendUvarint(b, uint64(len(note))), note...)
	}
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// decodeNotes reads notes. Those that can't be read are none: nothing hangs on
// them but what people are told.
func decodeNotes(b []byte) []*quorum.Configuration {
	n := len(b) - checksumBytes
	if n < 1 || b[0] != notesFormat || crc32.ChecksumIEEE(b[:n]) != binary.BigEndian.Uint32(b[n:]) {
		return nil
	}
	count, rest, ok := number(b[1:n])
	var notes []*quorum.Configuration
	for ; ok && count > 0; count-- {
		var size uint64
		if size, rest, ok = number(rest); !ok || size > uint64(len(rest)) {
			return nil
		}
		c, err := quorum.ParseConfiguration(rest[:size])
		if err != nil {
			return nil
		}
		notes, rest = append(notes, c), rest[size:]
	}
	if !ok || len(rest) > 0 {
		return nil
	}
	return notes
}

// number takes a number from the front of b.
func number(b []byte) (n uint64, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return 0, nil, false
	}
	return n, b[size:], true
}
