package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"atoll/abd"
	"atoll/env"
)

// The buckets of state.db, and the one key of the first. The one of cells is
// missing in files of before there were any, until they are opened.
const (
	bucketMeta    = "meta"
	bucketRecords = "records"
	bucketCells   = "cells"
	summaryKey    = "summary"
)

// A state is the bbolt file: every record up to a position of the journal.
// Its methods may be called from several goroutines; one of them writes.
type state struct {
	path string
	db   *bbolt.DB
	log  *slog.Logger
	// used is how many bytes of the file are in use, at least; 0 before the first
	// commit. shrunk notes that the log was told that there are fewer.
	used   atomic.Int64
	shrunk sync.Once
	// reading is the transaction that loads share, as beginning one costs as
	// much as a search. It is renewed before and after each write transaction.
	reading struct {
		sync.Mutex
		tx     *bbolt.Tx // nil when there is none
		cursor *bbolt.Cursor
		brief  bool // each load has its own: the file may have to be mapped anew
		head   [recordHead]byte
		// placed: the cursor stands where the last load has found something.
		// Whoever loads keys in order finds the next one right behind it.
		placed bool
		// gap is a range of keys that was proved to be empty in tx: whoever
		// writes keys in order looks there again and again.
		gap struct {
			known    bool
			from, to []byte // from is in it, to isn't; empty: up to the end
		}
	}
}

// summary is what state.db says of itself, in the transaction that makes it
// true. On disk: format, id, applied, keys, tombstones, opened, CRC32C.
type summary struct {
	id storeID
	// applied: every record up to here is in the file. Later ones may be.
	applied env.Position
	// keys and tombstones count the records that are in the file.
	keys, tombstones int64
	// opened counts how often the store was opened.
	opened uint64
}

const (
	summaryFormat = 1
	summarySize   = 4 + 16 + 4*8 + 4
)

func (m summary) encode() []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, summarySize), summaryFormat)
	b = append(b, m.id[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(m.applied))
	b = binary.BigEndian.AppendUint64(b, uint64(m.keys))
	b = binary.BigEndian.AppendUint64(b, uint64(m.tombstones))
	b = binary.BigEndian.AppendUint64(b, m.opened)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func readSummary(path string, b []byte) (summary, error) {
	if len(b) != summarySize || binary.BigEndian.Uint32(b[summarySize-4:]) != crc32.Checksum(b[:summarySize-4], castagnoli) {
		return summary{}, damagedFile(path, -1, "checksum of its summary doesn't match")
	}
	if f := binary.BigEndian.Uint32(b); f != summaryFormat {
		return summary{}, &FormatError{File: path, Found: int(f), Supported: summaryFormat}
	}
	return summary{
		id:         storeID(b[4:20]),
		applied:    env.Position(binary.BigEndian.Uint64(b[20:])),
		keys:       int64(binary.BigEndian.Uint64(b[28:])),
		tombstones: int64(binary.BigEndian.Uint64(b[36:])),
		opened:     binary.BigEndian.Uint64(b[44:]),
	}, nil
}

// belongs holds the summary against the store that the file stands in.
func (m summary) belongs(path string, id storeID) error {
	if m.id != id {
		return damagedFile(path, -1, "it belongs to another store (%v)", m.id)
	}
	return nil
}

// fits is belongs, and holds the summary against the records that were counted
// in the file.
func (m summary) fits(path string, id storeID, records int64) error {
	if err := m.belongs(path, id); err != nil {
		return err
	}
	if m.keys+m.tombstones != records {
		return damagedFile(path, -1, "it holds %d records, and should hold %d", records, m.keys+m.tombstones)
	}
	return nil
}

// openBolt opens a file that was checked, or creates one.
//
// The list of free pages is kept in the file, though commits would be faster
// without: rebuilding it, bbolt walks the file on a goroutine of its own,
// whose panics nobody can catch, at every open and every rollback.
func openBolt(path string) (db *bbolt.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = damagedFile(path, -1, "bbolt can't open it: %v", r)
		}
	}()
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:         lockTimeout,
		FreelistType:    bbolt.FreelistMapType,
		PageSize:        boltPage,
		InitialMmapSize: initialMap,
		NoStatistics:    true,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return db, nil
}

