package store

import (
	"bytes"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"atoll/env"
)

// How the journal becomes a table when a store is opened, on all processors and
// with few visits to memory that isn't in a cache:
//
//	loader      reads one segment after the other: it checks each entry, makes
//	            an item of it that says where it stands, and sorts a segment's
//	            items by the first byte of their hashes
//	loadTable   takes the items of all segments, a loadPart at a time, which is
//	            few enough for a cache; keeps the newest of each key; and fills
//	            the part of the index that belongs to such hashes
//
// Keys and records aren't copied: the segments that were read are the table's
// chunks. So what was replaced takes memory until the table goes, as it does in
// a table that was filled by put.
const (
	loadPartBits = 8
	loadParts    = 1 << loadPartBits
)

func loadPart(hash uint32) uint32 { return hash >> (32 - loadPartBits) }

// eachOf calls work with 0 to n-1, each once, in several goroutines, one for
// each processor. worker makes what each of them calls.
func eachOf(n int, worker func() (work func(i int))) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for work := worker(); ; {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				work(i)
			}
		})
	}
	workers.Wait()
}

// makeLarge makes a slice, in large pages if it fills some. To touch a page of
// memory for the first time takes up to 30 µs on a virtual machine, and a GiB
// has 262,144 small ones.
func makeLarge[T any](n int) []T {
	size := int(unsafe.Sizeof(*new(T)))
	if n*size < largePage {
		return make([]T, n)
	}
	s := make([]T, n+largePage/size)
	begin := uintptr(unsafe.Pointer(&s[0]))
	skip := int((begin+largePage-1)&^(largePage-1)-begin) / size
	if (int(begin)+skip*size)%largePage != 0 {
		return s[:n] // no item begins with a page
	}
	s = s[skip : skip+n : skip+n]
	adviseLarge(unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), n*size))
	return s
}

// loadedSegment is what a segment holds behind some position.
type loadedSegment struct {
	chunk []byte // the segment, or the part of it that is needed; nil for none
	// items of the segment, in order of their position within each part.
	// bounds says where each part begins, and where the last one ends. Until
	// they are in the table, before is what the item's own record counts as.
	items  []item
	bounds [loadParts + 1]uint32
	cells  []logged // in order
}

// part returns the items of a part.
func (l *loadedSegment) part(p int) []item { return l.items[l.bounds[p]:l.bounds[p+1]] }

// A loader makes loadedSegments, one after the other.
type loader struct {
	applied env.Position
	hash    func(name []byte) uint32

	items  []item // as they come; reused
	counts [loadParts]uint32
	cells  []logged
	from   int64 // the first frame that is needed; -1 if none is
}

func (l *loader) begin() {
	if l.items == nil {
		l.items = makeLarge[item](firstItems) // touched as far as it is needed
	}
	l.items, l.cells, l.from = l.items[:0], nil, -1
	clear(l.counts[:])
}

// frame takes what a frame has behind applied. The frame stands at this offset
// in the segment.
func (l *loader) frame(f frame, offset int64) error {
	if l.from < 0 && f.first+env.Position(f.records) > l.applied {
		l.from = offset
	}
	return f.eachEntry(func(e logged) {
		if e.position <= l.applied {
			return
		}
		if e.kind == kindCell {
			l.cells = append(l.cells, e)
			return
		}
		it := item{
			position: e.position, hash: l.hash(e.name), key: uint16(len(e.name)),
			at: uint32(offset) + frameHead + e.at,
		}
		if e.kind == kindRecord {
			it.size, it.before = uint32(len(e.bytes)), presenceOf(e.bytes)
		}
		l.counts[loadPart(it.hash)]++
		l.items = append(l.items, it)
	})
}

// end returns what was taken of a segment whose frames end at this offset.
func (l *loader) end(segment []byte, offset int64, chunk uint32) (s loadedSegment) {
	s.cells = l.cells
	for i := range s.cells { // they outlive the segment
		s.cells[i].name, s.cells[i].bytes = bytes.Clone(s.cells[i].name), bytes.Clone(s.cells[i].bytes)
	}
	if len(l.items) == 0 {
		return s
	}
	// A segment that is needed in part only is let go.
	shift := uint32(0)
	s.chunk = segment[:offset:offset]
	if needed := offset - l.from; needed < int64(len(segment))/4*3 {
		s.chunk, shift = slices.Clip(bytes.Clone(segment[l.from:offset])), uint32(l.from)
	}
	places := [loadParts]uint32{}
	for p, n := range l.counts {
		s.bounds[p+1] = s.bounds[p] + n
		places[p] = s.bounds[p]
	}
	s.items = makeLarge[item](len(l.items))
	for i := range l.items {
		it := &l.items[i]
		it.chunk, it.at = chunk, it.at-shift
		p := loadPart(it.hash)
		s.items[places[p]] = *it
		places[p]++
	}
	return s
}

