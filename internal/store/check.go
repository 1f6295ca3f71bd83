package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// The layout of a bbolt file, version 2, as far as it is checked here. Its
// integers have the machine's byte order.
const (
	boltPage    = 4096 // set when the file is created, so it is no guess
	boltMagic   = 0xED0CDAED
	boltVersion = 2

	pageHead        = 16 // id 8, flags 2, count 2, overflow 4
	pageBranch      = 0x01
	pageLeaf        = 0x02
	pageFreelist    = 0x10
	pageElement     = 16
	leafBucket      = 0x01
	bucketHead      = 16                 // root page 8, sequence 8
	noFreelist      = 0xffffffffffffffff // page id
	manyFree        = 0xFFFF             // the count is in the first id
	maxDepth        = 64
	boltMetaSummed  = 56
	boltMetaChecked = boltMetaSummed + 8
)

// boltMeta is the root of a bbolt file.
type boltMeta struct {
	root, freelist, high, txid uint64
}

// readMeta decodes one of the two meta pages.
func readMeta(page []byte) (boltMeta, bool) {
	m := page[pageHead : pageHead+boltMetaChecked]
	h := fnv.New64a()
	h.Write(m[:boltMetaSummed])
	n := binary.NativeEndian
	if n.Uint32(m) != boltMagic || n.Uint32(m[4:]) != boltVersion || n.Uint32(m[8:]) != boltPage ||
		n.Uint64(m[boltMetaSummed:]) != h.Sum64() {
		return boltMeta{}, false
	}
	return boltMeta{root: n.Uint64(m[16:]), freelist: n.Uint64(m[32:]), high: n.Uint64(m[40:]), txid: n.Uint64(m[48:])}, true
}

// A checker reads a bbolt file without bbolt: with plain reads, so that
// nothing in the file can make it panic or fault. It follows every page that
// can be reached, once.
type checker struct {
	path string
	r    io.ReaderAt
	meta boltMeta
	// spoiled is what is wrong with the other meta page, nil if nothing is.
	spoiled error
	seen    []uint64 // a bit a page; shared by those who check parts of a tree

	bucket  string
	last    []byte // the last key in the bucket's order
	kept    []byte // holds last when its page is done
	buffers [][]byte
	summary []byte
	buckets map[string]bool
	// later is the bucket of records, which is read last: the page that its
	// value stands in, the value, and the depth.
	later struct {
		id    uint64
		value []byte
		depth int
	}
	// What the buckets of records and of cells hold.
	records, tombstones int64
	damaged             []error
	badHeads            bool // some of the damage isn't that of a value
	cells               map[string][]byte
}

// checkState reads the whole of a bbolt file. It returns an error when bbolt
// would stumble over it or could lose a key in it; records that are damaged
// on their own are returned, and count as records.
func checkState(path string) (*checker, error) { return checkStateBetween(path, nil) }

// checkStateBetween is checkState. Before the records are read, it calls
// between, if that isn't nil, with what is known by then: the summary's bytes,
// and the cells.
func checkStateBetween(path string, between func(c *checker) error) (*checker, error) {
	if err := refuseFolder(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, damagedFile(path, -1, "it is missing")
		}
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// The pages are read in order of their keys, which is none on the disk. So
	// the system is asked to read the file from its beginning to its end.
	done := make(chan struct{})
	var ahead sync.WaitGroup
	ahead.Go(func() {
		for at := int64(0); at < info.Size(); at += aheadBytes {
			select {
			case <-done:
				return
			default:
				readAhead(f, at, aheadBytes)
			}
		}
	})
	defer ahead.Wait()
	defer close(done)
	return checkPages(path, f, info.Size(), between)
}

// checkPages is checkStateBetween on what path holds.
func checkPages(path string, r io.ReaderAt, size int64, between func(*checker) error) (*checker, error) {
	c := &checker{path: path, r: r, buckets: make(map[string]bool), cells: make(map[string][]byte)}
	if err := c.readMetas(size); err != nil {
		return nil, err
	}
	c.seen = make([]uint64, c.meta.high/64+1)
	c.seen[0] = 3 // the meta pages
	if err := c.tree(c.meta.root, nil, 0); err != nil {
		return nil, err
	}
	for _, name := range []string{bucketMeta, bucketRecords} {
		if !c.buckets[name] {
			return nil, damagedFile(path, -1, "bucket %q is missing", name)
		}
	}
	if between != nil {
		if err := between(c); err != nil {
			return nil, err
		}
	}
	if err := c.enter(c.later.id, bucketRecords, c.later.value, c.later.depth); err != nil {
		return nil, err
	}
	return c, c.freelist()
}

// readMetas finds the newest meta page, and holds the file's size against it.
func (c *checker) readMetas(size int64) error {
	if size < 2*boltPage {
		return damagedFile(c.path, -1, "it has %d bytes, less than its first two pages", size)
	}
	b := make([]byte, 2*boltPage)
	if _, err := c.r.ReadAt(b, 0); err != nil {
		return err
	}
	m0, ok0 := readMeta(b)
	m1, ok1 := readMeta(b[boltPage:])
	switch {
	case !ok0 && !ok1:
		return damagedFile(c.path, 0, "neither of its two meta pages is valid")
	case !ok0 || ok1 && m1.txid > m0.txid:
		c.meta = m1
	default:
		c.meta = m0
	}
	if !ok0 {
		c.spoiled = damagedMeta(c.path, 0)
	} else if !ok1 {
		c.spoiled = damagedMeta(c.path, 1)
	}
	if c.meta.high > uint64(size)/boltPage {
		return damagedFile(c.path, -1, "it was cut short: it has %d bytes, and uses %d pages of %d", size, c.meta.high, boltPage)
	}
	return nil
}

func (c *checker) bad(page uint64, format string, args ...any) error {
	return damagedFile(c.path, int64(page)*boltPage, "page %d: %s", page, fmt.Sprintf(format, args...))
}

// read returns a page with what overflows from it, and marks all as seen. The
// next read at the same depth overwrites it.
func (c *checker) read(id uint64, depth int) ([]byte, error) {
	if id < 2 || id >= c.meta.high {
		return nil, damagedFile(c.path, -1, "a page refers to page %d of %d", id, c.meta.high)
	}
	for len(c.buffers) <= depth {
		c.buffers = append(c.buffers, make([]byte, boltPage))
	}
	b := c.buffers[depth][:boltPage]
	if _, err := c.r.ReadAt(b, int64(id)*boltPage); err != nil {
		return nil, err
	}
	pages := uint64(binary.NativeEndian.Uint32(b[12:])) + 1
	if binary.NativeEndian.Uint64(b) != id || id+pages > c.meta.high {
		return nil, c.bad(id, "its head doesn't fit")
	}
	for p := id; p < id+pages; p++ {
		if c.mark(p) {
			return nil, c.bad(p, "it is used twice")
		}
	}
	if pages == 1 {
		return b, nil
	}
	c.buffers[depth] = slices.Grow(b[:0], int(pages*boltPage))
	b = c.buffers[depth][:pages*boltPage]
	_, err := c.r.ReadAt(b, int64(id)*boltPage)
	return b, err
}

// mark marks a page as seen, and reports that it was before.
func (c *checker) mark(page uint64) bool {
	bit := uint64(1) << (page % 64)
	return atomic.OrUint64(&c.seen[page/64], bit)&bit != 0
}

// tree walks the pages below id. Its first key must be first, unless that is
// nil.
func (c *checker) tree(id uint64, first []byte, depth int) error {
	if depth > maxDepth {
		return c.bad(id, "the tree is too deep")
	}
	b, err := c.read(id, depth)
	if err != nil {
		return err
	}
	return c.page(id, b, first, depth)
}

// begins reports whether key is the one that a page must begin with. When
// bbolt writes a page anew, it looks for the page's first key in the branch
// above: where that has another one, bbolt would add the new page and keep the
// old one as well, whose room is free from then on.
func begins(key, first []byte) bool { return first == nil || bytes.Equal(key, first) }

// head returns what a page is and how many elements it has.
func (c *checker) head(id uint64, b []byte) (flags uint16, count int, err error) {
	flags = binary.NativeEndian.Uint16(b[8:])
	count = int(binary.NativeEndian.Uint16(b[10:]))
	if flags != pageBranch && flags != pageLeaf || flags == pageBranch && count == 0 {
		return 0, 0, c.bad(id, "it is neither branch nor leaf")
	}
	if pageHead+count*pageElement > len(b) {
		return 0, 0, c.bad(id, "it can't have %d elements", count)
	}
	return flags, count, nil
}

