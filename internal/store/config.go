package store

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"
)

// Defaults of Config, in bytes.
const (
	DefaultSegmentBytes = 16 << 20
	DefaultTableBytes   = 64 << 20
	DefaultJournalBytes = 256 << 20
	DefaultReserveBytes = 256 << 20
	DefaultBallastBytes = 64 << 20
)

// Limits that aren't settings.
const (
	// minSegmentBytes leaves room for a header page and a few frames.
	minSegmentBytes = 16 << 10
	// minTableBytes keeps an apply worth its two syncs.
	minTableBytes = 1 << 10
	// maxPending is how many bytes may wait for Commit before Store refuses
	// more. It bounds a frame, too: its length has 32 bits.
	maxPending = 1 << 30
	// keepBuffer is the largest write buffer in bytes that is kept for the
	// next batch.
	keepBuffer = 4 << 20
	// applyBytes is how much of a table goes into one bbolt transaction.
	// Larger ones hold more memory and keep the disk from the journal for
	// longer, smaller ones sync more often.
	applyBytes = 1 << 20
	// paceTarget is how full the next table is when the apply of the one
	// before shall be done. longestPause is how long it waits between two
	// transactions at most, when nearly nothing is written: so it ends within
	// some seconds. pauseStep is how often it looks.
	paceTarget   = 0.7
	longestPause = 200 * time.Millisecond
	pauseStep    = 5 * time.Millisecond
	// largeFrame is the size of a frame in bytes from which on segments aren't
	// filled with zeros beforehand.
	largeFrame = 64 << 10
	// pieceBytes is how much of a segment is read at once, and checked before
	// the next: it stays in the processor's cache meanwhile.
	pieceBytes = 256 << 10
	// largePage is the size in bytes of a large page of memory, on most
	// machines; see makeLarge.
	largePage = 2 << 20
	// loadRoom is for how many more records there is room at once when segments
	// are loaded.
	loadRoom = 1 << 18
	// scanPage is how many keys Scan copies out of one read transaction.
	scanPage = 256
	// usualKey is for how long keys in bytes Scan makes room at first.
	usualKey = 24
	// journalShare is the part of JournalBytes after which a table is frozen:
	// the table being applied and the active one each hold up to pressureStop
	// times as much.
	journalShare = 4
	// pressureStop is the pressure (1 = a table is full while another is
	// still being applied) at which Commit waits for the apply to end.
	pressureStop = 2.0
	// longestDelay is by how much Commit is delayed just below pressureStop.
	longestDelay = 20 * time.Millisecond
	// spaceRetry is how often it is looked at how much space is free.
	spaceRetry = 500 * time.Millisecond
	// ballastAfter is how long a store is open before it takes its ballast.
	ballastAfter = 10 * time.Second
	// loudDamage is how many damaged records the log names at a start.
	loudDamage = 16
	// lockTimeout bounds bbolt's own wait for its file lock. The folder's
	// lock is held by then, so nobody but a stranger can have it.
	lockTimeout = time.Second
	// initialMap is the address space in bytes that bbolt maps at once: 64 GiB
	// where pointers have 64 bits. Mapping a file anew waits for readers.
	initialMap = 1 << (30 + 6*(^uint(0)>>63))
	// mapReserve is how close to that a file may come before each load has a
	// transaction of its own: more than one batch can make it grow.
	mapReserve = 1 << 29
	// memoHeads is how many records' heads are remembered: a few times as
	// many as puts are on their way. It takes 80 bytes and a key for each.
	memoHeads = 8192
	// expectKeys is how many of the keys that Expect is told are looked at.
	expectKeys = 512
	// manyParts is how many pieces bbolt's tree is divided into before they
	// are checked, at least, if it has as many pages.
	manyParts = 64
	// aheadBytes is how much of bbolt's file the system is asked to read at
	// once.
	aheadBytes = 4 << 20
	// denseFill and sparseFill are the parts of a page that are filled when it
	// must be split: nearly all if many new keys go in beside one another, so
	// that few pages hold them, and half if few do, which leaves room on both.
	denseFill, sparseFill = 0.95, 0.5
	// denseKeys is how many new keys go in between two that are there, on the
	// average, when there are many. fillSamples is how many are looked at.
	denseKeys, fillSamples = 3, 64
)

