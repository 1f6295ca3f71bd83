package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"atoll/abd"
	"atoll/client"
	"atoll/internal/identity"
	"atoll/tags"
)

// TestRegisters holds what registers promise against one cluster, through two
// clients of it.
func TestRegisters(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 3, identity.Spec{})
	c, other := h.open(), h.open()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, c, other *client.Client)
	}{
		{"what was never written is not found", neverWritten},
		{"the last put is what is read", lastPut},
		{"an empty value is a value", emptyValue},
		{"a deleted key is missing until it is put again", deleted},
		{"keys and values are any bytes", anyBytes},
		{"the largest key and value pass", largest},
		{"a value may be changed when Put has returned", ownValue},
		{"64 goroutines share a client", shared},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c, other) })
	}
}

func put(t testing.TB, c *client.Client, key, value string) tags.Tag {
	t.Helper()
	tag, err := c.Put(t.Context(), key, []byte(value))
	if err != nil {
		t.Fatalf("put %q: %v", key, err)
	}
	return tag
}

func del(t testing.TB, c *client.Client, key string) tags.Tag {
	t.Helper()
	tag, err := c.Delete(t.Context(), key)
	if err != nil {
		t.Fatalf("delete %q: %v", key, err)
	}
	return tag
}

// wantValue fails unless a key has this value and tag.
func wantValue(t testing.TB, c *client.Client, key, value string, tag tags.Tag) {
	t.Helper()
	v, err := c.Get(t.Context(), key)
	if err != nil || string(v.Bytes) != value || v.Tag != tag {
		t.Errorf("get %.40q: %.40q under %v, %v; want %.40q under %v", key, v.Bytes, v.Tag, err, value, tag)
	}
}

func wantMissing(t testing.TB, c *client.Client, key string) {
	t.Helper()
	v, err := c.Get(t.Context(), key)
	if !errors.Is(err, client.ErrNotFound) || v.Bytes != nil || !v.Tag.IsZero() {
		t.Errorf("get %.40q: %q under %v, %v; want only ErrNotFound", key, v.Bytes, v.Tag, err)
	}
}

func neverWritten(t *testing.T, c, _ *client.Client) {
	wantMissing(t, c, "never")
	if got := list(t, c, "never"); len(got) != 0 {
		t.Errorf("it is listed: %v", got)
	}
}

func lastPut(t *testing.T, c, other *client.Client) {
	first := put(t, c, "last", "1")
	wantValue(t, other, "last", "1", first)
	second := put(t, other, "last", "2")
	wantValue(t, c, "last", "2", second)
	if second.Compare(first) <= 0 {
		t.Errorf("the second put has tag %v, not behind %v", second, first)
	}
}

func emptyValue(t *testing.T, c, other *client.Client) {
	tag := put(t, c, "empty", "")
	wantValue(t, other, "empty", "", tag)
	if got := list(t, c, "empty"); len(got) != 1 || got[0] != (client.Entry{Key: "empty", Tag: tag}) {
		t.Errorf("listed: %v", got)
	}
	del(t, c, "empty")
	wantMissing(t, other, "empty")
}

func deleted(t *testing.T, c, other *client.Client) {
	never := del(t, c, "deleted")
	wantMissing(t, other, "deleted")
	written := put(t, other, "deleted", "v")
	gone := del(t, c, "deleted")
	wantMissing(t, c, "deleted")
	if got := list(t, other, "deleted"); len(got) != 0 {
		t.Errorf("it is listed: %v", got)
	}
	again := put(t, other, "deleted", "w")
	wantValue(t, c, "deleted", "w", again)
	if all := []tags.Tag{never, written, gone, again}; !slices.IsSortedFunc(all, tags.Tag.Compare) {
		t.Errorf("the tags aren't in order: %v", all)
	}
}

