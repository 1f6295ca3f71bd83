package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/tags"
)

// loadTwin is what a table should hold: a map that was filled entry by entry.
type loadTwin struct {
	records map[abd.Key]entry // a removed one's record is nil
	cells   map[string][]byte
}

// randomSegments makes segments of random entries, in frames of random sizes,
// and reads them behind applied.
func randomSegments(t *testing.T, r *rand.Rand, keys int, applied env.Position, hash func([]byte) uint32) ([]recovered, []*loader, loadTwin) {
	t.Helper()
	j := journal{dir: t.TempDir(), cfg: Config{openFile: openOS}, id: storeID{1}}
	twin := loadTwin{map[abd.Key]entry{}, map[string][]byte{}}
	position := env.Position(0)
	loaders := []*loader{{applied: applied, hash: hash}, {applied: applied, hash: hash}}
	segments := make([]recovered, 1+r.IntN(5))
	for n := range segments {
		number := uint64(n + 1)
		b := make([]byte, segmentHead)
		first := position
		for range r.IntN(20) {
			payload, begin := make([]byte, frameHead), position
			for range 1 + r.IntN(40) {
				position++
				payload = twin.append(payload, r, abd.Key(fmt.Sprint("key-", r.IntN(keys))), position, position > applied)
			}
			payload = sealFrame(payload, j.id, number, begin, uint32(position-begin), counts{})
			b = append(b, payload...)
			b = append(b, make([]byte, alignFrame(int64(len(b)))-int64(len(b)))...)
		}
		if r.IntN(2) == 0 {
			b = append(b, make([]byte, 2*len(b))...) // hardly used
		}
		copy(b, segmentHeader{generation: number, first: first, capacity: int64(len(b))}.encode(j.id))
		writeFile(t, filepath.Join(j.dir, segmentName(number)), b)
		if segments[n] = j.readSegment(number, false, uint32(n), loaders[r.IntN(2)]); segments[n].err != nil {
			t.Fatal(segments[n].err)
		}
		if f := segments[n].filed; f != nil {
			t.Cleanup(func() { f.Close() })
		}
		if segments[n].end != position {
			t.Fatalf("segment %d ends with record %d, want %d", number, segments[n].end, position)
		}
	}
	return segments, loaders, twin
}

// append appends a random entry to a payload, and to the twin if it counts.
func (w loadTwin) append(b []byte, r *rand.Rand, key abd.Key, position env.Position, counts bool) []byte {
	switch kind := r.IntN(20); {
	case kind == 0:
		name := fmt.Sprint("cell-", r.IntN(3))
		blob := encodeBlob(kindCell, name, []byte(fmt.Sprint(position)))
		if counts {
			w.cells[name] = blob
		}
		return appendSpecial(b, name, blob)
	case kind == 1:
		if counts {
			w.records[key] = entry{position: position, before: unknown}
		}
		return appendSpecial(b, string(key), encodeBlob(kindRemoved, string(key), nil))
	default:
		record := testRecord(int(position), strings.Repeat("v", r.IntN(100)))
		if record.Deleted = kind < 5; record.Deleted {
			record.Value = nil
		}
		encoded := encodeRecord(key, record)
		if counts {
			w.records[key] = entry{position: position, record: encoded, before: unknown}
		}
		return appendEntry(b, key, encoded)
	}
}

// check compares a table with the twin: entry by entry, and in order.
func (w loadTwin) check(t *testing.T, table *table, hash func([]byte) uint32) {
	t.Helper()
	table.arrange()
	c := table.from("")
	for _, key := range slices.Sorted(maps.Keys(w.records)) {
		want := w.records[key]
		got, ok, err := table.get(key, hash(keyBytes(key)), true)
		at, inOrder := c.peek()
		if !ok || !inOrder || at != key {
			t.Fatalf("%q: found %v, %v, and %q is next in order", key, ok, err, at)
		}
		next, err := c.entry(true)
		if err != nil {
			t.Fatal(err)
		}
		head, _, err := table.get(key, hash(keyBytes(key)), false)
		if n := min(len(want.record), recordHead); err != nil || len(head.record) < n || !bytes.Equal(head.record[:n], want.record[:n]) {
			t.Fatalf("%q: head %q, %v; want that of %q", key, head.record, err, want.record)
		}
		for _, e := range []entry{got, next} {
			if e.position != want.position || e.before != want.before || !bytes.Equal(e.record, want.record) {
				t.Fatalf("%q: %+v, want %+v", key, e, want)
			}
		}
		c.next()
	}
	if key, ok := c.peek(); ok || table.count != len(w.records) {
		t.Fatalf("%d keys, %q among them, want %d", table.count, key, len(w.records))
	}
	if !maps.EqualFunc(table.cells, w.cells, bytes.Equal) {
		t.Fatalf("cells %q, want %q", table.cells, w.cells)
	}
}

