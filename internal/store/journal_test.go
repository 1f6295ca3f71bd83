package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"atoll/abd"
	"atoll/env"
)

// written is a journal on its own, without bbolt, and what is in it.
type written struct {
	cfg    Config
	id     storeID
	frames []int64 // offsets in the last segment, and where the last frame ends
}

// writeJournal makes a journal with one frame of two records for each number.
func writeJournal(t *testing.T, frames int) *written {
	t.Helper()
	cfg, err := Config{Dir: t.TempDir(), SegmentBytes: minSegmentBytes, openFile: new(disk).open}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	w := &written{cfg: cfg, id: storeID{1, 2, 3}}
	if err := os.Mkdir(filepath.Join(cfg.Dir, journalName), 0o700); err != nil {
		t.Fatal(err)
	}
	j := newJournal(cfg, w.id)
	if err := j.create(); err != nil {
		t.Fatal(err)
	}
	w.append(t, frames)
	return w
}

// recoverEach opens a journal, and calls visit with what it holds behind
// applied. It returns the position behind the last record.
func recoverEach(j *journal, applied env.Position, visit func(logged)) (env.Position, error) {
	r, err := j.read(applied, crc32.ChecksumIEEE)
	if err != nil {
		return 0, err
	}
	defer r.letGo()
	var all []logged
	for _, l := range r.loaders {
		for p := range loadParts {
			l.part(p, func(block []item) {
				for _, it := range block {
					b := l.keys[it.chunk][it.at:]
					at := readFiledAt(b[it.key:])
					e := logged{position: it.position, name: b[:it.key], bytes: make([]byte, it.size)}
					_, readErr := r.segments[at.segment].filed.ReadAt(e.bytes, int64(at.offset)+int64(it.key))
					err = errors.Join(err, readErr)
					all = append(all, e)
				}
			})
		}
	}
	slices.SortFunc(all, func(a, b logged) int { return cmp.Compare(a.position, b.position) })
	for _, e := range all {
		visit(e)
	}
	if err != nil {
		return 0, err
	}
	return r.end, j.resume(r)
}

// append opens the journal and appends frames.
func (w *written) append(t *testing.T, frames int) {
	t.Helper()
	j := newJournal(w.cfg, w.id)
	end, err := recoverEach(j, 0, func(logged) {})
	if err != nil {
		t.Fatal(err)
	}
	for range frames {
		w.frames = append(w.frames, j.offset)
		b := make([]byte, frameHead)
		for i := range 2 {
			n := int(end) + i + 1
			key := abd.Key(fmt.Sprint("key", n))
			b = appendEntry(b, key, encodeRecord(key, testRecord(n, fmt.Sprint("value ", n))))
		}
		j.prepareOnce() // no goroutine does it here
		if err := j.append(b, end, 2, counts{keys: int64(end) + 2}); err != nil {
			t.Fatal(err)
		}
		end += 2
	}
	w.frames = append(w.frames, j.offset)
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
}

// recover returns how many records there are, and checks each.
func (w *written) recover(t *testing.T) (int, error) {
	t.Helper()
	j := newJournal(w.cfg, w.id)
	defer j.close()
	n := 0
	end, err := recoverEach(j, 0, func(e logged) {
		n++
		if want := fmt.Sprint("key", n); e.position != env.Position(n) || string(e.name) != want {
			t.Errorf("record %d stands at %d and has key %q, want %q", n, e.position, e.name, want)
		}
		if want := fmt.Sprint("value ", n); checkValue(e.bytes) != "" || string(e.bytes[recordHead:]) != want {
			t.Errorf("record %d has value %q, want %q", n, e.bytes[recordHead:], want)
		}
	})
	if err == nil && end != env.Position(n) {
		t.Errorf("the journal ends at %d, and has %d records", end, n)
	}
	return n, err
}

func (w *written) segment(number uint64) string {
	return filepath.Join(w.cfg.Dir, journalName, segmentName(number))
}