func anyBytes(t *testing.T, c, other *client.Client) {
	const prefix = "bytes\x00"
	var value []byte
	for b := range 256 {
		value = append(value, byte(b))
	}
	keys := []string{
		prefix, prefix + "\x00", prefix + "\x00\x00", prefix + "a\x00b", prefix + "a b\n\t\"'", prefix + "é",
		prefix + "\xff", prefix + "\xff\xfe", prefix + strings.Repeat("\xff", abd.MaxKey-len(prefix)),
	}
	written := make(map[string]tags.Tag)
	for _, key := range keys {
		written[key] = put(t, c, key, key+string(value))
	}
	put(t, c, "bytes\x01", "behind them")
	for _, key := range keys {
		wantValue(t, other, key, key+string(value), written[key])
	}
	slices.Sort(keys)
	var want []client.Entry
	for _, key := range keys {
		want = append(want, client.Entry{Key: key, Tag: written[key]})
	}
	if got := list(t, other, prefix); !slices.Equal(got, want) {
		t.Errorf("listed: %q\nwant %q", got, want)
	}
}

func largest(t *testing.T, c, other *client.Client) {
	key := strings.Repeat("k", abd.MaxKey)
	value := string(bytes.Repeat([]byte("0123456789abcdef"), abd.DefaultMaxValue/16))
	tag := put(t, c, key, value)
	wantValue(t, other, key, value, tag)
}

func ownValue(t *testing.T, c, _ *client.Client) {
	value := []byte("0")
	for i := range byte(50) {
		value[0] = i
		tag, err := c.Put(t.Context(), "own", value)
		if err != nil {
			t.Fatal(err)
		}
		value[0] = ^i
		wantValue(t, c, "own", string([]byte{i}), tag)
	}
}

// shared has 64 goroutines put to and get from a few keys. Each put has a
// value of its own, so each get tells whose tag belongs to it; and no
// goroutine ever goes back behind what it has seen.
func shared(t *testing.T, c, other *client.Client) {
	const callers, rounds, keys = 64, 6, 4
	type seen struct {
		tag   tags.Tag
		value string
	}
	all := make([][keys][]seen, callers)
	var work sync.WaitGroup
	for i := range callers {
		work.Go(func() {
			for round := range rounds {
				key := (i + round) % keys
				name, value := fmt.Sprintf("shared/%d", key), fmt.Sprintf("%d by %d", round, i)
				tag, err := c.Put(t.Context(), name, []byte(value))
				if err != nil {
					t.Errorf("put: %v", err)
					return
				}
				v, err := other.Get(t.Context(), name)
				if err != nil {
					t.Errorf("get: %v", err)
					return
				}
				all[i][key] = append(all[i][key], seen{tag, value}, seen{v.Tag, string(v.Bytes)})
			}
		})
	}
	work.Wait()
	for key := range keys {
		values := make(map[tags.Tag]string)
		var last tags.Tag
		for i := range callers {
			before := tags.Tag{}
			for n, s := range all[i][key] {
				if n%2 == 1 && s.tag.Less(before) { // a get
					t.Errorf("key %d: caller %d saw tag %v after %v", key, i, s.tag, before)
				}
				if value, ok := values[s.tag]; ok && value != s.value {
					t.Errorf("key %d: tag %v belongs to %q and to %q", key, s.tag, value, s.value)
				}
				values[s.tag] = s.value
				before = s.tag
				if last.Less(s.tag) {
					last = s.tag
				}
			}
		}
		wantValue(t, c, fmt.Sprintf("shared/%d", key), values[last], last)
	}
}

func TestTheLimitIsTheClusters(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 1, identity.Spec{MaxValue: abd.LargestMaxValue})
	c := h.open()
	value := bytes.Repeat([]byte("v"), abd.LargestMaxValue+1)
	tag := put(t, c, "large", string(value[1:]))
	wantValue(t, c, "large", string(value[1:]), tag)
	_, err := c.Put(t.Context(), "large", value)
	wantTooLarge(t, err, abd.SizeError{What: "value", Size: abd.LargestMaxValue + 1, Max: abd.LargestMaxValue})
}

