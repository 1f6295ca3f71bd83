package store

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"atoll/abd"
	"atoll/env"
)

// How a table is laid out. None of it points to anything but the chunks, so
// the garbage collector has nothing to walk through, however many keys.
const (
	// firstChunk and largestChunk are what is allocated at once for keys and
	// records, in bytes: an eighth of what there is, so that no more is free.
	// The largest fill large pages.
	firstChunk   = 4 << 10
	largestChunk = largePage
	// ownChunk is the size in bytes from which a record has a chunk for
	// itself, which is let go when the record is replaced.
	ownChunk = 64 << 10
	// itemBlock is how many items stand together. As many blocks are allocated
	// at once as fill a chunk.
	itemBlock = 4096
	// firstSlots is the size of a new table's index; a power of two, and no
	// less than loadParts.
	firstSlots = 256
	// runKeys is how many keys are sorted at once. The more, the longer that
	// takes (about a millisecond); the fewer, the more runs a cursor merges.
	runKeys = 8192
	// entryOverhead is what a table takes for a key beside its bytes, at
	// most: its item, its place in a run, and up to eight slots for three.
	entryOverhead = 32 + 4 + 8*8/3
	// cellOverhead is about what it takes for a cell beside its bytes.
	cellOverhead = 96
)

// A table is the part of the state that isn't in bbolt yet: the newest record
// of each key that was written since some position. The stepping goroutine
// alone touches the active one; a frozen one never changes.
//
// Keys and records are copied into chunks and never moved or overwritten: what
// was read from a table stays as it is.
type table struct {
	seed   maphash.Seed
	chunks [][]byte
	fill   uint32 // the chunk that is being filled
	slots  []slot // hash table with linear probing
	shift  uint8  // by which a hash becomes the number of its slot
	blocks [][]item
	count  int // of items
	// order holds the numbers of the items, runKeys by runKeys, each run
	// sorted by key; arranged is how many items that is.
	order    [][]uint32
	arranged int
	// unsorted are the runs that were left to sorted: the number of the next
	// one, and how many aren't done.
	unsorted struct {
		next atomic.Int64
		runs sync.WaitGroup
	}
	// cells are the blobs of the cells that were set.
	cells map[string][]byte
	// bytes is what it all takes. What was replaced counts, as it stays until
	// the table goes.
	bytes int64
	// filed is where the records are that were loaded; nil if none was.
	filed *filed
	// last is the position behind the table's last record. Set when frozen.
	last env.Position
	// applied is closed when all of it is in bbolt.
	applied chan struct{}
}

// item is a key and its record.
type item struct {
	position env.Position
	hash     uint32
	place
	size   uint32 // of the record; 0 if there is none any more
	before presence
	filed  bool // the record isn't in the chunk, but where that says
}

// place says where a key is. Its record is right behind it, or a filedAt.
type place struct {
	chunk, at uint32
	key       uint16 // its length
}

// entry is a key's record in a table.
type entry struct {
	record   []byte // encoded, immutable; nil if there is none any more
	position env.Position
	// before is what was there before the table's first record of the key:
	// what bbolt holds when it is this table's turn.
	before presence
	filed  bool // the record was read from a file just now, its value isn't checked
}

// newTable returns an empty table. Tables with the same seed have the same
// hashes.
func newTable(seed maphash.Seed) *table {
	return &table{seed: seed, slots: make([]slot, firstSlots), shift: shiftOf(firstSlots), applied: make(chan struct{})}
}

func (t *table) hash(key abd.Key) uint32 { return uint32(maphash.String(t.seed, string(key))) }

// slot is a place of the index: 0, or an item's hash and, in the lower half, its
// number + 1. Whoever looks for another key need not visit the item.
type slot uint64

func slotOf(i, hash uint32) slot { return slot(hash)<<32 | slot(i+1) }
func (s slot) hash() uint32      { return uint32(s >> 32) }
func (s slot) number() uint32    { return uint32(s) - 1 }

// shiftOf returns the shift for so many slots: the first bits of a hash choose
// one, so that keys whose hashes begin alike stand together.
func shiftOf(slots int) uint8 { return uint8(32 - bits.TrailingZeros(uint(slots))) }

// home is the slot that a hash is looked for at first.
func (t *table) home(hash uint32) uint32 { return hash >> t.shift }

func (t *table) item(i uint32) *item { return &t.blocks[i/itemBlock][i%itemBlock] }

