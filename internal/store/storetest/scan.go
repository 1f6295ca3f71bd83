package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"atoll/abd"
	"atoll/replica"
	"atoll/tags"
)

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
	if walked := walk(t, s, prefix, after, limit); !slices.Equal(walked, got) {
		t.Fatalf("Walk(%.40q) finds %v of %.40q, Scan %v", string(after), walked, string(prefix), got)
	}
	return got
}

// walk lists by Walk, and checks that values are those that Load returns.
func walk(t *testing.T, s replica.Store, prefix, after abd.Key, limit int) (got []item) {
	t.Helper()
	var values []string
	_, err := s.Walk(after, func(key abd.Key, tag tags.Tag, deleted bool, value func() ([]byte, error)) bool {
		if !strings.HasPrefix(string(key), string(prefix)) {
			return key < prefix
		}
		v, err := value()
		if err != nil {
			t.Errorf("Walk(%.40q): the value of %.40q: %v", string(after), string(key), err)
		}
		got = append(got, item{abd.Key(strings.Clone(string(key))), tag, deleted})
		values = append(values, string(v))
		return len(got) < limit
	})
	if err != nil {
		t.Fatalf("Walk(%.40q): %v", string(after), err)
	}
	for i, item := range got {
		if r, _, err := s.Load(item.key, true); err != nil || string(r.Value) != values[i] {
			t.Errorf("Walk shows %.40q under %.40q, Load %s, %v", values[i], string(item.key), show(r), err)
		}
	}
	return got
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
