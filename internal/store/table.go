package store

import (
	"slices"
	"sort"
	"strings"

	"atoll/abd"
	"atoll/env"
)

// entryOverhead is about what a table spends in bytes on an entry beside its
// key and record.
const entryOverhead = 96

// A table is the part of the state that isn't in bbolt yet: the newest record
// of each key that was written since some position. The stepping goroutine
// alone touches the active one; a frozen one never changes.
type table struct {
	entries map[abd.Key]entry
	order   keyOrder
	bytes   int64
	// last is the position behind the table's last record. Set when frozen.
	last env.Position
	// applied is closed when all of it is in bbolt.
	applied chan struct{}
}

type entry struct {
	record   []byte // encoded, immutable
	position env.Position
}

func newTable() *table {
	return &table{entries: make(map[abd.Key]entry), applied: make(chan struct{})}
}

// put keeps e, and a copy of the key if it is new.
func (t *table) put(key abd.Key, e entry) {
	if old, ok := t.entries[key]; ok {
		t.bytes += int64(len(e.record) - len(old.record))
		t.entries[key] = e
		return
	}
	key = abd.Key(strings.Clone(string(key)))
	t.entries[key] = e
	t.order.insert(key)
	t.bytes += int64(len(key) + len(e.record) + entryOverhead)
}

// maxChunk keys are moved at most to insert one.
const maxChunk = 512

// keyOrder is a sorted list of keys: chunks of keys, each sorted, none empty,
// each before the next. It is a B-tree of two levels: fast enough to be kept
// up to date with every new key, so that neither a scan nor an apply has to
// sort.
type keyOrder struct{ chunks [][]abd.Key }

// insert adds a key that isn't in the list.
func (o *keyOrder) insert(key abd.Key) {
	if len(o.chunks) == 0 {
		o.chunks = [][]abd.Key{append(make([]abd.Key, 0, maxChunk), key)}
		return
	}
	i := max(0, sort.Search(len(o.chunks), func(i int) bool { return o.chunks[i][0] > key })-1)
	if c := o.chunks[i]; len(c) == maxChunk {
		// Keys often come in order, so the full chunk at the end isn't halved.
		half := maxChunk / 2
		if i == len(o.chunks)-1 && key > c[maxChunk-1] {
			half = maxChunk
		}
		right := append(make([]abd.Key, 0, maxChunk), c[half:]...)
		clear(c[half:])
		o.chunks[i] = c[:half]
		if half == maxChunk {
			o.chunks = append(o.chunks, append(right, key))
			return
		}
		o.chunks = slices.Insert(o.chunks, i+1, right)
		if key > right[0] {
			i++
		}
	}
	at, _ := slices.BinarySearch(o.chunks[i], key)
	o.chunks[i] = slices.Insert(o.chunks[i], at, key)
}

// from returns a cursor at the first key that isn't before start.
func (o *keyOrder) from(start abd.Key) keyCursor {
	i := max(0, sort.Search(len(o.chunks), func(i int) bool { return o.chunks[i][0] > start })-1)
	c := keyCursor{order: o, chunk: i}
	if i < len(o.chunks) {
		c.index, _ = slices.BinarySearch(o.chunks[i], start)
	}
	return c
}

// keyCursor walks a keyOrder that doesn't change meanwhile.
type keyCursor struct {
	order        *keyOrder
	chunk, index int
}

// peek returns the key at the cursor, false at the end.
func (c *keyCursor) peek() (abd.Key, bool) {
	for c.chunk < len(c.order.chunks) {
		if keys := c.order.chunks[c.chunk]; c.index < len(keys) {
			return keys[c.index], true
		}
		c.chunk, c.index = c.chunk+1, 0
	}
	return "", false
}

// next moves to the next key.
func (c *keyCursor) next() { c.index++ }
