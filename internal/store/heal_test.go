package store

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"atoll/abd"
	"atoll/tags"
)

// flipAt flips a bit of a key's record in bbolt's file, so far from the value.
func flipAt(t *testing.T, b []byte, key abd.Key, from int, bit byte) {
	t.Helper()
	at := bytes.Index(b, []byte(valueOf(key)))
	if at < 0 || bytes.Contains(b[at+1:], []byte(valueOf(key))) {
		t.Fatalf("the record of %q isn't there exactly once", key)
	}
	b[at+from] ^= bit
}

// wantDamagedKey checks that err is about the record under a key, and goes on
// to say what Store's errors say.
func wantDamagedKey(t *testing.T, err error, key abd.Key) {
	t.Helper()
	d, ok := errors.AsType[*abd.DamagedRecord](err)
	if !ok || d.Key != key || !errors.Is(err, abd.ErrDamaged) {
		t.Fatalf("error %v, want an *abd.DamagedRecord of %q", err, key)
	}
	if f, ok := errors.AsType[*DamageError](err); !ok || filepath.Base(f.File) != stateName || f.Key != key {
		t.Fatalf("error %v doesn't name the file", err)
	}
}

// wantSound checks that every key of want can be read and no other is there,
// keys between them included, and that the counts of the file are exact.
func wantSound(t *testing.T, s *Store, want map[abd.Key]abd.Record) {
	t.Helper()
	var seen []abd.Key
	if _, err := s.Scan("", "", func(key abd.Key, _ tags.Tag, _ bool) bool {
		seen = append(seen, key)
		return true
	}); err != nil {
		t.Fatalf("Scan: %v", err)
	}
	var keys, tombstones int64
	var sorted []abd.Key
	for key, r := range want {
		sorted = append(sorted, key)
		presenceOf(encodeRecord(key, r)).count(&keys, &tombstones, 1)
		wantLoad(t, s, key, r)
		for _, beside := range []abd.Key{key + "\x00", key[:len(key)-1], key + "z"} {
			if _, there := want[beside]; !there {
				wantLoad(t, s, beside, abd.Record{})
			}
		}
	}
	slices.Sort(sorted)
	if !slices.Equal(seen, sorted) {
		t.Fatalf("Scan has %q, want %q", seen, sorted)
	}
	if u := s.Usage(); u.Keys != keys || u.Tombstones != tombstones {
		t.Fatalf("Usage = %d keys and %d tombstones, want %d and %d", u.Keys, u.Tombstones, keys, tombstones)
	}
}