// createState makes an empty state.db.
func createState(path string, id storeID) error {
	db, err := openBolt(path)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{bucketRecords, bucketCells} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		b, err := tx.CreateBucket([]byte(bucketMeta))
		if err != nil {
			return err
		}
		return b.Put([]byte(summaryKey), summary{id: id}.encode())
	})
	if closeErr := db.Close(); err == nil {
		err = closeErr
	}
	return err
}

// openState checks all of state.db, opens it, and commits once.
//
// The commit writes the other meta page and syncs. The newest one may have
// been found in the system's cache only, after a sync that failed: what it
// says would be forgotten by a loss of power, and by then the journal's
// segments that could say it again would have been used again.
//
// Before the records are read, between is called with what the file says of
// itself and with its cells.
func openState(path string, id storeID, between func(m summary, cells map[string][]byte) error) (*state, summary, *checker, error) {
	var m summary
	c, err := checkStateBetween(path, func(c *checker) (err error) {
		if m, err = readSummary(path, c.summary); err == nil {
			err = m.belongs(path, id)
		}
		if err != nil {
			return err
		}
		return between(m, c.cells)
	})
	if err == nil {
		err = m.fits(path, id, c.records)
	}
	if err != nil {
		return nil, m, nil, err
	}
	if !c.badHeads {
		// What a damaged record counted as can't always be told when it is
		// healed (presenceOfDamaged).
		m.keys, m.tombstones = c.records-c.tombstones, c.tombstones
	}
	db, err := openBolt(path)
	if err != nil {
		return nil, m, nil, err
	}
	s := &state{path: path, db: db}
	m.opened++
	if err := s.apply(nil, nil, m, denseFill); err != nil {
		db.Close()
		return nil, m, nil, err
	}
	return s, m, c, nil
}

func (s *state) close() error {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.endReading() // Close would wait for it
	return s.db.Close()
}

// size returns the file's size in bytes.
func (s *state) size() (int64, error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// view runs f in a read transaction, which must be short: while it lasts the
// file can't be mapped anew. A panic or a fault in it (a page that isn't what
// it was, or that is gone) becomes an error about key. But a panic of somebody
// else's, while outside is set, stays one.
func (s *state) view(key abd.Key, outside *bool, f func(records *bbolt.Bucket) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if _, fault := r.(interface{ Addr() uintptr }); outside != nil && *outside && !fault {
				panic(r)
			}
			err = damagedRecord(s.path, keyBytes(key), fmt.Sprintf("reading it failed: %v", r))
			s.noteCut()
		}
	}()
	tx, err := s.db.Begin(false)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return f(tx.Bucket([]byte(bucketRecords)))
}

// load returns a copy of a key's record, nil if there is none. Without the
// value it is the head, which the next load overwrites.
func (s *state) load(key abd.Key, withValue bool, over *overrides) (record []byte, err error) {
	r := &s.reading
	r.Lock()
	defer r.Unlock()
	if s.inGap(keyBytes(key)) {
		return nil, nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = damagedRecord(s.path, keyBytes(key), fmt.Sprintf("reading it failed: %v", p))
			s.noteCut()
			s.endReading()
		} else if r.brief {
			s.endReading()
		}
	}()
	if r.tx == nil {
		if r.tx, err = s.db.Begin(false); err != nil {
			return nil, err
		}
		r.cursor = r.tx.Bucket([]byte(bucketRecords)).Cursor()
	}
	found, err := s.search(keyBytes(key), withValue, over)
	if err != nil || found == nil {
		return nil, err
	}
	if !withValue {
		copy(r.head[:], found)
		return r.head[:], nil
	}
	if reason := checkValue(found); reason != "" {
		return nil, damagedRecord(s.path, keyBytes(key), reason)
	}
	return bytes.Clone(found), nil
}

// noteCut looks, after a read that has failed, whether the file is shorter than what
// is in use of it, and says so once: then it isn't a record that is damaged here and
// there, as all that will be said of reads.
func (s *state) noteCut() {
	size, err := s.size()
	if used := s.used.Load(); err == nil && size < used {
		s.shrunk.Do(func() {
			s.log.Error("the database was cut short while it is in use: this node abstains on what was behind the cut, and ends when it has to write there",
				"file", s.path, "bytes", size, "used", used)
		})
	}
}