func TestTornTail(t *testing.T) {
	w := writeJournal(t, 3)
	path := w.segment(1)
	good := readFile(t, path)
	last, end := w.frames[2], w.frames[3]
	for cut := last; cut < end; cut++ {
		for _, filler := range []byte{0, 0xA5} { // never written, and an old frame's
			b := slices.Clone(good)
			for i := cut; i < int64(len(b)); i++ {
				b[i] = filler
			}
			if slices.Equal(b[:end], good[:end]) {
				continue // zeros of its own
			}
			whole := slices.Equal(b[last:last+frameHead+payloadOf(good, last)], good[last:last+frameHead+payloadOf(good, last)])
			writeFile(t, path, b)
			want := 4
			if whole {
				want = 6
			}
			if n, err := w.recover(t); err != nil || n != want {
				t.Fatalf("cut at byte %d, then %#x: %d records, %v; want %d", cut-last, filler, n, err, want)
			}
			// What was cut off stays so, and there is room for what follows.
			w.frames = nil
			w.append(t, 1)
			if n, err := w.recover(t); err != nil || n != want+2 {
				t.Fatalf("cut at byte %d, then %#x, then a frame: %d records, %v; want %d", cut-last, filler, n, err, want+2)
			}
		}
	}
}

// payloadOf is the size of a frame's payload, counts included.
func payloadOf(b []byte, at int64) int64 { return int64(binary.BigEndian.Uint32(b[at+frameLen:])) }

func TestDamagedMiddle(t *testing.T) {
	w := writeJournal(t, 3)
	path := w.segment(1)
	good := readFile(t, path)
	for i, at := range w.frames[:2] {
		covered := at + frameHead + payloadOf(good, at)
		for offset := at; offset < w.frames[i+1]; offset++ {
			b := slices.Clone(good)
			b[offset] ^= 1 << (offset % 8)
			writeFile(t, path, b)
			n, err := w.recover(t)
			if offset >= covered { // padding
				if err != nil || n != 6 {
					t.Fatalf("a flipped bit in the padding: %d records, %v", n, err)
				}
				continue
			}
			if d := wantDamage(t, err, segmentName(1)); d.Offset != at {
				t.Errorf("a flipped bit at %d was placed at %d, want the frame's begin, %d", offset, d.Offset, at)
			}
		}
	}
	for offset := range headUsed {
		b := slices.Clone(good)
		b[offset] ^= 1 << (offset % 8)
		writeFile(t, path, b)
		_, err := w.recover(t)
		wantDamage(t, err, segmentName(1))
	}
}

func TestDamagedSegments(t *testing.T) {
	w := writeJournal(t, 300) // several segments
	const middle = 2
	if _, err := os.Stat(w.segment(middle + 1)); err != nil {
		t.Fatal(err)
	}
	good := readFile(t, w.segment(middle))
	f, _, _ := readFrame(good[segmentHead:], w.id, middle)
	for _, c := range []struct {
		name  string
		wreck func() error
	}{
		{"missing", func() error { return os.Remove(w.segment(middle)) }},
		{"empty", func() error { return os.Truncate(w.segment(middle), 0) }},
		{"cut in its head", func() error { return os.Truncate(w.segment(middle), 100) }},
		{"cut", func() error { return os.Truncate(w.segment(middle), minSegmentBytes-1) }},
		{"longer", func() error { return os.Truncate(w.segment(middle), minSegmentBytes+1) }},
		{"zeros", func() error { return os.WriteFile(w.segment(middle), make([]byte, minSegmentBytes), 0o600) }},
		{"another segment", func() error { return os.WriteFile(w.segment(middle), readFile(t, w.segment(1)), 0o600) }},
		{"last frames are zeros", func() error {
			b := slices.Clone(good)
			clear(b[segmentHead+f.size:])
			return os.WriteFile(w.segment(middle), b, 0o600)
		}},
		{"no frames", func() error {
			b := slices.Clone(good)
			clear(b[segmentHead:])
			return os.WriteFile(w.segment(middle), b, 0o600)
		}},
	} {
		if err := c.wreck(); err != nil {
			t.Fatal(err)
		}
		_, err := w.recover(t)
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		wantDamage(t, err, segmentName(middle))
		writeFile(t, w.segment(middle), good)
	}
	if n, err := w.recover(t); err != nil || n != 600 {
		t.Fatalf("after all was put back: %d records, %v", n, err)
	}

	// The first one may only be missing when bbolt has what it held.
	if err := os.Remove(w.segment(1)); err != nil {
		t.Fatal(err)
	}
	_, err := w.recover(t)
	wantDamage(t, err, segmentName(1))
	j := newJournal(w.cfg, w.id)
	defer j.close()
	header, err := readSegmentHeader("", good, int64(len(good)), w.id, middle)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := recoverEach(j, header.first, func(logged) {}); err != nil {
		t.Errorf("without a segment that isn't needed: %v", err)
	}
	// The journal can't end before what bbolt has.
	k := newJournal(w.cfg, w.id)
	defer k.close()
	_, err = recoverEach(k, 601, func(logged) {})
	wantDamage(t, err, segmentName(k.active.number))
}