// The journal makes the same table as its entries one by one, whatever their
// hashes: alike, too, or all at the end of the index.
func TestLoad(t *testing.T) {
	seed := maphash.MakeSeed()
	good := func(b []byte) uint32 { return uint32(maphash.Bytes(seed, b)) }
	for name, hash := range map[string]func([]byte) uint32{
		"good":       good,
		"alike":      func(b []byte) uint32 { return good(b) | 0x00ffffff },
		"the same":   func([]byte) uint32 { return 0x7fffffff },
		"at the end": func(b []byte) uint32 { return good(b) | 0xff000000 },
		"last":       func([]byte) uint32 { return ^uint32(0) },
	} {
		t.Run(name, func(t *testing.T) {
			r := random(11)
			for round := range 12 {
				keys := []int{1, 30, 3000}[round%3]
				segments, loaders, twin := randomSegments(t, r, keys, env.Position(r.IntN(2)*r.IntN(500)), hash)
				table := newTable(seed)
				loadTable(table, segments, loaders)
				twin.check(t, table, hash)
				for i := range keys { // it goes on as any other
					key, position := abd.Key(fmt.Sprint("key-", i*2)), env.Position(1_000_000+i)
					record := encodeRecord(key, testRecord(i+1, "put"))
					e := entry{position: position, record: record, before: tombstone}
					if old, there := twin.records[key]; there {
						e.before = old.before
					}
					copy(table.put(key, hash(keyBytes(key)), len(record), position, tombstone), record)
					twin.records[key] = e
				}
				twin.check(t, table, hash)
			}
		})
	}
}

// The counts are right after a start, whatever the journal has in the place of
// whatever bbolt has, and whether the journal's frames say them or not.
func TestCountsOfLoaded(t *testing.T) {
	for _, format := range []uint32{2, segmentFormat} {
		cfg := Config{Dir: t.TempDir(), SegmentBytes: 64 << 10, openFile: new(disk).open}
		mustCreate(t, cfg)
		s := mustOpen(t, cfg)
		// Of each key: what bbolt has, and what the journal has, again and again.
		kinds := []presence{absent, present, tombstone}
		want := counts{}
		seq := 0
		put := func(key abd.Key, is presence) {
			seq++
			r := testRecord(seq, "v")
			if is == tombstone {
				r = abd.Record{Tag: testTag(seq), Deleted: true}
			}
			mustStore(t, s, key, r)
		}
		each := func(visit func(key abd.Key, in, then presence)) {
			for i := range 90 {
				visit(abd.Key(fmt.Sprintf("k%02d", i)), kinds[i%3], kinds[i/3%3])
			}
		}
		each(func(key abd.Key, in, _ presence) {
			if in != absent {
				put(key, in)
			}
		})
		mustCommit(t, s)
		applyNow(t, s)
		each(func(key abd.Key, in, then presence) {
			switch then {
			case absent:
				put(key, present)
				if _, err := s.Heal(key, abd.Record{}); err != nil {
					t.Fatal(err)
				}
			default:
				put(key, present+tombstone-then)
				mustCommit(t, s)
				put(key, then)
			}
			then.count(&want.keys, &want.tombstones, +1)
		})
		s.healed = false // nothing is applied
		mustCommit(t, s)
		mustClose(t, s)
		if format < segmentFormat {
			inOlderFrames(t, filepath.Join(cfg.Dir, journalName, segmentName(1)), s.journal.id, format)
		}
		for _, applied := range []bool{false, true} {
			s = mustOpen(t, cfg)
			if got := s.counted(); got != want {
				t.Errorf("format %d, applied %v: %+v, want %+v", format, applied, got, want)
			}
			applyNow(t, s)
			mustClose(t, s)
		}
	}
}

