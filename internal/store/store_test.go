package store

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"atoll/abd"
	"atoll/tags"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func visitAll(abd.Key, tags.Tag, bool) bool { return true }

func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	cfg := Config{Dir: dir, SegmentBytes: 16 << 10, JournalBytes: 64 << 10}
	if _, err := Open(cfg); !errors.Is(err, ErrNoStore) {
		t.Errorf("Open of a missing folder: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("Open made the folder")
	}
	mustCreate(t, cfg)
	if err := Create(cfg); !errors.Is(err, ErrExists) {
		t.Errorf("Create again: %v", err)
	}
	s := mustOpen(t, cfg)
	_, err := Open(cfg)
	var inUse *InUseError
	if !errors.As(err, &inUse) || inUse.Process != os.Getpid() || inUse.Dir != dir {
		t.Errorf("a second Open: %v, want an *InUseError of process %d", err, os.Getpid())
	}
	mustClose(t, s)
	if _, err := s.Store("k", testRecord(1, "x")); !errors.Is(err, ErrClosed) {
		t.Errorf("Store after Close: %v", err)
	}
	if _, err := s.Commit(); !errors.Is(err, ErrClosed) {
		t.Errorf("Commit after Close: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
	mustClose(t, mustOpen(t, cfg))
}

// inPlaceOf puts a folder where a file of a store belongs.
func inPlaceOf(name string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		path := filepath.Join(dir, name)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBrokenFolder(t *testing.T) {
	identityOf := func(t *testing.T, dir string) (i identity) {
		if err := json.Unmarshal(readFile(t, filepath.Join(dir, identityName)), &i); err != nil {
			t.Fatal(err)
		}
		return i
	}
	rewrite := func(t *testing.T, dir string, change func(i *identity)) {
		i := identityOf(t, dir)
		change(&i)
		b, err := json.Marshal(i)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, identityName), b)
	}
	for _, c := range []struct {
		name, file string
		wreck      func(t *testing.T, dir string)
	}{
		{"no store.json", identityName, func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, identityName)) }},
		{"empty store.json", identityName, func(t *testing.T, dir string) { writeFile(t, filepath.Join(dir, identityName), nil) }},
		{"cut id", identityName, func(t *testing.T, dir string) { rewrite(t, dir, func(i *identity) { i.ID = i.ID[:8] }) }},
		{"another id", stateName, func(t *testing.T, dir string) {
			rewrite(t, dir, func(i *identity) { i.ID = strings.Repeat("ab", 16) })
		}},
		{"no journal", journalName, func(t *testing.T, dir string) { os.RemoveAll(filepath.Join(dir, journalName)) }},
		{"empty journal", segmentName(1), func(t *testing.T, dir string) {
			os.RemoveAll(filepath.Join(dir, journalName))
			os.Mkdir(filepath.Join(dir, journalName), 0o700)
		}},
		{"a folder in the place of store.json", identityName, inPlaceOf(identityName)},
		{"a folder in the place of bbolt's file", stateName, inPlaceOf(stateName)},
		{"a folder in the place of a segment", segmentName(1), inPlaceOf(filepath.Join(journalName, segmentName(1)))},
		{"a folder named like the next segment", segmentName(2), inPlaceOf(filepath.Join(journalName, segmentName(2)))},
		{"a folder named like a spare", spareName(99), inPlaceOf(filepath.Join(journalName, spareName(99)))},
		{"a file in the place of the journal", journalName, func(t *testing.T, dir string) {
			os.RemoveAll(filepath.Join(dir, journalName))
			writeFile(t, filepath.Join(dir, journalName), nil)
		}},
		{"another store's state", stateName, func(t *testing.T, dir string) {
			other := small(t)
			mustCreate(t, other)
			writeFile(t, filepath.Join(dir, stateName), readFile(t, filepath.Join(other.Dir, stateName)))
		}},
		{"another store's journal", segmentName(1), func(t *testing.T, dir string) {
			other := small(t)
			mustCreate(t, other)
			writeFile(t, filepath.Join(dir, journalName, segmentName(1)), readFile(t, filepath.Join(other.Dir, journalName, segmentName(1))))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := small(t)
			mustCreate(t, cfg)
			c.wreck(t, cfg.Dir)
			_, err := Open(cfg)
			wantDamage(t, err, c.file)
			if err := Create(cfg); !errors.Is(err, ErrExists) {
				t.Errorf("Create over it: %v, want ErrExists", err)
			}
		})
	}
	cfg := small(t)
	mustCreate(t, cfg)
	rewrite(t, cfg.Dir, func(i *identity) { i.Format = folderFormat + 1 })
	_, err := Open(cfg)
	var format *FormatError
	if !errors.As(err, &format) || format.Found != folderFormat+1 {
		t.Errorf("a newer folder: %v, want a *FormatError", err)
	}
}

func TestCreateCleansUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	d := new(disk)
	d.mu.create = errors.New("no")
	err := Create(Config{Dir: dir, SegmentBytes: 16 << 10, JournalBytes: 64 << 10, openFile: d.open})
	if err == nil {
		t.Fatal("Create on a disk that fails: no error")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is still there")
	}
}

func TestBadConfig(t *testing.T) {
	for _, cfg := range []Config{
		{},
		{Dir: "d", SegmentBytes: 1},
		{Dir: "d", TableBytes: -1},
		{Dir: "d", SegmentBytes: 1 << 20, JournalBytes: 1 << 20},
	} {
		if _, err := cfg.withDefaults(); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}

func TestBadSizes(t *testing.T) {
	cfg := small(t)
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	for _, c := range []struct{ key, value int }{{0, 1}, {abd.MaxKey + 1, 1}, {1, abd.LargestMaxValue + 1}} {
		var size *abd.SizeError
		if _, err := s.Store(abd.Key(make([]byte, c.key)), testRecord(1, string(make([]byte, c.value)))); !errors.As(err, &size) {
			t.Errorf("Store of a key of %d bytes and a value of %d: %v", c.key, c.value, err)
		}
	}
	if u := s.Usage(); u.Keys != 0 {
		t.Errorf("%d keys", u.Keys)
	}
}

// Everything at once, many times over: tables are applied and segments used
// again behind the writer's back.
func TestApplyAndRecycle(t *testing.T) {
	cfg := small(t)
	cfg.openFile = new(disk).open
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	r := random(9)
	want := map[abd.Key]abd.Record{}
	for n := 1; n <= 3000; n++ {
		key := abd.Key(fmt.Sprint("key", r.IntN(700)))
		rec := testRecord(n, string(make([]byte, r.IntN(200))))
		if rec.Deleted = r.IntN(5) == 0; rec.Deleted {
			rec.Value = nil
		}
		mustStore(t, s, key, rec)
		want[key] = rec
		if n%4 == 0 {
			mustCommit(t, s)
		}
		if key = abd.Key(fmt.Sprint("key", r.IntN(700))); n%2 == 0 {
			wantLoad(t, s, key, want[key])
		}
	}
	mustCommit(t, s)
	applyNow(t, s)
	if s.Applied() != s.Committed() {
		t.Errorf("applied up to %d, committed up to %d", s.Applied(), s.Committed())
	}
	files, err := os.ReadDir(filepath.Join(cfg.Dir, journalName))
	if err != nil {
		t.Fatal(err)
	}
	if most := int(cfg.JournalBytes/cfg.SegmentBytes) + 2; len(files) > most {
		t.Errorf("the journal has %d files, want at most %d", len(files), most)
	}
	if n := s.journal.active.number; n < 20 {
		t.Errorf("segment %d is the last one: the test reuses too few", n)
	}
	check := func() {
		t.Helper()
		var keys, tombstones int64
		for key, rec := range want {
			wantLoad(t, s, key, rec)
			presenceOf(encodeRecord(key, rec)).count(&keys, &tombstones, 1)
		}
		if u := s.Usage(); u.Keys != keys || u.Tombstones != tombstones {
			t.Errorf("Usage = %d keys and %d tombstones, want %d and %d", u.Keys, u.Tombstones, keys, tombstones)
		}
	}
	check()
	mustClose(t, s)
	s = mustOpen(t, cfg)
	check()
}

// A crash between two transactions of an apply: some keys are in bbolt
// already, the applied position isn't.
func TestCrashWithinApply(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), SegmentBytes: 64 << 10, openFile: new(disk).open}
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	for i := range 40 {
		mustStore(t, s, abd.Key(fmt.Sprintf("k%02d", i)), testRecord(i+1, "first"))
	}
	mustCommit(t, s)
	applyNow(t, s)
	for i := 0; i < 60; i++ {
		r := testRecord(100+i, "second")
		if i%3 == 0 {
			r = abd.Record{Tag: testTag(100 + i), Deleted: true}
		}
		mustStore(t, s, abd.Key(fmt.Sprintf("k%02d", i)), r)
	}
	mustCommit(t, s)
	s.active.arrange()
	batch, _, err := nextBatch(s.active.from("k10"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.applyBatch(batch[:25], nil, s.summary); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	for range 2 {
		s = mustOpen(t, cfg)
		if u := s.Usage(); u.Keys != 40 || u.Tombstones != 20 {
			t.Errorf("Usage = %d keys and %d tombstones, want 40 and 20", u.Keys, u.Tombstones)
		}
		wantLoad(t, s, "k01", testRecord(101, "second"))
		wantLoad(t, s, "k59", testRecord(159, "second"))
		mustClose(t, s)
	}
	s = mustOpen(t, cfg)
	applyNow(t, s)
	mustClose(t, s)
	s = mustOpen(t, cfg)
	if u := s.Usage(); u.Keys != 40 || u.Tombstones != 20 {
		t.Errorf("after the apply, Usage = %d keys and %d tombstones, want 40 and 20", u.Keys, u.Tombstones)
	}
}

// inState reports whether bbolt holds a key.
func inState(t *testing.T, s *Store, key abd.Key) bool {
	t.Helper()
	record, err := s.state.load(key, false, &overrides{})
	if err != nil {
		t.Fatal(err)
	}
	return record != nil
}

// A store closes between two transactions of an apply that takes its time.
func TestCloseWithinApply(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), SegmentBytes: 64 << 10, openFile: new(disk).open}
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	const n = 5 * applyBytes / (64 << 10)
	value := string(make([]byte, 64<<10))
	for i := range n {
		mustStore(t, s, abd.Key(fmt.Sprintf("k%03d", i)), testRecord(i+1, value))
	}
	mustCommit(t, s)
	s.activeBytes.Store(s.cfg.TableBytes)
	s.freeze()
	for first := s.Applied(); !inState(t, s, "k000") && s.Applied() == first; {
		runtime.Gosched()
	}
	mustClose(t, s)
	s = mustOpen(t, cfg)
	if u := s.Usage(); u.Keys != n {
		t.Errorf("%d keys, want %d", u.Keys, n)
	}
	for i := range n {
		wantLoad(t, s, abd.Key(fmt.Sprintf("k%03d", i)), testRecord(i+1, value))
	}
	mustClose(t, s)
	if s.Applied() == s.Committed() {
		t.Skip("the apply was done before the store closed, on a machine that is very busy")
	}
}