// keyOf returns an item's key, which is never changed.
func (t *table) keyOf(i uint32) abd.Key { return t.keyAt(t.item(i).place) }

func (t *table) keyAt(p place) abd.Key {
	if p.key == 0 {
		return ""
	}
	return abd.Key(unsafe.String(&t.chunks[p.chunk][p.at], int(p.key)))
}

// entryOf returns an item's entry. Unless withValue, the record may be its head
// only. Only what was loaded can fail to be there.
func (t *table) entryOf(i uint32, withValue bool) (e entry, err error) {
	it := t.item(i)
	e = entry{position: it.position, before: it.before, filed: it.filed}
	begin := it.at + uint32(it.key)
	switch {
	case it.filed:
		size := int(it.size)
		if !withValue {
			size = recordHead
		}
		e.record, err = t.filed.read(readFiledAt(t.chunks[it.chunk][begin:]), t.keyOf(i), size)
	case it.size > 0:
		e.record = t.chunks[it.chunk][begin : begin+it.size : begin+it.size]
	}
	return e, err
}

// spot is where a key is in a table, until that changes.
type spot struct {
	there  bool
	number uint32 // of its item, if it is there
	slot   uint32 // that it would take, if it isn't
}

// find returns where a key is.
func (t *table) find(key abd.Key, hash uint32) spot {
	mask := uint32(len(t.slots) - 1)
	at := t.home(hash)
	for ; t.slots[at] != 0; at = (at + 1) & mask {
		if s := t.slots[at]; s.hash() == hash && t.keyOf(s.number()) == key {
			return spot{there: true, number: s.number()}
		}
	}
	return spot{slot: at}
}

// get returns the entry of a key whose hash is known; see entryOf.
func (t *table) get(key abd.Key, hash uint32, withValue bool) (e entry, ok bool, err error) {
	return t.getAt(t.find(key, hash), withValue)
}

// getAt is get of what find has found.
func (t *table) getAt(at spot, withValue bool) (e entry, ok bool, err error) {
	if !at.there {
		return entry{}, false, nil
	}
	e, err = t.entryOf(at.number, withValue)
	return e, err == nil, err
}

// touch looks at where hashes are looked for, and returns what depends on all that.
func (t *table) touch(hashes []uint32) (sum uint32) {
	for some := range slices.Chunk(hashes, touchKeys) {
		var slots [touchKeys]slot
		for i, hash := range some {
			slots[i] = t.slots[t.home(hash)]
		}
		for i, hash := range some {
			if s := slots[i]; s != 0 && s.hash() == hash {
				sum += t.item(s.number()).size
			}
		}
	}
	return sum
}

// put makes room for a key's record of the given size, and returns it for the
// caller to fill at once. A size of 0 says that there is no record any more.
// before counts when the key is new to the table.
func (t *table) put(key abd.Key, hash uint32, size int, position env.Position, before presence) []byte {
	return t.putAt(t.find(key, hash), key, hash, size, position, before)
}

// putAt is put of a key that find has looked for.
func (t *table) putAt(at spot, key abd.Key, hash uint32, size int, position env.Position, before presence) []byte {
	i := at.number
	if !at.there {
		i = uint32(t.count)
		if int(i/itemBlock) == len(t.blocks) {
			n := max(1, t.nextChunk()/(itemBlock*int(unsafe.Sizeof(item{}))))
			t.blocks = slices.AppendSeq(t.blocks, slices.Chunk(makeMany[item](n*itemBlock), itemBlock))
		}
		t.count++
		t.slots[at.slot] = slotOf(i, hash)
		*t.item(i) = item{hash: hash, place: place{key: uint16(len(key))}, before: before}
		t.bytes += entryOverhead
	} else if old := t.item(i); !old.filed && old.at == 0 && int(old.key)+int(old.size) >= ownChunk {
		// Its chunk is its own.
		t.chunks[old.chunk] = nil
		t.bytes -= int64(old.key) + int64(old.size)
	}
	it := t.item(i)
	it.position, it.size, it.filed = position, uint32(size), false
	var room []byte
	it.chunk, it.at, room = t.room(len(key) + size)
	copy(room, key)
	if !at.there && t.count%runKeys == 0 {
		t.arrange()
	}
	if !at.there && t.count*4 > len(t.slots)*3 {
		t.grow()
	}
	return room[len(key):]
}

