package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/tags"
)

// restarted returns a store that has opened with n records in its journal, and the
// segment that they stand in. Nothing is applied.
func restarted(t *testing.T, n int) (*Store, Config, string) {
	t.Helper()
	cfg := Config{Dir: t.TempDir(), openFile: new(disk).open}
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	for i, key := range keysOf(n) {
		mustStore(t, s, key, testRecord(i+1, valueOf(key)))
	}
	mustCommit(t, s)
	mustClose(t, s)
	return mustOpen(t, cfg), cfg, filepath.Join(cfg.Dir, journalName, segmentName(1))
}

// A record that a start has left in the journal is checked again when it is read.
func TestFiledDamage(t *testing.T) {
	const n = 20
	keys := keysOf(n)
	damage := func(t *testing.T, path string, key abd.Key, at int) {
		t.Helper()
		b := readFile(t, path)
		flipAt(t, b, key, at, 0x10)
		writeFile(t, path, b)
	}
	t.Run("value", func(t *testing.T) { // as in bbolt, it is that of one record, and can be healed
		s, _, path := restarted(t, n)
		damage(t, path, keys[7], 3)
		if _, _, err := s.Load(keys[7], true); !errors.Is(err, abd.ErrDamaged) {
			t.Errorf("a damaged value: %v", err)
		}
		if r, _, err := s.Load(keys[7], false); err != nil || r.Tag != testTag(8) {
			t.Errorf("the tag of a damaged value: %v, %v", r.Tag, err)
		}
		wantLoad(t, s, keys[8], testRecord(9, valueOf(keys[8])))
		if _, err := s.Walk("", func(key abd.Key, _ tags.Tag, _ bool, value func() ([]byte, error)) bool {
			if _, err := value(); errors.Is(err, abd.ErrDamaged) != (key == keys[7]) {
				t.Errorf("Walk gives the value of %q: %v", key, err)
			}
			return true
		}); err != nil {
			t.Error(err)
		}
		if _, err := s.Heal(keys[7], testRecord(8, "healed")); err != nil {
			t.Fatal(err)
		}
		wantLoad(t, s, keys[7], testRecord(8, "healed"))
		mustCommit(t, s)
		applyNow(t, s)
		wantLoad(t, s, keys[7], testRecord(8, "healed"))
		mustClose(t, s)
	})
	for name, spoil := range map[string]func(t *testing.T, path string){
		"key":  func(t *testing.T, path string) { damage(t, path, keys[7], -recordHead-2) },
		"tag":  func(t *testing.T, path string) { damage(t, path, keys[7], -recordHead+5) },
		"zero": func(t *testing.T, path string) { writeFile(t, path, make([]byte, DefaultSegmentBytes)) },
		"cut short": func(t *testing.T, path string) {
			if err := os.Truncate(path, segmentHead+100); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { // the node can't go on
			s, _, path := restarted(t, n)
			spoil(t, path)
			for _, withValue := range []bool{true, false} {
				_, _, err := s.Load(keys[7], withValue)
				wantDamage(t, err, segmentName(1))
			}
			_, err := s.Scan("", "", func(abd.Key, tags.Tag, bool) bool { return true })
			wantDamage(t, err, segmentName(1))
			_, err = s.Walk("", func(abd.Key, tags.Tag, bool, func() ([]byte, error)) bool { return true })
			wantDamage(t, err, segmentName(1))
			s.activeBytes.Store(s.cfg.TableBytes)
			s.freeze()
			<-s.failing // the apply doesn't write it into bbolt
			wantDamage(t, s.failure, segmentName(1))
			mustClose(t, s)
		})
	}
}

// Who has looked at the tables before one was applied finds in bbolt what was in it:
// the segments are used again.
func TestFiledIsApplied(t *testing.T) {
	const n = 20
	s, _, _ := restarted(t, n)
	key := keysOf(n)[3]
	tables := s.tables()
	s.active.arrange()
	m := s.merger("", "", &tables, &stateCursor{state: s.state, over: &tables, end: true})
	m.applied = func(key abd.Key) ([]byte, error) { return s.state.load(key, false, &tables) }
	applyNow(t, s)
	if _, err := tables[0].entryOf(0, true); err != errApplied {
		t.Errorf("an applied record is read: %v", err)
	}
	if e, ok, err := tables.newest(key, s.active.hash(key), true); ok || err != nil {
		t.Errorf("an applied table has %+v, %v", e, err)
	}
	for i, want := range keysOf(n) {
		got, e, ok, err := m.next()
		if err != nil || !ok || got != want || recordTag(e.record) != testTag(i+1) {
			t.Fatalf("key %d is %q, %v, want %q; %v", i, got, ok, want, err)
		}
	}
	for i, key := range keysOf(n) {
		wantLoad(t, s, key, testRecord(i+1, valueOf(key)))
	}
	mustClose(t, s)
}

