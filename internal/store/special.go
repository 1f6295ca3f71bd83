package store

import (
	"encoding/binary"
	"hash/crc32"

	"atoll/abd"
	"atoll/replica"
)

// A special entry of the journal says something that isn't a record: its name
// and a blob, integers big-endian.
//
//	0  kind   1 byte
//	1  size   4 bytes, of the value
//	5  sum    4 bytes, CRC32C of the name, of the 5 bytes before, of the value
//	9  value
//
// The blob of a cell stands in bbolt as it stands here, under the cell's name.
const (
	specialBit = 1 << 15 // of the length of the name: that of a key is less

	kindRecord  = 0 // none: the entry isn't special
	kindCell    = 1 // the cell of this name has this value
	kindRemoved = 2 // the record of this key is no more; no value

	blobSize  = 1
	blobSum   = 5
	blobValue = 9
)

// encodeBlob returns a blob, which shares nothing with value.
func encodeBlob(kind byte, name string, value []byte) []byte {
	b := make([]byte, blobValue+len(value))
	b[0] = kind
	binary.BigEndian.PutUint32(b[blobSize:], uint32(len(value)))
	copy(b[blobValue:], value)
	binary.BigEndian.PutUint32(b[blobSum:], blobChecksum([]byte(name), b))
	return b
}

func blobChecksum(name, blob []byte) uint32 {
	sum := crc32.Checksum(name, castagnoli)
	sum = crc32.Update(sum, castagnoli, blob[:blobSum])
	return crc32.Update(sum, castagnoli, blob[blobValue:])
}

// checkBlob returns the size of the blob at the beginning of b, or what is
// wrong with it.
func checkBlob(name, b []byte) (size int64, reason string) {
	if len(b) < blobValue {
		return 0, "it is cut short"
	}
	size = blobValue + int64(binary.BigEndian.Uint32(b[blobSize:]))
	if size > int64(len(b)) {
		return 0, "it is cut short"
	}
	if binary.BigEndian.Uint32(b[blobSum:]) != blobChecksum(name, b[:size]) {
		return 0, "its checksum doesn't match"
	}
	switch value := b[blobValue:size]; b[0] {
	case kindCell:
		if replica.CheckCell(string(name), value) != nil {
			return 0, "a cell can't be so large"
		}
	case kindRemoved:
		if abd.Key(name).Check() != nil || len(value) > 0 {
			return 0, "a removed record has a key and no value"
		}
	default:
		return 0, "it is of an unknown kind"
	}
	return size, ""
}

// checkCell returns what is wrong with a cell in bbolt, "" if nothing.
func checkCell(name, blob []byte) string {
	size, reason := checkBlob(name, blob)
	if reason == "" && (blob[0] != kindCell || size != int64(len(blob))) {
		reason = "it isn't a cell"
	}
	return reason
}

// appendSpecial appends a special entry to a payload.
func appendSpecial(b []byte, name string, blob []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(name))|specialBit)
	b = append(b, name...)
	return append(b, blob...)
}