// A used segment holds good frames of its earlier use, right where the next
// frame is looked for.
func TestStaleFrames(t *testing.T) {
	w := writeJournal(t, 3)
	old := readFile(t, w.segment(1))
	// The same file as segment 1 of another use: one frame of its own, which
	// ends where an old frame begins whose position would fit.
	for _, c := range []struct {
		name       string
		id         storeID
		generation uint64
	}{{"another generation", w.id, 2}, {"another store", storeID{9}, 1}} {
		b := slices.Clone(old)
		copy(b, segmentHeader{generation: c.generation, capacity: int64(len(b))}.encode(c.id))
		frame := slices.Clone(old[w.frames[0] : w.frames[0]+frameHead+payloadOf(old, w.frames[0])])
		sealPayload(frame, c.id, c.generation, 0, 2, countsSize)
		copy(b[w.frames[0]:], frame)
		dir := filepath.Join(t.TempDir(), journalName)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, segmentName(c.generation)), b)
		again := &written{cfg: w.cfg, id: c.id}
		again.cfg.Dir = filepath.Dir(dir)
		if n, err := again.recover(t); err != nil || n != 2 {
			t.Errorf("%s: %d records, %v; want 2", c.name, n, err)
		}
	}
}

// The sectors of a frame may reach the disk in any order. Whatever is there
// after a crash, the frame is there wholly or not at all.
func TestCrashWithinCommit(t *testing.T) {
	r := random(3)
	outcomes := map[bool]int{}
	for i := range 12 {
		d := new(disk)
		cfg := Config{Dir: t.TempDir(), SegmentBytes: 32 << 10, openFile: d.open}
		mustCreate(t, cfg)
		s := mustOpen(t, cfg)
		mustStore(t, s, "before", testRecord(1, "kept"))
		mustCommit(t, s)

		d.set(func() { d.mu.sync = syscall.EIO })
		for g := range 4 {
			for k := range 3 {
				mustStore(t, s, abd.Key(fmt.Sprint(g, k)), testRecord(2, string(make([]byte, 100+r.IntN(300)))))
			}
			s.Cut()
		}
		if _, err := s.Commit(); !errors.Is(err, syscall.EIO) {
			t.Fatalf("Commit with a failing sync: %v", err)
		}
		path := s.journal.active.path
		s.Close()
		keep := r.IntN(4)
		if i == 0 {
			keep = 4
		}
		d.crash(t, path, func() bool { return r.IntN(4) >= keep })
		d.set(func() { d.mu.sync = nil })

		s = mustOpen(t, cfg)
		wantLoad(t, s, "before", testRecord(1, "kept"))
		there := s.Usage().Keys == 13
		if n := s.Usage().Keys; n != 1 && n != 13 {
			t.Errorf("%d keys survived, want all 13 or only the first", n)
		}
		outcomes[there]++
		// And the store goes on.
		mustStore(t, s, "after", testRecord(3, "x"))
		mustCommit(t, s)
		mustClose(t, s)
		s = mustOpen(t, cfg)
		wantLoad(t, s, "after", testRecord(3, "x"))
		mustClose(t, s)
	}
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("frames survived %d times and were lost %d times, want both", outcomes[true], outcomes[false])
	}
}

