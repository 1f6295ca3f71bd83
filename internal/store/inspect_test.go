package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"atoll/abd"
)

// mixed returns a closed store with records in bbolt, in the journal, and in
// both, and the newest of each key.
func mixed(t *testing.T, segmentBytes int64) (Config, map[abd.Key]abd.Record) {
	t.Helper()
	cfg := Config{Dir: t.TempDir(), SegmentBytes: segmentBytes, openFile: new(disk).open}
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	want := map[abd.Key]abd.Record{}
	n := 0
	write := func(from, to int) {
		for i := from; i < to; i++ {
			n++
			key := abd.Key(fmt.Sprintf("key-%04d", i))
			r := testRecord(n, valueOf(key)+fmt.Sprint(n))
			if i%10 == 3 {
				r = abd.Record{Tag: testTag(n), Deleted: true}
			}
			mustStore(t, s, key, r)
			want[key] = r
			if i%3 == 0 {
				mustCommit(t, s)
			}
		}
		mustCommit(t, s)
	}
	write(0, 150)
	applyNow(t, s)
	write(100, 200)
	mustClose(t, s)
	return cfg, want
}

// dump returns what Dump passes on and what it says is damaged.
func dump(t *testing.T, dir string, prefix abd.Key) (map[abd.Key]abd.Record, []error) {
	t.Helper()
	got := map[abd.Key]abd.Record{}
	var damage []error
	last := abd.Key("")
	err := Dump(dir, prefix, func(key abd.Key, r abd.Record) error {
		if _, twice := got[key]; twice {
			t.Errorf("%q comes twice", key)
		}
		if len(damage) == 0 && key <= last {
			t.Errorf("%q comes behind %q", key, last)
		}
		last = key
		got[key] = abd.Record{Tag: r.Tag, Deleted: r.Deleted, Value: bytes.Clone(r.Value)}
		return nil
	}, func(err error) { damage = append(damage, err) })
	if err != nil {
		t.Fatal(err)
	}
	return got, damage
}

func equalRecords(a, b abd.Record) bool {
	return a.Tag == b.Tag && a.Deleted == b.Deleted && bytes.Equal(a.Value, b.Value)
}

// missing checks that got holds nothing that wasn't stored, and returns how
// much of want isn't there, or is there in an older version.
func missing(t *testing.T, got, want map[abd.Key]abd.Record) (n int) {
	t.Helper()
	for key, r := range got {
		w, ok := want[key]
		// Older versions differ by their numbers.
		seq := fmt.Sprint(uint64(r.Tag.Seq))
		switch {
		case ok && equalRecords(r, w):
			n--
		case !ok || !r.Tag.Less(w.Tag) || !r.Deleted && string(r.Value) != valueOf(key)+seq:
			t.Errorf("%q is %v %q, and was stored as %v %q", key, r.Tag, r.Value, w.Tag, w.Value)
		}
	}
	return len(want) + n
}

// tree returns every file of a folder, without what bbolt has in reserve.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			b := readFile(t, path)
			if d.Name() == stateName || d.Name() == compactName {
				b = usedPages(t, path)
			}
			all[strings.TrimPrefix(path, dir)] = string(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// plant writes what tree returned into a new folder.
func plant(t *testing.T, all map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, b := range all {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name), []byte(b))
	}
	return dir
}

