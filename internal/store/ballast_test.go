package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"atoll/abd"
)

// withFree is a configuration whose disk has as much free space as a test
// says.
func withFree(t *testing.T) (cfg Config, d *disk, setFree func(int64)) {
	t.Helper()
	d = new(disk)
	free := int64(1 << 40)
	cfg = small(t)
	cfg.openFile = d.open
	cfg.ReserveBytes, cfg.BallastBytes, cfg.ballastAfter = 1000, 500, time.Nanosecond
	cfg.freeSpace = func(string) (int64, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return free, nil
	}
	return cfg, d, func(n int64) { d.set(func() { free = n }) }
}

func wantBallast(t *testing.T, cfg Config, size int64) {
	t.Helper()
	info, err := os.Stat(filepath.Join(cfg.Dir, ballastName))
	switch {
	case size == 0 && !errors.Is(err, fs.ErrNotExist):
		t.Errorf("there is a ballast: %v, %v", info, err)
	case size > 0 && (err != nil || info.Size() != size):
		t.Errorf("there is no ballast of %d bytes: %v, %v", size, info, err)
	}
}

// A store takes nothing before it has its ballast, and then keeps it.
func TestBallastIsTaken(t *testing.T) {
	cfg, _, setFree := withFree(t)
	mustCreate(t, cfg)
	setFree(1499)
	s := mustOpen(t, cfg)
	waitFull(s, true)
	if _, err := s.Store("k", testRecord(1, "v")); !errors.Is(err, abd.ErrFull) {
		t.Errorf("Store with too little space for the ballast: %v, want ErrFull", err)
	}
	if c := s.Condition(); c.Full == nil || !strings.Contains(c.Full.Error(), "1499 bytes are free") {
		t.Errorf("Condition says %v", c.Full)
	}
	wantBallast(t, cfg, 0)
	setFree(1500)
	waitFull(s, false)
	wantBallast(t, cfg, 500)
	wantBytes := func(ballast int64) {
		t.Helper()
		if got, want := s.Usage().Bytes, s.stateBytes.Load()+s.journal.size.Load()+ballast; got != want {
			t.Errorf("Usage says that it takes %d bytes, want %d", got, want)
		}
	}
	wantBytes(500)
	if c := s.Condition(); c.Full != nil || c.Waits != "" {
		t.Errorf("Condition says %+v", c)
	}
	mustStore(t, s, "k", testRecord(1, "v"))
	mustCommit(t, s)
	// What it takes isn't asked for twice.
	setFree(1000)
	if err := s.journal.enough(); err != nil {
		t.Errorf("the store has its ballast, and its reserve is free: %v", err)
	}
	mustClose(t, s)

	// One of another size is made anew.
	cfg.BallastBytes = 700
	setFree(1000)
	s = mustOpen(t, cfg)
	waitFull(s, true)
	setFree(1 << 40)
	waitFull(s, false)
	wantBallast(t, cfg, 700)
	wantBytes(700)
	mustClose(t, s)

	// One that is there counts, and one that was given back doesn't.
	s = mustOpen(t, cfg)
	waitFull(s, false)
	if err := s.journal.enough(); err != nil {
		t.Error(err)
	}
	wantBytes(700)
	setFree(0) // or it is taken again at once
	if !s.journal.ballast.release() {
		t.Error("there is no ballast to give back")
	}
	wantBytes(0)
	report, err := (*Report)(nil), error(nil)
	mustClose(t, s)
	if report, err = Check(cfg.Dir); err != nil || len(report.Damage()) > 0 {
		t.Errorf("Check: %v, %v", report, err)
	}
}

// That there is no space for it is a full disk; that it can't be made for
// another reason is none.
func TestBallastThatCannotBeMade(t *testing.T) {
	for _, c := range []struct {
		err  error
		full bool
	}{{syscall.ENOSPC, true}, {syscall.EDQUOT, true}, {syscall.EIO, false}} {
		cfg, _, _ := withFree(t)
		cfg.allocate = func(path string, _ int64) error {
			writeFile(t, path, []byte("a part"))
			return c.err
		}
		mustCreate(t, cfg)
		s := mustOpen(t, cfg)
		if c.full {
			waitFull(s, true)
		} else {
			waitSpare(s) // which is made behind the ballast
			mustStore(t, s, "k", testRecord(1, "v"))
		}
		mustClose(t, s)
		wantBallast(t, cfg, 0)
	}
}

// A commit that needs a segment, and finds no space for it, gets the ballast's.
func TestCommitTakesTheBallast(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
	}{{"a segment of its own", 100 << 10}, {"the next segment", 9000}} {
		t.Run(c.name, func(t *testing.T) {
			cfg, d, setFree := withFree(t)
			cfg.TableBytes = 1 << 30 // no segment is given back
			d.mu.wantsRoom = filepath.Join(cfg.Dir, ballastName)
			mustCreate(t, cfg)
			s := mustOpen(t, cfg)
			waitSpare(s)
			wantBallast(t, cfg, 500)
			value := string(make([]byte, c.size))
			mustStore(t, s, "k", testRecord(1, value))
			mustCommit(t, s)
			waitSpare(s)
			d.set(func() { d.mu.create = syscall.ENOSPC })
			// Both are taken before the disk is full. The second finds no
			// segment behind that of the first.
			mustStore(t, s, "k", testRecord(2, value))
			s.Cut()
			mustStore(t, s, "k", testRecord(3, value))
			setFree(0)
			if _, err := s.Commit(); err != nil {
				t.Fatal(err)
			}
			mustCommit(t, s)
			waitFull(s, true)
			wantBallast(t, cfg, 0)
			d.set(func() { d.mu.create = nil })
			setFree(1 << 40)
			waitFull(s, false)
			wantBallast(t, cfg, 500)
			mustClose(t, s)
			s = mustOpen(t, cfg)
			wantLoad(t, s, "k", testRecord(3, value))
			mustClose(t, s)
		})
	}
}

// Somebody else fills the disk while nothing is written, and a moment after the
// start: it is noticed all the same, and that there is space again, too.
func TestFreeSpaceIsLookedAtFromTheStart(t *testing.T) {
	cfg, _, setFree := withFree(t)
	cfg.ballastAfter, cfg.spaceRetry = time.Hour, time.Millisecond
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	waitSpare(s)
	for _, full := range []bool{true, false, true} {
		if full {
			setFree(999)
		} else {
			setFree(1000)
		}
		s.journal.mu.Lock()
		for s.journal.full.Load() != full { // unasked
			s.journal.ready.Wait()
		}
		s.journal.mu.Unlock()
	}
	mustClose(t, s)
}

// A store that is open for a moment leaves the disk alone.
func TestBallastIsForTheLongRun(t *testing.T) {
	cfg, _, setFree := withFree(t)
	cfg.ballastAfter = time.Hour
	setFree(1000)
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	waitSpare(s)
	mustStore(t, s, "k", testRecord(1, "v"))
	if err := s.journal.enough(); err != nil {
		t.Errorf("a young store misses its ballast: %v", err)
	}
	mustClose(t, s)
	wantBallast(t, cfg, 0)
}
