package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"atoll/abd"
	"atoll/internal/logtest"
)

// usedPages returns the pages of a bbolt file that are in use, or were.
func usedPages(t testing.TB, path string) []byte {
	t.Helper()
	c, err := checkState(path)
	if err != nil {
		t.Fatal(err)
	}
	return readFile(t, path)[:c.meta.high*boltPage]
}

// keysOf are the keys of filled.
func keysOf(n int) []abd.Key {
	keys := make([]abd.Key, n)
	for i := range keys {
		keys[i] = abd.Key(fmt.Sprintf("key-%04d", i*2))
	}
	return keys
}

func valueOf(key abd.Key) string { return "the value of " + string(key) + "; it is not short" }

// filled returns a closed store whose bbolt file has n records.
func filled(t *testing.T, n int) Config {
	t.Helper()
	cfg := Config{Dir: t.TempDir(), SegmentBytes: 64 << 10, openFile: new(disk).open}
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	for i, key := range keysOf(n) {
		mustStore(t, s, key, testRecord(i+1, valueOf(key)))
	}
	mustCommit(t, s)
	applyNow(t, s)
	mustClose(t, s)
	return cfg
}

// applyNow puts everything that was committed into bbolt.
func applyNow(t testing.TB, s *Store) {
	t.Helper()
	defer func() { s.activeBytes.Store(s.active.bytes) }()
	for round := range 2 { // what is being applied, then the rest
		s.activeBytes.Store(s.cfg.TableBytes) // so that it doesn't take its time
		if f := s.frozen.Load(); f != nil {
			select {
			case <-f.applied:
			case <-s.failing:
				t.Fatalf("apply: %v", s.failure)
			}
		}
		if round == 0 {
			s.freeze()
		}
	}
}