// branch returns an element of a branch page: a key, and the page with it and
// what follows.
func (c *checker) branch(id uint64, b []byte, i int) (key []byte, page uint64, err error) {
	at := pageHead + i*pageElement
	e := b[at : at+pageElement]
	key, ok := slice(b, at, int64(binary.NativeEndian.Uint32(e)), int64(binary.NativeEndian.Uint32(e[4:])))
	if !ok {
		return nil, 0, c.bad(id, "the key of branch %d points out of the page", i)
	}
	return key, binary.NativeEndian.Uint64(e[8:]), nil
}

// page walks the elements of a page.
func (c *checker) page(id uint64, b, first []byte, depth int) error {
	flags, count, err := c.head(id, b)
	if err != nil {
		return err
	}
	for i := range count {
		if flags == pageBranch {
			key, page, err := c.branch(id, b, i)
			if err != nil {
				return err
			}
			if i > 0 && c.last != nil && bytes.Compare(key, c.last) <= 0 || i == 0 && !begins(key, first) {
				return c.bad(id, "the key of branch %d is out of order", i)
			}
			if err := c.tree(page, key, depth+1); err != nil {
				return err
			}
			continue
		}
		at := pageHead + i*pageElement
		e := b[at : at+pageElement]
		pos, keyLen := int64(binary.NativeEndian.Uint32(e[4:])), int64(binary.NativeEndian.Uint32(e[8:]))
		key, ok1 := slice(b, at, pos, keyLen)
		value, ok2 := slice(b, at, pos+keyLen, int64(binary.NativeEndian.Uint32(e[12:])))
		if !ok1 || !ok2 || len(key) == 0 {
			return c.bad(id, "element %d points out of the page", i)
		}
		if i == 0 && !begins(key, first) || c.last != nil && bytes.Compare(key, c.last) <= 0 {
			return c.bad(id, "the key of element %d, %q, is out of order", i, key)
		}
		c.last = key
		if err := c.leaf(id, key, value, binary.NativeEndian.Uint32(e), depth); err != nil {
			return err
		}
	}
	if flags == pageLeaf && count > 0 {
		c.kept = append(c.kept[:0], c.last...)
		c.last = c.kept
	}
	return nil
}

// part is a piece of the tree of records.
type part struct {
	id           uint64
	page         []byte // nil if it wasn't read yet
	first, limit []byte // its first key, and one that all are less than; nil for any
	depth        int
}

// parts walks the tree of records in pieces, on all processors.
func (c *checker) parts(root uint64, depth int) error {
	parts := []part{{id: root, depth: depth}}
	for grown := true; grown && len(parts) < manyParts; {
		var err error
		if parts, grown, err = c.divide(parts); err != nil {
			return err
		}
	}
	found, errs := make([]checker, len(parts)), make([]error, len(parts))
	var next atomic.Int64
	var failed atomic.Bool
	var workers sync.WaitGroup
	for range min(len(parts), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			w := checker{path: c.path, r: c.r, meta: c.meta, seen: c.seen, bucket: c.bucket}
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= len(parts) {
					return
				}
				w.last, w.records, w.tombstones, w.damaged, w.badHeads = nil, 0, 0, nil, false
				if errs[i] = w.part(parts[i]); errs[i] != nil {
					failed.Store(true)
				}
				found[i] = w
			}
		})
	}
	workers.Wait()
	for i := range parts {
		if errs[i] != nil {
			return errs[i]
		}
		c.records += found[i].records
		c.tombstones += found[i].tombstones
		c.damaged = append(c.damaged, found[i].damaged...)
		c.badHeads = c.badHeads || found[i].badHeads
	}
	return nil
}

// part walks one piece.
func (c *checker) part(p part) error {
	if p.page == nil {
		b, err := c.read(p.id, p.depth)
		if err != nil {
			return err
		}
		p.page = b
	}
	if err := c.page(p.id, p.page, p.first, p.depth); err != nil {
		return err
	}
	if p.limit != nil && bytes.Compare(c.last, p.limit) >= 0 {
		return c.bad(p.id, "key %q below it is out of order", c.last)
	}
	return nil
}

// divide puts what is below each branch page in its place. It reports whether
// there was one.
func (c *checker) divide(parts []part) (divided []part, grown bool, err error) {
	for _, p := range parts {
		if p.page == nil {
			b, err := c.read(p.id, p.depth)
			if err != nil {
				return nil, false, err
			}
			p.page = bytes.Clone(b)
		}
		flags, count, err := c.head(p.id, p.page)
		if err != nil {
			return nil, false, err
		}
		if flags == pageLeaf || p.depth > maxDepth {
			divided = append(divided, p)
			continue
		}
		grown = true
		for i := range count {
			key, page, err := c.branch(p.id, p.page, i)
			if err != nil {
				return nil, false, err
			}
			if i == 0 && !begins(key, p.first) {
				return nil, false, c.bad(p.id, "the key of branch 0 is out of order")
			} else if i > 0 {
				before := &divided[len(divided)-1]
				if bytes.Compare(key, before.first) <= 0 || p.limit != nil && bytes.Compare(key, p.limit) >= 0 {
					return nil, false, c.bad(p.id, "the key of branch %d is out of order", i)
				}
				before.limit = key
			}
			divided = append(divided, part{id: page, first: key, limit: p.limit, depth: p.depth + 1})
		}
	}
	return divided, grown, nil
}

// slice returns the length bytes at pos behind at, if they are in b.
func slice(b []byte, at int, pos, length int64) ([]byte, bool) {
	from := int64(at) + pos
	to := from + length
	if to > int64(len(b)) {
		return nil, false
	}
	return b[from:to:to], true
}

// leaf looks at one key and value.
func (c *checker) leaf(id uint64, key, value []byte, flags uint32, depth int) error {
	if c.bucket == "" {
		if flags != leafBucket || len(value) < bucketHead {
			return c.bad(id, "%q isn't a bucket", key)
		}
		if n := string(key); n != bucketMeta && n != bucketRecords && n != bucketCells {
			return c.bad(id, "unknown bucket %q", key)
		}
		c.buckets[string(key)] = true
		if string(key) == bucketRecords {
			c.later.id, c.later.value, c.later.depth = id, bytes.Clone(value), depth
			return nil
		}
		return c.enter(id, string(key), value, depth)
	}
	if flags != 0 {
		return c.bad(id, "element %q has unknown flags", key)
	}
	switch c.bucket {
	case bucketMeta:
		if string(key) == summaryKey {
			c.summary = bytes.Clone(value)
		}
		return nil
	case bucketCells:
		// A cell holds what the node has promised: there is no doing without.
		if reason := checkCell(key, value); reason != "" {
			return c.bad(id, "cell %q: %s", key, reason)
		}
		c.cells[string(key)] = bytes.Clone(value)
		return nil
	}
	c.records++
	reason := checkHead(key, value)
	if reason != "" {
		c.badHeads = true
	} else {
		reason = checkValue(value)
		if recordDeleted(value) {
			c.tombstones++
		}
	}
	if reason != "" {
		c.damaged = append(c.damaged, damagedRecord(c.path, key, reason))
	}
	return nil
}

// enter walks a bucket, which is a tree of its own or stands in its value.
func (c *checker) enter(id uint64, name string, value []byte, depth int) error {
	last, kept := c.last, c.kept
	c.bucket, c.last, c.kept = name, nil, nil
	defer func() { c.bucket, c.last, c.kept = "", last, kept }()
	root := binary.NativeEndian.Uint64(value)
	if root != 0 {
		if c.bucket == bucketRecords {
			return c.parts(root, depth+1)
		}
		return c.tree(root, nil, depth+1)
	}
	inline := value[bucketHead:]
	if len(inline) < pageHead || binary.NativeEndian.Uint16(inline[8:]) != pageLeaf {
		return c.bad(id, "bucket %q is cut short", name)
	}
	return c.page(id, inline, nil, depth+1)
}

// freelist checks that nothing that is in use counts as free.
func (c *checker) freelist() error {
	if c.meta.freelist == noFreelist {
		return damagedFile(c.path, -1, "its list of free pages is missing")
	}
	b, err := c.read(c.meta.freelist, 0)
	if err != nil {
		return err
	}
	id := c.meta.freelist
	if binary.NativeEndian.Uint16(b[8:]) != pageFreelist {
		return c.bad(id, "it isn't the list of free pages")
	}
	ids, count := b[pageHead:], uint64(binary.NativeEndian.Uint16(b[10:]))
	if count == manyFree {
		count, ids = binary.NativeEndian.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return c.bad(id, "it can't have %d free pages", count)
	}
	for i := range count {
		p := binary.NativeEndian.Uint64(ids[i*8:])
		if p < 2 || p >= c.meta.high || c.mark(p) {
			return c.bad(id, "page %d counts as free, and is in use or not there", p)
		}
	}
	return nil
}
