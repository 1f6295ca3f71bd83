package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"atoll/abd"
)

// sparse returns a closed store most of whose bbolt file is unused.
func sparse(t *testing.T) (Config, map[abd.Key]abd.Record) {
	t.Helper()
	cfg, want := mixed(t, 64<<10)
	s := mustOpen(t, cfg)
	keys := keysOf(200)
	for i, key := range keys {
		mustStore(t, s, "z"+key, testRecord(1000+i, string(make([]byte, 2000))))
	}
	mustCommit(t, s)
	applyNow(t, s)
	for i, key := range keys {
		want["z"+key] = testRecord(2000+i, "small")
		mustStore(t, s, "z"+key, want["z"+key])
	}
	mustCommit(t, s)
	applyNow(t, s)
	mustClose(t, s)
	return cfg, want
}

func TestCompact(t *testing.T) {
	cfg, want := sparse(t)
	// What a crash at each of these points leaves.
	crashes := map[string]map[string]string{}
	cfg.reached = func(point string) { crashes[point] = tree(t, cfg.Dir) }
	c, err := Compact(cfg)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(cfg.Dir, stateName))
	if err != nil {
		t.Fatal(err)
	}
	if c.After >= c.Before/4 || info.Size() != c.After || c.Records != int64(len(want)) {
		t.Errorf("Compact says %+v, the file has %d bytes and %d records", c, info.Size(), len(want))
	}
	crashes["the end"] = tree(t, cfg.Dir)
	half := map[string]string{}
	for name, b := range crashes["copied"] {
		half[name] = b
	}
	half["/"+compactName] = half["/"+compactName][:3*boltPage/2]
	crashes["half a copy"] = half
	if len(crashes) != 5 {
		t.Fatalf("Compact was at %d points, want 3", len(crashes)-2)
	}
	cfg.reached = nil
	for point, files := range crashes {
		cfg.Dir = plant(t, files)
		if got, damage := dump(t, cfg.Dir, ""); missing(t, got, want) != 0 || len(damage) > 0 {
			t.Errorf("%s: %d of %d records, %v", point, len(got), len(want), damage)
		}
		s := mustOpen(t, cfg)
		for key, r := range want {
			wantLoad(t, s, key, r)
		}
		if _, err := os.Stat(filepath.Join(cfg.Dir, compactName)); err == nil {
			t.Errorf("%s: Open leaves %s behind", point, compactName)
		}
		mustStore(t, s, "new", testRecord(9000, "new"))
		mustCommit(t, s)
		applyNow(t, s)
		mustClose(t, s)
		if _, err := Compact(cfg); err != nil {
			t.Errorf("%s: Compact again: %v", point, err)
		}
		s = mustOpen(t, cfg)
		wantLoad(t, s, "new", testRecord(9000, "new"))
		mustClose(t, s)
	}
}

// Check and Compact agree: what the journal replaces or has removed isn't lost, and a
// meta page without which Open gets along is damaged.
func TestCompactIsOfOneMindWithCheck(t *testing.T) {
	cfg, want := mixed(t, 64<<10)
	path := filepath.Join(cfg.Dir, stateName)
	good := readFile(t, path)
	damaged := bytes.Clone(good)
	damaged[bytes.Index(damaged, []byte(valueOf("key-0105")))] ^= 1 // written before it was applied, and after
	spoiled := bytes.Clone(good)
	spoiled[boltPage+16] ^= 1 // the first byte behind the page's head
	for _, test := range []struct {
		name  string
		state []byte
		whole bool
	}{
		{"a record that is replaced", damaged, true},
		{"a meta page", spoiled, false},
	} {
		writeFile(t, path, test.state)
		check := func() {
			t.Helper()
			report, err := Check(cfg.Dir)
			if err != nil {
				t.Fatal(err)
			}
			if damage := report.Damage(); (len(damage) == 0) != test.whole {
				t.Errorf("%s: Check says %v", test.name, damage)
			}
		}
		check()
		if _, err := Compact(cfg); (err == nil) != test.whole {
			t.Errorf("%s: Compact says %v", test.name, err)
		}
		check()
		s := mustOpen(t, cfg)
		for key, r := range want {
			wantLoad(t, s, key, r)
		}
		mustClose(t, s)
	}
}

func TestCompactThatCannotBe(t *testing.T) {
	cfg, _ := sparse(t)
	path := filepath.Join(cfg.Dir, stateName)
	good := readFile(t, path)
	unchanged := func(what string, want []byte) {
		t.Helper()
		if !bytes.Equal(readFile(t, path), want) {
			t.Errorf("%s: %s was changed", what, stateName)
		}
		if _, err := os.Stat(filepath.Join(cfg.Dir, compactName)); err == nil {
			t.Errorf("%s: %s is left", what, compactName)
		}
	}

	little := cfg
	little.freeSpace = func(string) (int64, error) { return 100 << 10, nil }
	var space *SpaceError
	if _, err := Compact(little); !errors.As(err, &space) || space.Free != 100<<10 || space.Need < 200<<10 {
		t.Errorf("with little space: %v, want a *SpaceError", err)
	}
	unchanged("little space", good)

	b := bytes.Clone(good)
	b[bytes.Index(b, []byte(valueOf("key-0007")))] ^= 1
	writeFile(t, path, b)
	_, err := Compact(cfg)
	if d, ok := errors.AsType[*DamageError](err); !ok || !d.OneRecord || d.Key != "key-0007" {
		t.Errorf("with a damaged record: %v, want an error about it", err)
	}
	unchanged("a damaged record", b)
	writeFile(t, path, good[:3*boltPage])
	_, err = Compact(cfg)
	wantDamage(t, err, stateName)
	unchanged("a part of a file", good[:3*boltPage])
	writeFile(t, path, good)
	segments, err := filepath.Glob(filepath.Join(cfg.Dir, journalName, "0*.log"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	segment := segments[len(segments)-1]
	journal := readFile(t, segment)
	damaged := bytes.Clone(journal)
	damaged[0] ^= 1
	writeFile(t, segment, damaged)
	_, err = Compact(cfg)
	wantDamage(t, err, filepath.Base(segment))
	unchanged("a damaged journal", good)
	writeFile(t, segment, journal)

	s := mustOpen(t, cfg)
	var inUse *InUseError
	if _, err := Compact(cfg); !errors.As(err, &inUse) {
		t.Errorf("of an open store: %v, want an *InUseError", err)
	}
	mustClose(t, s)
	if _, err := Compact(Config{Dir: t.TempDir()}); !errors.Is(err, ErrNoStore) {
		t.Errorf("of an empty folder: %v, want ErrNoStore", err)
	}
}
