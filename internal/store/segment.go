package store

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"os"

	"atoll/abd"
	"atoll/env"
)

// The head of a segment, one page, integers big-endian:
//
//	 0  magic       4 bytes
//	 4  sum         4 bytes, CRC32C of the 48 bytes that follow
//	 8  format      4 bytes, segmentFormat
//	12  zero        4 bytes
//	16  store      16 bytes, the store's id
//	32  generation  8 bytes, the segment's number
//	40  first       8 bytes, the position before its first record
//	48  capacity    8 bytes, the file's size
//
// Frames follow one another at multiples of frameAlign. A frame:
//
//	 0  magic       4 bytes
//	 4  head sum    4 bytes, CRC32C of the store's id and of bytes 8 to 39
//	 8  generation  8 bytes, as in the segment's head
//	16  first       8 bytes, the position before its first record
//	24  length      4 bytes, of the payload
//	28  records     4 bytes, how many are in the payload
//	32  sum         4 bytes, CRC32C of the payload
//	36  counts      4 bytes, the size of what ends the payload: countsSize, or 0
//	40  payload     for each record: length of the key (2 bytes), key, record;
//	                for each special entry: length of its name (2 bytes, the
//	                top bit set), name, blob (special.go); behind them the
//	                numbers of keys and of tombstones that the store has with
//	                this frame, 8 bytes each
//
// Frames of formats 1 and 2 have no counts, and those of format 1 no special
// entries. Nothing is appended to a segment of an older format, so that a
// program which reads no more than that never meets them.
const (
	segmentMagic  = 0x61746f53 // "atoS"
	segmentFormat = 3
	// segmentHead is a whole page, so that no write of a frame touches it.
	segmentHead = 4096
	headUsed    = 56

	frameMagic = 0x61746f46 // "atoF"
	frameHead  = 40
	frameAlign = 8
	frameGen   = 8
	frameFirst = 16
	frameLen   = 24
	frameCount = 28
	frameSum   = 32
	// frameCounts is where the size of the counts stands, countsSize what it is.
	frameCounts = 36
	countsSize  = 16
)

// frameMagicBytes is what a frame begins with.
var frameMagicBytes = binary.BigEndian.AppendUint32(nil, frameMagic)

// storeID tells this store's files from every other's.
type storeID [16]byte

func (id storeID) String() string { return hex.EncodeToString(id[:]) }

// alignFrame rounds a size up to where the next frame begins.
func alignFrame(n int64) int64 { return (n + frameAlign - 1) &^ (frameAlign - 1) }

// segmentHeader is the decoded head of a segment.
type segmentHeader struct {
	format     uint32 // segmentFormat when it is written
	generation uint64
	first      env.Position
	capacity   int64
}

func (h segmentHeader) encode(id storeID) []byte {
	b := make([]byte, segmentHead)
	binary.BigEndian.PutUint32(b, segmentMagic)
	binary.BigEndian.PutUint32(b[8:], segmentFormat)
	copy(b[16:32], id[:])
	binary.BigEndian.PutUint64(b[32:], h.generation)
	binary.BigEndian.PutUint64(b[40:], uint64(h.first))
	binary.BigEndian.PutUint64(b[48:], uint64(h.capacity))
	binary.BigEndian.PutUint32(b[4:], crc32.Checksum(b[8:headUsed], castagnoli))
	return b
}

// readSegmentHeader decodes the head of the segment at path, which b begins
// with, and checks that it is the head of this very file, of so many bytes.
func readSegmentHeader(path string, b []byte, size int64, id storeID, number uint64) (segmentHeader, error) {
	var h segmentHeader
	if len(b) < segmentHead {
		return h, damagedFile(path, 0, "it has %d bytes, less than its head", len(b))
	}
	if binary.BigEndian.Uint32(b) != segmentMagic || binary.BigEndian.Uint32(b[4:]) != crc32.Checksum(b[8:headUsed], castagnoli) {
		return h, damagedFile(path, 0, "checksum of the segment's head doesn't match")
	}
	if h.format = binary.BigEndian.Uint32(b[8:]); h.format > segmentFormat {
		return h, &FormatError{File: path, Found: int(h.format), Supported: segmentFormat}
	}
	h.generation = binary.BigEndian.Uint64(b[32:])
	h.first = env.Position(binary.BigEndian.Uint64(b[40:]))
	h.capacity = int64(binary.BigEndian.Uint64(b[48:]))
	switch {
	case storeID(b[16:32]) != id:
		return h, damagedFile(path, 16, "it belongs to another store (%s)", storeID(b[16:32]))
	case h.generation != number:
		return h, damagedFile(path, 32, "it is segment %d by its head", h.generation)
	case size != h.capacity:
		return h, damagedFile(path, -1, "it has %d bytes, its head says %d", size, h.capacity)
	}
	return h, nil
}

// frame is the decoded head of a frame.
type frame struct {
	first   env.Position
	records uint32
	payload []byte // without the counts
	sum     uint32
	size    int64 // of all of it, aligned
	// counts are the store's with this frame; known unless its format is older.
	counts counts
	known  bool
}

// counts says how many keys there are, and how many tombstones.
type counts struct{ keys, tombstones int64 }