// Config is what Create and Open need. The zero value of each field but Dir
// stands for its default.
type Config struct {
	// Dir is the store's folder.
	Dir string
	// Log is told of what was cut off, damaged, slow or full. Default: nobody.
	Log *slog.Logger

	// SegmentBytes is the size of a journal segment. A batch that is larger
	// gets a segment of its own. Default 16 MiB, at least 16 KiB.
	SegmentBytes int64
	// TableBytes is the size of the memory table at which it is applied to
	// bbolt. While that lasts a second one grows; from the same size on
	// Commit is delayed, and at twice that it waits. Default 64 MiB.
	TableBytes int64
	// JournalBytes is how large the journal may get before Commit waits for
	// the apply, give or take a batch. Default 256 MiB, at least 4 segments.
	JournalBytes int64
	// ReserveBytes is the free space of the file system below which Store
	// returns abd.ErrFull. It must hold what the apply of what was already
	// acknowledged still needs. Default 256 MiB.
	ReserveBytes int64
	// BallastBytes is the size of a file that takes space, in order to give it
	// back when the file system is full all the same: the store can then
	// finish what it has taken. It is made 10 s after Open, when so much and
	// ReserveBytes are free, and until then Store returns abd.ErrFull. Default
	// 64 MiB.
	BallastBytes int64

	// ObserveSync, when set, is called with the time that each write and
	// sync of the journal took, on the goroutine that commits.
	ObserveSync func(time.Duration)

	// Seams of this package's tests.
	openFile  func(path string, flag int, mode fs.FileMode) (file, error)
	freeSpace func(dir string) (int64, error)
	allocate  func(path string, size int64) error

	ballastAfter time.Duration
	spaceRetry   time.Duration
	reached      func(point string) // of a Compact
}

// withDefaults returns c with every field set, or what is wrong with it.
func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		return c, fmt.Errorf("store: Dir is empty")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	for _, f := range []struct {
		name            string
		field           *int64
		standard, least int64
	}{
		{"SegmentBytes", &c.SegmentBytes, DefaultSegmentBytes, minSegmentBytes},
		{"TableBytes", &c.TableBytes, DefaultTableBytes, minTableBytes},
		{"JournalBytes", &c.JournalBytes, max(DefaultJournalBytes, 4*c.SegmentBytes), 4 * minSegmentBytes},
		{"ReserveBytes", &c.ReserveBytes, DefaultReserveBytes, 1},
		{"BallastBytes", &c.BallastBytes, DefaultBallastBytes, 1},
	} {
		if *f.field == 0 {
			*f.field = f.standard
		}
		if *f.field < f.least {
			return c, fmt.Errorf("store: %s is %d, at least %d is needed", f.name, *f.field, f.least)
		}
	}
	if c.JournalBytes < 4*c.SegmentBytes {
		return c, fmt.Errorf("store: JournalBytes is %d, at least 4 segments (%d) are needed", c.JournalBytes, 4*c.SegmentBytes)
	}
	if c.ObserveSync == nil {
		c.ObserveSync = func(time.Duration) {}
	}
	if c.openFile == nil {
		c.openFile = openOS
	}
	if c.freeSpace == nil {
		c.freeSpace = freeSpace
	}
	if c.ballastAfter == 0 {
		c.ballastAfter = ballastAfter
	}
	if c.spaceRetry == 0 {
		c.spaceRetry = spaceRetry
	}
	if c.allocate == nil {
		c.allocate = allocateFile
	}
	if c.reached == nil {
		c.reached = func(string) {}
	}
	return c, nil
}

// A file is what the journal does with its segments.
type file interface {
	ReadAt(b []byte, offset int64) (int, error)
	WriteAt(b []byte, offset int64) (int, error)
	// Sync makes the bytes written so far durable, and the file's size.
	Sync() error
	// Size in bytes.
	Size() (int64, error)
	// Reserve makes an empty file one of so many zeros, for which there is space
	// on the disk.
	Reserve(size int64) error
	Close() error
}

// osFile is a file of the operating system.
type osFile struct{ *os.File }

func openOS(path string, flag int, mode fs.FileMode) (file, error) {
	f, err := os.OpenFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (f osFile) Sync() error { return dataSync(f.File) }

func (f osFile) Reserve(size int64) error { return reserve(f.File, size) }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
