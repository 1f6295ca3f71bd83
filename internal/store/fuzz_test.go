package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"atoll/abd"
)

// The files of a store are read by whatever the disk kept of them. In these
// targets the fuzzer has the checksums right: what stands behind a checksum
// is believed by nothing but the code that is tried here.

// FuzzStoredRecord: what is read as a record is one that could have been written.
func FuzzStoredRecord(f *testing.F) {
	f.Add([]byte("key"), encodeRecord("key", testRecord(1, "value")), true)
	f.Add([]byte("key"), encodeRecord("key", abd.Record{Tag: testTag(2), Deleted: true}), true)
	f.Add([]byte{}, []byte{recordVersion}, false)
	f.Fuzz(func(t *testing.T, key, record []byte, sums bool) {
		record = bytes.Clone(record)
		if sums && len(record) >= recordHead {
			binary.BigEndian.PutUint32(record[recordValueSum:], crc32.Checksum(record[recordHead:], castagnoli))
			binary.BigEndian.PutUint32(record[recordHeadSum:], headSum(key, record))
		}
		if checkHead(key, record) != "" || checkValue(record) != "" {
			return
		}
		r := decodeRecord(record, true)
		if again := encodeRecord(abd.Key(key), r); !bytes.Equal(again, record) {
			t.Errorf("%x is read as %+v, which is written as %x", record, r, again)
		}
	})
}

// FuzzEntries: the payload of a frame whose checksum is right holds as many
// records as its head says, each whole, or is refused. A table that is loaded
// from it has the newest of each key.
func FuzzEntries(f *testing.F) {
	id := storeID{1}
	two := appendEntry(nil, "key", encodeRecord("key", testRecord(1, "value")))
	f.Add(two, uint32(1))
	two = appendEntry(two, "k", encodeRecord("k", testRecord(2, "")))
	f.Add(two, uint32(2))
	f.Add(two[:len(two)-1], uint32(2))
	two = appendSpecial(two, "cell", encodeBlob(kindCell, "cell", []byte("value")))
	two = appendSpecial(two, "key", encodeBlob(kindRemoved, "key", nil))
	f.Add(two, uint32(4))
	f.Fuzz(func(t *testing.T, payload []byte, records uint32) {
		b := append(make([]byte, frameHead), payload...)
		b = sealFrame(b, id, 7, 100, records, counts{keys: 5, tombstones: int64(records)})
		b = append(b, make([]byte, frameAlign)...)
		fr, head, whole := readFrame(b, id, 7)
		if !head || !whole || fr.records != records || !bytes.Equal(fr.payload, payload) ||
			!fr.known || fr.counts != (counts{keys: 5, tombstones: int64(records)}) {
			t.Fatalf("sealed and read: %+v, %v, %v", fr, head, whole)
		}
		n, last, newest := uint32(0), fr.first, map[string]logged{}
		err := fr.eachEntry(func(e logged) {
			if e.position != last+1 || !bytes.HasPrefix(fr.payload[e.at:], e.name) {
				t.Fatalf("position %d behind %d, entry of %q at %d", e.position, last, e.name, e.at)
			}
			n, last = n+1, e.position
			if e.kind != kindCell {
				newest[string(e.name)] = e
			}
			switch e.kind {
			case kindRecord:
				if reason := checkHead(e.name, e.bytes); reason != "" {
					t.Fatalf("record of %q: %s", e.name, reason)
				}
				decodeRecord(e.bytes, true)
			case kindCell:
				if reason := checkCell(e.name, e.bytes); reason != "" {
					t.Fatalf("cell %q: %s", e.name, reason)
				}
			case kindRemoved:
			default:
				t.Fatalf("an entry of kind %d", e.kind)
			}
		})
		if err == nil && n != records {
			t.Errorf("%d records in a frame of %d", n, records)
		}
		wantLoaded(t, fr, b, newest, err)
	})
}

// wantLoaded loads a frame, whose bytes begin b, into a table, and compares it
// with what is the newest of each key.
func wantLoaded(t *testing.T, f frame, b []byte, newest map[string]logged, wantErr error) {
	t.Helper()
	l := loader{hash: crc32.ChecksumIEEE}
	l.begin(0)
	if err := l.frame(f, segmentHead); (err == nil) != (wantErr == nil) {
		t.Fatalf("loaded: %v, read: %v", err, wantErr)
	} else if err != nil {
		return
	}
	table := newTable(maphash.MakeSeed())
	segment := memoryFile(append(make([]byte, segmentHead), b...))
	loadTable(table, []recovered{{filed: segment, cells: l.cells}}, []*loader{&l})
	if table.count != len(newest) {
		t.Errorf("%d keys, want %d", table.count, len(newest))
	}
	for name, want := range newest {
		got, ok, err := table.get(abd.Key(name), l.hash([]byte(name)), true)
		if want.kind == kindRemoved {
			want.bytes = nil
		}
		if !ok || err != nil || got.position != want.position || !bytes.Equal(got.record, want.bytes) {
			t.Errorf("%q: %v, %+v, %v, want %+v", name, ok, got, err, want)
		}
	}
}

