package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"atoll/env"
)

// A journal is the sequence of segments in one folder. append is called by
// whoever commits, recycle by the apply; prepare runs on a goroutine of its
// own.
type journal struct {
	cfg  Config
	id   storeID
	dir  string
	log  *slog.Logger
	stop chan struct{} // closed when the store closes
	kick chan struct{} // asks prepare to look again

	// Of whoever commits.
	active segment
	offset int64 // of the next frame in it

	ballast *ballast
	// full: there is no space, and stores are refused.
	full atomic.Bool
	// waiting: a frame waits for space, in a segment of its own, or in the
	// next one, which is to be made.
	waiting atomic.Bool
	// size is what all segments and spares take, in bytes.
	size atomic.Int64
	// written counts the bytes of all frames.
	written atomic.Int64
	// large: the last frame was, so that it isn't worth it to fill segments.
	large atomic.Bool

	mu struct {
		sync.Mutex
		sealed    []sealedSegment // oldest first
		spares    []spare
		nextSpare uint64 // number in the next spare's name
		starving  bool   // somebody waits for a spare
		whyFull   error  // set with full
		closed    bool
	}
	// ready is signaled when mu.spares, mu.closed or full changes.
	ready *sync.Cond
}

// segment is the one that is written.
type segment struct {
	number   uint64
	path     string
	file     file
	capacity int64
}

// sealedSegment won't be written until it is used again.
type sealedSegment struct {
	number   uint64
	path     string
	end      env.Position // behind its last record
	capacity int64
}

// spare is a segment that waits for its next use. Mostly all of it was written
// once, so a write into it changes no metadata of the file system, and a sync has
// half as much to do.
type spare struct {
	path     string
	file     file
	capacity int64
}

func newJournal(cfg Config, id storeID) *journal {
	j := &journal{
		cfg: cfg, id: id, log: cfg.Log,
		dir:  filepath.Join(cfg.Dir, journalName),
		stop: make(chan struct{}),
		kick: make(chan struct{}, 1),

		ballast: newBallast(cfg),
	}
	j.ready = sync.NewCond(&j.mu)
	return j
}

func segmentName(number uint64) string { return fmt.Sprintf("%08d.log", number) }
func spareName(number uint64) string   { return fmt.Sprintf("spare-%08d.log", number) }

// append writes one frame and syncs it. b holds frameHead free bytes and then
// the entries, with which the store counts what c says. After an error nothing
// is known about the frame, and the journal must not be used again.
func (j *journal) append(b []byte, first env.Position, records uint32, c counts) error {
	size := alignFrame(int64(len(b) + countsSize))
	if j.offset+size > j.active.capacity {
		if err := j.rotate(first, size); err != nil {
			return err
		}
	}
	b = sealFrame(b, j.id, j.active.number, first, records, c)
	for int64(len(b)) < size {
		b = append(b, 0)
	}
	begin := time.Now()
	if _, err := j.active.file.WriteAt(b, j.offset); err != nil {
		return fmt.Errorf("writing %s: %w", j.active.path, err)
	}
	if err := j.active.file.Sync(); err != nil {
		return fmt.Errorf("syncing %s: %w", j.active.path, err)
	}
	j.cfg.ObserveSync(time.Since(begin))
	j.large.Store(size >= largeFrame)
	j.offset += size
	j.written.Add(size)
	return nil
}

// rotate makes a spare the active segment, with room for a frame of size.
// While there is no space for one, it waits.
func (j *journal) rotate(first env.Position, size int64) error {
	s, err := j.takeSpare(segmentHead + size)
	if err != nil {
		return err
	}
	next, err := j.activate(s, j.active.number+1, first)
	if err != nil {
		s.file.Close()
		return err
	}
	j.seal(first)
	j.active, j.offset = next, segmentHead
	return nil
}

