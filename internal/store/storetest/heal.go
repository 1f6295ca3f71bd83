package storetest

import (
	"errors"
	"fmt"
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/replica"
)

// A Damager is a Harness that can damage a record of its store.
type Damager interface {
	Harness
	Damage(key abd.Key)
}

func heal(t *testing.T, s replica.Store, key abd.Key, r abd.Record) env.Position {
	t.Helper()
	p, err := s.Heal(key, r)
	if err != nil {
		t.Fatalf("Heal(%.40q, %s): %v", string(key), show(r), err)
	}
	return p
}

func keysOf(items []item) string {
	text := ""
	for _, i := range items {
		text += string(i.key) + " "
	}
	return text
}

// healReplaces puts records in the place of good ones, of tombstones and of
// nothing.
func healReplaces(t *testing.T, h Harness) {
	s := h.Store()
	put(t, s, "a", record(5, "old"))
	put(t, s, "b", deleted(6))
	s.Cut()
	commit(t, s)
	for round, reopen := range []func(){h.Reopen, h.Crash} {
		n := round * 10
		s := h.Store()
		p := heal(t, s, "a", record(n+3, "healed"))
		if q := wantRecord(t, s, "a", record(n+3, "healed")); q != p {
			t.Errorf("the healed record stands at %d, Heal said %d", q, p)
		}
		heal(t, s, "b", record(n+4, "not deleted"))
		heal(t, s, "c", deleted(n+5))
		wantUsage(t, s, 2, 1)
		s.Cut()
		commit(t, s)
		reopen()
		wantRecord(t, h.Store(), "a", record(n+3, "healed"))
		wantRecord(t, h.Store(), "b", record(n+4, "not deleted"))
		wantRecord(t, h.Store(), "c", deleted(n+5))
		wantUsage(t, h.Store(), 2, 1)
	}
}

// healRemoves removes keys as if they had never been written.
func healRemoves(t *testing.T, h Harness) {
	for i, key := range []abd.Key{"a", "b", "c", "d"} {
		put(t, h.Store(), key, record(i+1, "v"))
	}
	put(t, h.Store(), "e", deleted(9))
	h.Store().Cut()
	commit(t, h.Store())
	h.Reopen()
	check := func(want string, keys, tombstones int64) {
		t.Helper()
		wantUsage(t, h.Store(), keys, tombstones)
		if got := keysOf(list(t, h.Store(), "", "", 10)); got != want {
			t.Fatalf("Scan has %q, want %q", got, want)
		}
	}
	s := h.Store()
	p := heal(t, s, "b", abd.Record{})
	if q := wantRecord(t, s, "b", abd.Record{}); q != p {
		t.Errorf("the removal stands at %d, Heal said %d", q, p)
	}
	heal(t, s, "e", abd.Record{})
	heal(t, s, "never", abd.Record{})
	check("a c d ", 3, 0)
	if got := keysOf(list(t, s, "", "a", 1)); got != "c " {
		t.Errorf("Scan of one key behind a removed one has %q, want c", got)
	}
	h.Crash() // the group was open
	check("a b c d e ", 4, 1)
	wantRecord(t, h.Store(), "b", record(2, "v"))

	s = h.Store()
	heal(t, s, "b", abd.Record{})
	heal(t, s, "e", abd.Record{})
	s.Cut()
	commit(t, s)
	for _, reopen := range []func(){h.Crash, h.Reopen} {
		reopen()
		check("a c d ", 3, 0)
		wantRecord(t, h.Store(), "b", abd.Record{})
		wantRecord(t, h.Store(), "e", abd.Record{})
	}
	// What was removed can be written again, and removed again.
	put(t, h.Store(), "b", record(20, "again"))
	heal(t, h.Store(), "a", abd.Record{})
	heal(t, h.Store(), "a", record(21, "healed"))
	put(t, h.Store(), "c", record(22, "new"))
	heal(t, h.Store(), "c", abd.Record{})
	check("a b d ", 3, 0)
	h.Store().Cut()
	commit(t, h.Store())
	h.Reopen()
	check("a b d ", 3, 0)
	wantRecord(t, h.Store(), "a", record(21, "healed"))
	wantRecord(t, h.Store(), "b", record(20, "again"))
	wantRecord(t, h.Store(), "c", abd.Record{})
}

