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

// How the journal becomes a table when a store is opened, on all processors, with
// few visits to memory that isn't in a cache, and little memory that nobody has
// touched before:
//
//	loader      reads one segment after the other: it checks each entry, keeps
//	            its key and where it stands, and makes an item of it, beside
//	            those whose hashes begin with the same byte
//	loadTable   takes the items of all loaders, a loadPart at a time, which is
//	            few enough for a cache; keeps the newest of each key; and fills
//	            the part of the index that belongs to such hashes
//
// Records aren't kept: they stay in their segments until somebody asks for one
// (filed.go), or the apply does.
//
// Where keys must be compared, many are touched first and compared then: memory
// answers several at a time to who doesn't wait for each answer.
const (
	loadPartBits = 8
	loadParts    = 1 << loadPartBits
	// loadBlock is how many items of a part stand together: the blocks that a
	// loader fills, one of each part, stay in the processor's cache.
	loadBlock = 64
	// largestKeys is what a loader allocates at once for keys, in bytes:
	// firstChunk at first, and more each time.
	largestKeys = 4 << 20
	// lateSlots is how many slots there are for the items of a block that isn't
	// full: a power of two, twice as many as items.
	lateSlots = 2 * loadBlock
	// touchKeys is how many keys are touched before they are compared.
	touchKeys = 64
)

func loadPart(hash uint32) uint32 { return hash >> (32 - loadPartBits) }