// putCell keeps a cell's blob.
func (t *table) putCell(name string, blob []byte) {
	if t.cells == nil {
		t.cells = make(map[string][]byte)
	}
	if old, ok := t.cells[name]; ok {
		t.bytes -= int64(len(name) + len(old) + cellOverhead)
	}
	t.cells[name] = blob
	t.bytes += int64(len(name) + len(blob) + cellOverhead)
}

// empty reports whether there is nothing to be applied.
func (t *table) empty() bool { return t.count == 0 && len(t.cells) == 0 }

// room takes n bytes of a chunk.
func (t *table) room(n int) (chunk, at uint32, room []byte) {
	t.bytes += int64(n)
	if n >= ownChunk {
		t.chunks = append(t.chunks, make([]byte, n))
		return uint32(len(t.chunks) - 1), 0, t.chunks[len(t.chunks)-1]
	}
	if len(t.chunks) == 0 || cap(t.chunks[t.fill])-len(t.chunks[t.fill]) < n {
		t.chunks = append(t.chunks, makeMany[byte](max(t.nextChunk(), n))[:0])
		t.fill = uint32(len(t.chunks) - 1)
	}
	c := t.chunks[t.fill]
	at = uint32(len(c))
	t.chunks[t.fill] = c[:len(c)+n]
	return t.fill, at, c[at : len(c)+n : len(c)+n]
}

// nextChunk is the size in bytes of what is allocated next, a power of two.
func (t *table) nextChunk() int {
	return min(max(firstChunk, 1<<bits.Len64(uint64(t.bytes/16))), largestChunk)
}

// makeMany is make for a part of a table. If it is large, the system is asked for
// large pages, for what stands beside it as well: the parts of a table that grows
// fill them together, and to touch them for the first time costs a fraction.
func makeMany[T any](n int) []T {
	s := make([]T, n)
	if size := uintptr(n) * unsafe.Sizeof(s[0]); size >= largePage/8 {
		begin := uintptr(unsafe.Pointer(&s[0]))
		end := (begin + size + largePage - 1) &^ (largePage - 1)
		adviseLargeAt(begin&^(largePage-1), end)
	}
	return s
}

// grow doubles the index.
func (t *table) grow() {
	old := t.slots
	t.slots = makeMany[slot](2 * len(old))
	t.shift--
	for _, s := range old {
		if s != 0 {
			t.index(s)
		}
	}
}

// index puts what isn't there yet into the index.
func (t *table) index(s slot) {
	mask := uint32(len(t.slots) - 1)
	at := t.home(s.hash())
	for t.slots[at] != 0 {
		at = (at + 1) & mask
	}
	t.slots[at] = s
}

// arrange sorts the keys that came since the last time. Runs that are full
// are done; the last one is sorted again.
func (t *table) arrange() {
	for t.arranged < t.count {
		r := t.arranged / runKeys
		if r == len(t.order) {
			t.order = append(t.order, nil)
		}
		t.sortRun(r, nil)
		t.arranged = min(t.count, (r+1)*runKeys)
	}
}

// sortRun sorts a run that has room in t.order. It uses keys, and returns them to
// be used again.
func (t *table) sortRun(r int, keys []shortKey) []shortKey {
	run := t.order[r]
	begin, end := r*runKeys+len(run), min(t.count, (r+1)*runKeys)
	run = slices.Grow(run, end-begin)
	for i := begin; i < end; i++ {
		run = append(run, uint32(i))
	}
	t.order[r] = run
	return t.sort(run, keys)
}

// seal ends a table, whose last record is before last: it never changes from
// here on, but that its keys are sorted by whoever needs that first. A table
// that was loaded may have millions that aren't.
func (t *table) seal(last env.Position) {
	t.last = last
	begin, end := t.arranged/runKeys, (t.count+runKeys-1)/runKeys
	if t.arranged == t.count {
		begin = end
	}
	t.unsorted.next.Store(int64(begin))
	t.unsorted.runs.Add(end - begin)
	t.order = append(t.order, make([][]uint32, end-len(t.order))...)
	t.arranged = t.count
}

// sorted sorts what seal has left unsorted. Several goroutines share the work,
// and each returns when all is done.
func (t *table) sorted() {
	for keys := []shortKey(nil); ; {
		r := int(t.unsorted.next.Add(1)) - 1
		if r >= len(t.order) {
			t.unsorted.runs.Wait()
			return
		}
		keys = t.sortRun(r, keys)
		t.unsorted.runs.Done()
	}
}