// While bbolt takes nothing, Commit must not go on for ever.
func TestBackpressure(t *testing.T) {
	cfg := small(t)
	cfg.openFile = new(disk).open
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	tx, err := s.state.db.Begin(true) // the apply waits for this
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	store := func() {
		n++
		mustStore(t, s, abd.Key(fmt.Sprint("k", n)), testRecord(n, string(make([]byte, 200))))
	}
	for s.frozen.Load() == nil {
		store()
		mustCommit(t, s)
	}
	frozen := s.frozen.Load()
	for s.pressure() < pressureStop {
		store()
	}
	s.Cut()
	done := make(chan error, 1)
	go func() {
		_, err := s.Commit()
		select {
		case <-frozen.applied:
		default:
			err = errors.Join(err, errors.New("Commit didn't wait for the apply"))
		}
		done <- err
	}()
	// The apply may not end before Commit has begun to wait for it.
	for s.Condition().Waits == "" && len(done) == 0 {
		runtime.Gosched()
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s.Stats().Throttled == 0 {
		t.Error("Stats say that nothing was delayed")
	}
	mustClose(t, s)
}

// One group larger than any segment, in between small ones.
func TestLargeGroup(t *testing.T) {
	cfg := small(t)
	cfg.openFile = new(disk).open
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	for i := range 30 {
		size := 10
		if i%10 == 5 {
			size = 100 << 10
		}
		mustStore(t, s, abd.Key(fmt.Sprint("k", i)), testRecord(i+1, string(make([]byte, size))))
		mustCommit(t, s)
	}
	mustClose(t, s)
	s = mustOpen(t, cfg)
	wantLoad(t, s, "k15", testRecord(16, string(make([]byte, 100<<10))))
	wantLoad(t, s, "k29", testRecord(30, string(make([]byte, 10))))
}

// A journal that ends with the last byte of a segment, as it does behind a group
// larger than any, isn't damaged for those who read the folder either.
func TestFullSegment(t *testing.T) {
	cfg := small(t)
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	mustStore(t, s, "large", testRecord(1, string(make([]byte, 100<<10))))
	mustCommit(t, s)
	if s.journal.offset != s.journal.active.capacity {
		t.Fatalf("the segment has %d bytes, and is used up to %d", s.journal.active.capacity, s.journal.offset)
	}
	mustClose(t, s)
	if report, err := Check(cfg.Dir); err != nil || len(report.Damage()) > 0 || report.Keys != 1 {
		t.Errorf("Check: %+v, %v", report, err)
	}
	if _, err := Compact(cfg); err != nil {
		t.Errorf("Compact: %v", err)
	}
}

// TestFramesUpToTheEnd: a frame that fills a segment up to its last byte is in it, and one
// that is a little larger is in the next.
func TestFramesUpToTheEnd(t *testing.T) {
	for _, more := range []int64{-frameAlign, 0, 1, frameAlign} {
		cfg := small(t)
		mustCreate(t, cfg)
		s := mustOpen(t, cfg)
		mustStore(t, s, "first", testRecord(1, "x"))
		mustCommit(t, s)
		number := s.journal.active.number
		around := int64(frameHead + 2 + len("last") + recordHead + countsSize)
		value := string(make([]byte, s.journal.active.capacity-s.journal.offset-around+more))
		mustStore(t, s, "last", testRecord(2, value))
		mustCommit(t, s)
		if fits := s.journal.active.number == number; fits != (more <= 0) {
			t.Errorf("%d bytes more than there is room for: in the same segment: %t", more, fits)
		}
		mustClose(t, s)
		s = mustOpen(t, cfg)
		wantLoad(t, s, "first", testRecord(1, "x"))
		wantLoad(t, s, "last", testRecord(2, value))
		mustClose(t, s)
	}
}

// TestAFreezeBetweenLoadAndStore: where a key was found, or would have been put, is
// forgotten when another table takes the place of the one that was searched.
func TestAFreezeBetweenLoadAndStore(t *testing.T) {
	for _, looked := range []abd.Key{"key 99", "new"} {
		s := mustOpen(t, func() Config { cfg := small(t); mustCreate(t, cfg); return cfg }())
		for i := range 300 { // its index has grown
			mustStore(t, s, abd.Key(fmt.Sprint("key ", i)), testRecord(1, "v"))
		}
		if _, _, err := s.Load(looked, false); err != nil {
			t.Fatal(err)
		}
		s.Cut()
		if s.frozen.Load() == nil || s.active.count > 0 {
			t.Fatal("no table was frozen")
		}
		mustStore(t, s, looked, testRecord(2, "w"))
		wantLoad(t, s, looked, testRecord(2, "w"))
		for i := range 300 {
			if key := abd.Key(fmt.Sprint("key ", i)); key != looked {
				wantLoad(t, s, key, testRecord(1, "v"))
			}
		}
		mustCommit(t, s)
		mustClose(t, s)
	}
}

// A tag is the same wherever its record is: in the memory table, in the
// journal, in a table that was read from the journal, and in bbolt.
func TestLargeTags(t *testing.T) {
	records := map[abd.Key]abd.Record{}
	for i, rmw := range []tags.RMW{0, 1, math.MaxUint32, math.MaxUint32 + 1, 1 << 40, math.MaxUint64} {
		key := abd.Key(fmt.Sprint("key", i))
		records[key] = abd.Record{Tag: tags.Tag{Seq: 7, PID: tags.NewPID(1, 2, 3), RMW: rmw}, Value: []byte("v")}
		records[key+"-"] = abd.Record{Tag: tags.Tag{Seq: math.MaxUint64, PID: tags.NewPID(1, 2, 3), RMW: rmw}, Deleted: true}
	}
	cfg := Config{Dir: t.TempDir(), SegmentBytes: 64 << 10, openFile: new(disk).open}
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	check := func(where string, applied bool) {
		t.Helper()
		seen := 0
		if _, err := s.Scan("", "", func(key abd.Key, tag tags.Tag, deleted bool) bool {
			if seen++; tag != records[key].Tag || deleted != records[key].Deleted {
				t.Errorf("%s: Scan has %q with %v, want %v", where, string(key), tag, records[key].Tag)
			}
			return true
		}); err != nil || seen != len(records) {
			t.Errorf("%s: Scan of %d keys, %v; want %d", where, seen, err, len(records))
		}
		for key, want := range records {
			wantLoad(t, s, key, want)
			got, position, err := s.Load(key, false)
			if err != nil || got.Tag != want.Tag {
				t.Errorf("%s: Load(%q) without the value = %v, %v; want %v", where, string(key), got.Tag, err, want.Tag)
			}
			if (position == 0) != applied {
				t.Errorf("%s: record of %q has position %d", where, string(key), position)
			}
		}
	}
	for key, r := range records {
		mustStore(t, s, key, r)
	}
	check("memory table", false)
	mustCommit(t, s)
	mustClose(t, s)
	s = mustOpen(t, cfg)
	check("read from the journal", false)
	applyNow(t, s)
	check("bbolt", true)
	mustClose(t, s)
	s = mustOpen(t, cfg)
	check("bbolt, opened again", true)
}

func TestRecordBytes(t *testing.T) {
	record := encodeRecord("key", abd.Record{Tag: tags.Tag{Seq: 1, PID: tags.NewPID(2, 3, 4), RMW: 5}, Deleted: true, Value: []byte("v")})
	const want = "0101" + "0000000000000001" + "0000000000000002" + "0003000000000004" + "0000000000000005" + "00000001" +
		"0544e0b4" + "713f50b3" + "76"
	if got := hex.EncodeToString(record); got != want {
		t.Errorf("record is\n%s, want\n%s", got, want)
	}
	if reason := checkHead([]byte("key"), record); reason != "" {
		t.Error(reason)
	}
	for i := range record {
		b := slices.Clone(record)
		b[i] ^= 0x10
		if checkHead([]byte("key"), b) == "" && checkValue(b) == "" {
			t.Errorf("byte %d can change unnoticed", i)
		}
	}
	for i := range record {
		if checkHead([]byte("key"), record[:i]) == "" {
			t.Errorf("a record of %d bytes passes", i)
		}
	}
	if checkHead([]byte("kez"), record) == "" {
		t.Error("another key passes")
	}
}

func FuzzFrame(f *testing.F) {
	id := storeID{1}
	b := appendEntry(make([]byte, frameHead), "key", encodeRecord("key", testRecord(1, "value")))
	f.Add(sealFrame(b, id, 1, 0, 1, counts{keys: 1}))
	sealPayload(b, id, 1, 0, 1, 0) // as formats 1 and 2 have it
	f.Add(b)
	empty := make([]byte, frameHead)
	sealPayload(empty, id, 1, 0, 0, countsSize) // which aren't there
	f.Add(empty)
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, _, whole := readFrame(b, id, 1)
		if whole && fr.size < frameHead {
			t.Errorf("a frame of %d bytes", fr.size)
		}
		// The content behind a good checksum may be anything as well.
		_ = frame{payload: b}.eachEntry(func(e logged) {
			if e.kind == kindRecord {
				decodeRecord(e.bytes, true)
			}
		})
	})
}