func TestCheckAndDumpOfAGoodStore(t *testing.T) {
	cfg, want := mixed(t, minSegmentBytes)
	before := tree(t, cfg.Dir)
	report, err := Check(cfg.Dir)
	if err != nil || len(report.Damage()) > 0 {
		t.Fatalf("Check: %v, %v", err, report.Damage())
	}
	if report.Keys+report.Tombstones != int64(len(want)) || report.Tombstones != 20 {
		t.Errorf("%d keys and %d tombstones, want %d records of which 20 tombstones", report.Keys, report.Tombstones, len(want))
	}
	got, damage := dump(t, cfg.Dir, "")
	if n := missing(t, got, want); n > 0 || len(damage) > 0 {
		t.Errorf("Dump: %d records are missing, and damaged is %v", n, damage)
	}
	if got, _ := dump(t, cfg.Dir, "key-01"); len(got) != 100 || got["key-0142"].Tag.IsZero() {
		t.Errorf("Dump of a prefix: %d records, want 100", len(got))
	}
	stop := errors.New("stop")
	calls := 0
	if err := Dump(cfg.Dir, "", func(abd.Key, abd.Record) error { calls++; return stop }, nil); err != stop || calls != 1 {
		t.Errorf("Dump that was stopped: %v after %d calls", err, calls)
	}
	for name, b := range tree(t, cfg.Dir) {
		if before[name] != b {
			t.Errorf("%s was changed", name)
		}
	}

	s := mustOpen(t, cfg)
	if u := s.Usage(); u.Keys != report.Keys || u.Tombstones != report.Tombstones {
		t.Errorf("the open store counts %d and %d, Check %d and %d", u.Keys, u.Tombstones, report.Keys, report.Tombstones)
	}
	var inUse *InUseError
	if _, err := Check(cfg.Dir); !errors.As(err, &inUse) || inUse.Process != os.Getpid() {
		t.Errorf("Check of an open store: %v, want an *InUseError", err)
	}
	if err := Dump(cfg.Dir, "", nil, nil); !errors.As(err, &inUse) {
		t.Errorf("Dump of an open store: %v, want an *InUseError", err)
	}
	if _, err := Check(t.TempDir()); !errors.Is(err, ErrNoStore) {
		t.Errorf("Check of an empty folder: %v, want ErrNoStore", err)
	}
}

