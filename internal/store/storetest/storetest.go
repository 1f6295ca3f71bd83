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
	"slices"
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

type item struct {
	key     abd.Key
	tag     tags.Tag
	deleted bool
}

func visitAll(abd.Key, tags.Tag, bool) bool { return true }

func list(t *testing.T, s replica.Store, prefix, after abd.Key, limit int) []item {
	t.Helper()
	var got []item
	_, err := s.Scan(prefix, after, func(key abd.Key, tag tags.Tag, deleted bool) bool {
		got = append(got, item{key, tag, deleted})
		return len(got) < limit
	})
	if err != nil {
		t.Fatalf("Scan(%.40q, %.40q): %v", string(prefix), string(after), err)
	}
	return got
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

func positionsGrow(t *testing.T, h Harness) {
	s := h.Store()
	last := s.Cut()
	for i := range 50 {
		p := put(t, s, abd.Key(fmt.Sprint("k", i%7)), record(i+1, "v"))
		if p <= last {
			t.Fatalf("Store returned %d after %d", p, last)
		}
		if i%3 == 0 {
			if c := s.Cut(); c != p {
				t.Fatalf("Cut = %d, want %d: the position behind the last record", c, p)
			}
		}
		if i%10 == 9 {
			cut := s.Cut()
			if c := commit(t, s); c != cut {
				t.Fatalf("Commit = %d, want %d", c, cut)
			}
		}
		last = p
	}
	durable := commit(t, s)
	for _, reopen := range []func(){h.Crash, h.Reopen} {
		reopen()
		s = h.Store()
		if c := commit(t, s); c != durable {
			t.Errorf("after reopening, the journal is durable up to %d, want %d", c, durable)
		}
		if p := put(t, s, "more", record(1000, "v")); p <= durable {
			t.Errorf("after reopening, a record has position %d, want more than %d", p, durable)
		}
	}
}

func commitTakesWhatWasCut(t *testing.T, h Harness) {
	s := h.Store()
	if p := commit(t, s); p != 0 {
		t.Errorf("Commit of nothing = %d, want 0", p)
	}
	put(t, s, "a", record(1, "1"))
	if p := commit(t, s); p != 0 {
		t.Errorf("Commit before Cut = %d, want 0", p)
	}
	first := s.Cut()
	open := put(t, s, "b", record(2, "2"))
	if p := commit(t, s); p != first || p >= open {
		t.Errorf("Commit = %d, want %d: the open group isn't part of it", p, first)
	}
	second := s.Cut()
	if second != open {
		t.Errorf("Cut = %d, want %d", second, open)
	}
	if p := s.Cut(); p != second {
		t.Errorf("Cut of an empty group = %d, want %d", p, second)
	}
	if p := commit(t, s); p != second {
		t.Errorf("Commit = %d, want %d", p, second)
	}
	if p := commit(t, s); p != second {
		t.Errorf("Commit again = %d, want %d", p, second)
	}
}

func commitBesideSteps(t *testing.T, h Harness) {
	s := h.Store()
	const steps = 300
	cuts, done := make(chan env.Position, steps), make(chan error, 1)
	go func() {
		last := env.Position(0)
		for cut := range cuts {
			p, err := s.Commit()
			if err == nil && (p < cut || p < last) {
				err = fmt.Errorf("a Commit = %d after a Cut at %d and a Commit of %d", p, cut, last)
			}
			if err != nil {
				done <- err
				return
			}
			last = p
		}
		done <- nil
	}()
	for i := range steps {
		key := abd.Key(fmt.Sprint("k", i%17))
		put(t, s, key, record(i+1, fmt.Sprint(i)))
		wantRecord(t, s, key, record(i+1, fmt.Sprint(i)))
		cuts <- s.Cut()
	}
	close(cuts)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	h.Crash()
	for i := steps - 17; i < steps; i++ {
		wantRecord(t, h.Store(), abd.Key(fmt.Sprint("k", i%17)), record(i+1, fmt.Sprint(i)))
	}
	wantUsage(t, h.Store(), 17, 0)
}

func committedSurvives(t *testing.T, h Harness) {
	for round := range 4 {
		for i := range 20 {
			put(t, h.Store(), abd.Key(fmt.Sprint("k", i)), record(round*20+i+1, fmt.Sprint(round, i)))
		}
		h.Store().Cut()
		commit(t, h.Store())
		if round%2 == 0 {
			h.Crash()
		} else {
			h.Reopen()
		}
		for i := range 20 {
			wantRecord(t, h.Store(), abd.Key(fmt.Sprint("k", i)), record(round*20+i+1, fmt.Sprint(round, i)))
		}
		wantUsage(t, h.Store(), 20, 0)
	}
}

func uncommittedIsLost(t *testing.T, h Harness) {
	s := h.Store()
	put(t, s, "a", record(1, "kept"))
	s.Cut()
	commit(t, s)
	// The group is still open, so there is no end of it to be kept.
	put(t, s, "a", record(2, "lost"))
	put(t, s, "b", record(3, "lost"))
	h.Crash()
	wantRecord(t, h.Store(), "a", record(1, "kept"))
	wantRecord(t, h.Store(), "b", abd.Record{})
	wantUsage(t, h.Store(), 1, 0)
	if got := list(t, h.Store(), "", "", 10); len(got) != 1 || got[0].tag != tag(1) {
		t.Errorf("Scan after the crash = %v, want only a", got)
	}
}

func groupsAreAtomic(t *testing.T, h Harness) {
	s := h.Store()
	const groups, size = 5, 7
	for g := range groups {
		for i := range size {
			put(t, s, abd.Key(fmt.Sprint("g", g, ".", i)), record(g*size+i+1, "v"))
		}
		s.Cut()
	}
	h.Crash()
	kept := len(list(t, h.Store(), "", "", groups*size+1))
	if kept%size != 0 {
		t.Fatalf("%d records of groups of %d survived", kept, size)
	}
	for g := range groups {
		for i := range size {
			want := abd.Record{}
			if g < kept/size {
				want = record(g*size+i+1, "v")
			}
			wantRecord(t, h.Store(), abd.Key(fmt.Sprint("g", g, ".", i)), want)
		}
	}
	wantUsage(t, h.Store(), int64(kept), 0)
}

func crashTwice(t *testing.T, h Harness) {
	for i := range 6 {
		put(t, h.Store(), "k", record(i+1, fmt.Sprint("kept ", i)))
		h.Store().Cut()
		commit(t, h.Store())
		put(t, h.Store(), "k", record(100+i, "lost"))
		h.Crash()
		wantRecord(t, h.Store(), "k", record(i+1, fmt.Sprint("kept ", i)))
		h.Crash()
		wantRecord(t, h.Store(), "k", record(i+1, fmt.Sprint("kept ", i)))
	}
}

func scan(t *testing.T, h Harness) {
	s := h.Store()
	for i, key := range []abd.Key{"b/2", "a", "c", "b/1", "b", "b/3", "b/2/x"} {
		r := record(i+1, "v")
		if key == "b/3" {
			r = deleted(i + 1)
		}
		put(t, s, key, r)
	}
	check := func() {
		t.Helper()
		s := h.Store()
		for _, c := range []struct {
			prefix, after abd.Key
			limit         int
			want          string
		}{
			{"", "", 100, "a b b/1 b/2 b/2/x b/3- c"},
			{"", "", 2, "a b"},
			{"", "b/2", 2, "b/2/x b/3-"},
			{"", "b/2\x00", 1, "b/2/x"},
			{"b/", "", 100, "b/1 b/2 b/2/x b/3-"},
			{"b/", "b/1", 1, "b/2"},
			{"b/", "a", 100, "b/1 b/2 b/2/x b/3-"},
			{"b/", "b/", 1, "b/1"},
			{"b/", "b/3", 100, ""},
			{"b/", "c", 100, ""},
			{"b/2", "", 100, "b/2 b/2/x"},
			{"b/2", "b/2", 100, "b/2/x"},
			{"d", "", 100, ""},
			{"", "c", 100, ""},
		} {
			var got []string
			for _, i := range list(t, s, c.prefix, c.after, c.limit) {
				name := string(i.key)
				if i.deleted {
					name += "-"
				}
				got = append(got, name)
			}
			if g := strings.Join(got, " "); g != c.want {
				t.Errorf("Scan(%q, %q) of %d = %q, want %q", c.prefix, c.after, c.limit, g, c.want)
			}
		}
	}
	check()
	s.Cut()
	commit(t, s)
	check()
	h.Reopen()
	check()
	// Newer records hide older ones, wherever those are; Load works inside.
	put(t, h.Store(), "b/2", deleted(50))
	put(t, h.Store(), "b/3", record(51, "again"))
	want := []item{{"b/1", tag(4), false}, {"b/2", tag(50), true}, {"b/2/x", tag(7), false}, {"b/3", tag(51), false}}
	var got []item
	_, err := h.Store().Scan("b/", "", func(key abd.Key, tag tags.Tag, deleted bool) bool {
		if r, _, err := h.Store().Load(key, true); err != nil || r.Tag != tag {
			t.Errorf("Load(%q) within Scan = %s, %v", key, show(r), err)
		}
		got = append(got, item{key, tag, deleted})
		return true
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Scan after overwriting = %v, %v; want %v", got, err, want)
	}
}

func scanAwkwardKeys(t *testing.T, h Harness) {
	long := strings.Repeat("k", abd.MaxKey-1)
	keys := []abd.Key{
		"\x00", "\x00\x00", "\x00\x01", "a\x00", "a\x00b", "a", "\xff", "\xff\xff", "\xff\xfe", "ä", "\xc3",
		abd.Key(long), abd.Key(long + "\x00"), abd.Key(long + "\xff"), abd.Key(strings.Repeat("\xff", abd.MaxKey)),
	}
	for i, key := range keys {
		put(t, h.Store(), key, record(i+1, string(key)))
	}
	h.Store().Cut()
	commit(t, h.Store())
	sorted := slices.Clone(keys)
	slices.Sort(sorted)
	for round := range 2 {
		for i, key := range keys {
			wantRecord(t, h.Store(), key, record(i+1, string(key)))
		}
		for _, prefix := range append(slices.Clone(keys), "") {
			for _, after := range append(slices.Clone(keys), "") {
				var want []abd.Key
				for _, key := range sorted {
					if strings.HasPrefix(string(key), string(prefix)) && key > after {
						want = append(want, key)
					}
				}
				var got []abd.Key
				for _, i := range list(t, h.Store(), prefix, after, 100) {
					got = append(got, i.key)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("round %d: Scan(%.20q, %.20q) has %d keys, want %d: %.20q", round, string(prefix), string(after), len(got), len(want), got)
				}
			}
		}
		h.Crash()
	}
}

func scanMany(t *testing.T, h Harness) {
	const n = 1500
	key := func(i int) abd.Key { return abd.Key(fmt.Sprintf("%05d", i)) }
	for i := range n {
		j := i * 7 % n // not in order
		put(t, h.Store(), key(j), record(j+1, "v"))
		h.Store().Cut()
	}
	commit(t, h.Store())
	h.Reopen()
	for i := 0; i < n; i += 3 {
		put(t, h.Store(), key(i), deleted(n+i+1))
	}
	got, after := []item(nil), abd.Key("")
	for {
		page := list(t, h.Store(), "0", after, 700)
		if len(page) == 0 {
			break
		}
		got, after = append(got, page...), page[len(page)-1].key
	}
	if len(got) != n {
		t.Fatalf("Scan by pages has %d keys, want %d", len(got), n)
	}
	for i, g := range got {
		want := item{key(i), tag(i + 1), false}
		if i%3 == 0 {
			want.tag, want.deleted = tag(n+i+1), true
		}
		if g != want {
			t.Fatalf("key %d of Scan is %v, want %v", i, g, want)
		}
	}
	wantUsage(t, h.Store(), n-n/3, n/3)
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
