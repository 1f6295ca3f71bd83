package store

import (
	"encoding/binary"

	"atoll/env"
)

// An ending is what stands behind the last whole frame of the journal's last segment.
// All of it is cut off: it was never acknowledged, or it can't be told from what never
// was. But where something was lost there, an operator should look at the disk.
type ending uint8

const (
	// endsClean: zeros up to the end of the segment, or what an earlier use of it has
	// left. Damage that has turned the last frames into zeros, and all that the
	// segment held behind them is zeros, looks the same.
	endsClean ending = iota
	// endsTorn: the head of a frame without all of its payload.
	endsTorn
	// endsGarbled: nearly the head of a frame.
	endsGarbled
	// endsInZeros: zeros where a frame could be, and then other bytes.
	endsInZeros
)

// diskSector is how many bytes a disk loses at once, at least. Fewer zeros than that
// are what settle has written, or an earlier use of the segment has left.
const diskSector = 512

// note is the ending for people, "" if it says nothing.
func (e ending) note() string {
	switch e {
	case endsTorn:
		return "its last frame was never finished, and will be cut off"
	case endsGarbled:
		return "behind its last frame is one whose head is damaged or was never finished, and will be cut off"
	case endsInZeros:
		return "behind its last frame are zeros, and then other bytes: left by values of zeros in an earlier use, or by a disk that has lost frames"
	}
	return ""
}

// endingOf tells what rest is, which stands where the frame behind end would begin in
// the segment of this number. records is how many a torn frame had.
func endingOf(rest []byte, id storeID, number uint64, end env.Position) (e ending, records uint32) {
	if len(rest) < frameHead {
		return endsClean, 0
	}
	if f, head, _ := readFrame(rest, id, number); head {
		return endsTorn, f.records
	}
	generation := binary.BigEndian.Uint64(rest[frameGen:])
	if _, head, _ := readFrame(rest, id, generation); head {
		return endsClean, 0 // of an earlier use
	}
	// One flipped bit leaves two of three, and chance hardly does.
	fits := 0
	for _, is := range []bool{
		binary.BigEndian.Uint32(rest) == frameMagic,
		generation == number,
		env.Position(binary.BigEndian.Uint64(rest[frameFirst:])) == end,
	} {
		if is {
			fits++
		}
	}
	if fits >= 2 {
		return endsGarbled, 0
	}
	zeros := 0
	for len(rest)-zeros >= diskSector && [diskSector]byte(rest[zeros:]) == [diskSector]byte{} {
		zeros += diskSector
	}
	for zeros < len(rest) && rest[zeros] == 0 {
		zeros++
	}
	if zeros >= diskSector && zeros < len(rest) {
		return endsInZeros, 0
	}
	return endsClean, 0
}
