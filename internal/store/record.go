package store

import (
	"encoding/binary"
	"hash/crc32"
	"unsafe"

	"atoll/abd"
	"atoll/tags"
)

// A record on disk, in the journal and in bbolt alike, integers big-endian:
//
//	 0  version      1 byte, recordVersion
//	 1  flags        1 byte, flagDeleted
//	 2  seq          8 bytes
//	10  pid         16 bytes
//	26  rmw          8 bytes
//	34  size         4 bytes, of the value
//	38  value sum    4 bytes, CRC32C of the value
//	42  head sum     4 bytes, CRC32C of the key and of the 42 bytes before
//	46  value
//
// Two sums, so that a tag can be checked without touching a large value.
const (
	recordVersion = 1
	flagDeleted   = 1

	recordSize     = 34
	recordValueSum = 38
	recordHeadSum  = 42
	recordHead     = 46
)

// castagnoli is the polynomial that processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// keyBytes returns the bytes of a key, to be read only.
func keyBytes(key abd.Key) []byte {
	return unsafe.Slice(unsafe.StringData(string(key)), len(key))
}

// keyIn returns the key that b holds, for as long as b doesn't change.
func keyIn(b []byte) abd.Key { return abd.Key(unsafe.String(unsafe.SliceData(b), len(b))) }

// encodeRecord returns the record's bytes, which share nothing with r.
func encodeRecord(key abd.Key, r abd.Record) []byte {
	b := make([]byte, recordHead+len(r.Value))
	fillRecord(b, key, r)
	return b
}

// fillRecord is encodeRecord into a record's bytes, which are all zero.
func fillRecord(b []byte, key abd.Key, r abd.Record) {
	b[0] = recordVersion
	if r.Deleted {
		b[1] = flagDeleted
	}
	binary.BigEndian.PutUint64(b[2:], uint64(r.Tag.Seq))
	pid := r.Tag.PID.Bytes()
	copy(b[10:], pid[:])
	binary.BigEndian.PutUint64(b[26:], uint64(r.Tag.RMW))
	binary.BigEndian.PutUint32(b[recordSize:], uint32(len(r.Value)))
	copy(b[recordHead:], r.Value)
	binary.BigEndian.PutUint32(b[recordValueSum:], crc32.Checksum(r.Value, castagnoli))
	binary.BigEndian.PutUint32(b[recordHeadSum:], headSum(keyBytes(key), b))
}

func headSum(key, record []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, record[:recordHeadSum])
}

// headSumOf returns the head's checksum as it stands in the record.
func headSumOf(record []byte) uint32 { return binary.BigEndian.Uint32(record[recordHeadSum:]) }

// checkHead returns what is wrong with everything but the value, "" if nothing.
func checkHead(key, record []byte) string {
	switch {
	case len(record) < recordHead:
		return "record is cut short"
	case headSumOf(record) != headSum(key, record):
		return "checksum of key and tag doesn't match"
	case record[0] != recordVersion || record[1]&^flagDeleted != 0:
		return "unknown version of a record"
	case int64(binary.BigEndian.Uint32(record[recordSize:])) != int64(len(record)-recordHead):
		return "value has the wrong size"
	}
	return ""
}

// checkValue returns what is wrong with the value, "" if nothing. The head
// was checked before.
func checkValue(record []byte) string {
	if binary.BigEndian.Uint32(record[recordValueSum:]) != crc32.Checksum(record[recordHead:], castagnoli) {
		return "checksum of the value doesn't match"
	}
	return ""
}

// recordTag returns the tag of a record that was checked, or made here.
func recordTag(record []byte) tags.Tag {
	return tags.Tag{
		Seq: tags.Seq(binary.BigEndian.Uint64(record[2:])),
		PID: tags.PIDFromBytes([tags.PIDSize]byte(record[10:26])),
		RMW: tags.RMW(binary.BigEndian.Uint64(record[26:])),
	}
}

func recordDeleted(record []byte) bool { return record[1]&flagDeleted != 0 }

// decodeRecord returns a record that was checked, or made here. The value
// aliases it.
func decodeRecord(record []byte, withValue bool) abd.Record {
	r := abd.Record{Tag: recordTag(record), Deleted: recordDeleted(record)}
	if withValue && len(record) > recordHead {
		r.Value = record[recordHead:len(record):len(record)]
	}
	return r
}
