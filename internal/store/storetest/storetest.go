// Package storetest is the conformance suite of replica.Store.
//
// Whatever makes a node's records durable passes [Run]: the real store on a
// disk, and the simulator's disk in memory. The suite knows nothing of files.
// It checks what replica.Store and abd.View promise: what Load and Scan see,
// that positions only grow, which groups survive a crash, what healing and
// cells do, and the counts.
package storetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/replica"
	"atoll/tags"
)

// A Harness owns a store that can crash. Its methods are called from one
// goroutine, and fail the test themselves when they can't do their work.
type Harness interface {
	// Store returns the store as it is open now.
	Store() replica.Store
	// Crash ends the process that has the store open: everything that no
	// Commit made durable is lost, or, of the groups that were cut, all but
	// the first few. Then it opens the store again.
	Crash()
	// Reopen closes the store and opens it again.
	Reopen()
}

// Run checks the stores that open makes, several at a time. Each must be
// empty, and is released with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"missing key", missingKey},
		{"empty value is not a missing one", emptyValue},
		{"visible before commit", visibleAtOnce},
		{"overwrite and tombstone", overwrite},
		{"values are copied", valuesAreCopied},
		{"positions grow", positionsGrow},
		{"commit takes what was cut", commitTakesWhatWasCut},
		{"commit beside the steps", commitBesideSteps},
		{"committed survives a crash", committedSurvives},
		{"uncommitted is lost in a crash", uncommittedIsLost},
		{"a group is lost or kept as a whole", groupsAreAtomic},
		{"a crash in a crash", crashTwice},
		{"scan", scan},
		{"scan of awkward keys", scanAwkwardKeys},
		{"scan of many", scanMany},
		{"usage", usage},
		{"large values", largeValues},
		{"every bit of a tag", wholeTags},
		{"cells", cells},
		{"cells share a group's fate", cellsInGroups},
		{"limits of cells", cellLimits},
		{"many values of few cells", cellOverwrites},
		{"heal replaces", healReplaces},
		{"heal removes", healRemoves},
		{"heal many", healMany},
		{"heal damage", healDamage},
		{"random, against a model", model},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, open(t))
		})
	}
}

// tag returns the n-th tag of some writer, n > 0.
func tag(n int) tags.Tag {
	return tags.Tag{Seq: tags.Seq(n), PID: tags.NewPID(7, 9, uint64(n)), RMW: tags.RMW(n % 3)}
}

func record(n int, value string) abd.Record {
	return abd.Record{Tag: tag(n), Value: []byte(value)}
}

func deleted(n int) abd.Record { return abd.Record{Tag: tag(n), Deleted: true} }

// same compares records as the store must: nil and empty are one value.
func same(a, b abd.Record) bool {
	return a.Tag == b.Tag && a.Deleted == b.Deleted && bytes.Equal(a.Value, b.Value)
}

func show(r abd.Record) string {
	if len(r.Value) > 40 {
		return fmt.Sprintf("{%v deleted=%t %d bytes}", r.Tag, r.Deleted, len(r.Value))
	}
	return fmt.Sprintf("{%v deleted=%t %q}", r.Tag, r.Deleted, r.Value)
}

func put(t *testing.T, s replica.Store, key abd.Key, r abd.Record) env.Position {
	t.Helper()
	p, err := s.Store(key, r)
	if err != nil {
		t.Fatalf("Store(%.40q): %v", string(key), err)
	}
	return p
}

func commit(t *testing.T, s replica.Store) env.Position {
	t.Helper()
	p, err := s.Commit()
	if err != nil {
		t.Fatalf("Commit: %v", err)
	}
	return p
}

// wantRecord loads with and without the value, and returns the position of
// the second time: what is durable may have moved to where it has none.
func wantRecord(t *testing.T, s replica.Store, key abd.Key, want abd.Record) env.Position {
	t.Helper()
	got, p, err := s.Load(key, true)
	if err != nil {
		t.Fatalf("Load(%.40q): %v", string(key), err)
	}
	if !same(got, want) {
		t.Fatalf("Load(%.40q) = %s, want %s", string(key), show(got), show(want))
	}
	short, q, err := s.Load(key, false)
	if err != nil || short.Tag != want.Tag || short.Deleted != want.Deleted || q > p {
		t.Fatalf("Load(%.40q) without the value = %s at %d, %v; want the tag of %s at %d", string(key), show(short), q, err, show(want), p)
	}
	return q
}

func wantUsage(t *testing.T, s replica.Store, keys, tombstones int64) {
	t.Helper()
	if u := s.Usage(); u.Keys != keys || u.Tombstones != tombstones {
		t.Fatalf("Usage = %d keys and %d tombstones, want %d and %d", u.Keys, u.Tombstones, keys, tombstones)
	}
}

func missingKey(t *testing.T, h Harness) {
	if p := wantRecord(t, h.Store(), "nothing", abd.Record{}); p != 0 {
		t.Errorf("a missing key stands at %d, want 0: nothing waits for it", p)
	}
	put(t, h.Store(), "something", record(1, "x"))
	for _, key := range []abd.Key{"some", "something\x00", "t", "a"} {
		wantRecord(t, h.Store(), key, abd.Record{})
	}
	wantUsage(t, h.Store(), 1, 0)
}

