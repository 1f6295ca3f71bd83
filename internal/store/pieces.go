package store

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"

	"atoll/env"
)

// pieces is a segment that is read piece by piece, each no larger than a
// processor's cache: what was read is looked at at once, and the next piece is
// read into the same memory.
type pieces struct {
	file       io.ReaderAt
	size       int64 // of the file
	id         storeID
	generation uint64
	window     []byte // what the file holds from base on
	base       int64
}

// at returns the n bytes at offset, or as many as there are. They are valid until
// the next call.
func (p *pieces) at(offset, n int64) ([]byte, error) {
	end := min(offset+n, p.size)
	if offset == p.size {
		return nil, nil // who is asked to read nothing there may say that it is the end
	}
	if there := p.base + int64(len(p.window)); offset < p.base || end > there {
		if offset < p.base || offset > there {
			p.base, p.window = offset, p.window[:0]
		}
		kept := copy(p.window, p.window[offset-p.base:])
		size := int(min(max(end-offset, pieceBytes), p.size-offset))
		p.base, p.window = offset, slices.Grow(p.window[:kept], size-kept)[:size]
		if _, err := p.file.ReadAt(p.window[kept:], offset+int64(kept)); err != nil {
			p.window = p.window[:0]
			return nil, err
		}
	}
	return p.window[offset-p.base : end-p.base], nil
}

// frame returns the frame at offset, and whether it is one of this generation
// of this store, and whole.
func (p *pieces) frame(offset int64) (f frame, whole bool, err error) {
	b, err := p.at(offset, frameHead)
	if err != nil || len(b) < frameHead {
		return f, false, err
	}
	if f, head, whole := readFrame(b, p.id, p.generation); !head || whole {
		return f, whole, nil
	}
	b, err = p.at(offset, alignFrame(frameHead+int64(binary.BigEndian.Uint32(b[frameLen:]))))
	if err != nil {
		return f, false, err
	}
	f, _, whole = readFrame(b, p.id, p.generation)
	return f, whole, nil
}

// laterFrame looks for a whole frame of this generation, whose records come
// behind end, from where a bad one stands.
func (p *pieces) laterFrame(bad int64, end env.Position) (offset int64, ok bool, err error) {
	for offset = bad; offset < p.size; {
		b, err := p.at(offset, pieceBytes)
		if err != nil {
			return 0, false, err
		}
		next := bytes.Index(b, frameMagicBytes)
		switch {
		case next < 0:
			offset += pieceBytes // as a frame does, it begins where no magic is cut in two
			continue
		case next%frameAlign != 0:
			offset += int64(next) &^ (frameAlign - 1)
			offset += frameAlign
			continue
		}
		offset += int64(next)
		f, whole, err := p.frame(offset)
		if err != nil || whole && f.first >= end {
			return offset, err == nil, err
		}
		offset += frameAlign
	}
	return 0, false, nil
}