// wantExact checks the file of a closed store: nothing in it is damaged, and
// its summary counts exactly what is in it.
func wantExact(t *testing.T, cfg Config) {
	t.Helper()
	path := filepath.Join(cfg.Dir, stateName)
	c, err := checkState(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := readSummary(path, c.summary)
	if err != nil || len(c.damaged) > 0 {
		t.Fatalf("summary: %v, damaged: %v", err, c.damaged)
	}
	if m.keys != c.records-c.tombstones || m.tombstones != c.tombstones {
		t.Fatalf("the file says %d keys and %d tombstones, and has %d and %d", m.keys, m.tombstones, c.records-c.tombstones, c.tombstones)
	}
}

// Whatever is flipped in a record, healing makes the key and its neighbours
// work again: at once, when it is applied, and after the store was reopened.
func TestHealFlipped(t *testing.T) {
	const n = 60
	keys := keysOf(n)
	key, flag := keys[21], -recordHead+1
	inKey := -recordHead - 1 // its last byte: the next odd number is between
	for _, c := range []struct {
		name   string
		from   int
		bit    byte
		under  abd.Key // where the record stands then
		remove bool
	}{
		{"value", 3, 4, key, false},
		{"tag", -recordHead + 5, 4, key, false},
		{"tag, removed", -recordHead + 5, 4, key, true},
		{"deleted flag", flag, flagDeleted, key, false},
		{"deleted flag, removed", flag, flagDeleted, key, true},
		{"version", -recordHead, 8, key, false},
		{"checksum", -1, 1, key, false},
		{"key", inKey, 1, key[:len(key)-1] + "3", false},
	} {
		for _, applied := range []bool{false, true} {
			if !applied && (c.from == 3 || c.from == flag) {
				continue // not different from the others
			}
			t.Run(fmt.Sprint(c.name, " applied=", applied), func(t *testing.T) {
				t.Parallel()
				cfg := filled(t, n)
				path := filepath.Join(cfg.Dir, stateName)
				b := readFile(t, path)
				flipAt(t, b, key, c.from, c.bit)
				writeFile(t, path, b)
				want := map[abd.Key]abd.Record{}
				for i, k := range keys {
					want[k] = testRecord(i+1, valueOf(k))
				}
				s := mustOpen(t, cfg)
				_, _, err := s.Load(key, true)
				wantDamagedKey(t, err, c.under)
				if c.under != key {
					healRenamed(t, s, key, c.under)
				}
				healed := testRecord(500, "healed")
				if c.remove {
					healed = abd.Record{}
					delete(want, key)
				} else {
					want[key] = healed
				}
				if _, err := s.Heal(key, healed); err != nil {
					t.Fatalf("Heal: %v", err)
				}
				wantSound(t, s, want)
				mustCommit(t, s)
				if applied {
					applyNow(t, s)
					wantSound(t, s, want)
				}
				for range 2 {
					mustClose(t, s)
					if applied {
						wantExact(t, cfg)
					}
					s = mustOpen(t, cfg)
					wantSound(t, s, want)
				}
				applyNow(t, s)
				mustClose(t, s)
				wantExact(t, cfg)
			})
		}
	}
}

// healRenamed removes a record that stands under another key than its own.
func healRenamed(t *testing.T, s *Store, key, under abd.Key) {
	t.Helper()
	neighbour := key[:len(key)-1] + "21"
	_, _, err := s.Load(neighbour, true)
	wantDamagedKey(t, err, under)
	// As long as that record is there, nothing proves that the key is gone.
	_, err = s.Heal(key, abd.Record{})
	wantDamagedKey(t, err, under)
	if _, err := s.Store(key, testRecord(400, "no")); !errors.Is(err, abd.ErrDamaged) {
		t.Fatalf("Store of the key: %v", err)
	}
	if _, err := s.Store(under, testRecord(400, "no")); !errors.Is(err, abd.ErrDamaged) {
		t.Fatalf("Store over the damaged record: %v", err)
	}
	if _, err := s.Heal(under, abd.Record{}); err != nil {
		t.Fatalf("Heal of what stands under another key: %v", err)
	}
	wantLoad(t, s, neighbour, abd.Record{})
	wantLoad(t, s, key, abd.Record{})
}

// A healed record that was lost with its group leaves the damage as it was.
func TestHealLost(t *testing.T) {
	cfg := filled(t, 20)
	path, key := filepath.Join(cfg.Dir, stateName), keysOf(20)[7]
	b := readFile(t, path)
	flipAt(t, b, key, -recordHead+5, 4)
	writeFile(t, path, b)
	for _, r := range []abd.Record{testRecord(100, "healed"), {}} {
		s := mustOpen(t, cfg)
		if _, err := s.Heal(key, r); err != nil {
			t.Fatal(err)
		}
		s.Cut()
		wantLoad(t, s, key, r)
		mustClose(t, s)
		s = mustOpen(t, cfg)
		_, _, err := s.Load(key, false)
		wantDamagedKey(t, err, key)
		mustClose(t, s)
	}
}

// Damaged records side by side are healed one after the other, in any order,
// whatever a search meets first.
func TestHealSideBySide(t *testing.T) {
	const n = 60
	keys := keysOf(n)
	r := random(8)
	for round := range 3 {
		cfg := filled(t, n)
		path := filepath.Join(cfg.Dir, stateName)
		b := readFile(t, path)
		want := map[abd.Key]abd.Record{}
		for i, k := range keys {
			want[k] = testRecord(i+1, valueOf(k))
		}
		first := 10 + 3*round
		hurt := keys[first : first+5]
		for _, k := range hurt {
			flipAt(t, b, k, -recordHead+1+r.IntN(40), 1<<r.IntN(8))
		}
		writeFile(t, path, b)
		s := mustOpen(t, cfg)
		for i, at := range r.Perm(len(hurt)) {
			k := hurt[at]
			want[k] = testRecord(200+at, "healed")
			if i%2 == 0 {
				want[k] = abd.Record{Tag: testTag(200 + at), Deleted: true}
			}
			if at == 2 {
				delete(want, k)
			}
			if _, err := s.Heal(k, want[k]); err != nil {
				t.Fatalf("round %d: Heal(%q): %v", round, k, err)
			}
			wantLoad(t, s, k, want[k])
		}
		wantSound(t, s, want)
		mustCommit(t, s)
		mustClose(t, s) // the next one replays
		s = mustOpen(t, cfg)
		wantSound(t, s, want)
		applyNow(t, s)
		wantSound(t, s, want)
		mustClose(t, s)
		wantExact(t, cfg)
	}
}

// A key that is out of order, after the file was checked, can't be healed:
// bbolt may find it or not. That stays an error, and nobody else is lost.
func TestHealOutOfOrder(t *testing.T) {
	const n = 120
	cfg := filled(t, n)
	path := filepath.Join(cfg.Dir, stateName)
	good := usedPages(t, path)
	refused := 0
	for i := 3; i < n; i += 9 {
		key := keysOf(n)[i]
		b := slices.Clone(good)
		flipAt(t, b, key, -recordHead-2, 4) // tens: 40 keys away
		under := abd.Key(b[bytes.Index(b, []byte(valueOf(key)))-recordHead-len(key):][:len(key)])
		writeFile(t, path, b)
		db, err := openBolt(path)
		if err != nil {
			t.Fatal(err)
		}
		s := &state{path: path, db: db}
		for _, k := range []abd.Key{key, under} {
			// Where it can't be told what the place of a key is, or that it
			// isn't there, that is said.
			if _, err := s.presence(k); err != nil {
				if !errors.Is(err, abd.ErrDamaged) {
					t.Errorf("%q as %q: %v", key, under, err)
				}
				refused++
			}
		}
		if record, err := s.load(key, true, new(overrides)); record != nil || !errors.Is(err, abd.ErrDamaged) {
			t.Errorf("load(%q), which became %q, = %v, %v", key, under, record, err)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
	}
	if refused == 0 {
		t.Error("every key has a place that is certain, although one is out of order")
	}
}

// bbolt finds a page in the branch above by the page's first key. Where that
// has changed, the file isn't opened: the next apply would ruin it.
func TestFlippedFirstKey(t *testing.T) {
	const n = 200
	cfg := filled(t, n)
	path := filepath.Join(cfg.Dir, stateName)
	good := usedPages(t, path)
	inLeaf, inBranch := 0, 0
	for _, key := range keysOf(n) {
		b := slices.Clone(good)
		flipAt(t, b, key, -recordHead-1, 1) // a key that nobody has, behind it
		if _, err := checkPages(stateName, bytes.NewReader(b), int64(len(b)), nil); err != nil {
			wantDamage(t, err, stateName)
			inLeaf++
		}
		for at := 0; at < len(good); at += boltPage {
			page := good[at : at+boltPage]
			if i := bytes.Index(page, []byte(key)); i >= 0 && page[8] == pageBranch {
				b := slices.Clone(good)
				b[at+i+len(key)-1] ^= 1
				if _, err := checkPages(stateName, bytes.NewReader(b), int64(len(b)), nil); err != nil {
					inBranch++
				}
			}
		}
	}
	if inLeaf < 3 || inLeaf > n/4 || inBranch != inLeaf {
		t.Errorf("of %d keys %d are noticed as a leaf's first and %d as a branch's", n, inLeaf, inBranch)
	}
}

// A record whose key was damaged at rest is one more key beside what the journal has
// in its place, and the journal, which was written before, can't know of it.
func TestCountsBesideDamagedKey(t *testing.T) {
	const n = 60
	cfg := filled(t, n)
	keys, want := keysOf(n), map[abd.Key]abd.Record{}
	for i, k := range keys {
		want[k] = testRecord(i+1, valueOf(k))
	}
	key := keys[21]
	want[key] = testRecord(300, "newer")
	s := mustOpen(t, cfg)
	mustStore(t, s, key, want[key])
	mustCommit(t, s)
	mustClose(t, s)
	path := filepath.Join(cfg.Dir, stateName)
	b := readFile(t, path)
	flipAt(t, b, key, -recordHead-1, 1)
	writeFile(t, path, b)
	s = mustOpen(t, cfg)
	if u := s.Usage(); u.Keys != n+1 {
		t.Errorf("%d keys, want %d and what was one of them", u.Keys, n)
	}
	if _, err := s.Heal(key[:len(key)-1]+"3", abd.Record{}); err != nil {
		t.Fatal(err)
	}
	wantSound(t, s, want)
	mustCommit(t, s)
	for range 2 {
		mustClose(t, s)
		s = mustOpen(t, cfg)
		wantSound(t, s, want)
		applyNow(t, s)
	}
	mustClose(t, s)
	wantExact(t, cfg)
}

// A damaged flag: what the record was is told by the checksum, and if more is
// damaged, by the flag as it is.
func TestPresenceOfDamaged(t *testing.T) {
	for _, r := range []abd.Record{testRecord(1, "v"), {Tag: testTag(1), Deleted: true}} {
		want := presenceOf(encodeRecord("key", r))
		for i := range recordHead {
			for bit := range 8 {
				b := encodeRecord("key", r)
				b[i] ^= 1 << bit
				if got := presenceOfDamaged([]byte("key"), b); got != want {
					t.Errorf("bit %d of byte %d of %v: %d, want %d", bit, i, r, got, want)
				}
			}
		}
		b := encodeRecord("key", r)
		if got := presenceOfDamaged([]byte("kex"), b); got != want {
			t.Errorf("another key of %v: %d, want %d", r, got, want)
		}
	}
	if got := presenceOfDamaged([]byte("key"), nil); got != present {
		t.Errorf("no bytes at all: %d", got)
	}
}

// What was healed doesn't count as damaged any more, for an inspection before
// it is applied and for one after that, and a store that opens over it says
// nothing of it. Of what wasn't healed it does.
func TestHealedIsNotDamaged(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), SegmentBytes: minSegmentBytes}
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	mustStore(t, s, "a", testRecord(1, "the value of a"))
	mustStore(t, s, "b", testRecord(2, "the value of b"))
	mustCommit(t, s)
	applyNow(t, s)
	mustClose(t, s)
	path := filepath.Join(cfg.Dir, stateName)
	b := readFile(t, path)
	for _, value := range []string{"the value of a", "the value of b"} {
		b = bytes.ReplaceAll(b, []byte(value), append([]byte{'T'}, value[1:]...))
	}
	writeFile(t, path, b)

	s = mustOpen(t, cfg)
	if got := s.Suspects(); !slices.Equal(got, []abd.Key{"a", "b"}) {
		t.Fatalf("suspects: %q", got)
	}
	if _, err := s.Heal("a", testRecord(1, "the value of a")); err != nil {
		t.Fatal(err)
	}
	s.healed = false // it isn't applied at once
	mustCommit(t, s)
	mustClose(t, s)
	wantDamagedKeys(t, cfg, "b")

	s = mustOpen(t, cfg)
	if got := s.Suspects(); !slices.Equal(got, []abd.Key{"b"}) {
		t.Fatalf("suspects after healing a: %q", got)
	}
	if _, err := s.Heal("b", testRecord(2, "the value of b")); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, s)
	for s.Applied() < s.Committed() {
		s.Cut() // as a node that steps does; it freezes the table
		runtime.Gosched()
	}
	mustClose(t, s)
	wantDamagedKeys(t, cfg)
	if c, err := checkState(path); err != nil || len(c.damaged) > 0 {
		t.Errorf("state.db: %v, damaged: %v", err, c.damaged)
	}
}

// wantDamagedKeys checks what an inspection finds.
func wantDamagedKeys(t *testing.T, cfg Config, want ...abd.Key) {
	t.Helper()
	r, err := Check(cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []abd.Key
	for _, err := range r.Damage() {
		if d, ok := errors.AsType[*DamageError](err); ok {
			got = append(got, d.Key)
		}
	}
	if !slices.Equal(got, want) || len(got) != len(r.Damage()) {
		t.Errorf("damaged: %q (%v), want %q", got, r.Damage(), want)
	}
}
