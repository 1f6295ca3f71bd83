package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atoll/abd"
	"atoll/internal/smalldisk"
)

// eat writes a file until there is no space left.
func eat(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !noSpace(err) {
		t.Fatal(err)
	}
}

// The real thing: somebody else fills the disk to the last byte while the
// store has records that aren't in bbolt yet.
func TestOnAFullDisk(t *testing.T) {
	dir, child := smalldisk.Mount(t, "6m")
	if !child {
		return
	}
	other := filepath.Join(dir, "somebody's file")
	cfg := Config{Dir: filepath.Join(dir, "store"), SegmentBytes: 128 << 10, JournalBytes: 2 << 20, TableBytes: 256 << 10,
		ReserveBytes: 512 << 10, BallastBytes: 1 << 20, ballastAfter: time.Nanosecond}
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	want := map[abd.Key]abd.Record{}
	n := 0
	fill := func(records int) {
		for range records {
			n++
			key := abd.Key(fmt.Sprintf("key-%04d", n))
			want[key] = testRecord(n, strings.Repeat("v", 900))
			mustStore(t, s, key, want[key])
		}
		mustCommit(t, s)
	}
	check := func(when string) {
		t.Helper()
		for key, r := range want {
			wantLoad(t, s, key, r)
		}
		if u := s.Usage(); u.Keys != int64(len(want)) {
			t.Errorf("%s: %d keys, want %d", when, u.Keys, len(want))
		}
	}
	refused := func(when string) {
		t.Helper()
		if _, err := s.Store("refused", testRecord(1, "v")); !errors.Is(err, abd.ErrFull) {
			t.Errorf("%s: Store: %v, want ErrFull", when, err)
		}
	}
	waitSpare(s)
	waitFull(s, false)
	wantBallast(t, cfg, 1<<20)

	// The apply finds no space, and gets the ballast's.
	fill(150)
	eat(t, other)
	applyNow(t, s)
	wantBallast(t, cfg, 0)
	waitFull(s, true)
	refused("after an apply on a full disk")
	if s.Applied() != s.Committed() {
		t.Errorf("%d of %d records are applied", s.Applied(), s.Committed())
	}
	check("after an apply on a full disk")

	// There is space again: all is as before.
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	waitFull(s, false)
	wantBallast(t, cfg, 1<<20)

	// Somebody takes the ballast's space as well: the apply waits.
	fill(150)
	if err := os.Remove(filepath.Join(cfg.Dir, ballastName)); err != nil {
		t.Fatal(err)
	}
	eat(t, other)
	s.activeBytes.Store(s.cfg.TableBytes)
	s.freeze()
	frozen := s.frozen.Load()
	waitFull(s, true)
	refused("while an apply waits")
	select {
	case <-frozen.applied:
		t.Error("an apply ended without space")
	default:
	}
	check("while an apply waits")
	// The process dies, and the next one starts on the full disk.
	mustClose(t, s)
	s = mustOpen(t, cfg)
	waitFull(s, true)
	check("after a start on a full disk")
	refused("after a start on a full disk")
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	waitFull(s, false)
	fill(20)
	applyNow(t, s)
	check("in the end")
	mustClose(t, s)
	if report, err := Check(cfg.Dir); err != nil || len(report.Damage()) > 0 {
		t.Errorf("Check: %v, %v", report, err)
	}
}
