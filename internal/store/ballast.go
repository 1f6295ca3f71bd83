package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// ballastName is a file that holds nothing but space.
const ballastName = "ballast"

// A ballast is space that is given back when a write finds none although the
// store takes nothing new any more: somebody else has filled the file system.
// With it the store finishes what it has taken before: an apply, or a commit
// that needs a segment. It is taken again before the store takes writes again,
// so that there always is one when it is needed.
//
// It is first taken when the store has been open for a while: then it isn't
// one that is opened for a moment, to whose end a large file would add much.
type ballast struct {
	path     string
	size     int64
	allocate func(path string, size int64) error
	log      *slog.Logger
	due      time.Time    // when it is first taken
	taken    atomic.Int64 // bytes that the file has
	mu       struct {
		sync.Mutex
		there, looked bool
		released      bool // it must be taken again, due or not
	}
}

func newBallast(cfg Config) *ballast {
	return &ballast{path: filepath.Join(cfg.Dir, ballastName), size: cfg.BallastBytes, allocate: cfg.allocate, log: cfg.Log,
		due: time.Now().Add(cfg.ballastAfter)}
}

// missing is how much space the ballast still needs, in bytes. One of another
// size than the one that is set is made anew.
func (b *ballast) missing() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.mu.looked {
		info, err := os.Lstat(b.path)
		b.mu.there = err == nil && info.Mode().IsRegular() && info.Size() == b.size
		b.mu.looked = true
		if b.mu.there {
			b.taken.Store(b.size)
		}
	}
	if b.mu.there || b.early() {
		return 0
	}
	return b.size
}

// early reports whether it isn't time for a ballast yet. The caller holds mu.
func (b *ballast) early() bool { return !b.mu.released && time.Now().Before(b.due) }

// take makes the file. Only that there is no space for it is an error: without
// it the store does its work, until the disk is full.
func (b *ballast) take() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.there || b.early() {
		return nil
	}
	err := errors.Join(b.remove(), b.allocate(b.path, b.size))
	b.mu.there = true
	if err == nil {
		b.taken.Store(b.size)
		return nil
	}
	err = errors.Join(err, b.remove())
	if noSpace(err) {
		b.mu.there = false
		return fmt.Errorf("%d bytes of ballast: %w", b.size, err)
	}
	b.log.Warn("no ballast could be made: an apply on a full disk will have to wait", "file", b.path, "err", err)
	return nil
}

// release gives the space back, and reports whether there was any.
func (b *ballast) release() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.there, b.mu.looked, b.mu.released = false, true, true
	info, err := os.Lstat(b.path)
	if err != nil {
		return false
	}
	if err := b.remove(); err != nil {
		b.log.Warn("the ballast can't be given back", "file", b.path, "err", err)
		return false
	}
	b.log.Warn("the disk is full: the ballast was given back", "file", b.path, "bytes", info.Size())
	return info.Size() > 0
}

func (b *ballast) remove() error {
	if err := os.Remove(b.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b.taken.Store(0)
	return nil
}

// writeZeros makes a file of zeros, where the system has no better way to take
// space.
func writeZeros(f *os.File, size int64) error {
	zeros := make([]byte, min(fillBytes, size))
	for offset := int64(0); offset < size; offset += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-offset)], offset); err != nil {
			return err
		}
	}
	return nil
}

// allocateFile makes a file that takes size bytes of space. It isn't synced:
// it protects this process, and the next one makes another.
func allocateFile(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(reserve(f, size), f.Close())
}