// search is find in the shared transaction, which is faster for keys that come in
// order. The caller holds s.reading.
func (s *state) search(key []byte, withValue bool, over *overrides) ([]byte, error) {
	r := &s.reading
	if r.placed && withValue {
		if k, v := r.cursor.Next(); bytes.Equal(k, key) {
			return s.check(key, v)
		}
	}
	r.placed = false
	k, v := r.cursor.Seek(key)
	if k != nil && bytes.Equal(k, key) {
		r.placed = true
		return s.check(key, v)
	}
	if err := s.enclosed(r.cursor, key, k, v, over); err != nil {
		return nil, err
	}
	r.gap.known, r.gap.from, r.gap.to = true, append(r.gap.from[:0], key...), append(r.gap.to[:0], k...)
	return nil, nil
}

// inGap reports whether a key was proved absent, in the shared transaction. The
// caller holds s.reading.
func (s *state) inGap(key []byte) bool {
	g := &s.reading.gap
	return g.known && bytes.Compare(key, g.from) >= 0 && (len(g.to) == 0 || bytes.Compare(key, g.to) < 0)
}

// absent reports whether it costs nothing to say that bbolt doesn't have a key.
func (s *state) absent(key abd.Key) bool {
	s.reading.Lock()
	is := s.inGap(keyBytes(key))
	s.reading.Unlock()
	return is
}

// endReading ends the shared transaction. The caller holds s.reading.
func (s *state) endReading() {
	s.reading.placed, s.reading.gap.known = false, false
	if s.reading.tx != nil {
		s.reading.tx.Rollback()
		s.reading.tx, s.reading.cursor = nil, nil
	}
}

// find looks a key up. It returns the record, whose head is good, or nil when
// the key was proved absent, but for what the tables over have of it.
func (s *state) find(c *bbolt.Cursor, key []byte, over *overrides) ([]byte, error) {
	k, v := c.Seek(key)
	if k != nil && bytes.Equal(k, key) {
		return s.check(key, v)
	}
	return nil, s.enclosed(c, key, k, v, over)
}

// check returns a key's record if its head is good.
func (s *state) check(key, record []byte) ([]byte, error) {
	if reason := checkHead(key, record); reason != "" {
		return nil, damagedRecord(s.path, key, reason)
	}
	return record, nil
}

// presence is what a store has under a key.
type presence uint8

const (
	absent presence = iota
	present
	tombstone
	// unknown: bbolt wasn't searched yet. That is so of what a start has loaded,
	// until it is applied.
	unknown
)

func presenceOf(record []byte) presence {
	switch {
	case record == nil:
		return absent
	case recordDeleted(record):
		return tombstone
	default:
		return present
	}
}

// count adds one record's worth to the counts.
func (p presence) count(keys, tombstones *int64, by int64) {
	switch p {
	case present:
		*keys += by
	case tombstone:
		*tombstones += by
	}
}

// presence looks up a key for a record that takes the place of what is there.
// A record that is damaged isn't in its way.
func (s *state) presence(key abd.Key) (found presence, err error) {
	err = s.view(key, nil, func(records *bbolt.Bucket) (err error) {
		found, err = s.base(records.Cursor(), keyBytes(key))
		return err
	})
	return found, err
}

// head is a key with its record's head.
type head struct {
	key    abd.Key
	record []byte // recordHead bytes
}