func emptyValue(t *testing.T, h Harness) {
	put(t, h.Store(), "empty", record(1, ""))
	put(t, h.Store(), "nil", abd.Record{Tag: tag(2)})
	check := func() {
		t.Helper()
		for i, key := range []abd.Key{"empty", "nil"} {
			wantRecord(t, h.Store(), key, record(i+1, ""))
			if r, _, _ := h.Store().Load(key, true); r.Absent() {
				t.Errorf("%s is absent", key)
			}
		}
		wantUsage(t, h.Store(), 2, 0)
	}
	check()
	h.Store().Cut()
	commit(t, h.Store())
	check()
	h.Crash()
	check()
}

func visibleAtOnce(t *testing.T, h Harness) {
	s := h.Store()
	p := put(t, s, "k", record(1, "v"))
	if q := wantRecord(t, s, "k", record(1, "v")); q != p {
		t.Errorf("Load says position %d of a record that isn't durable, Store said %d", q, p)
	}
	if q, err := s.Scan("", "", visitAll); err != nil || q != p {
		t.Errorf("Scan over it = %d, %v; want %d", q, err, p)
	}
	if q, err := s.Walk("", func(abd.Key, tags.Tag, bool, func() ([]byte, error)) bool { return true }); err != nil || q != p {
		t.Errorf("Walk over it = %d, %v; want %d", q, err, p)
	}
	s.Cut()
	commit(t, s)
	if q := wantRecord(t, s, "k", record(1, "v")); q != p && q != 0 {
		t.Errorf("after Commit it stands at %d, want %d or 0", q, p)
	}
}

func overwrite(t *testing.T, h Harness) {
	steps := []abd.Record{record(1, "one"), record(2, "two, longer"), deleted(3), record(4, ""), deleted(5)}
	for _, r := range steps {
		put(t, h.Store(), "k", r)
		wantRecord(t, h.Store(), "k", r)
		h.Store().Cut()
		commit(t, h.Store())
		wantRecord(t, h.Store(), "k", r)
		h.Crash()
		wantRecord(t, h.Store(), "k", r)
	}
	// The store doesn't judge tags: a smaller one is stored as well.
	put(t, h.Store(), "k", record(1, "back"))
	wantRecord(t, h.Store(), "k", record(1, "back"))
}

func valuesAreCopied(t *testing.T, h Harness) {
	value := []byte("as it was")
	put(t, h.Store(), "k", abd.Record{Tag: tag(1), Value: value})
	copy(value, "changed!!")
	wantRecord(t, h.Store(), "k", record(1, "as it was"))
	h.Store().Cut()
	commit(t, h.Store())
	h.Crash()
	wantRecord(t, h.Store(), "k", record(1, "as it was"))
}

func usage(t *testing.T, h Harness) {
	wantUsage(t, h.Store(), 0, 0)
	put(t, h.Store(), "a", record(1, "v"))
	put(t, h.Store(), "b", record(2, "v"))
	put(t, h.Store(), "a", record(3, "v"))
	put(t, h.Store(), "never", deleted(4))
	wantUsage(t, h.Store(), 2, 1)
	h.Store().Cut()
	commit(t, h.Store())
	put(t, h.Store(), "b", deleted(5))
	wantUsage(t, h.Store(), 1, 2)
	h.Crash()
	wantUsage(t, h.Store(), 2, 1)
	put(t, h.Store(), "b", deleted(5))
	put(t, h.Store(), "b", deleted(6))
	put(t, h.Store(), "never", record(7, "now"))
	wantUsage(t, h.Store(), 2, 1)
	h.Store().Cut()
	commit(t, h.Store())
	h.Reopen()
	wantUsage(t, h.Store(), 2, 1)
	if u := h.Store().Usage(); u.Bytes <= 0 {
		t.Errorf("Usage says that it takes %d bytes", u.Bytes)
	}
}

func largeValues(t *testing.T, h Harness) {
	value := make([]byte, abd.LargestMaxValue)
	fillRandom(rand.New(rand.NewPCG(1, 2)), value)
	key := abd.Key(strings.Repeat("K", abd.MaxKey))
	put(t, h.Store(), "small", record(1, "v"))
	put(t, h.Store(), key, abd.Record{Tag: tag(2), Value: value})
	put(t, h.Store(), "between", record(3, "v"))
	h.Store().Cut()
	put(t, h.Store(), "other", abd.Record{Tag: tag(4), Value: value[:1<<20]})
	h.Store().Cut()
	commit(t, h.Store())
	put(t, h.Store(), key, record(5, "lost"))
	for range 2 {
		h.Crash()
		wantRecord(t, h.Store(), key, abd.Record{Tag: tag(2), Value: value})
		wantRecord(t, h.Store(), "small", record(1, "v"))
		wantRecord(t, h.Store(), "between", record(3, "v"))
		wantRecord(t, h.Store(), "other", abd.Record{Tag: tag(4), Value: value[:1<<20]})
	}
	if got := len(list(t, h.Store(), "", "", 10)); got != 4 {
		t.Errorf("Scan has %d keys, want 4", got)
	}
}

func fillRandom(r *rand.Rand, b []byte) {
	for len(b) >= 8 {
		binary.NativeEndian.PutUint64(b, r.Uint64())
		b = b[8:]
	}
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}