// inOlderFrames writes a segment anew, as a program of an older format would have
// written it.
func inOlderFrames(t *testing.T, path string, id storeID, format uint32) {
	t.Helper()
	old := readFile(t, path)
	b := append(make([]byte, 0, len(old)), old[:segmentHead]...)
	binary.BigEndian.PutUint32(b[8:], format)
	binary.BigEndian.PutUint32(b[4:], crc32.Checksum(b[8:headUsed], castagnoli))
	for at := int64(segmentHead); ; {
		f, _, whole := readFrame(old[at:], id, 1)
		if !whole {
			break
		}
		frame := append(make([]byte, frameHead), f.payload...)
		sealPayload(frame, id, 1, f.first, f.records, 0)
		b = append(b, frame...)
		b = b[:alignFrame(int64(len(b)))]
		at += f.size
	}
	writeFile(t, path, b[:len(old)])
}

// A large record in a segment that was loaded is replaced, and what else the
// segment holds stays.
func TestReplaceLoaded(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), openFile: new(disk).open}
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	large := testRecord(1, string(make([]byte, ownChunk)))
	mustStore(t, s, "large", large)
	mustStore(t, s, "small", testRecord(2, "kept"))
	mustCommit(t, s)
	mustClose(t, s)
	s = mustOpen(t, cfg)
	wantLoad(t, s, "large", large)
	mustStore(t, s, "large", testRecord(3, "less"))
	wantLoad(t, s, "large", testRecord(3, "less"))
	wantLoad(t, s, "small", testRecord(2, "kept"))
	mustCommit(t, s)
	applyNow(t, s)
	wantLoad(t, s, "small", testRecord(2, "kept"))
	mustClose(t, s)
}

// What a start has loaded and not sorted goes to the apply at once, and a Scan
// that comes meanwhile sees all of it in order.
func TestScanAfterRestart(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), openFile: new(disk).open}
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	const n = 3*runKeys + 7
	for i := range n {
		mustStore(t, s, abd.Key(fmt.Sprintf("key-%08d", i*7919%n)), testRecord(i+1, "v"))
		if i%1000 == 0 {
			mustCommit(t, s)
		}
	}
	mustCommit(t, s)
	mustClose(t, s)
	s = mustOpen(t, cfg)
	if s.frozen.Load() == nil && s.Applied() < s.Committed() {
		t.Error("what was loaded isn't on its way into bbolt")
	}
	if u := s.Usage(); u.Keys != n {
		t.Errorf("%d keys, want %d", u.Keys, n)
	}
	seen := 0
	if _, err := s.Scan("", "", func(key abd.Key, _ tags.Tag, _ bool) bool {
		if want := abd.Key(fmt.Sprintf("key-%08d", seen)); key != want {
			t.Fatalf("key %d is %q, want %q", seen, key, want)
		}
		seen++
		return true
	}); err != nil || seen != n {
		t.Errorf("%d keys, want %d; %v", seen, n, err)
	}
	applyNow(t, s)
	mustClose(t, s)
	s = mustOpen(t, cfg)
	if u := s.Usage(); u.Keys != n {
		t.Errorf("after the apply: %d keys, want %d", u.Keys, n)
	}
	wantLoad(t, s, "key-00000000", testRecord(1, "v"))
	mustClose(t, s)
}

// Several sort a sealed table at once, each run once.
func TestSorted(t *testing.T) {
	for _, counts := range [][2]int{{0, 0}, {0, 5}, {5, 5}, {0, 3*runKeys + 1}, {runKeys, 2 * runKeys}, {runKeys + 9, 2*runKeys + 3}} {
		table := newTable(maphash.MakeSeed())
		var want []abd.Key
		for i := range counts[1] {
			if i == counts[0] {
				table.arrange()
			}
			key := abd.Key(fmt.Sprint(i * 7919 % 100_003))
			putRecord(table, key, env.Position(i+1), 3, absent)
			want = append(want, key)
		}
		slices.Sort(want)
		table.seal(env.Position(counts[1]))
		var sorters sync.WaitGroup
		for range 3 {
			sorters.Go(func() {
				table.sorted()
				for c, i := table.from(""), 0; ; i++ {
					key, ok := c.peek()
					if !ok {
						if i != len(want) {
							t.Errorf("%d: %d keys, want %d", counts, i, len(want))
						}
						return
					}
					if key != want[i] {
						t.Errorf("%d: key %d is %q, want %q", counts, i, key, want[i])
						return
					}
					c.next()
				}
			})
		}
		sorters.Wait()
	}
}

// Who finds no run left to sort waits for those that others have taken.
func TestSortedWaits(t *testing.T) {
	table := newTable(maphash.MakeSeed())
	for i := range runKeys - 1 { // one run, which put leaves alone
		putRecord(table, abd.Key(fmt.Sprint(i)), env.Position(i+1), 3, absent)
	}
	table.seal(runKeys - 1)
	taken := int(table.unsorted.next.Add(1)) - 1
	var waiter sync.WaitGroup
	waiter.Go(func() {
		table.sorted()
		if len(table.order[taken]) != table.count {
			t.Errorf("%d of %d keys are in order", len(table.order[taken]), table.count)
		}
	})
	for table.unsorted.next.Load() < int64(taken+2) { // until there is none left for it
		runtime.Gosched()
	}
	table.sortRun(taken, nil)
	table.unsorted.runs.Done()
	waiter.Wait()
}

// A folder that Open refuses is left as it was, whichever of its files is
// damaged: neither the torn end of a journal is cut off nor a spare removed.
func TestRefusedFolderStays(t *testing.T) {
	for _, file := range []string{stateName, filepath.Join(journalName, segmentName(1))} {
		cfg := filled(t, 100)
		s := mustOpen(t, cfg)
		for i := range 3 {
			mustStore(t, s, "late", testRecord(1000+i, "v"))
			mustCommit(t, s)
		}
		torn := s.journal.active
		offset := s.journal.offset
		mustStore(t, s, "late", testRecord(2000, "torn"))
		mustCommit(t, s)
		mustClose(t, s)
		b := readFile(t, torn.path)
		b[offset+frameHead+5] ^= 1
		writeFile(t, torn.path, b)
		writeFile(t, filepath.Join(cfg.Dir, journalName, spareName(99)), make([]byte, 100))

		path := filepath.Join(cfg.Dir, file)
		b = readFile(t, path)
		if file == stateName {
			flipAt(t, b, keysOf(100)[50], -recordHead-8, 0x40) // a key: out of order
		} else {
			b[segmentHead+frameHead+3] ^= 1 // the first frame
		}
		writeFile(t, path, b)
		before := folderOf(t, cfg.Dir)
		if s, err := Open(cfg); err == nil {
			mustClose(t, s)
			t.Fatalf("%s is damaged, and Open takes it", file)
		} else {
			wantDamage(t, err, filepath.Base(file))
		}
		if after := folderOf(t, cfg.Dir); !maps.Equal(before, after) {
			t.Errorf("%s is damaged, and Open has changed the folder", file)
		}
	}
}

// folderOf returns all files of a folder but its lock.
func folderOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != lockName {
			files[path] = string(readFile(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// What the journal holds at a start counts towards the next apply, also what was
// written over there: a node that is killed again and again would have a journal that
// grows by as much each time.
func TestAStartCountsWhatTheJournalHas(t *testing.T) {
	cfg := small(t)
	cfg.openFile = new(disk).open
	cfg.TableBytes = 1 << 20 // the table alone is far from full
	mustCreate(t, cfg)
	s := mustOpen(t, cfg)
	for n := 1; s.pressure() < 0.75; n++ {
		mustStore(t, s, "k", testRecord(n, string(make([]byte, 200))))
		mustCommit(t, s)
	}
	want := s.pressure()
	mustClose(t, s)
	s = mustOpen(t, cfg)
	if got := s.pressure(); got < 0.9*want || got > 1.1*want {
		t.Errorf("after a start the pressure is %.2f, and was %.2f before", got, want)
	}
	mustClose(t, s)
}