// loadTable fills an empty table with what segments hold, which are in order of
// their positions. It returns how many keys and tombstones there are.
func loadTable(t *table, segments []recovered) (keys, tombstones int64) {
	for i := range segments {
		l := &segments[i].loaded
		t.chunks = append(t.chunks, l.chunk)
		t.bytes += int64(cap(l.chunk))
		for _, c := range l.cells {
			t.putCell(string(c.name), c.bytes)
		}
	}
	var begins [loadParts + 1]int
	for p := range loadParts {
		begins[p+1] = begins[p]
		for i := range segments {
			begins[p+1] += len(segments[i].loaded.part(p))
		}
	}
	all := makeLarge[item]((begins[loadParts] + itemBlock - 1) / itemBlock * itemBlock)
	var parts [loadParts]loadedPart
	eachOf(loadParts, func() func(int) {
		var index []uint32
		return func(p int) {
			parts[p], index = newestOf(t, segments, p, all[begins[p]:begins[p]:begins[p+1]], index)
		}
	})
	for p := range parts {
		begins[p] = t.count
		t.count += copy(all[t.count:], parts[p].items) // what was replaced leaves holes
		keys += parts[p].keys
		tombstones += parts[p].tombstones
	}
	begins[loadParts] = t.count
	t.takeItems(all)
	var strays [loadParts][]uint32
	eachOf(loadParts, func() func(int) {
		return func(p int) { strays[p] = t.indexPart(p, uint32(begins[p]), uint32(begins[p+1])) }
	})
	for _, numbers := range strays {
		for _, i := range numbers {
			t.index(i)
		}
	}
	return keys, tombstones
}

// loadedPart is the newest item of each key of a part, and what they count as.
type loadedPart struct {
	items            []item
	keys, tombstones int64
}

// newestOf puts the newest items of a part into newest, which is empty and has
// room for all of the part's. It uses index, and returns it to be used again.
func newestOf(t *table, segments []recovered, p int, newest []item, index []uint32) (part loadedPart, _ []uint32) {
	if cap(newest) == 0 {
		return part, index
	}
	size := 1 << bits.Len(uint(cap(newest)+cap(newest)/2))
	if cap(index) < size {
		index = make([]uint32, size)
	}
	index = index[:size]
	clear(index)
	mask := uint32(size - 1) // the last bits of a hash: the first are all the same
	for i := range segments {
		items := segments[i].loaded.part(p)
	next:
		for n := range items {
			it := &items[n]
			slot := it.hash & mask
			for ; index[slot] != 0; slot = (slot + 1) & mask {
				old := &newest[index[slot]-1]
				if old.hash == it.hash && t.keyAt(old) == t.keyAt(it) {
					*old = *it
					continue next
				}
			}
			newest = append(newest, *it)
			index[slot] = uint32(len(newest))
		}
	}
	for i := range newest {
		newest[i].before.count(&part.keys, &part.tombstones, +1)
		newest[i].before = absent
	}
	part.items = newest
	return part, index
}

// takeItems makes the first t.count of all the items of a table, and an empty
// index for as many. Half of all isn't kept for less.
func (t *table) takeItems(all []item) {
	kept := all[:(t.count+itemBlock-1)/itemBlock*itemBlock]
	clear(kept[t.count:])
	if len(kept) < len(all)/2 {
		kept = slices.Clone(kept)
	}
	for block := range slices.Chunk(kept, itemBlock) {
		t.blocks = append(t.blocks, block)
	}
	t.bytes += int64(t.count) * entryOverhead
	slots := max(firstSlots, 1<<bits.Len(uint(t.count+t.count/3)))
	t.slots, t.shift = makeLarge[uint32](slots), shiftOf(slots)
}

// indexPart puts the items of a part, which are numbered from begin to before
// end, into the slots of their part of the index. It returns the numbers of
// those that found none there.
func (t *table) indexPart(p int, begin, end uint32) (strays []uint32) {
	behind := uint32((p + 1) * (len(t.slots) / loadParts))
	for i := begin; i < end; i++ {
		slot := t.home(t.item(i).hash)
		for slot < behind && t.slots[slot] != 0 {
			slot++
		}
		if slot == behind {
			strays = append(strays, i)
			continue
		}
		t.slots[slot] = i + 1
	}
	return strays
}

// replaces notes what bbolt has under some keys, which the table may or may
// not have a record of, and returns what of that the table has. It may be
// called on several goroutines at once, each with keys of its own.
func (t *table) replaces(keys [][]byte, there []presence) (present, tombstones int64) {
	for i, k := range keys {
		key := keyIn(k)
		if number, _, ok := t.find(key, t.hash(key)); ok {
			t.item(number).before = there[i]
			there[i].count(&present, &tombstones, +1)
		}
	}
	return present, tombstones
}