func TestFailuresAreFinal(t *testing.T) {
	for _, c := range []struct {
		name string
		fail func(d *disk)
		heal func(d *disk)
	}{
		{"sync", func(d *disk) { d.mu.sync = syscall.EIO }, func(d *disk) { d.mu.sync = nil }},
		{"write", func(d *disk) { d.mu.write = func([]byte) (int, error) { return 0, syscall.EIO } }, func(d *disk) { d.mu.write = nil }},
		{"short write", func(d *disk) { d.mu.write = func(b []byte) (int, error) { return len(b) / 2, syscall.EIO } }, func(d *disk) { d.mu.write = nil }},
	} {
		d := new(disk)
		cfg := Config{Dir: t.TempDir(), SegmentBytes: 32 << 10, openFile: d.open}
		mustCreate(t, cfg)
		s := mustOpen(t, cfg)
		mustStore(t, s, "a", testRecord(1, "kept"))
		durable := mustCommit(t, s)
		waitSpare(s) // it is made on the same disk
		d.set(func() { c.fail(d) })
		mustStore(t, s, "a", testRecord(2, "unknown"))
		s.Cut()
		if p, err := s.Commit(); !errors.Is(err, syscall.EIO) || p != durable {
			t.Fatalf("%s: Commit = %d, %v; want %d and the disk's error", c.name, p, err, durable)
		}
		d.set(func() { c.heal(d) })
		// The disk is well again; the store never is.
		if _, err := s.Commit(); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: the next Commit: %v, want the same error", c.name, err)
		}
		if _, err := s.Store("b", testRecord(3, "no")); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: the next Store: %v, want the same error", c.name, err)
		}
		mustClose(t, s)
		s = mustOpen(t, cfg)
		if r, _, err := s.Load("a", true); err != nil || r.Tag != testTag(1) && r.Tag != testTag(2) {
			t.Errorf("%s: after reopening %v, %v", c.name, r, err)
		}
		mustClose(t, s)
	}
}

func TestDiskFull(t *testing.T) {
	d := new(disk)
	free := int64(1 << 40)
	cfg := small(t)
	cfg.TableBytes = 1 << 30 // no apply: segments are used up
	cfg.openFile = d.open
	cfg.freeSpace = func(string) (int64, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return free, nil
	}
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	mustStore(t, s, "a", testRecord(1, "x"))
	mustCommit(t, s)

	// Little space is left: what was taken is committed, reads go on.
	mustStore(t, s, "b", testRecord(2, "x"))
	d.set(func() { free = 1 })
	waitFull(s, true)
	if _, err := s.Store("c", testRecord(3, "x")); !errors.Is(err, abd.ErrFull) {
		t.Fatalf("Store on a full disk: %v, want ErrFull", err)
	}
	mustCommit(t, s)
	wantLoad(t, s, "b", testRecord(2, "x"))
	wantLoad(t, s, "c", abd.Record{})
	d.set(func() { free = 1 << 40 })
	waitFull(s, false)
	mustStore(t, s, "c", testRecord(3, "x"))
	mustCommit(t, s)

	mustClose(t, s)
}

// There is no next segment: stores are refused, and what was taken before
// waits for one.
func TestNoSegment(t *testing.T) {
	d := new(disk)
	cfg := small(t)
	cfg.openFile = d.open
	// Nothing is applied: that would give segments back.
	cfg.TableBytes, cfg.JournalBytes = 1<<30, 1<<30
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)

	// Stores are refused while there is room in this one.
	waitSpare(s)
	d.set(func() { d.mu.create = syscall.ENOSPC })
	spares := func() int {
		s.journal.mu.Lock()
		defer s.journal.mu.Unlock()
		return len(s.journal.mu.spares)
	}
	for n := 10; spares() > 0; n++ {
		mustStore(t, s, "big", testRecord(n, string(make([]byte, 3000))))
		mustCommit(t, s)
	}
	waitFull(s, true)
	if _, err := s.Store("c", testRecord(4, "x")); !errors.Is(err, abd.ErrFull) {
		t.Fatalf("Store without a next segment: %v, want ErrFull", err)
	}
	d.set(func() { d.mu.create = nil })
	waitFull(s, false)
	waitSpare(s)

	// What was taken before that waits for the segment.
	d.set(func() { d.mu.create = syscall.ENOSPC })
	mustStore(t, s, "wide", testRecord(20, string(make([]byte, 10000))))
	s.Cut()
	mustStore(t, s, "wide", testRecord(21, string(make([]byte, 10000))))
	if _, err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	s.Cut()
	done := make(chan error, 1)
	go func() {
		_, err := s.Commit()
		done <- err
	}()
	waitFull(s, true)
	d.set(func() { d.mu.create = nil })
	s.journal.look()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	waitFull(s, false)
	mustStore(t, s, "big", testRecord(1000, "at last"))
	mustCommit(t, s)
	mustClose(t, s)
	s = mustOpen(t, cfg)
	wantLoad(t, s, "big", testRecord(1000, "at last"))
	wantLoad(t, s, "wide", testRecord(21, string(make([]byte, 10000))))
	if u := s.Usage(); u.Keys != 2 {
		t.Errorf("%d keys, want 2", u.Keys)
	}
}

