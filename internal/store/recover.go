package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"atoll/env"
)

// create makes the first segment of an empty journal.
func (j *journal) create() error {
	s, err := j.makeSpare(j.cfg.SegmentBytes)
	if err != nil {
		return err
	}
	if _, err := j.activate(s, 1, 0); err != nil {
		s.file.Close()
		return err
	}
	return s.file.Close()
}

// recover reads the journal, calls visit with every entry behind applied in
// order, and makes the last segment the active one. It returns the position
// behind the last record. All of it is durable then.
func (j *journal) recover(applied env.Position, visit func(logged)) (env.Position, error) {
	numbers, err := j.list()
	if err != nil {
		return 0, err
	}
	end := env.Position(0)
	for i, number := range numbers {
		// Where a segment must begin is checked before its records are visited.
		begins := func(first env.Position) error {
			previous := filepath.Join(j.dir, segmentName(number-1))
			switch {
			case i == 0 && first > applied:
				return damagedFile(previous, -1, "it is missing: the journal begins behind record %d, and %s ends with record %d",
					first, stateName, applied)
			case i > 0 && first != end:
				return damagedFile(previous, -1, "its frames end with record %d, the next segment begins behind record %d", end, first)
			}
			return nil
		}
		r, err := j.readSegment(number, begins, func(e logged) {
			if e.position > applied {
				visit(e)
			}
		})
		if err != nil {
			return 0, err
		}
		end = r.end
		j.active = segment{number: number, path: r.path, file: r.file, capacity: r.header.capacity}
		j.offset = r.offset
		if r.header.format < segmentFormat {
			j.offset = r.header.capacity // the next frame needs another segment
		}
		if i < len(numbers)-1 {
			j.seal(end)
		} else if err := j.settle(r); err != nil {
			return 0, err
		}
	}
	if end < applied {
		return 0, damagedFile(j.active.path, j.offset,
			"the journal ends with record %d, and %s has record %d already", end, stateName, applied)
	}
	return end, syncDir(j.dir)
}

// list returns the numbers of the segments, oldest first, and opens spares.
func (j *journal) list() ([]uint64, error) {
	if info, err := os.Stat(j.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, damagedFile(j.dir, -1, "it is missing")
	} else if err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, damagedFile(j.dir, -1, "it isn't a folder")
	}
	names, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	for _, n := range names {
		var number uint64
		if _, err := fmt.Sscanf(n.Name(), "spare-%d.log", &number); err == nil && n.Name() == spareName(number) {
			j.mu.nextSpare = max(j.mu.nextSpare, number+1)
			path := filepath.Join(j.dir, n.Name())
			if err := refuseFolder(path); err != nil {
				return nil, err
			}
			if err := j.openSpare(path); err != nil {
				return nil, err
			}
		} else if _, err := fmt.Sscanf(n.Name(), "%d.log", &number); err == nil && n.Name() == segmentName(number) {
			if err := refuseFolder(filepath.Join(j.dir, n.Name())); err != nil {
				return nil, err
			}
			numbers = append(numbers, number)
		}
	}
	if len(numbers) == 0 {
		return nil, damagedFile(filepath.Join(j.dir, segmentName(1)), -1, "no segment of the journal is there")
	}
	slices.Sort(numbers)
	for i, number := range numbers {
		if number != numbers[0]+uint64(i) {
			return nil, damagedFile(filepath.Join(j.dir, segmentName(numbers[0]+uint64(i))), -1, "it is missing")
		}
	}
	return numbers, nil
}

// openSpare keeps a spare of the right size. Any other was being made when
// its process ended, or is of a size that was once set.
func (j *journal) openSpare(path string) error {
	f, err := j.cfg.openFile(path, os.O_RDWR, segmentMode)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil && size == j.cfg.SegmentBytes {
		j.mu.spares = append(j.mu.spares, spare{path: path, file: f, capacity: size})
		j.size.Add(size)
		return nil
	}
	return errors.Join(err, f.Close(), os.Remove(path))
}

// recovered is what readSegment found.
type recovered struct {
	header segmentHeader
	path   string
	file   file
	bytes  []byte
	end    env.Position
	// offset is behind its last frame, last is where that begins.
	last, offset int64
}

// readSegment reads one segment, up to its first bad frame. That is an error
// when a good one follows in the same segment.
func (j *journal) readSegment(number uint64, begins func(first env.Position) error, visit func(logged)) (r recovered, err error) {
	r.path = filepath.Join(j.dir, segmentName(number))
	f, b, err := readAll(func() (file, error) { return j.cfg.openFile(r.path, os.O_RDWR, segmentMode) })
	if err != nil {
		return r, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	r.file, r.bytes = f, b
	if r.header, err = readSegmentHeader(r.path, b, j.id, number); err != nil {
		return r, err
	}
	if err := begins(r.header.first); err != nil {
		return r, err
	}
	j.size.Add(r.header.capacity)
	r.end, r.last, r.offset = r.header.first, segmentHead, segmentHead
	for {
		f, _, whole := readFrame(b[r.offset:], j.id, number)
		if !whole || f.first != r.end {
			break
		}
		if err := f.eachEntry(visit); err != nil {
			return r, damagedFile(r.path, r.offset, "frame with a good checksum and a bad content: %v", err)
		}
		r.last, r.offset, r.end = r.offset, r.offset+f.size, r.end+env.Position(f.records)
	}
	if at, ok := j.laterFrame(b, r.offset, r.end, number); ok {
		return r, damagedFile(r.path, r.offset, "a bad frame, and a good one behind it at byte %d", at)
	}
	return r, nil
}

// laterFrame looks for a whole frame of this generation behind a bad one.
func (j *journal) laterFrame(b []byte, bad int64, end env.Position, number uint64) (int64, bool) {
	for at := bad; at+frameHead <= int64(len(b)); at += frameAlign {
		if f, _, whole := readFrame(b[at:], j.id, number); whole && f.first >= end {
			return at, true
		}
	}
	return 0, false
}

// settle makes the last segment durable as it was read, and cuts off what
// follows: the last frame may be in the system's cache only, or there as
// "clean" after a sync that failed. Writing the same bytes again harms nothing.
func (j *journal) settle(r recovered) error {
	if r.last < r.offset {
		if _, err := r.file.WriteAt(r.bytes[r.last:r.offset], r.last); err != nil {
			return err
		}
	}
	if rest := r.bytes[r.offset:]; len(rest) >= frameHead {
		torn, head, _ := readFrame(rest, j.id, r.header.generation)
		if head {
			j.log.Warn("the journal's last frame was never finished, and is cut off",
				"file", r.path, "offset", r.offset, "records", torn.records)
		}
		// A torn head isn't told from an old frame's; both go.
		if _, err := r.file.WriteAt(make([]byte, frameHead), r.offset); err != nil {
			return err
		}
	}
	return r.file.Sync()
}