// sort sorts numbers of items by key. Keys are compared by the eight bytes
// that follow what all of them begin with: that decides nearly always, and
// spares two visits to memory a comparison.
func (t *table) sort(run []uint32, keys []shortKey) []shortKey {
	first := t.keyOf(run[0])
	common := len(first)
	for _, i := range run[1:] {
		k := t.keyOf(i)
		common = min(common, len(k))
		for k[:common] != first[:common] {
			common--
		}
	}
	keys = slices.Grow(keys[:0], len(run))
	for _, i := range run {
		var b [8]byte
		copy(b[:], t.keyOf(i)[common:])
		keys = append(keys, shortKey{binary.BigEndian.Uint64(b[:]), i})
	}
	slices.SortFunc(keys, func(a, b shortKey) int {
		if c := cmp.Compare(a.bytes, b.bytes); c != 0 {
			return c
		}
		return strings.Compare(string(t.keyOf(a.number)), string(t.keyOf(b.number)))
	})
	for n, k := range keys {
		run[n] = k.number
	}
	return keys
}

// shortKey is what an item's key is compared by at first.
type shortKey struct {
	bytes  uint64
	number uint32
}

// from returns a cursor at the first key that isn't before start. The table
// must be arranged, or sealed and sorted, and mustn't change while the cursor
// is in use.
func (t *table) from(start abd.Key) *tableCursor {
	c := &tableCursor{table: t, runs: make([]runCursor, 0, len(t.order))}
	for _, run := range t.order {
		at := sort.Search(len(run), func(i int) bool { return t.keyOf(run[i]) >= start })
		if at < len(run) {
			c.runs = append(c.runs, runCursor{key: t.keyOf(run[at]), rest: run[at:]})
		}
	}
	for i := len(c.runs)/2 - 1; i >= 0; i-- {
		c.sink(i)
	}
	return c
}

// A tableCursor walks a table in order of the keys: it merges the runs, which
// form a heap, the one with the least key first.
type tableCursor struct {
	table *table
	runs  []runCursor
}

type runCursor struct {
	key  abd.Key  // of the first of rest
	rest []uint32 // never empty
}

// peek returns the key at the cursor, false at the end.
func (c *tableCursor) peek() (abd.Key, bool) {
	if len(c.runs) == 0 {
		return "", false
	}
	return c.runs[0].key, true
}

// entry returns what is at the cursor, which must not be at the end; see entryOf.
func (c *tableCursor) entry(withValue bool) (entry, error) {
	return c.table.entryOf(c.runs[0].rest[0], withValue)
}

// next moves to the next key.
func (c *tableCursor) next() {
	r := &c.runs[0]
	if len(r.rest) > 1 {
		r.rest = r.rest[1:]
		r.key = c.table.keyOf(r.rest[0])
	} else {
		last := len(c.runs) - 1
		c.runs[0] = c.runs[last]
		c.runs = c.runs[:last]
	}
	c.sink(0)
}

// sink moves a run down the heap to its place.
func (c *tableCursor) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(c.runs); child++ {
			if c.runs[child].key < c.runs[least].key {
				least = child
			}
		}
		if least == i {
			return
		}
		c.runs[i], c.runs[least] = c.runs[least], c.runs[i]
		i = least
	}
}

// A memo remembers what the last lookups in bbolt have found: the head of a
// put follows that of its get phase, for which bbolt was searched already. It
// only ever holds what bbolt holds and no table does: Store forgets its key.
type memo struct {
	heads [memoHeads]memoHead
}

type memoHead struct {
	key    abd.Key // "" for none
	absent bool
	record [recordHead]byte
}

// get returns a key's head, nil if it is known to be absent. The next put
// overwrites it.
func (m *memo) get(key abd.Key, hash uint32) (head []byte, ok bool) {
	h := &m.heads[hash%memoHeads]
	if h.key != key {
		return nil, false
	}
	if h.absent {
		return nil, true
	}
	return h.record[:], true
}

// put keeps what was found, nil for nothing.
func (m *memo) put(key abd.Key, hash uint32, record []byte) {
	h := &m.heads[hash%memoHeads]
	h.key, h.absent = abd.Key(strings.Clone(string(key))), record == nil
	copy(h.record[:], record)
}

func (m *memo) forget(key abd.Key, hash uint32) {
	if h := &m.heads[hash%memoHeads]; h.key == key {
		h.key = ""
	}
}