// A Commit that found no segment waits, and ends when there is space or when
// the store closes.
func TestCommitWaitsForSpace(t *testing.T) {
	for _, closes := range []bool{false, true} {
		d := new(disk)
		cfg := small(t)
		cfg.openFile = d.open
		mustCreate(t, cfg)
		s := mustOpen(t, cfg)
		waitSpare(s)
		d.set(func() { d.mu.create = syscall.ENOSPC })
		// Larger than any segment: it needs one of its own.
		mustStore(t, s, "large", testRecord(1, string(make([]byte, 100<<10))))
		s.Cut()
		done := make(chan error, 1)
		go func() {
			_, err := s.Commit()
			done <- err
		}()
		waitFull(s, true)
		if closes {
			s.Close()
			if err := <-done; !errors.Is(err, ErrClosed) {
				t.Errorf("Commit of a store that closed: %v", err)
			}
			continue
		}
		d.set(func() { d.mu.create = nil })
		if err := <-done; err != nil {
			t.Errorf("Commit after there was space: %v", err)
		}
		mustClose(t, s)
		s = mustOpen(t, cfg)
		wantLoad(t, s, "large", testRecord(1, string(make([]byte, 100<<10))))
		mustClose(t, s)
	}
}

func TestRefusedSpare(t *testing.T) {
	// A spare that was being filled when the process ended is made anew.
	cfg := small(t)
	mustCreate(t, cfg)
	path := filepath.Join(cfg.Dir, journalName, spareName(7))
	writeFile(t, path, make([]byte, 100))
	s := mustOpen(t, cfg)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the partial spare is still there: %v", err)
	}
	for i := range 100 {
		mustStore(t, s, "k", testRecord(i+1, string(make([]byte, 500))))
		mustCommit(t, s)
	}
	mustClose(t, s)
}

// fills counts the bytes that are written into files before they are segments.
type fills struct {
	osFile
	bytes *atomic.Int64
}

func (f fills) WriteAt(b []byte, offset int64) (int, error) {
	if info, err := os.Stat(f.Name()); err == nil && info.Mode().IsRegular() { // by its first name: a spare's
		f.bytes.Add(int64(len(b)))
	}
	return f.osFile.WriteAt(b, offset)
}

// TestSegmentsOfLargeFrames: while frames are large the next segment isn't written
// before its time, and while they are small it is. In both a start finds what was
// stored.
func TestSegmentsOfLargeFrames(t *testing.T) {
	for _, size := range []int{1000, largeFrame} {
		var filled atomic.Int64
		cfg := Config{Dir: t.TempDir(), SegmentBytes: 256 << 10}
		cfg.openFile = func(path string, flag int, mode fs.FileMode) (file, error) {
			f, err := os.OpenFile(path, flag, mode)
			return fills{osFile{f}, &filled}, err
		}
		mustCreate(t, cfg)
		s := mustOpen(t, cfg)
		waitSpare(s)
		mustStore(t, s, "first", testRecord(1, string(make([]byte, size))))
		mustCommit(t, s)
		filled.Store(0)
		value := string(make([]byte, 200<<10)) // fills the segment, so that the spare is taken
		if size < largeFrame {
			value = string(make([]byte, 50<<10))
		}
		keys := 0
		for first := s.journal.active.number; s.journal.active.number == first; keys++ {
			mustStore(t, s, abd.Key(fmt.Sprint("k", keys)), testRecord(1, value))
			mustCommit(t, s)
		}
		waitSpare(s)
		if got := filled.Load() >= cfg.SegmentBytes; got != (size < largeFrame) {
			t.Errorf("with frames of %d bytes %d bytes were written into a segment of %d before its time", size, filled.Load(), cfg.SegmentBytes)
		}
		mustClose(t, s)
		s = mustOpen(t, cfg)
		for i := range keys {
			wantLoad(t, s, abd.Key(fmt.Sprint("k", i)), testRecord(1, value))
		}
		mustClose(t, s)
	}
}