func TestTruncatedState(t *testing.T) {
	cfg := filled(t, 200)
	path := filepath.Join(cfg.Dir, stateName)
	good := usedPages(t, path)
	for size := int64(0); size < int64(len(good)); size += boltPage / 2 {
		writeFile(t, path, good[:size])
		_, err := Open(cfg)
		wantDamage(t, err, stateName)
		if got := readFile(t, path); int64(len(got)) != size {
			t.Fatalf("Open changed a file of %d bytes to %d", size, len(got))
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err := Open(cfg)
	wantDamage(t, err, stateName)
	if _, err := os.Stat(path); err == nil {
		t.Error("Open made a new file in place of the missing one")
	}
	// What no page uses may go.
	writeFile(t, path, good)
	s := mustOpen(t, cfg)
	wantLoad(t, s, "key-0000", testRecord(1, valueOf("key-0000")))
}

func TestZeroedPages(t *testing.T) {
	cfg := filled(t, 200)
	path := filepath.Join(cfg.Dir, stateName)
	good := usedPages(t, path)
	free, pages := 0, len(good)/boltPage
	for page := 2; page < pages; page++ {
		b := slices.Clone(good)
		clear(b[page*boltPage : (page+1)*boltPage])
		if _, err := checkPages(stateName, bytes.NewReader(b), int64(len(b)), nil); err != nil {
			wantDamage(t, err, stateName)
		} else {
			free++
		}
	}
	// Root, freelist and leaves are used; a few pages are free.
	if used := pages - 2 - free; used < 8 {
		t.Errorf("zeros were noticed in %d pages", used)
	}
}

// A flipped bit anywhere in the file is an error at once, or one of a single
// key, or harmless; never another record, never a missing one.
func TestFlippedState(t *testing.T) {
	const n = 120
	cfg := filled(t, n)
	path := filepath.Join(cfg.Dir, stateName)
	good := usedPages(t, path)
	r := random(5)
	outcomes := map[string]int{}
	for i := range 400 {
		b := slices.Clone(good)
		at := r.IntN(len(b))
		if i%2 == 0 { // more of them where the records are
			at = bytes.Index(b, []byte(valueOf(keysOf(n)[r.IntN(n)]))) - recordHead - r.IntN(100) + r.IntN(200)
		}
		b[at] ^= 1 << r.IntN(8)
		found, err := checkPages(stateName, bytes.NewReader(b), int64(len(b)), nil)
		switch {
		case err != nil:
			outcomes["refused"]++
			continue
		case len(found.damaged) > 0:
			outcomes["a record"]++
		default:
			outcomes["harmless"]++
		}
		writeFile(t, path, b)
		checkLoads(t, path, n, at)
	}
	for _, o := range []string{"refused", "a record", "harmless"} {
		if outcomes[o] == 0 {
			t.Errorf("no flipped bit was %q: %v", o, outcomes)
		}
	}
}

// checkLoads opens the file as it is and loads every key, and keys between.
func checkLoads(t *testing.T, path string, n, flipped int) (damaged int) {
	t.Helper()
	db, err := openBolt(path)
	if err != nil {
		t.Fatalf("bit flipped at %d: checkState finds nothing, and bbolt: %v", flipped, err)
	}
	s := &state{path: path, db: db}
	defer s.close()
	for i, key := range keysOf(n) {
		record, err := s.load(key, true, new(overrides))
		if errors.Is(err, abd.ErrDamaged) {
			damaged++
			continue
		}
		if err != nil || record == nil {
			t.Fatalf("bit flipped at %d: load(%q) = %v, %v", flipped, key, record, err)
		}
		if got := decodeRecord(record, true); got.Tag != testTag(i+1) || string(got.Value) != valueOf(key) {
			t.Fatalf("bit flipped at %d: load(%q) = %v", flipped, key, got)
		}
		between := key[:len(key)-1] + abd.Key(key[len(key)-1]+1)
		if record, err := s.load(between, true, new(overrides)); record != nil || err != nil && !errors.Is(err, abd.ErrDamaged) {
			t.Fatalf("bit flipped at %d: load(%q), which was never stored, = %v, %v", flipped, between, record, err)
		}
	}
	return damaged
}

// Keys are damaged after the file was checked: a search that is led astray
// must notice.
func TestFlippedKeys(t *testing.T) {
	const n = 120
	cfg := filled(t, n)
	path := filepath.Join(cfg.Dir, stateName)
	good := usedPages(t, path)
	for i := 0; i < n; i += 7 {
		key := keysOf(n)[i]
		// The leaf's copy of the key stands before the record; a branch has
		// another one.
		at := bytes.Index(good, []byte(valueOf(key))) - recordHead - len(key)
		for _, bit := range []byte{1, 2, 4, 64} {
			for _, in := range []int{4, 6, 7} {
				b := slices.Clone(good)
				b[at+in] ^= bit
				writeFile(t, path, b)
				if checkLoads(t, path, n, at+in) == 0 {
					t.Errorf("%q was changed to %q, and every key is fine", key, b[at:at+len(key)])
				}
			}
		}
	}
}

// A store opens with a damaged record, says so, and abstains on its key.
func TestDamagedRecord(t *testing.T) {
	cfg := filled(t, 50)
	path := filepath.Join(cfg.Dir, stateName)
	b := readFile(t, path)
	key := keysOf(50)[20]
	b[bytes.Index(b, []byte(valueOf(key)))] ^= 4
	writeFile(t, path, b)
	s := mustOpen(t, cfg)
	_, _, err := s.Load(key, true)
	var d *DamageError
	if !errors.As(err, &d) || !errors.Is(err, abd.ErrDamaged) || d.Key != key || d.File != path {
		t.Fatalf("Load of the damaged record: %v", err)
	}
	// The tag has a checksum of its own, and may be answered for.
	if r, _, err := s.Load(key, false); err != nil || r.Tag != testTag(21) {
		t.Errorf("Load of its tag = %v, %v", r.Tag, err)
	}
	wantLoad(t, s, keysOf(50)[21], testRecord(22, valueOf(keysOf(50)[21])))
	// A newer value heals it.
	mustStore(t, s, key, testRecord(100, "new"))
	mustCommit(t, s)
	wantLoad(t, s, key, testRecord(100, "new"))
	applyNow(t, s)
	wantLoad(t, s, key, testRecord(100, "new"))
	if u := s.Usage(); u.Keys != 50 {
		t.Errorf("%d keys, want 50", u.Keys)
	}
}

// A damaged tag isn't healed by the store: what it was isn't known.
func TestDamagedTag(t *testing.T) {
	cfg := filled(t, 50)
	path := filepath.Join(cfg.Dir, stateName)
	b := readFile(t, path)
	key := keysOf(50)[20]
	b[bytes.Index(b, []byte(valueOf(key)))-recordHead+5] ^= 4
	writeFile(t, path, b)
	s := mustOpen(t, cfg)
	if _, _, err := s.Load(key, false); !errors.Is(err, abd.ErrDamaged) {
		t.Errorf("Load of a damaged tag: %v", err)
	}
	if _, err := s.Store(key, testRecord(100, "new")); !errors.Is(err, abd.ErrDamaged) {
		t.Errorf("Store over a damaged tag: %v", err)
	}
	_, err := s.Scan("key-", "", visitAll)
	var d *DamageError
	if !errors.As(err, &d) || !errors.Is(err, abd.ErrDamaged) || d.Key != key {
		t.Errorf("Scan over a damaged tag: %v, want an error that names %q", err, key)
	}
	if _, err := s.Scan("key-", key, visitAll); err != nil {
		// The key behind it can't be proved to be the next one.
		if !errors.Is(err, abd.ErrDamaged) {
			t.Errorf("Scan behind a damaged tag: %v", err)
		}
	}
	mustStore(t, s, "another", testRecord(1, "x"))
	mustCommit(t, s)
}

// The file shrinks while it is mapped: a memory fault, not the process's end.
func TestVanishingState(t *testing.T) {
	cfg := filled(t, 200)
	var log logtest.Book
	cfg.Log = log.Log(slog.LevelWarn)
	s := mustOpen(t, cfg)
	if err := os.Truncate(filepath.Join(cfg.Dir, stateName), 2*boltPage); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Load("key-0100", true); !errors.Is(err, abd.ErrDamaged) {
		t.Errorf("Load from a file that was cut: %v", err)
	}
	if _, err := s.Scan("", "", visitAll); !errors.Is(err, abd.ErrDamaged) {
		t.Errorf("Scan of a file that was cut: %v", err)
	}
	if log.Count("cut short while it is in use") != 1 || !log.Contains("file="+filepath.Join(cfg.Dir, stateName)+" bytes=8192 used=") {
		t.Errorf("the log says %s", log.String())
	}
}

// The file shrinks, and something has to be written to it: that ends the
// store, with an error that names the file.
func TestApplyToAVanishingState(t *testing.T) {
	cfg := filled(t, 200)
	s := mustOpen(t, cfg)
	for i, key := range keysOf(200) {
		mustStore(t, s, key, testRecord(1000+i, "new"))
	}
	mustCommit(t, s)
	if err := os.Truncate(filepath.Join(cfg.Dir, stateName), 2*boltPage); err != nil {
		t.Fatal(err)
	}
	s.activeBytes.Store(s.cfg.TableBytes)
	s.freeze()
	<-s.failing
	wantDamage(t, s.failure, stateName)
	if _, err := s.Commit(); !errors.Is(err, s.failure) {
		t.Errorf("Commit afterwards: %v", err)
	}
}

// A damaged meta page costs nothing as long as the other one is there: Check names
// it, a start says so and writes it anew.
func TestDamagedMeta(t *testing.T) {
	for page := range int64(2) {
		cfg := filled(t, 50)
		path := filepath.Join(cfg.Dir, stateName)
		b := readFile(t, path)
		b[page*boltPage+30] ^= 1
		writeFile(t, path, b)
		report, err := Check(cfg.Dir)
		if err != nil || len(report.Damage()) != 1 {
			t.Fatalf("meta page %d: Check: %v, %v", page, err, report.Damage())
		}
		if d := wantDamage(t, report.Damage()[0], stateName); d.Offset != page*boltPage || d.WayOut != metaWayOut {
			t.Errorf("meta page %d: %v", page, d)
		}
		var log logtest.Book
		cfg.Log = log.Log(slog.LevelWarn)
		s := mustOpen(t, cfg)
		wantLoad(t, s, keysOf(50)[49], testRecord(50, valueOf(keysOf(50)[49])))
		mustClose(t, s)
		if log.Count("a meta page") != 1 || !log.Contains(path) {
			t.Errorf("meta page %d: the log says %s", page, log.String())
		}
		if report, err = Check(cfg.Dir); err != nil || len(report.Damage()) > 0 {
			t.Errorf("meta page %d, after a start: Check: %v, %v", page, err, report.Damage())
		}
	}
}

// The older meta page says less than the journal still has.
func TestOlderMeta(t *testing.T) {
	cfg := small(t)
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	for i := range 300 {
		mustStore(t, s, abd.Key(fmt.Sprint("k", i)), testRecord(i+1, string(make([]byte, 300))))
		mustCommit(t, s)
	}
	applyNow(t, s)
	// The state as it was two commits ago, with the journal of today.
	path := filepath.Join(cfg.Dir, stateName)
	old := readFile(t, path)
	for i := range 300 {
		mustStore(t, s, abd.Key(fmt.Sprint("k", i)), testRecord(1000+i, string(make([]byte, 300))))
		mustCommit(t, s)
	}
	applyNow(t, s)
	applied := s.Applied()
	mustClose(t, s)
	writeFile(t, path, old)
	_, err := Open(cfg)
	var d *DamageError
	if !errors.As(err, &d) {
		t.Fatalf("a state from before segments were used again (applied %d): %v, want a *DamageError", applied, err)
	}
}

func FuzzCheckPages(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, stateName)
	if err := createState(path, storeID{1}); err != nil {
		f.Fatal(err)
	}
	b := usedPages(f, path)
	f.Add(b, 0, byte(0))
	f.Add(b, 2*boltPage+10, byte(3))
	f.Fuzz(func(t *testing.T, b []byte, at int, flip byte) {
		b = bytes.Clone(b)
		if at >= 0 && at < len(b) {
			b[at] ^= flip
		}
		c, err := checkPages(stateName, bytes.NewReader(b), int64(len(b)), nil)
		if (c == nil) == (err == nil) && err == nil {
			t.Error("neither a result nor an error")
		}
	})
}

// A page that is in use and counts as free would be overwritten later.
func TestUsedPageInFreelist(t *testing.T) {
	cfg := filled(t, 200)
	path := filepath.Join(cfg.Dir, stateName)
	c, err := checkState(path)
	if err != nil {
		t.Fatal(err)
	}
	b := usedPages(t, path)
	list := b[c.meta.freelist*boltPage:]
	binary.NativeEndian.PutUint16(list[10:], 1)
	for _, page := range []uint64{c.meta.root, c.meta.freelist, 1, c.meta.high} {
		binary.NativeEndian.PutUint64(list[pageHead:], page)
		if _, err := checkPages(stateName, bytes.NewReader(b), int64(len(b)), nil); err == nil {
			t.Errorf("page %d counts as free, and nobody minds", page)
		}
	}
}

// nothingReplayed is for openState on its own.
func nothingReplayed(summary, map[string][]byte) error { return nil }