// activate gives a spare its head and its name, in this order: a file that
// has the name of a segment always has a good head.
func (j *journal) activate(s spare, number uint64, first env.Position) (segment, error) {
	head := segmentHeader{generation: number, first: first, capacity: s.capacity}.encode(j.id)
	if _, err := s.file.WriteAt(head, 0); err != nil {
		return segment{}, fmt.Errorf("writing %s: %w", s.path, err)
	}
	if err := s.file.Sync(); err != nil {
		return segment{}, fmt.Errorf("syncing %s: %w", s.path, err)
	}
	path := filepath.Join(j.dir, segmentName(number))
	if err := os.Rename(s.path, path); err != nil {
		return segment{}, err
	}
	if err := syncDir(j.dir); err != nil {
		return segment{}, err
	}
	return segment{number: number, path: path, file: s.file, capacity: s.capacity}, nil
}

// seal ends the active segment, whose records end at end.
func (j *journal) seal(end env.Position) {
	if err := j.active.file.Close(); err != nil {
		// Everything in it was synced; only the handle is lost.
		j.log.Warn("closing a journal segment failed", "file", j.active.path, "err", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.sealed = append(j.mu.sealed, sealedSegment{
		number: j.active.number, path: j.active.path, end: end, capacity: j.active.capacity,
	})
}

// takeSpare returns a segment of at least the given size, and waits for one.
func (j *journal) takeSpare(size int64) (spare, error) {
	if size > j.cfg.SegmentBytes {
		return j.makeLarge(size)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.mu.spares) == 0 && !j.mu.closed {
		j.mu.starving = true
		j.look()
		j.ready.Wait()
	}
	j.mu.starving = false
	if j.mu.closed {
		return spare{}, ErrClosed
	}
	s := j.mu.spares[0]
	j.mu.spares = j.mu.spares[1:]
	j.look()
	return s, nil
}

// makeLarge makes a segment for a frame that fits into none, waiting for space.
func (j *journal) makeLarge(size int64) (spare, error) {
	defer j.look()
	defer j.waiting.Store(false)
	for {
		s, err := j.makeSpare(size)
		if err == nil || !noSpace(err) {
			return s, err
		}
		j.waiting.Store(true)
		j.setFull(true, err)
		if j.ballast.release() {
			continue
		}
		select {
		case <-j.stop:
			return spare{}, ErrClosed
		case <-time.After(j.cfg.spaceRetry):
		}
	}
}

// look makes prepare look at the spares and at the free space.
func (j *journal) look() {
	select {
	case j.kick <- struct{}{}:
	default:
	}
}

// prepare keeps a spare ready, and j.full up to date, until the store closes. It
// looks often even when all was well: it is others who fill the disk, and they
// don't say so.
func (j *journal) prepare() {
	again := time.NewTicker(j.cfg.spaceRetry)
	defer again.Stop()
	for {
		j.prepareOnce()
		select {
		case <-j.stop:
			return
		case <-j.kick:
		case <-again.C:
		}
	}
}

// prepareOnce looks at the free space, and makes what is missing and fits.
func (j *journal) prepareOnce() {
	j.mu.Lock()
	need, starving := len(j.mu.spares) == 0, j.mu.starving
	j.mu.Unlock()

	err := j.enough()
	if err == nil {
		err = j.ballast.take()
	}
	// Who waits has been taken in before, and gets what the reserve is for.
	if need && (err == nil || starving) {
		s, made := j.makeSpare(j.cfg.SegmentBytes)
		if noSpace(made) && starving && j.ballast.release() {
			s, made = j.makeSpare(j.cfg.SegmentBytes)
		}
		if made == nil {
			j.addSpare(s)
		} else {
			err = made
		}
	}
	if errors.Is(err, ErrClosed) || err == nil && j.waiting.Load() {
		return
	}
	j.setFull(err != nil, err)
}

// enough returns an error when there is too little space to take anything new.
func (j *journal) enough() error {
	free, err := j.cfg.freeSpace(j.cfg.Dir)
	if err != nil {
		return err
	}
	if missing := j.ballast.missing(); free < j.cfg.ReserveBytes+missing {
		if missing > 0 {
			return fmt.Errorf("%d bytes are free, %d are kept in reserve and %d are the ballast's", free, j.cfg.ReserveBytes, missing)
		}
		return fmt.Errorf("%d bytes are free, %d are kept in reserve", free, j.cfg.ReserveBytes)
	}
	return nil
}

func (j *journal) addSpare(s spare) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.spares = append(j.mu.spares, s)
	j.ready.Broadcast()
}

// setFull changes j.full, and says so once.
func (j *journal) setFull(full bool, err error) {
	j.mu.Lock()
	j.mu.whyFull = err
	was := j.full.Swap(full)
	if was != full {
		j.ready.Broadcast()
	}
	j.mu.Unlock()
	if was == full {
		return
	}
	if full {
		j.log.Warn("no space: writes are refused until there is", "dir", j.cfg.Dir, "err", err)
	} else {
		j.log.Info("there is space again", "dir", j.cfg.Dir)
	}
}

// whyFull returns why stores are refused, nil if they aren't.
func (j *journal) whyFull() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mu.whyFull
}