// sealFrame appends the counts to b, which is frameHead bytes and then entries,
// fills those bytes, and returns the frame.
func sealFrame(b []byte, id storeID, generation uint64, first env.Position, records uint32, c counts) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(c.keys))
	b = binary.BigEndian.AppendUint64(b, uint64(c.tombstones))
	sealPayload(b, id, generation, first, records, countsSize)
	return b
}

// sealPayload fills the first frameHead bytes of b, whose payload ends with counts
// of this size.
func sealPayload(b []byte, id storeID, generation uint64, first env.Position, records, counts uint32) {
	binary.BigEndian.PutUint32(b, frameMagic)
	binary.BigEndian.PutUint64(b[frameGen:], generation)
	binary.BigEndian.PutUint64(b[frameFirst:], uint64(first))
	binary.BigEndian.PutUint32(b[frameLen:], uint32(len(b)-frameHead))
	binary.BigEndian.PutUint32(b[frameCount:], records)
	binary.BigEndian.PutUint32(b[frameSum:], crc32.Checksum(b[frameHead:], castagnoli))
	binary.BigEndian.PutUint32(b[frameCounts:], counts)
	binary.BigEndian.PutUint32(b[4:], frameHeadSum(b, id))
}

func frameHeadSum(b []byte, id storeID) uint32 {
	return crc32.Update(crc32.Checksum(id[:], castagnoli), castagnoli, b[8:frameHead])
}

// readFrame decodes the frame at the beginning of b. head reports that the
// frame's head belongs to this generation of this store, whole that its
// payload does as well.
func readFrame(b []byte, id storeID, generation uint64) (f frame, head, whole bool) {
	if len(b) < frameHead ||
		binary.BigEndian.Uint32(b) != frameMagic ||
		binary.BigEndian.Uint64(b[frameGen:]) != generation ||
		binary.BigEndian.Uint32(b[4:]) != frameHeadSum(b, id) {
		return f, false, false
	}
	f = frame{
		first:   env.Position(binary.BigEndian.Uint64(b[frameFirst:])),
		records: binary.BigEndian.Uint32(b[frameCount:]),
		sum:     binary.BigEndian.Uint32(b[frameSum:]),
	}
	length := int64(binary.BigEndian.Uint32(b[frameLen:]))
	f.size = alignFrame(frameHead + length)
	if f.size > int64(len(b)) {
		return f, true, false
	}
	f.payload = b[frameHead : frameHead+length]
	whole = crc32.Checksum(f.payload, castagnoli) == f.sum
	if entries := length - countsSize; binary.BigEndian.Uint32(b[frameCounts:]) == countsSize && entries >= 0 {
		f.known = true
		f.counts.keys = int64(binary.BigEndian.Uint64(f.payload[entries:]))
		f.counts.tombstones = int64(binary.BigEndian.Uint64(f.payload[entries+8:]))
		f.payload = f.payload[:entries]
	}
	return f, true, whole
}

// appendEntry appends a record to a payload.
func appendEntry(b []byte, key abd.Key, record []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(key)))
	b = append(b, key...)
	return append(b, record...)
}

// logged is one entry of the journal. Its bytes alias the frame.
type logged struct {
	position env.Position
	name     []byte // a key, or the name of a cell
	at       uint32 // where the name stands in the payload
	kind     byte   // kindRecord, or what a special entry says of itself
	bytes    []byte // the record, or the blob
}

// eachEntry calls visit with every entry of a frame.
func (f frame) eachEntry(visit func(logged)) error {
	b, position, at := f.payload, f.first, uint32(0)
	for len(b) > 0 {
		e, size, err := readEntry(b)
		if err != nil {
			return err
		}
		position++
		e.position, e.at = position, at+2
		visit(e)
		b = b[size:]
		at += uint32(size)
	}
	if position != f.first+env.Position(f.records) {
		return fmt.Errorf("it says that it has %d records, and has %d", f.records, position-f.first)
	}
	return nil
}

var errShort = errors.New("entry is cut short")

// readEntry decodes the entry at the beginning of b, and returns its size.
func readEntry(b []byte) (logged, int64, error) {
	if len(b) < 2 {
		return logged{}, 0, errShort
	}
	nameLen := int(binary.BigEndian.Uint16(b))
	isSpecial := nameLen&specialBit != 0
	nameLen &^= specialBit
	if len(b) < 2+nameLen {
		return logged{}, 0, errShort
	}
	e, rest := logged{name: b[2 : 2+nameLen]}, b[2+nameLen:]
	if isSpecial {
		size, reason := checkBlob(e.name, rest)
		if reason != "" {
			return e, 0, fmt.Errorf("special entry %q: %s", e.name, reason)
		}
		e.kind, e.bytes = rest[0], rest[:size]
		return e, int64(2+nameLen) + size, nil
	}
	if len(rest) < recordHead {
		return e, 0, errShort
	}
	size := recordHead + int64(binary.BigEndian.Uint32(rest[recordSize:]))
	if size > int64(len(rest)) {
		return e, 0, errShort
	}
	e.bytes = rest[:size]
	if reason := checkHead(e.name, e.bytes); reason != "" {
		return e, 0, fmt.Errorf("record of key %q: %s", e.name, reason)
	}
	return e, int64(2+nameLen) + size, nil
}

const segmentMode os.FileMode = 0o600
