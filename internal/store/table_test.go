package store

import (
	"fmt"
	"hash/maphash"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"atoll/abd"
	"atoll/env"
)

// putRecord puts a record of a value that names its position.
func putRecord(t *table, key abd.Key, position env.Position, size int, before presence) string {
	value := fmt.Sprint(position, string(make([]byte, size)))
	copy(t.put(key, t.hash(key), len(value), position, before), value)
	return value
}

// A table beside a map and a sorted list: several runs, keys that come in
// order, backwards and at random, values that are replaced, large ones among
// them.
func TestTable(t *testing.T) {
	type twinEntry struct {
		value    string
		position env.Position
		before   presence
	}
	const n = 2*runKeys + runKeys/2
	r := random(4)
	for name, keyOf := range map[string]func(i int) abd.Key{
		"in order":  func(i int) abd.Key { return abd.Key(fmt.Sprintf("key-%06d", i)) },
		"backwards": func(i int) abd.Key { return abd.Key(fmt.Sprintf("key-%06d", n-i)) },
		"at random": func(int) abd.Key { return abd.Key(fmt.Sprint(r.IntN(n))) },
		"prefixes":  func(int) abd.Key { return abd.Key("aaaaaaaaaaaaaaaaaaaaaaaaaaa\x00\x00b"[:1+r.IntN(30)]) },
	} {
		t.Run(name, func(t *testing.T) {
			table, twin := newTable(maphash.MakeSeed()), map[abd.Key]twinEntry{}
			for i := range n {
				key := keyOf(i)
				if i%3 == 2 {
					key = keyOf(r.IntN(i)) // most of these are there already
				}
				size := r.IntN(64)
				if i%1000 == 0 {
					size = ownChunk + r.IntN(100)
				}
				e := twinEntry{position: env.Position(i + 1), before: presence(r.IntN(3))}
				e.value = putRecord(table, key, e.position, size, e.before)
				if old, there := twin[key]; there {
					e.before = old.before
				}
				twin[key] = e
				if i%5000 == 0 {
					table.arrange()
				}
			}
			table.arrange()
			sorted := slices.Sorted(maps.Keys(twin))
			for _, start := range []abd.Key{"", sorted[len(sorted)/2], sorted[len(sorted)-1] + "x", "key-0001"} {
				at, _ := slices.BinarySearch(sorted, start)
				c := table.from(start)
				for _, want := range sorted[at:] {
					key, ok := c.peek()
					if !ok || key != want {
						t.Fatalf("from %q: %q, want %q", start, key, want)
					}
					got, _, _ := table.get(key, table.hash(key), true)
					next, _ := c.entry(true)
					for _, e := range []entry{next, got} {
						if w := twin[key]; string(e.record) != w.value || e.position != w.position || e.before != w.before {
							t.Fatalf("%q is at position %d, before %d, want %+v", key, e.position, e.before, twin[key].position)
						}
					}
					c.next()
				}
				if got, ok := c.peek(); ok {
					t.Fatalf("%q behind the last key", got)
				}
			}
			if _, ok, _ := table.get("nobody", table.hash("nobody"), true); ok {
				t.Error("a key that was never put is there")
			}
		})
	}
}

// TestLargeIndex: of more keys than 16 bits number each is found, none that isn't there,
// and, as the index grows, close to where it is looked for at first.
func TestLargeIndex(t *testing.T) {
	const n = 100_000
	table := newTable(maphash.MakeSeed())
	for i := range n {
		key := abd.Key(fmt.Sprint(i))
		table.put(key, table.hash(key), 1, env.Position(i+1), absent)[0] = byte(i)
	}
	for i := range 2 * n {
		key := abd.Key(fmt.Sprint(i))
		e, there, err := table.get(key, table.hash(key), true)
		if err != nil || there != (i < n) || there && (e.position != env.Position(i+1) || e.record[0] != byte(i)) {
			t.Fatalf("key %d: %+v, %t, %v", i, e, there, err)
		}
	}
	var away int
	mask := uint32(len(table.slots) - 1)
	for at, s := range table.slots {
		if s != 0 {
			away += int((uint32(at) - table.home(s.hash())) & mask)
		}
	}
	if away > 4*n {
		t.Errorf("keys are %d slots away from where they are looked for, of %d", away/n, len(table.slots))
	}
}

// A record that was read stays as it is, whatever becomes of its key.
func TestTableKeepsRecords(t *testing.T) {
	table := newTable(maphash.MakeSeed())
	for _, size := range []int{10, ownChunk} {
		want := putRecord(table, "k", 1, size, absent)
		old, _, _ := table.get("k", table.hash("k"), true)
		for i := range 3 {
			putRecord(table, "k", env.Position(2+i), size, absent)
		}
		if string(old.record) != want {
			t.Errorf("a record of %d bytes has changed", size)
		}
	}
}

// What a table says that it takes is what it takes: the limit holds for that.
func TestTableBytes(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for name, c := range map[string]struct{ puts, keys, size int }{
		"new keys":     {100_000, 100_000, 146},
		"small":        {100_000, 100_000, 8},
		"the same key": {100_000, 100, 146},
		"large values": {1000, 20, 100 << 10},
	} {
		before := heap()
		table := newTable(maphash.MakeSeed())
		for i := range c.puts {
			key := abd.Key(fmt.Sprintf("key-%08d", i%c.keys))
			table.put(key, table.hash(key), c.size, env.Position(i+1), absent)
		}
		table.arrange()
		took := heap() - before
		if least, most := table.bytes*3/4, table.bytes*9/8+(1<<20); took < least || took > most {
			t.Errorf("%s: it takes %d bytes, and says %d", name, took, table.bytes)
		}
		runtime.KeepAlive(table)
	}
}

// Keys that come in order fill their pages, and a few new ones among many
// old ones leave room on both sides of a split.
func TestFill(t *testing.T) {
	path := filepath.Join(t.TempDir(), stateName)
	if err := createState(path, storeID{1}); err != nil {
		t.Fatal(err)
	}
	s, m, _, err := openState(path, storeID{1}, nothingReplayed)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	batchOf := func(from, to, step int) (batch []appliedRecord) {
		for i := from; i < to; i += step {
			key := abd.Key(fmt.Sprintf("key-%08d", i))
			batch = append(batch, appliedRecord{key: key, record: encodeRecord(key, testRecord(i+1, string(make([]byte, 100))))})
		}
		return batch
	}
	content := int64(0)
	for i := range 10 {
		batch := batchOf(i*10_000, (i+1)*10_000, 10)
		fill, err := s.fill(batch)
		if err != nil || fill != denseFill {
			t.Fatalf("keys in order fill %v of a page (%v), want %v", fill, err, denseFill)
		}
		for _, r := range batch {
			content += int64(pageElement + len(r.key) + len(r.record))
		}
		m.keys += int64(len(batch))
		if err := s.apply(batch, nil, m, fill); err != nil {
			t.Fatal(err)
		}
	}
	c, err := checkState(path)
	if err != nil {
		t.Fatal(err)
	}
	if used := int64(c.meta.high) * boltPage; used > content*5/4 {
		t.Errorf("%d bytes of records take %d bytes of pages", content, used)
	}
	if fill, err := s.fill(batchOf(5, 100_000, 10)); err != nil || fill != sparseFill {
		t.Errorf("new keys, each between two old ones, fill %v of a page (%v), want %v", fill, err, sparseFill)
	}
	if fill, err := s.fill(batchOf(1, 10_000, 1)); err != nil || fill != denseFill {
		t.Errorf("nine new keys between two old ones fill %v of a page (%v), want %v", fill, err, denseFill)
	}
}