// eachOf calls work with 0 to n-1, each once, in several goroutines, one for
// each processor. worker makes what each of them calls, one after the other.
func eachOf(n int, worker func() (work func(i int))) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		work := worker()
		workers.Go(func() {
			for {
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

// loadedItems are the items of one part, in blocks.
type loadedItems struct {
	full [][]item
	open []item
	// lately is a hash table of those in open, their numbers there + 1: a key
	// that comes again soon takes no second item.
	lately [lateSlots]uint8
}

// A loader takes what segments hold, one after the other.
type loader struct {
	applied env.Position
	hash    func(name []byte) uint32

	// parts hold the items, in no order that matters. Until they are in the
	// table, chunk is one of keys.
	parts [loadParts]loadedItems
	room  []item   // for blocks to come
	keys  [][]byte // chunks: each item's key, and where its record is (filedAt)
	// bytes is how much of the segments was taken.
	bytes int64

	window []byte // in which segments are read

	// Of the segment that is read.
	segment uint32
	cells   []logged
	items   int // that have a record in it, at least once
}

// begin begins with the segment of this number, counted from the journal's first.
func (l *loader) begin(segment uint32) { l.segment, l.cells, l.items = segment, nil, 0 }

// frame takes what a frame has behind applied. The frame stands at this offset
// in the segment, and is overwritten by the next.
func (l *loader) frame(f frame, offset int64) error {
	return f.eachEntry(func(e logged) {
		if e.position <= l.applied {
			return
		}
		if e.kind == kindCell {
			e.name, e.bytes = bytes.Clone(e.name), bytes.Clone(e.bytes)
			l.cells = append(l.cells, e)
			return
		}
		l.items++
		l.bytes += int64(2 + len(e.name) + len(e.bytes))
		at := filedAt{segment: l.segment, offset: uint32(offset) + frameHead + e.at}
		it := l.itemOf(e.name, at)
		it.position = e.position
		if it.filed = e.kind == kindRecord; it.filed {
			it.size = uint32(len(e.bytes))
		} else {
			it.size = 0
		}
	})
}

// itemOf returns the item of a key whose record is here: a new one, or one that
// was lately made for the same key, as its record is older.
func (l *loader) itemOf(name []byte, at filedAt) *item {
	hash := l.hash(name)
	p := &l.parts[loadPart(hash)]
	if len(p.open) == cap(p.open) {
		l.nextBlock(p)
	}
	slot := hash % lateSlots // the first bits of a hash chose the part
	for ; p.lately[slot] != 0; slot = (slot + 1) % lateSlots {
		it := &p.open[p.lately[slot]-1]
		if it.hash != hash || int(it.key) != len(name) {
			continue
		}
		if b := l.keys[it.chunk][it.at:]; bytes.Equal(b[:it.key], name) {
			at.put(b[it.key:])
			return it
		}
	}
	p.open = append(p.open, item{hash: hash, place: l.keep(name, at), before: unknown})
	p.lately[slot] = uint8(len(p.open))
	return &p.open[len(p.open)-1]
}

// nextBlock gives a part room for more items.
func (l *loader) nextBlock(p *loadedItems) {
	if len(l.room) == 0 {
		l.room = makeLarge[item](loadRoom) // touched as far as it is needed
	}
	if len(p.open) > 0 {
		p.full = append(p.full, p.open)
	}
	p.open, l.room = l.room[:0:loadBlock], l.room[loadBlock:]
	clear(p.lately[:])
}

// keep keeps a key, and where its record is.
func (l *loader) keep(name []byte, at filedAt) place {
	n := len(name) + filedAtSize
	last := len(l.keys) - 1
	if last < 0 || cap(l.keys[last])-len(l.keys[last]) < n {
		size := firstChunk
		if last >= 0 {
			size = min(2*cap(l.keys[last]), largestKeys)
		}
		l.keys = append(l.keys, makeLarge[byte](max(size, n))[:0])
		last++
	}
	c := l.keys[last]
	l.keys[last] = append(append(c, name...), make([]byte, filedAtSize)...)
	at.put(l.keys[last][len(c)+len(name):])
	return place{chunk: uint32(last), at: uint32(len(c)), key: uint16(len(name))}
}

// part calls visit with the items of a part, block by block.
func (l *loader) part(p int, visit func(block []item)) {
	for _, block := range l.parts[p].full {
		visit(block)
	}
	visit(l.parts[p].open)
}

// loadTable fills an empty table with what segments hold, which are in order of
// their positions, and whose items these loaders took.
func loadTable(t *table, segments []recovered, loaders []*loader) {
	t.filed = new(filed)
	for i := range segments {
		t.filed.add(segments[i].path, segments[i].filed)
		for _, c := range segments[i].cells {
			t.putCell(string(c.name), c.bytes)
		}
	}
	chunks := make([]uint32, len(loaders)) // before the chunks of each
	for i, l := range loaders {
		chunks[i] = uint32(len(t.chunks))
		t.chunks = append(t.chunks, l.keys...)
		for _, c := range l.keys {
			t.bytes += int64(len(c))
		}
	}
	loaded := 0
	for _, l := range loaders {
		for p := range loadParts {
			l.part(p, func(block []item) { loaded += len(block) })
		}
	}
	all := makeLarge[item]((loaded + itemBlock - 1) / itemBlock * itemBlock)
	var parts [loadParts]loadedPart
	var used atomic.Int64
	eachOf(loadParts, func() func(int) {
		s := sieve{table: t, loaders: loaders, chunks: chunks}
		return func(p int) {
			if !s.take(p, false) {
				s.take(p, true)
			}
			parts[p].end = uint32(used.Add(int64(len(s.newest))))
			parts[p].begin = parts[p].end - uint32(len(s.newest))
			copy(all[parts[p].begin:], s.newest)
		}
	})
	t.count = int(used.Load())
	t.takeItems(all)
	var strays [loadParts][]uint32
	eachOf(loadParts, func() func(int) {
		return func(p int) { strays[p] = t.indexPart(p, parts[p].begin, parts[p].end) }
	})
	for p := range parts {
		for _, i := range strays[p] {
			t.index(slotOf(i, t.item(i).hash))
		}
	}
}

// loadedPart says where the newest items of a part stand.
type loadedPart struct{ begin, end uint32 }

// A sieve finds the newest item of each key, one part after the other.
type sieve struct {
	table   *table
	loaders []*loader
	chunks  []uint32 // how many of the table's come before those of each loader

	newest  []item
	index   []uint32
	claims  []claim
	touched byte // so that what is touched counts as used
}

// A claim is that two items, whose hashes are the same, have the same key.
type claim struct{ a, b place }

// take puts the newest items of a part into newest. Unless it is to be exact,
// it takes keys of a length for the same if their hashes are, compares all those
// when it is done, and reports whether that was right.
func (s *sieve) take(p int, exact bool) bool {
	count := 0
	for _, l := range s.loaders {
		l.part(p, func(block []item) { count += len(block) })
	}
	size := 1 << bits.Len(uint(count+count/2))
	if cap(s.index) < size {
		s.index = make([]uint32, size)
	}
	s.index = s.index[:size]
	clear(s.index)
	s.newest, s.claims = slices.Grow(s.newest[:0], count), s.claims[:0]
	for i, l := range s.loaders {
		l.part(p, func(block []item) {
			for _, it := range block {
				it.chunk += s.chunks[i]
				s.add(it, exact)
			}
		})
	}
	return s.claimed()
}

func (s *sieve) add(it item, exact bool) {
	mask := uint32(len(s.index) - 1) // the last bits of a hash: the first are all the same
	slot := it.hash & mask
	for ; s.index[slot] != 0; slot = (slot + 1) & mask {
		old := &s.newest[s.index[slot]-1]
		if old.hash != it.hash || old.key != it.key || exact && s.table.keyAt(old.place) != s.table.keyAt(it.place) {
			continue
		}
		if !exact {
			s.claims = append(s.claims, claim{old.place, it.place})
		}
		if old.position < it.position {
			*old = it
		}
		return
	}
	s.newest = append(s.newest, it)
	s.index[slot] = uint32(len(s.newest))
}

// claimed reports whether all claims are true.
func (s *sieve) claimed() bool {
	t := s.table
	for claims := range slices.Chunk(s.claims, touchKeys) {
		for i := range claims {
			s.touched ^= t.firstByte(claims[i].a) ^ t.firstByte(claims[i].b)
		}
		for i := range claims {
			if t.keyAt(claims[i].a) != t.keyAt(claims[i].b) {
				return false
			}
		}
	}
	return true
}

// firstByte is the first byte of a key, or what stands there if it has none.
func (t *table) firstByte(p place) byte { return t.chunks[p.chunk][p.at] }

// takeItems makes the first t.count of all the items of a table, and an empty
// index for as many.
func (t *table) takeItems(all []item) {
	for block := range slices.Chunk(all[:(t.count+itemBlock-1)/itemBlock*itemBlock], itemBlock) {
		t.blocks = append(t.blocks, block)
	}
	t.bytes += int64(t.count) * entryOverhead
	slots := max(firstSlots, 1<<bits.Len(uint(t.count+t.count/3)))
	t.slots, t.shift = makeLarge[slot](slots), shiftOf(slots)
}

// indexPart puts the items of a part, which are numbered from begin to before
// end, into the slots of their part of the index. It returns the numbers of
// those that found none there.
func (t *table) indexPart(p int, begin, end uint32) (strays []uint32) {
	behind := uint32((p + 1) * (len(t.slots) / loadParts))
	for i := begin; i < end; i++ {
		hash := t.item(i).hash
		at := t.home(hash)
		for at < behind && t.slots[at] != 0 {
			at++
		}
		if at == behind {
			strays = append(strays, i)
			continue
		}
		t.slots[at] = slotOf(i, hash)
	}
	return strays
}