// fillBytes is how much of a new segment is written at once. A store that
// closes waits for no more.
const fillBytes = 1 << 20

// makeSpare makes a new segment full of zeros. They are written, but for large
// frames: to write everything twice takes more time than a sync saves that comes
// once for so many bytes.
func (j *journal) makeSpare(size int64) (spare, error) {
	j.mu.Lock()
	number := j.mu.nextSpare
	j.mu.nextSpare++
	j.mu.Unlock()
	path := filepath.Join(j.dir, spareName(number))
	f, err := j.cfg.openFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, segmentMode)
	if err != nil {
		return spare{}, err
	}
	if j.large.Load() {
		err = f.Reserve(size)
	} else {
		err = j.fill(f, size)
	}
	if err != nil {
		f.Close()
		if rmErr := os.Remove(path); rmErr != nil {
			j.log.Warn("a partial journal segment stays behind", "file", path, "err", rmErr)
		}
		return spare{}, err
	}
	j.size.Add(size)
	return spare{path: path, file: f, capacity: size}, nil
}

func (j *journal) fill(f file, size int64) error {
	zeros := make([]byte, min(fillBytes, size))
	for offset := int64(0); offset < size; offset += int64(len(zeros)) {
		select {
		case <-j.stop:
			return ErrClosed
		default:
		}
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-offset)], offset); err != nil {
			return err
		}
		// Piece by piece: one large sync would hold up the commits behind it.
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// recycle makes spares of the sealed segments whose records are all in bbolt.
func (j *journal) recycle(applied env.Position) error {
	for {
		j.mu.Lock()
		if len(j.mu.sealed) == 0 || j.mu.sealed[0].end > applied {
			j.mu.Unlock()
			return nil
		}
		s := j.mu.sealed[0]
		j.mu.sealed = j.mu.sealed[1:]
		keep := s.capacity == j.cfg.SegmentBytes &&
			int64(len(j.mu.spares)+len(j.mu.sealed)+2)*j.cfg.SegmentBytes <= j.cfg.JournalBytes
		number := j.mu.nextSpare
		j.mu.nextSpare++
		j.mu.Unlock()

		if !keep {
			if err := os.Remove(s.path); err != nil {
				return err
			}
			j.size.Add(-s.capacity)
		} else if err := j.reuse(s, number); err != nil {
			return err
		}
		// One by one: if two removals could reach the disk in the other
		// order, a crash would leave a gap that looks like a lost segment.
		if err := syncDir(j.dir); err != nil {
			return err
		}
	}
}

func (j *journal) reuse(s sealedSegment, number uint64) error {
	path := filepath.Join(j.dir, spareName(number))
	if err := os.Rename(s.path, path); err != nil {
		return err
	}
	f, err := j.cfg.openFile(path, os.O_RDWR, segmentMode)
	if err != nil {
		return err
	}
	j.addSpare(spare{path: path, file: f, capacity: s.capacity})
	return nil
}

// shutdown wakes whoever waits for a spare. close may follow when nobody
// appends, prepares or recycles any more.
func (j *journal) shutdown() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.mu.closed {
		j.mu.closed = true
		close(j.stop)
		j.ready.Broadcast()
	}
}

func (j *journal) close() error {
	var errs []error
	if j.active.file != nil {
		errs = append(errs, j.active.file.Close())
	}
	for _, s := range j.mu.spares {
		errs = append(errs, s.file.Close())
	}
	return errors.Join(errs...)
}