// memoryFile is a file that is only read.
type memoryFile []byte

func (f memoryFile) ReadAt(b []byte, offset int64) (int, error) {
	return bytes.NewReader(f).ReadAt(b, offset)
}
func (f memoryFile) WriteAt([]byte, int64) (int, error) { return 0, fs.ErrPermission }
func (f memoryFile) Sync() error                        { return nil }
func (f memoryFile) Size() (int64, error)               { return int64(len(f)), nil }
func (f memoryFile) Reserve(int64) error                { return fs.ErrPermission }
func (f memoryFile) Close() error                       { return nil }

// FuzzBlob: what is read as a cell is one that could have been written.
func FuzzBlob(f *testing.F) {
	f.Add([]byte("name"), encodeBlob(kindCell, "name", []byte("value")), true)
	f.Add([]byte("name"), encodeBlob(kindRemoved, "name", nil), true)
	f.Add([]byte{}, []byte{kindCell}, false)
	f.Fuzz(func(t *testing.T, name, blob []byte, sum bool) {
		blob = bytes.Clone(blob)
		if sum && len(blob) >= blobValue {
			binary.BigEndian.PutUint32(blob[blobSum:], blobChecksum(name, blob))
		}
		if checkCell(name, blob) != "" {
			return
		}
		c := cellOf(blob, 0)
		if again := encodeBlob(kindCell, string(name), c.value); !bytes.Equal(again, blob) {
			t.Errorf("%x is read as %x, which is written as %x", blob, c.value, again)
		}
	})
}

// FuzzSegmentHeader: a head is that of this very file, or refused.
func FuzzSegmentHeader(f *testing.F) {
	id := storeID{1}
	f.Add(segmentHeader{generation: 3, first: 9, capacity: segmentHead}.encode(id)[:headUsed], uint16(0), true)
	f.Add(segmentHeader{generation: 4, first: 9, capacity: 1 << 40}.encode(id)[:headUsed], uint16(100), true)
	f.Add([]byte{}, uint16(0), false)
	f.Fuzz(func(t *testing.T, head []byte, more uint16, sum bool) {
		b := append(make([]byte, 0, segmentHead+int(more)), head...)
		if len(b) < segmentHead && sum {
			b = b[:segmentHead]
		}
		b = append(b, make([]byte, more)...)
		if sum {
			binary.BigEndian.PutUint32(b, segmentMagic)
			binary.BigEndian.PutUint32(b[4:], crc32.Checksum(b[8:headUsed], castagnoli))
		}
		h, err := readSegmentHeader("segment", b, int64(len(b)), id, 3)
		if err == nil && (h.generation != 3 || h.capacity != int64(len(b)) || storeID(b[16:32]) != id) {
			t.Errorf("%+v is taken for the head of segment 3 of %d bytes", h, len(b))
		}
		wantFileError(t, err)
	})
}

// wantFileError fails the test unless err is nil or says what is wrong with a
// file.
func wantFileError(t *testing.T, err error) {
	t.Helper()
	_, damaged := errors.AsType[*DamageError](err)
	_, format := errors.AsType[*FormatError](err)
	if err != nil && !damaged && !format {
		t.Errorf("an error of type %T: %v", err, err)
	}
}

// FuzzSummary: what is read as a summary is one that could have been written.
func FuzzSummary(f *testing.F) {
	f.Add(summary{id: storeID{1}, applied: 5, keys: 3, tombstones: 1, opened: 2}.encode(), true)
	f.Add([]byte{1}, false)
	f.Fuzz(func(t *testing.T, b []byte, sum bool) {
		b = bytes.Clone(b)
		if sum && len(b) >= 4 {
			binary.BigEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], castagnoli))
		}
		m, err := readSummary("state.db", b)
		if err == nil && !bytes.Equal(m.encode(), b) {
			t.Errorf("%x is read as %+v, which is written as %x", b, m, m.encode())
		}
		wantFileError(t, err)
	})
}

// FuzzStoreFile: store.json is whole, or damaged, or newer, or absent.
func FuzzStoreFile(f *testing.F) {
	f.Add([]byte(`{"format":1,"id":"00112233445566778899aabbccddeeff","created":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`{"format":2}`))
	f.Add([]byte(`{"format":-1,"id":"00"}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, identityName), b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readIdentity(dir)
		wantFileError(t, err)
	})
}
