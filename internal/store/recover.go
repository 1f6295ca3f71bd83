package store

import (
	"bytes"
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

// read reads the journal, changes nothing, and returns what it holds behind
// applied. The segments are read on all processors, and what is wrong is
// reported in their order: the first damage is the one that is returned.
func (j *journal) read(applied env.Position, hash func(name []byte) uint32) (_ *replay, err error) {
	found, err := j.list()
	if err != nil {
		return nil, err
	}
	numbers := found.segments
	r := &replay{spares: found.spares, segments: make([]recovered, len(numbers))}
	defer func() {
		if err != nil {
			r.letGo()
		}
	}()
	eachOf(len(numbers), func() func(int) {
		l := &loader{applied: applied, hash: hash}
		r.loaders = append(r.loaders, l)
		return func(i int) {
			last := i == len(numbers)-1
			r.segments[i] = j.readSegment(numbers[i], last, uint32(i), l)
		}
	})
	last := r.last()
	j.active = segment{number: numbers[len(numbers)-1], path: last.path, file: last.file} // to be closed, at least
	for i := range r.segments {
		s := &r.segments[i]
		if err := j.follows(s, i == 0, numbers[i], r.end, applied); err != nil {
			return nil, err
		}
		r.end = s.end
		if s.offset > segmentHead {
			r.counts, r.known = s.counts, s.known
		}
	}
	if r.end < applied {
		return nil, damagedFile(last.path, last.offset,
			"the journal ends with record %d, and %s has record %d already", r.end, stateName, applied)
	}
	return r, nil
}

// follows returns what is wrong with a segment that was read: in itself, or
// behind those before it, which end with the record at end.
func (j *journal) follows(s *recovered, first bool, number uint64, end, applied env.Position) error {
	previous := filepath.Join(j.dir, segmentName(number-1))
	switch {
	case s.header.capacity == 0: // not even its head could be read
		return s.err
	case first && s.header.first > applied:
		return damagedFile(previous, -1, "it is missing: the journal begins behind record %d, and %s ends with record %d",
			s.header.first, stateName, applied)
	case !first && s.header.first != end:
		return damagedFile(previous, -1, "its frames end with record %d, the next segment begins behind record %d", end, s.header.first)
	}
	return s.err
}

// resume makes the last segment that was read the active one. All that was
// read is durable then.
func (j *journal) resume(r *replay) error {
	last := r.last()
	for i := range r.segments {
		s := &r.segments[i]
		j.size.Add(s.header.capacity)
		if s != last {
			j.mu.sealed = append(j.mu.sealed, sealedSegment{
				number: s.header.generation, path: s.path, end: s.end, capacity: s.header.capacity,
			})
		}
	}
	j.active.capacity, j.offset = last.header.capacity, last.offset
	if last.header.format < segmentFormat {
		j.offset = last.header.capacity // the next frame needs another segment
	}
	for _, path := range r.spares {
		if err := j.openSpare(path); err != nil {
			return err
		}
	}
	if err := j.settle(last); err != nil {
		return err
	}
	return syncDir(j.dir)
}

// replay is what the journal holds behind some position.
type replay struct {
	segments []recovered // never empty
	loaders  []*loader   // have taken what those hold
	spares   []string    // paths
	end      env.Position
	counts   counts // of the last frame
	known    bool
}

func (r *replay) last() *recovered { return &r.segments[len(r.segments)-1] }

// letGo closes the segments that nobody will read records from.
func (r *replay) letGo() {
	for i := range r.segments {
		if f := r.segments[i].filed; f != nil {
			f.Close()
		}
	}
}

// listed is what the journal's folder holds.
type listed struct {
	segments []uint64 // their numbers, oldest first
	spares   []string // their paths
}

// list looks at what is there.
func (j *journal) list() (l listed, err error) {
	if info, err := os.Stat(j.dir); errors.Is(err, fs.ErrNotExist) {
		return l, damagedFile(j.dir, -1, "it is missing")
	} else if err != nil {
		return l, err
	} else if !info.IsDir() {
		return l, damagedFile(j.dir, -1, "it isn't a folder")
	}
	names, err := os.ReadDir(j.dir)
	if err != nil {
		return l, err
	}
	for _, n := range names {
		var number uint64
		path := filepath.Join(j.dir, n.Name())
		if _, err := fmt.Sscanf(n.Name(), "spare-%d.log", &number); err == nil && n.Name() == spareName(number) {
			j.mu.nextSpare = max(j.mu.nextSpare, number+1)
			if err := refuseFolder(path); err != nil {
				return l, err
			}
			l.spares = append(l.spares, path)
		} else if _, err := fmt.Sscanf(n.Name(), "%d.log", &number); err == nil && n.Name() == segmentName(number) {
			if err := refuseFolder(path); err != nil {
				return l, err
			}
			l.segments = append(l.segments, number)
		}
	}
	if len(l.segments) == 0 {
		return l, damagedFile(filepath.Join(j.dir, segmentName(1)), -1, "no segment of the journal is there")
	}
	slices.Sort(l.segments)
	for i, number := range l.segments {
		if should := l.segments[0] + uint64(i); number != should {
			return l, damagedFile(filepath.Join(j.dir, segmentName(should)), -1, "it is missing")
		}
	}
	return l, nil
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

// recovered is what readSegment found in a segment.
type recovered struct {
	err    error
	header segmentHeader // its capacity is 0 if it can't be trusted
	path   string
	file   file // nil but for the journal's last segment
	end    env.Position
	// offset is behind its last frame, last is where that begins.
	last, offset int64
	// counts are those of that frame, if they are known.
	counts counts
	known  bool
	// Of the journal's last segment: that frame, and what stands behind it.
	lastFrame []byte
	ending    ending
	torn      uint32   // how many records a torn frame has
	cells     []logged // in order
	filed     file     // to read the records from that were taken; nil if none was
}

// readSegment reads one segment, up to its first bad frame. That is an error
// when a good one follows in the same segment.
func (j *journal) readSegment(number uint64, keep bool, n uint32, l *loader) (r recovered) {
	r.path = filepath.Join(j.dir, segmentName(number))
	p, f, err := j.openPieces(r.path, number, l.window)
	if err != nil {
		r.err = err
		return r
	}
	if keep {
		r.file = f
	}
	defer func() {
		l.window = p.window
		if r.filed != f && r.file != f {
			r.err = errors.Join(r.err, f.Close())
		}
	}()
	b, err := p.at(0, segmentHead)
	if err != nil {
		r.err = err
		return r
	}
	header, err := readSegmentHeader(r.path, b, p.size, j.id, number)
	if err != nil {
		r.err = err
		return r
	}
	r.header = header
	r.end, r.last, r.offset = header.first, segmentHead, segmentHead
	l.begin(n)
	for {
		f, whole, err := p.frame(r.offset)
		if err != nil {
			r.err = err
			return r
		}
		if !whole || f.first != r.end {
			break
		}
		if err := l.frame(f, r.offset); err != nil {
			r.err = damagedFile(r.path, r.offset, "frame with a good checksum and a bad content: %v", err)
			return r
		}
		r.counts, r.known = f.counts, f.known
		r.last, r.offset, r.end = r.offset, r.offset+f.size, r.end+env.Position(f.records)
	}
	if at, ok, err := p.laterFrame(r.offset, r.end); err != nil {
		r.err = err
		return r
	} else if ok {
		r.err = damagedFile(r.path, r.offset, "a bad frame, and a good one behind it at byte %d", at)
		return r
	}
	if keep {
		if r.err = r.keepEnding(p); r.err != nil {
			return r
		}
	}
	r.cells = l.cells
	if l.items > 0 && keep {
		r.filed, r.err = j.cfg.openFile(r.path, os.O_RDWR, segmentMode) // the other one is closed by who writes
	} else if l.items > 0 {
		r.filed = f
	}
	return r
}

// keepEnding keeps what settle needs to know.
func (r *recovered) keepEnding(p *pieces) (err error) {
	b, err := p.at(r.last, r.offset-r.last)
	if err != nil {
		return err
	}
	r.lastFrame = bytes.Clone(b)
	r.ending, r.torn, err = p.ending(r.offset, r.end)
	return err
}

// openPieces opens a segment to be read, with a window to be used.
func (j *journal) openPieces(path string, number uint64, window []byte) (*pieces, file, error) {
	f, err := j.cfg.openFile(path, os.O_RDWR, segmentMode)
	if err != nil {
		return nil, nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return &pieces{file: f, size: size, id: j.id, generation: number, window: window[:0]}, f, nil
}

// settle makes the last segment durable as it was read, and cuts off what
// follows: the last frame may be in the system's cache only, or there as
// "clean" after a sync that failed. Writing the same bytes again harms nothing.
func (j *journal) settle(r *recovered) error {
	if len(r.lastFrame) > 0 {
		if _, err := r.file.WriteAt(r.lastFrame, r.last); err != nil {
			return err
		}
	}
	if r.header.capacity-r.offset >= frameHead {
		switch r.ending {
		case endsTorn:
			j.log.Warn("the journal's last frame was never finished, and is cut off", "file", r.path, "offset", r.offset, "records", r.torn)
		case endsGarbled, endsInZeros:
			j.log.Warn("the journal ends where it may have gone on: it is cut off", "file", r.path, "offset", r.offset, "found", r.ending.note())
		}
		// A torn head isn't told from an old frame's; both go.
		if _, err := r.file.WriteAt(make([]byte, frameHead), r.offset); err != nil {
			return err
		}
	}
	return r.file.Sync()
}
