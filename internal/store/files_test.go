package store

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/tags"
)

// disk opens files that can fail, and that remember what wasn't synced.
type disk struct {
	mu struct {
		sync.Mutex
		create error // of opening a file that doesn't exist yet
		// wantsRoom, when set, is a file in whose place others find room.
		wantsRoom string
		sync      error // of every Sync, but those of spares
		write     func(b []byte) (keep int, err error)
		pending   []change
	}
}

// change is a sector as it was before a write that wasn't synced.
type change struct {
	name   string
	offset int64
	before []byte
}

// sector is what a disk writes wholly or not at all.
const sector = 512

func (d *disk) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func (d *disk) open(path string, flag int, mode fs.FileMode) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, there := os.Lstat(d.mu.wantsRoom)
	if flag&os.O_CREATE != 0 && d.mu.create != nil && (d.mu.wantsRoom == "" || there == nil) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: d.mu.create}
	}
	f, err := os.OpenFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	return &diskFile{osFile{f}, d}, nil
}

type diskFile struct {
	osFile
	disk *disk
}

func (f *diskFile) WriteAt(b []byte, offset int64) (int, error) {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	for at := offset / sector * sector; at < offset+int64(len(b)); at += sector {
		before := make([]byte, sector)
		if n, _ := f.ReadAt(before, at); n == sector {
			// By the descriptor's name at the time of the crash: it may be
			// renamed, but not while a frame is being written.
			d.mu.pending = append(d.mu.pending, change{f.Name(), at, before})
		}
	}
	if d.mu.write != nil {
		keep, err := d.mu.write(b)
		n, writeErr := f.osFile.WriteAt(b[:keep], offset)
		return n, errors.Join(err, writeErr)
	}
	return f.osFile.WriteAt(b, offset)
}

func (f *diskFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.mu.sync != nil && !strings.HasPrefix(filepath.Base(f.Name()), "spare-") {
		return f.disk.mu.sync
	}
	f.disk.mu.pending = nil
	return nil // no test here pulls a plug
}

// crash undoes each sector that wasn't synced, or not, as a coin falls.
func (d *disk) crash(t *testing.T, path string, coin func() bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range d.mu.pending {
		if coin() {
			if _, err := f.WriteAt(c.before, c.offset); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.mu.pending = nil
}

func testTag(n int) tags.Tag { return tags.Tag{Seq: tags.Seq(n), PID: tags.NewPID(1, 2, 3)} }

func testRecord(n int, value string) abd.Record {
	return abd.Record{Tag: testTag(n), Value: []byte(value)}
}

// small is a configuration in which everything happens soon.
func small(t *testing.T) Config {
	t.Helper()
	return Config{Dir: t.TempDir(), SegmentBytes: 16 << 10, TableBytes: 2 << 10, JournalBytes: 64 << 10}
}

func mustCreate(t testing.TB, cfg Config) {
	t.Helper()
	if err := Create(cfg); err != nil {
		t.Fatalf("Create: %v", err)
	}
}

func mustOpen(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func mustStore(t testing.TB, s *Store, key abd.Key, r abd.Record) env.Position {
	t.Helper()
	p, err := s.Store(key, r)
	if err != nil {
		t.Fatalf("Store(%q): %v", string(key), err)
	}
	return p
}

func mustCommit(t testing.TB, s *Store) env.Position {
	t.Helper()
	s.Cut()
	p, err := s.Commit()
	if err != nil {
		t.Fatalf("Commit: %v", err)
	}
	return p
}

// waitSpare waits until the next segment is ready.
func waitSpare(s *Store) {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	for len(s.journal.mu.spares) == 0 {
		s.journal.ready.Wait()
	}
}

// waitFull waits until the disk was found to be full, or not to be.
func waitFull(s *Store, full bool) {
	s.journal.look()
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	for s.journal.full.Load() != full {
		s.journal.ready.Wait()
	}
}

func mustClose(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

func wantLoad(t testing.TB, s *Store, key abd.Key, want abd.Record) {
	t.Helper()
	// Twice without the value, as what was found the first time is remembered.
	for range 2 {
		if got, _, err := s.Load(key, false); err != nil || got.Tag != want.Tag || got.Deleted != want.Deleted {
			t.Fatalf("Load(%q) without its value = %v, %v, want %v", string(key), got.Tag, err, want.Tag)
		}
	}
	got, _, err := s.Load(key, true)
	if err != nil {
		t.Fatalf("Load(%q): %v", string(key), err)
	}
	if got.Tag != want.Tag || got.Deleted != want.Deleted || string(got.Value) != string(want.Value) {
		t.Fatalf("Load(%q) = %v %.40q, want %v %.40q", string(key), got.Tag, got.Value, want.Tag, want.Value)
	}
}

// wantDamage checks that err names file and isn't about one record.
func wantDamage(t testing.TB, err error, file string) *DamageError {
	t.Helper()
	var d *DamageError
	if !errors.As(err, &d) {
		t.Fatalf("error %v, want a *DamageError", err)
	}
	if filepath.Base(d.File) != file || d.WayOut == "" || errors.Is(err, abd.ErrDamaged) {
		t.Fatalf("error %v (of one record: %t), want one about all of %s with a way out", err, d.OneRecord, file)
	}
	return d
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }
