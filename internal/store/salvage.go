package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// A salvage reads what is still good in a bbolt file. A checker stops at the
// first page that can't be trusted; a salvage notes it down and goes on behind
// it. So order proves nothing to it, and a record is as good as its checksums:
// it finds what is there, and can't tell what is missing.
type salvage struct {
	path string
	r    io.ReaderAt
	meta boltMeta
	seen []uint64 // a bit a page
	// note takes everything that is damaged.
	note func(error)
	// visit is called with each record whose checksums match, in the order
	// of the file. key and record are the callee's.
	visit   func(key, record []byte)
	stopped bool // nothing more is to be read
	summary []byte
}

// newSalvage opens a bbolt file. It returns nil when there is nothing to begin
// with: the reason was noted. The caller closes the file.
func newSalvage(path string, note func(error)) (*salvage, io.Closer, error) {
	if err := refuseFolder(path); err != nil {
		return nil, nil, damageOnly(err, note)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		note(damagedFile(path, -1, "it is missing"))
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	c := checker{path: path, r: f}
	if err := c.readMetas(info.Size()); err != nil {
		note(asDamage(path, err))
		// Cut short, it may still have what was before the cut.
		if c.meta.high == 0 || info.Size() <= 2*boltPage {
			f.Close()
			return nil, nil, nil
		}
		c.meta.high = uint64(info.Size()) / boltPage
	}
	s := &salvage{path: path, r: f, meta: c.meta, note: note, visit: func([]byte, []byte) {}}
	s.seen = make([]uint64, c.meta.high/64+1)
	return s, f, nil
}

// asDamage makes an error of the operating system, met while reading a file,
// into damage: a sector that can't be read is lost like one that is wrong.
func asDamage(path string, err error) error {
	var d *DamageError
	var f *FormatError
	if errors.As(err, &d) || errors.As(err, &f) {
		return err
	}
	return damagedFile(path, -1, "it can't be read: %v", err)
}

// damageOnly notes an error that is damage, and returns any other.
func damageOnly(err error, note func(error)) error {
	var d *DamageError
	var f *FormatError
	if errors.As(err, &d) || errors.As(err, &f) {
		note(err)
		return nil
	}
	return err
}

// bad notes what is wrong with a page.
func (s *salvage) bad(page uint64, format string, args ...any) {
	c := checker{path: s.path}
	s.note(c.bad(page, format, args...))
}

// walk reads every page that can still be reached.
func (s *salvage) walk() { s.tree(s.meta.root, "", 0) }

// read returns a page with what overflows from it.
func (s *salvage) read(id uint64) ([]byte, bool) {
	switch {
	case id < 2 || id >= s.meta.high:
		s.bad(id, "a page refers to it, and the file ends with page %d", s.meta.high-1)
		return nil, false
	case s.seen[id/64]&(1<<(id%64)) != 0:
		s.bad(id, "it is used twice")
		return nil, false
	}
	s.seen[id/64] |= 1 << (id % 64)
	b := make([]byte, boltPage)
	if _, err := s.r.ReadAt(b, int64(id)*boltPage); err != nil {
		s.bad(id, "it can't be read: %v", err)
		return nil, false
	}
	pages := uint64(binary.NativeEndian.Uint32(b[12:])) + 1
	if binary.NativeEndian.Uint64(b) != id || pages > s.meta.high || id+pages > s.meta.high {
		s.bad(id, "its head doesn't fit")
		return nil, false
	}
	if pages == 1 {
		return b, true
	}
	b = make([]byte, pages*boltPage)
	if _, err := s.r.ReadAt(b, int64(id)*boltPage); err != nil {
		s.bad(id, "it can't be read: %v", err)
		return nil, false
	}
	return b, true
}

// tree walks the pages below id, which are of a bucket, or of the file's root
// when that is "".
func (s *salvage) tree(id uint64, bucket string, depth int) {
	if depth > maxDepth {
		s.bad(id, "the tree is too deep")
		return
	}
	if b, ok := s.read(id); ok {
		s.page(id, b, bucket, depth)
	}
}

func (s *salvage) page(id uint64, b []byte, bucket string, depth int) {
	if len(b) < pageHead {
		s.bad(id, "bucket %q is cut short", bucket)
		return
	}
	n := binary.NativeEndian
	flags, count := n.Uint16(b[8:]), int(n.Uint16(b[10:]))
	if flags != pageBranch && flags != pageLeaf {
		s.bad(id, "it is neither branch nor leaf")
		return
	}
	if fit := (len(b) - pageHead) / pageElement; count > fit {
		s.bad(id, "it can't have %d elements", count)
		count = fit
	}
	for i := range count {
		if s.stopped {
			return
		}
		at := pageHead + i*pageElement
		e := b[at : at+pageElement]
		if flags == pageBranch {
			s.tree(n.Uint64(e[8:]), bucket, depth+1)
			continue
		}
		pos, keyLen := int64(n.Uint32(e[4:])), int64(n.Uint32(e[8:]))
		key, ok1 := slice(b, at, pos, keyLen)
		value, ok2 := slice(b, at, pos+keyLen, int64(n.Uint32(e[12:])))
		if !ok1 || !ok2 {
			s.bad(id, "element %d points out of the page", i)
			continue
		}
		s.leaf(id, key, value, bucket, depth)
	}
}

// leaf takes one key and value.
func (s *salvage) leaf(id uint64, key, value []byte, bucket string, depth int) {
	switch bucket {
	case "":
		if name := string(key); len(value) < bucketHead || name != bucketMeta && name != bucketRecords && name != bucketCells {
			s.bad(id, "%q isn't a bucket of this store", key)
		} else if root := binary.NativeEndian.Uint64(value); root != 0 {
			s.tree(root, name, depth+1)
		} else {
			s.page(id, value[bucketHead:], name, depth+1)
		}
	case bucketMeta:
		if string(key) == summaryKey {
			s.summary = bytes.Clone(value)
		}
	case bucketCells:
		if reason := checkCell(key, value); reason != "" {
			s.bad(id, "cell %q: %s", key, reason)
		}
	case bucketRecords:
		if reason := checkHead(key, value); reason != "" {
			s.note(damagedRecord(s.path, key, reason))
			return
		}
		if reason := checkValue(value); reason != "" {
			s.note(damagedValue(s.path, key, reason))
			return
		}
		s.visit(key, value)
	}
}
