package reconfig

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"atoll/internal/cells"
	"atoll/quorum"
)

// notesFormat is the first byte of the cell of notes. Then follow how many, as an
// unsigned varint, each with its length before it, the oldest first, and at last a
// CRC-32 (IEEE) over all before it.
const notesFormat = 1

const checksumBytes = 4

func encodeNotes(notes []*quorum.Configuration) []byte {
	b := []byte{notesFormat}
	b = cells.AppendNumber(b, uint64(len(notes)))
	for _, c := range notes {
		b = cells.AppendBytes(b, c.Append(nil))
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
	r := cells.Read(b[1:n])
	var notes []*quorum.Configuration
	for count := r.Any(); count > 0 && r.OK(); count-- {
		c, err := quorum.ParseConfiguration(r.Bytes(math.MaxUint64))
		if err != nil {
			return nil
		}
		notes = append(notes, c)
	}
	if !r.Done() {
		return nil
	}
	return notes
}