// healMany removes and replaces enough for tables to be applied and pages of
// whatever holds the records to be emptied and merged.
func healMany(t *testing.T, h Harness) {
	const n = 600
	key := func(i int) abd.Key { return abd.Key(fmt.Sprintf("%04d", i)) }
	for i := range n {
		put(t, h.Store(), key(i), record(i+1, "a value that takes some room, as values do"))
	}
	h.Store().Cut()
	commit(t, h.Store())
	for i := range n {
		if i%100 < 70 {
			heal(t, h.Store(), key(i), abd.Record{})
		} else if i%3 == 0 {
			heal(t, h.Store(), key(i), deleted(n+i))
		}
		if i%50 == 49 {
			h.Store().Cut()
			commit(t, h.Store())
		}
	}
	for _, reopen := range []func(){func() {}, h.Crash, h.Reopen} {
		reopen()
		var live, dead int64
		for i := range n {
			switch {
			case i%100 < 70:
				wantRecord(t, h.Store(), key(i), abd.Record{})
			case i%3 == 0:
				dead++
				wantRecord(t, h.Store(), key(i), deleted(n+i))
			default:
				live++
				wantRecord(t, h.Store(), key(i), record(i+1, "a value that takes some room, as values do"))
			}
		}
		wantUsage(t, h.Store(), live, dead)
		if got := len(list(t, h.Store(), "", "", n)); int64(got) != live+dead {
			t.Fatalf("Scan has %d keys, want %d", got, live+dead)
		}
	}
}

// healDamage heals records that are damaged, where the harness can do that.
func healDamage(t *testing.T, h Harness) {
	d, ok := h.(Damager)
	if !ok {
		t.Skip("records of this store can't be damaged from here")
	}
	for i, key := range []abd.Key{"a", "b", "c", "d"} {
		put(t, h.Store(), key, record(i+1, "v"))
	}
	h.Store().Cut()
	commit(t, h.Store())
	for _, key := range []abd.Key{"b", "c"} {
		d.Damage(key)
		_, _, err := h.Store().Load(key, true)
		wantDamaged(t, err, key)
	}
	_, err := h.Store().Scan("", "", visitAll)
	wantDamaged(t, err, "b")
	heal(t, h.Store(), "b", record(10, "healed"))
	_, err = h.Store().Scan("", "", visitAll)
	wantDamaged(t, err, "c")
	heal(t, h.Store(), "c", abd.Record{})
	check := func() {
		t.Helper()
		wantRecord(t, h.Store(), "b", record(10, "healed"))
		wantRecord(t, h.Store(), "c", abd.Record{})
		wantUsage(t, h.Store(), 3, 0)
		if got := keysOf(list(t, h.Store(), "", "", 10)); got != "a b d " {
			t.Fatalf("Scan has %q, want a, b and d", got)
		}
	}
	check()
	h.Crash() // the group was open: the damage is back
	for _, key := range []abd.Key{"b", "c"} {
		_, _, err := h.Store().Load(key, true)
		wantDamaged(t, err, key)
	}
	heal(t, h.Store(), "b", record(10, "healed"))
	heal(t, h.Store(), "c", abd.Record{})
	h.Store().Cut()
	commit(t, h.Store())
	check()
	h.Crash()
	check()
	h.Reopen()
	check()
}

// wantDamaged checks that err says that the record of key is damaged.
func wantDamaged(t *testing.T, err error, key abd.Key) {
	t.Helper()
	d, ok := errors.AsType[*abd.DamagedRecord](err)
	if !ok || d.Key != key || !errors.Is(err, abd.ErrDamaged) {
		t.Fatalf("error %v, want a *DamagedRecord of %q", err, key)
	}
}