func wantTooLarge(t *testing.T, err error, want abd.SizeError) {
	t.Helper()
	var got *abd.SizeError
	if !errors.As(err, &got) || *got != want {
		t.Errorf("got %v, want %v", err, &want)
	}
}

// TestBeyondTheLimitsNobodyIsAsked makes the calls while no replica runs:
// whoever asked one would get another error.
func TestBeyondTheLimitsNobodyIsAsked(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 1, identity.Spec{MaxValue: 10})
	c := h.open()
	h.down("a")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	long := strings.Repeat("k", abd.MaxKey+1)
	for _, key := range []string{"", long} {
		want := abd.SizeError{What: "key", Size: len(key), Min: 1, Max: abd.MaxKey}
		_, err := c.Get(ctx, key)
		wantTooLarge(t, err, want)
		_, err = c.Put(ctx, key, nil)
		wantTooLarge(t, err, want)
		_, err = c.Delete(ctx, key)
		wantTooLarge(t, err, want)
	}
	for _, err := range c.List(ctx, long) {
		wantTooLarge(t, err, abd.SizeError{What: "key", Size: len(long), Min: 1, Max: abd.MaxKey})
	}
	_, err := c.Put(ctx, "k", make([]byte, 11))
	wantTooLarge(t, err, abd.SizeError{What: "value", Size: 11, Max: 10})
}

// list returns all that a list yields.
func list(t testing.TB, c *client.Client, prefix string) []client.Entry {
	t.Helper()
	var all []client.Entry
	for e, err := range c.List(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("list %q: %v", prefix, err)
		}
		all = append(all, e)
	}
	return all
}

// TestListOfThousands lists more than two pages, while one of the two replicas
// that are left has missed writes and deletions.
func TestListOfThousands(t *testing.T) {
	t.Parallel()
	const keys, callers = 2*abd.MaxPage + 300, 64
	h := startCluster(t, 3, identity.Spec{})
	c := h.open()
	want := make([]client.Entry, keys)
	each := func(some func(i int) bool, do func(key string) (tags.Tag, error)) {
		t.Helper()
		var work sync.WaitGroup
		for caller := range callers {
			work.Go(func() {
				for i := caller; i < keys; i += callers {
					if !some(i) {
						continue
					}
					key := fmt.Sprintf("k/%05d", i)
					tag, err := do(key)
					if err != nil {
						t.Errorf("%s: %v", key, err)
						return
					}
					want[i] = client.Entry{Key: key, Tag: tag}
				}
			})
		}
		work.Wait()
	}
	write := func(key string) (tags.Tag, error) { return c.Put(t.Context(), key, []byte(key)) }
	// Some here and there, and so many in a row that a page has nothing else.
	gone := func(i int) bool { return i%50 == 49 || i >= abd.MaxPage-100 && i < 2*abd.MaxPage }
	each(func(int) bool { return true }, write)
	front, back := put(t, c, "j", ""), put(t, c, "l", "")

	h.down("c")
	each(gone, func(key string) (tags.Tag, error) { return c.Delete(t.Context(), key) })
	each(func(i int) bool { return i%60 == 3 && !gone(i) }, write)
	h.up("c")
	h.down("a")

	for i := keys - 1; i >= 0; i-- {
		if gone(i) {
			want = slices.Delete(want, i, i+1)
		}
	}
	for _, test := range []struct {
		prefix string
		want   []client.Entry
	}{
		{"k/", want},
		{"k/01", slices.DeleteFunc(slices.Clone(want), func(e client.Entry) bool { return !strings.HasPrefix(e.Key, "k/01") })},
		{"k/00049", nil},
		{"k0", nil},
		{"", slices.Concat([]client.Entry{{Key: "j", Tag: front}}, want, []client.Entry{{Key: "l", Tag: back}})},
	} {
		if got := list(t, c, test.prefix); !slices.Equal(got, test.want) {
			t.Errorf("list %q: %d keys, want %d", test.prefix, len(got), len(test.want))
		}
	}
	n := 0
	for range c.List(t.Context(), "") {
		if n++; n == 3 {
			break
		}
	}
}
