package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"atoll/replica"
)

func mustSetCell(t testing.TB, s *Store, name, value string) {
	t.Helper()
	if _, err := s.SetCell(name, []byte(value)); err != nil {
		t.Fatalf("SetCell(%q): %v", name, err)
	}
}

func wantCell(t testing.TB, s *Store, name, want string) {
	t.Helper()
	if got, _ := s.Cell(name); got == nil || string(got) != want {
		t.Fatalf("Cell(%q) = %.40q, want %.40q", name, got, want)
	}
}

// A store that writes nothing but cells freezes, applies, and gives its
// segments back.
func TestOnlyCells(t *testing.T) {
	cfg := small(t)
	cfg.openFile = new(disk).open
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	last := ""
	for i := range 500 {
		last = fmt.Sprintf("%d %s", i, bytes.Repeat([]byte("x"), 500))
		mustSetCell(t, s, "c", last)
		mustCommit(t, s)
	}
	applyNow(t, s)
	if s.Applied() != s.Committed() || s.Applied() != 500 {
		t.Errorf("applied up to %d, committed up to %d, want 500", s.Applied(), s.Committed())
	}
	if n := s.journal.active.number; n < 10 {
		t.Errorf("segment %d is the last one: the test reuses too few", n)
	}
	if size, most := s.journal.size.Load(), cfg.JournalBytes+2*cfg.SegmentBytes; size > most {
		t.Errorf("the journal has %d bytes, want at most %d", size, most)
	}
	if s.active.bytes != 0 || s.Stats().PendingBytes != 0 {
		t.Errorf("after everything was applied, %d bytes are in the table and %d wait", s.active.bytes, s.Stats().PendingBytes)
	}
	mustClose(t, s)
	s = mustOpen(t, cfg)
	wantCell(t, s, "c", last)
	if _, at := s.Cell("c"); at != 0 {
		t.Errorf("a cell that is in bbolt stands at %d, want 0", at)
	}
	if s.active.bytes != 0 {
		t.Errorf("%d bytes were replayed", s.active.bytes)
	}
}

// A damaged cell is damage of the file: what the node has promised is in it.
func TestDamagedCell(t *testing.T) {
	cfg := filled(t, 5)
	s := mustOpen(t, cfg)
	const value = "the value of this cell, and of no other"
	mustSetCell(t, s, "cell", value)
	mustCommit(t, s)
	applyNow(t, s)
	mustClose(t, s)
	path := filepath.Join(cfg.Dir, stateName)
	good := usedPages(t, path)
	at := bytes.Index(good, []byte(value))
	if at < 0 || bytes.Contains(good[at+1:], []byte(value)) {
		t.Fatal("the cell isn't in the file exactly once")
	}
	for i := at - blobValue - len("cell"); i < at+len(value); i++ {
		b := slices.Clone(good)
		b[i] ^= 2
		writeFile(t, path, b)
		_, err := Open(cfg)
		wantDamage(t, err, stateName)
	}
	writeFile(t, path, good)
	wantCell(t, mustOpen(t, cfg), "cell", value)
}

// A file from before there were cells gets a bucket for them.
func TestStateWithoutCells(t *testing.T) {
	cfg := filled(t, 5)
	db, err := openBolt(filepath.Join(cfg.Dir, stateName))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(bucketCells)) }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, cfg)
	mustSetCell(t, s, "cell", "v")
	mustCommit(t, s)
	applyNow(t, s)
	mustClose(t, s)
	s = mustOpen(t, cfg)
	wantCell(t, s, "cell", "v")
	wantLoad(t, s, keysOf(5)[4], testRecord(5, valueOf(keysOf(5)[4])))
}

// A segment of format 1 is read, and nothing is appended to it: a program that
// knows no more would meet entries there that it can't tell from damage.
func TestOlderSegment(t *testing.T) {
	cfg := small(t)
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	mustStore(t, s, "k", testRecord(1, "v"))
	mustCommit(t, s)
	mustClose(t, s)
	path := filepath.Join(cfg.Dir, journalName, segmentName(1))
	b := readFile(t, path)
	binary.BigEndian.PutUint32(b[8:], 1)
	binary.BigEndian.PutUint32(b[4:], crc32.Checksum(b[8:headUsed], castagnoli))
	writeFile(t, path, b)

	s = mustOpen(t, cfg)
	wantLoad(t, s, "k", testRecord(1, "v"))
	mustSetCell(t, s, "cell", "v")
	mustCommit(t, s)
	if n := s.journal.active.number; n != 2 {
		t.Errorf("the cell went to segment %d, want 2", n)
	}
	mustClose(t, s)
	if !bytes.Equal(readFile(t, path), b) {
		t.Error("the segment of format 1 has changed")
	}
	s = mustOpen(t, cfg)
	wantLoad(t, s, "k", testRecord(1, "v"))
	wantCell(t, s, "cell", "v")
	b = readFile(t, filepath.Join(cfg.Dir, journalName, segmentName(2)))
	if h, err := readSegmentHeader("", b, int64(len(b)), s.journal.id, 2); err != nil || h.format != segmentFormat {
		t.Errorf("segment 2 has format %d, %v; want %d", h.format, err, segmentFormat)
	}
}

func TestBlobBytes(t *testing.T) {
	blob := encodeBlob(kindCell, "name", []byte("value"))
	if size, reason := checkBlob([]byte("name"), append(slices.Clone(blob), 1, 2, 3)); size != int64(len(blob)) || reason != "" {
		t.Errorf("a blob with something behind it: %d bytes, %q; want %d", size, reason, len(blob))
	}
	for i := range blob {
		b := slices.Clone(blob)
		b[i] ^= 0x10
		if checkCell([]byte("name"), b) == "" {
			t.Errorf("byte %d can change unnoticed", i)
		}
		if checkCell([]byte("name"), blob[:i]) == "" {
			t.Errorf("a blob of %d bytes passes", i)
		}
	}
	for _, bad := range []struct {
		name, value string
		kind        byte
	}{
		{"nane", "value", 0}, // another one's
		{"", "v", kindCell},
		{string(make([]byte, replica.MaxCellName+1)), "v", kindCell},
		{"n", string(make([]byte, replica.MaxCellBytes+1)), kindCell},
		{"n", "v", kindRemoved},
		{"", "", kindRemoved},
		{"n", "", 3},
	} {
		b := blob
		if bad.kind != 0 {
			b = encodeBlob(bad.kind, bad.name, []byte(bad.value))
		}
		if _, reason := checkBlob([]byte(bad.name), b); reason == "" {
			t.Errorf("kind %d, a name of %d bytes and a value of %d pass", bad.kind, len(bad.name), len(bad.value))
		}
	}
	if checkCell([]byte("n"), encodeBlob(kindRemoved, "n", nil)) == "" {
		t.Error("a removal passes as a cell")
	}
}
