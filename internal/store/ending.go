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

// ending tells what stands at offset, where the frame behind end would begin.
// records is how many a torn frame had.
func (p *pieces) ending(offset int64, end env.Position) (e ending, records uint32, err error) {
	b, err := p.at(offset, frameHead)
	if err != nil || len(b) < frameHead {
		return endsClean, 0, err
	}
	if f, head, _ := readFrame(b, p.id, p.generation); head {
		return endsTorn, f.records, nil
	}
	generation := binary.BigEndian.Uint64(b[frameGen:])
	if _, head, _ := readFrame(b, p.id, generation); head {
		return endsClean, 0, nil // of an earlier use
	}
	// One flipped bit leaves two of three, and chance hardly does.
	fits := 0
	for _, is := range []bool{
		binary.BigEndian.Uint32(b) == frameMagic,
		generation == p.generation,
		env.Position(binary.BigEndian.Uint64(b[frameFirst:])) == end,
	} {
		if is {
			fits++
		}
	}
	if fits >= 2 {
		return endsGarbled, 0, nil
	}
	zeros, err := p.zeros(offset)
	if err != nil || zeros < diskSector || offset+zeros == p.size {
		return endsClean, 0, err
	}
	return endsInZeros, 0, nil
}

// zeros returns how many bytes from offset on are zero.
func (p *pieces) zeros(offset int64) (n int64, err error) {
	for offset+n < p.size {
		b, err := p.at(offset+n, pieceBytes)
		if err != nil {
			return 0, err
		}
		for len(b) >= diskSector && [diskSector]byte(b) == [diskSector]byte{} {
			b, n = b[diskSector:], n+diskSector
		}
		if len(b) >= diskSector || offset+n+int64(len(b)) == p.size {
			for len(b) > 0 && b[0] == 0 {
				b, n = b[1:], n+1
			}
			return n, nil
		}
	}
	return n, nil
}