// Everything that is damaged is named in one go, and all else is passed on.
func TestCheckNamesEverythingThatIsDamaged(t *testing.T) {
	cfg, want := mixed(t, minSegmentBytes)
	path := filepath.Join(cfg.Dir, stateName)
	b := readFile(t, path)
	find := func(text string) int {
		at := bytes.Index(b, []byte(text))
		if at < 0 {
			t.Fatalf("%q isn't in %s", text, stateName)
		}
		return at
	}
	b[find(valueOf("key-0007"))] ^= 1               // a value
	b[find(valueOf("key-0021"))-recordHead+5] ^= 1  // a tag
	b[find(valueOf("key-0032"))-recordHead-1] ^= 64 // a key, which is then out of order
	page := find(valueOf("key-0060")) / boltPage * boltPage
	clear(b[page : page+boltPage])
	writeFile(t, path, b)
	segments, err := filepath.Glob(filepath.Join(cfg.Dir, journalName, "0*.log"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	segment := segments[len(segments)-1]
	j := readFile(t, segment)
	j[segmentHead+frameHead+3] ^= 1
	writeFile(t, segment, j)
	if err := os.Remove(filepath.Join(cfg.Dir, identityName)); err != nil {
		t.Fatal(err)
	}

	report, err := Check(cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	text := errors.Join(report.Damage()...).Error()
	for _, part := range []string{
		`key "key-0007"`, `key "key-0021"`, `key "key-003r"`,
		fmt.Sprintf("at byte %d: page %d", page, page/boltPage),
		fmt.Sprintf("%s is damaged at byte %d", segment, segmentHead),
		identityName + " is damaged",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("nothing is said of %q in\n%s", part, text)
		}
	}
	got, damage := dump(t, cfg.Dir, "")
	if len(damage) < 6 {
		t.Errorf("Dump says %d times that something is damaged", len(damage))
	}
	// Three records, those of one page, and some newer ones in a frame.
	lost := missing(t, got, want)
	if _, there := got["key-0007"]; there || lost < 4 || lost > 60 {
		t.Errorf("%d records are missing", lost)
	}
}

// What a bbolt file still has behind a cut, and what the journal has without
// it, is passed on.
func TestDumpOfHalfAStore(t *testing.T) {
	cfg, want := mixed(t, 64<<10)
	path := filepath.Join(cfg.Dir, stateName)
	good := usedPages(t, path)
	most := 0
	for size := 0; size <= len(good); size += boltPage * 3 / 2 {
		writeFile(t, path, good[:size])
		got, damage := dump(t, cfg.Dir, "")
		n := missing(t, got, want)
		if size < len(good) && len(damage) == 0 {
			t.Errorf("cut to %d bytes: nothing is said of it", size)
		}
		if size == len(good) && n > 0 {
			t.Errorf("uncut: %d records are missing", n)
		}
		if size < len(good) {
			most = max(most, len(got))
		}
	}
	if most < len(want)/2 {
		t.Errorf("with a page less only %d records of %d were found", most, len(want))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	// The journal has not forgotten anything yet.
	if got, damage := dump(t, cfg.Dir, ""); missing(t, got, want) != 0 || len(damage) == 0 {
		t.Errorf("without %s: %d records of %d, and damaged is %v", stateName, len(got), len(want), damage)
	}
}

// Where Check finds nothing Open doesn't either, and the other way round.
func TestCheckAgreesWithOpen(t *testing.T) {
	cfg, want := mixed(t, minSegmentBytes)
	good := tree(t, cfg.Dir)
	path := filepath.Join(cfg.Dir, stateName)
	good["/"+stateName] = string(usedPages(t, path))
	names := []string{"/" + stateName, "/" + stateName, "/" + identityName}
	for name := range good {
		if strings.HasPrefix(name, "/"+journalName+"/0") {
			names = append(names, name)
		}
	}
	r := random(11)
	outcomes := map[string]int{}
	for range 40 {
		name := names[r.IntN(len(names))]
		b := []byte(good[name])
		at := r.IntN(len(b))
		if used := bytes.TrimRight(b, "\x00"); r.IntN(2) == 0 {
			at = r.IntN(len(used))
		}
		b[at] ^= 1 << r.IntN(8)
		all := map[string]string{}
		for n, text := range good {
			all[n] = text
		}
		all[name] = string(b)
		cfg.Dir = plant(t, all)
		report, err := Check(cfg.Dir)
		if err != nil {
			t.Fatalf("%s, byte %d: %v", name, at, err)
		}
		damage := report.Damage()
		got, _ := dump(t, cfg.Dir, "")
		torn := slices.ContainsFunc(report.Files, func(f *FileReport) bool { return strings.Contains(f.Note, "never finished") })
		if lost := missing(t, got, want); lost > 0 && len(damage) == 0 && !torn {
			t.Errorf("%s, byte %d: %d records are missing, and Check finds nothing", name, at, lost)
		}
		var log strings.Builder
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		s, err := Open(cfg)
		switch {
		case err != nil:
			outcomes["refused"]++
		case strings.Contains(log.String(), "a record is damaged"):
			outcomes["a record"]++
		default:
			outcomes["nothing"]++
		}
		if s != nil {
			mustClose(t, s)
		}
		if found := err != nil || strings.Contains(log.String(), "a record is damaged") || strings.Contains(log.String(), "a meta page"); found != (len(damage) > 0) {
			t.Errorf("%s, byte %d: Open says %v and logs %q, Check %v", name, at, err, log.String(), damage)
		}
	}
	for _, o := range []string{"refused", "a record", "nothing"} {
		if outcomes[o] == 0 {
			t.Errorf("no flipped bit was %q: %v", o, outcomes)
		}
	}
}

func FuzzSalvage(f *testing.F) {
	path := filepath.Join(f.TempDir(), stateName)
	if err := createState(path, storeID{1}); err != nil {
		f.Fatal(err)
	}
	b := usedPages(f, path)
	f.Add(b, 2*boltPage+10, byte(3))
	f.Add(b[:3*boltPage], 0, byte(0))
	f.Fuzz(func(t *testing.T, b []byte, at int, flip byte) {
		b = bytes.Clone(b)
		if at >= 0 && at < len(b) {
			b[at] ^= flip
		}
		writeFile(t, path, b)
		s, file, err := newSalvage(path, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		if s == nil {
			return
		}
		defer file.Close()
		s.visit = func(key, record []byte) {
			if reason := checkHead(key, record); reason != "" {
				t.Errorf("%q was passed on: %s", key, reason)
			}
		}
		s.walk()
	})
}