// heads returns copies of up to limit heads in order, from the first key that
// isn't before start and as long as they begin with prefix. It leaves out
// damaged ones that the tables over have another record of.
//
// What stands before a damaged record is returned without an error, and more is
// true: whoever goes on meets the damage.
func (s *state) heads(prefix, start abd.Key, limit int, over *overrides) (page []head, more bool, err error) {
	// The copies of all keys are one string, and those of all records one slice.
	keys, heads := make([]byte, 0, limit*usualKey), make([]byte, 0, limit*recordHead)
	ends := make([]int, 0, limit)
	err = s.view(start, nil, func(records *bbolt.Bucket) error {
		c := liveCursor{state: s, over: over, cursor: records.Cursor(), start: start}
		for len(ends) < limit {
			at, ok, err := c.peek()
			switch {
			case err != nil && len(ends) > 0:
				more = true
				return nil
			case err != nil || !ok || !strings.HasPrefix(string(at.key), string(prefix)):
				return err
			}
			keys, heads = append(keys, at.key...), append(heads, at.record[:recordHead]...)
			ends = append(ends, len(keys))
			c.next()
		}
		more = true
		return nil
	})
	if len(ends) == 0 || err != nil {
		return nil, more, err
	}
	text, begin := abd.Key(keys), 0
	page = make([]head, len(ends))
	for i, end := range ends {
		page[i] = head{key: text[begin:end], record: heads[i*recordHead : (i+1)*recordHead : (i+1)*recordHead]}
		begin = end
	}
	return page, more, nil
}

// appliedRecord is a record on its way into bbolt, or out of it.
type appliedRecord struct {
	key    abd.Key
	record []byte // nil: it is removed
	before presence
}

// know looks up what batch, whose keys are in order, takes the place of.
func (s *state) know(batch []appliedRecord) error {
	at := 0
	for at < len(batch) && batch[at].before != unknown {
		at++
	}
	if at == len(batch) {
		return nil
	}
	return s.view(batch[at].key, nil, func(records *bbolt.Bucket) (err error) {
		c := records.Cursor()
		for i := range batch[at:] {
			if r := &batch[at+i]; r.before == unknown {
				if r.before, err = s.base(c, keyBytes(r.key)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// fill chooses how full the pages become that a batch makes bbolt split. It
// looks at some of the new keys: how many others of the batch come before the
// next key that is there already.
func (s *state) fill(batch []appliedRecord) (fill float64, err error) {
	if len(batch) == 0 {
		return sparseFill, nil
	}
	seen, beside := 0, 0
	err = s.view(batch[0].key, nil, func(records *bbolt.Bucket) error {
		c := records.Cursor()
		step := max(1, len(batch)/fillSamples)
		for i := 0; i < len(batch); i += step {
			if batch[i].before != absent {
				continue
			}
			next, _ := c.Seek(keyBytes(batch[i].key))
			end := len(batch)
			if next != nil {
				end = i + sort.Search(len(batch)-i, func(n int) bool { return string(batch[i+n].key) >= string(next) })
			}
			seen, beside = seen+1, beside+end-i
		}
		return nil
	})
	if beside >= denseKeys*max(1, seen) {
		return denseFill, err
	}
	return sparseFill, err
}

// apply writes records, in order of their keys, and cells, and what is then
// true of the file. Pages that must be split become as full as fill says.
func (s *state) apply(batch []appliedRecord, cells map[string][]byte, m summary, fill float64) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = damagedFile(s.path, -1, "writing to it failed: %v", r)
		}
	}()
	size, err := s.size()
	if err != nil {
		return err
	}
	// Before the write transaction, so that all pages that were freed are its
	// to use; and after it, so that loads find what it wrote.
	s.renewReading(size > initialMap-mapReserve)
	defer s.renewReading(false)
	used := int64(0)
	err = s.db.Update(func(tx *bbolt.Tx) error {
		records := tx.Bucket([]byte(bucketRecords))
		records.FillPercent = fill
		for _, r := range batch {
			var err error
			if r.record == nil {
				err = records.Delete(keyBytes(r.key))
			} else {
				err = records.Put(keyBytes(r.key), r.record)
			}
			if err != nil {
				return err
			}
		}
		bucket, err := tx.CreateBucketIfNotExists([]byte(bucketCells))
		if err != nil {
			return err
		}
		for name, blob := range cells {
			if err := bucket.Put([]byte(name), blob); err != nil {
				return err
			}
		}
		used = tx.Size()
		return tx.Bucket([]byte(bucketMeta)).Put([]byte(summaryKey), m.encode())
	})
	if err == nil {
		s.used.Store(used)
	}
	return err
}

// renewReading makes the next load begin a transaction. While it is brief,
// every load does.
func (s *state) renewReading(brief bool) {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.endReading()
	s.reading.brief = brief
}
