package store

import (
	"encoding/binary"
	"encoding/hex"
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
//	36  zero        4 bytes
//	40  payload     for each record: length of the key (2 bytes), key, record
const (
	segmentMagic  = 0x61746f53 // "atoS"
	segmentFormat = 1
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
)

// storeID tells this store's files from every other's.
type storeID [16]byte

func (id storeID) String() string { return hex.EncodeToString(id[:]) }

// alignFrame rounds a size up to where the next frame begins.
func alignFrame(n int64) int64 { return (n + frameAlign - 1) &^ (frameAlign - 1) }

// segmentHeader is the decoded head of a segment.
type segmentHeader struct {
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

// readSegmentHeader decodes the head of the segment at path and checks that
// it is the head of this very file.
func readSegmentHeader(path string, b []byte, id storeID, number uint64) (segmentHeader, error) {
	var h segmentHeader
	if len(b) < segmentHead {
		return h, damagedFile(path, 0, "it has %d bytes, less than its head", len(b))
	}
	if binary.BigEndian.Uint32(b) != segmentMagic || binary.BigEndian.Uint32(b[4:]) != crc32.Checksum(b[8:headUsed], castagnoli) {
		return h, damagedFile(path, 0, "checksum of the segment's head doesn't match")
	}
	if f := binary.BigEndian.Uint32(b[8:]); f > segmentFormat {
		return h, &FormatError{File: path, Found: int(f), Supported: segmentFormat}
	}
	h.generation = binary.BigEndian.Uint64(b[32:])
	h.first = env.Position(binary.BigEndian.Uint64(b[40:]))
	h.capacity = int64(binary.BigEndian.Uint64(b[48:]))
	switch {
	case storeID(b[16:32]) != id:
		return h, damagedFile(path, 16, "it belongs to another store (%s)", storeID(b[16:32]))
	case h.generation != number:
		return h, damagedFile(path, 32, "it is segment %d by its head", h.generation)
	case int64(len(b)) != h.capacity:
		return h, damagedFile(path, -1, "it has %d bytes, its head says %d", len(b), h.capacity)
	}
	return h, nil
}

// frame is the decoded head of a frame.
type frame struct {
	first   env.Position
	records uint32
	payload []byte
	sum     uint32
	size    int64 // of all of it, aligned
}

// sealFrame fills the first frameHead bytes of b, whose payload follows.
func sealFrame(b []byte, id storeID, generation uint64, first env.Position, records uint32) {
	binary.BigEndian.PutUint32(b, frameMagic)
	binary.BigEndian.PutUint64(b[frameGen:], generation)
	binary.BigEndian.PutUint64(b[frameFirst:], uint64(first))
	binary.BigEndian.PutUint32(b[frameLen:], uint32(len(b)-frameHead))
	binary.BigEndian.PutUint32(b[frameCount:], records)
	binary.BigEndian.PutUint32(b[frameSum:], crc32.Checksum(b[frameHead:], castagnoli))
	clear(b[frameSum+4 : frameHead])
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
	return f, true, crc32.Checksum(f.payload, castagnoli) == f.sum
}

// appendEntry appends a record to a payload.
func appendEntry(b []byte, key abd.Key, record []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(key)))
	b = append(b, key...)
	return append(b, record...)
}

// eachEntry calls visit with every record of a frame; key and record alias
// the frame.
func (f frame) eachEntry(visit func(position env.Position, key, record []byte)) error {
	b, position := f.payload, f.first
	for len(b) > 0 {
		if len(b) < 2 {
			return fmt.Errorf("entry is cut short")
		}
		keyLen := int(binary.BigEndian.Uint16(b))
		if len(b) < 2+keyLen+recordHead {
			return fmt.Errorf("entry is cut short")
		}
		key, rest := b[2:2+keyLen], b[2+keyLen:]
		size := recordHead + int64(binary.BigEndian.Uint32(rest[recordSize:]))
		if size > int64(len(rest)) {
			return fmt.Errorf("entry is cut short")
		}
		record := rest[:size]
		if reason := checkHead(key, record); reason != "" {
			return fmt.Errorf("record of key %q: %s", key, reason)
		}
		position++
		visit(position, key, record)
		b = rest[size:]
	}
	if position != f.first+env.Position(f.records) {
		return fmt.Errorf("it says that it has %d records, and has %d", f.records, position-f.first)
	}
	return nil
}

// readAll reads a whole file.
func readAll(open func() (file, error)) (file, []byte, error) {
	f, err := open()
	if err != nil {
		return nil, nil, err
	}
	size, err := f.Size()
	if err == nil {
		b := make([]byte, size)
		if size == 0 {
			return f, b, nil
		}
		if _, err = f.ReadAt(b, 0); err == nil {
			return f, b, nil
		}
	}
	f.Close()
	return nil, nil, err
}

const segmentMode os.FileMode = 0o600
