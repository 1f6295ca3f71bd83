package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"atoll/abd"
)

// filed are the segments in which records of a loaded table stand. They were
// checked when the store was opened, and are again whenever one is read.
//
// The segments are used again when the table is in bbolt. So they are let go
// before that, under a lock: who comes later is told, and looks there.
type filed struct {
	paths []string
	mu    struct {
		sync.RWMutex
		files []file // nil where no record stands; empty when they were let go
	}
}

// errApplied says that a table's records are in bbolt, and no more where they
// were.
var errApplied = errors.New("the table was applied")

// filedAt is where a record stands: with its key before it. It is kept behind
// the key in a table's chunk, integers big-endian.
type filedAt struct {
	segment uint32 // counted from the first
	offset  uint32 // of the key, in bytes
}

const filedAtSize = 8

func (a filedAt) put(b []byte) {
	binary.BigEndian.PutUint32(b, a.segment)
	binary.BigEndian.PutUint32(b[4:], a.offset)
}

func readFiledAt(b []byte) filedAt {
	return filedAt{segment: binary.BigEndian.Uint32(b), offset: binary.BigEndian.Uint32(b[4:])}
}

// add adds the next segment, nil if no record stands in it.
func (s *filed) add(path string, f file) {
	s.paths, s.mu.files = append(s.paths, path), append(s.mu.files, f)
}

// read returns the record of a key: the first size bytes of it, which are all or
// the head. Its value isn't checked.
//
// Who finds something else there knows that the file was damaged since the start,
// which would have refused it; and so the node can't go on.
func (s *filed) read(at filedAt, key abd.Key, size int) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.mu.files) == 0 {
		return nil, errApplied
	}
	b := make([]byte, len(key)+size)
	damaged := func(reason string) error {
		return damagedFile(s.paths[at.segment], int64(at.offset), "the record of key %q isn't what it was at the start: %s", string(key), reason)
	}
	if _, err := s.mu.files[at.segment].ReadAt(b, int64(at.offset)); errors.Is(err, io.EOF) {
		return nil, damaged("the file was cut short")
	} else if err != nil {
		return nil, err
	}
	record := b[len(key):]
	if !bytes.Equal(b[:len(key)], keyBytes(key)) || headSumOf(record) != headSum(keyBytes(key), record) {
		return nil, damaged("checksum of key and tag doesn't match")
	}
	return record, nil
}

// letGo closes the files, when nobody reads them.
func (s *filed) letGo() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, f := range s.mu.files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	s.mu.files = nil
	return errors.Join(errs...)
}