// Loads and the apply beside them read the same segments, which are used again as
// soon as the apply is done.
func TestLoadsBesideApply(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), SegmentBytes: 32 << 10, openFile: new(disk).open}
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	const n = 2000
	for i, key := range keysOf(n) {
		mustStore(t, s, key, testRecord(i+1, valueOf(key)))
		if i%100 == 99 {
			mustCommit(t, s)
		}
	}
	mustClose(t, s)
	s = mustOpen(t, cfg)
	s.activeBytes.Store(s.cfg.TableBytes)
	s.freeze()
	s.activeBytes.Store(s.cfg.TableBytes) // so that the apply doesn't take its time
	table := s.frozen.Load()
	for applied := false; !applied; {
		select {
		case <-table.applied:
			applied = true // and once more
		default:
		}
		for i, key := range keysOf(n) {
			wantLoad(t, s, key, testRecord(i+1, valueOf(key)))
			if i%200 == 0 { // the next segments
				mustStore(t, s, "other", testRecord(n+i, string(make([]byte, 8<<10))))
				mustCommit(t, s)
				s.activeBytes.Store(s.cfg.TableBytes)
			}
		}
	}
	mustClose(t, s)
}

// A segment that is read piece by piece, of any size, is the same as one that is
// read at once: its frames, what stands behind them, and a frame behind that.
func TestPieces(t *testing.T) {
	r := random(21)
	id := storeID{7}
	for range 60 {
		b := make([]byte, segmentHead)
		var frames []int64
		position := env.Position(0)
		appendFrame := func(size int) {
			payload := make([]byte, frameHead, frameHead+size)
			key := abd.Key("k")
			value := bytes.Repeat(frameMagicBytes, size/4) // magic everywhere, aligned or not
			payload = appendEntry(payload, key, encodeRecord(key, abd.Record{Tag: testTag(1), Value: value}))
			payload = sealFrame(payload, id, 3, position, 1, counts{})
			position++
			frames = append(frames, int64(len(b)))
			b = append(b, payload...)
			b = append(b, make([]byte, alignFrame(int64(len(b)))-int64(len(b)))...)
		}
		for range r.IntN(8) {
			appendFrame(r.IntN(pieceBytes / 2))
			if r.IntN(4) == 0 {
				appendFrame(pieceBytes + r.IntN(2*pieceBytes))
			}
		}
		end, bad := position, int64(len(b))
		b = append(b, make([]byte, r.IntN(4)*pieceBytes/2+8*r.IntN(100))...)
		wantZeros := int64(len(b)) - bad
		later := r.IntN(2) == 0
		if later {
			appendFrame(r.IntN(1000))
		}
		b = append(b, make([]byte, r.IntN(pieceBytes)*2)...)

		p := pieces{file: memoryFile(b), size: int64(len(b)), id: id, generation: 3}
		at := int64(segmentHead)
		for i := range end {
			f, whole, err := p.frame(at)
			if err != nil || !whole || f.first != i || at != frames[i] || !bytes.Equal(f.payload, b[at+frameHead:][:len(f.payload)]) {
				t.Fatalf("frame %d at %d: whole %v, first %d, %v", i, at, whole, f.first, err)
			}
			at += f.size
		}
		if at != bad {
			t.Fatalf("the frames end at %d, want %d", at, bad)
		}
		zeros, err := p.zeros(bad)
		if want := wantZeros; err != nil || zeros != want && later {
			t.Fatalf("%d zeros, want %d; %v", zeros, want, err)
		}
		offset, ok, err := p.laterFrame(bad, end)
		if err != nil || ok != later || ok && offset != frames[len(frames)-1] {
			t.Fatalf("a frame at %d, %v; want %v at %d; %v", offset, ok, later, frames[max(0, len(frames)-1):], err)
		}
		for range 20 { // forwards and backwards
			from, n := r.Int64N(p.size), r.Int64N(2*pieceBytes)
			if got, err := p.at(from, n); err != nil || !bytes.Equal(got, b[from:min(from+n, p.size)]) {
				t.Fatalf("%d bytes at %d are others, %v", n, from, err)
			}
		}
	}
}

// countedFiles counts the files that are open.
type countedFiles struct{ open atomic.Int64 }

type countedFile struct {
	file
	count *countedFiles
}

func (c *countedFiles) openFile(path string, flag int, mode fs.FileMode) (file, error) {
	f, err := openOS(path, flag, mode)
	if err == nil {
		c.open.Add(1)
	}
	return countedFile{f, c}, err
}

func (f countedFile) Close() error {
	f.count.open.Add(-1)
	return f.file.Close()
}

// Whether a store opens or not, the segments that it has opened are closed in the end.
func TestSegmentsAreClosed(t *testing.T) {
	var files countedFiles
	wantClosed := func(when string) {
		t.Helper()
		if n := files.open.Load(); n != 0 {
			t.Errorf("%s: %d files are open", when, n)
		}
	}
	cfg := Config{Dir: t.TempDir(), SegmentBytes: 32 << 10, openFile: files.openFile}
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	for i, key := range keysOf(1500) {
		mustStore(t, s, key, testRecord(i+1, valueOf(key)))
		if i%100 == 99 {
			mustCommit(t, s)
		}
	}
	mustClose(t, s)
	wantClosed("filled")
	mustClose(t, mustOpen(t, cfg))
	wantClosed("opened again")
	for _, name := range []string{filepath.Join(journalName, segmentName(3)), stateName} {
		path := filepath.Join(cfg.Dir, name)
		good := readFile(t, path)
		writeFile(t, path, make([]byte, len(good)))
		if _, err := Open(cfg); err == nil {
			t.Fatalf("%s is all zeros, and Open takes it", name)
		}
		wantClosed(name + " is damaged")
		writeFile(t, path, good)
	}
	s = mustOpen(t, cfg)
	read := s.active.filed
	applyNow(t, s)
	if len(read.mu.files) > 0 {
		t.Error("what is applied can still be read from the journal")
	}
	mustClose(t, s)
	wantClosed("applied")
}
