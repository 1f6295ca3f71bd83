package storetest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"atoll/abd"
	"atoll/env"
)

// change is what a group holds. A zero record is one that was removed.
type change struct {
	records map[abd.Key]abd.Record
	cells   map[string][]byte
}

func newChange() change {
	return change{map[abd.Key]abd.Record{}, map[string][]byte{}}
}

func (c change) add(d change) {
	maps.Copy(c.records, d.records)
	maps.Copy(c.cells, d.cells)
}

// world is the dumb twin of a store: maps, and the groups that may be lost.
type world struct {
	names   []string // of cells
	durable change
	groups  []change // cut, not committed
	open    change   // since the last cut
	// positions of what isn't durable
	positions map[abd.Key]env.Position
	at        map[string]env.Position // of cells, likewise
	committed env.Position
}

func (w *world) now() change {
	all := newChange()
	all.add(w.durable)
	for _, g := range w.groups {
		all.add(g)
	}
	all.add(w.open)
	return all
}

func (w *world) cut() {
	if len(w.open.records)+len(w.open.cells) > 0 {
		w.groups = append(w.groups, w.open)
		w.open = newChange()
	}
}

func (w *world) commit(p env.Position) {
	for _, g := range w.groups {
		w.durable.add(g)
	}
	w.groups = nil
	w.committed = p
}

// crash accepts any number of the first groups, and all of a group or none.
func (w *world) crash(t *testing.T, h Harness, keys []abd.Key) {
	w.open, w.positions, w.at = newChange(), map[abd.Key]env.Position{}, map[string]env.Position{}
	groups := w.groups
	w.groups = nil
	for n := 0; ; n++ {
		if w.matches(h, keys) {
			break
		}
		if n == len(groups) {
			t.Fatalf("after the crash the store holds neither what was committed nor that and some of the %d groups behind it", len(groups))
		}
		w.durable.add(groups[n])
	}
	w.committed = commit(t, h.Store())
}

func (w *world) matches(h Harness, keys []abd.Key) bool {
	for _, key := range keys {
		r, _, err := h.Store().Load(key, true)
		if err != nil || !same(r, w.durable.records[key]) {
			return false
		}
	}
	for _, name := range w.names {
		value, _ := h.Store().Cell(name)
		want, ok := w.durable.cells[name]
		if (value != nil) != ok || !bytes.Equal(value, want) {
			return false
		}
	}
	return true
}

// check holds all that can be read against the twin.
func (w *world) check(t *testing.T, h Harness, keys []abd.Key, prefix, after abd.Key) {
	t.Helper()
	all := w.now()
	var live, dead int64
	for _, key := range keys {
		r := all.records[key]
		w.checkPosition(t, string(key), wantRecord(t, h.Store(), key, r), w.positions[key])
		switch {
		case r.Deleted:
			dead++
		case !r.Absent():
			live++
		}
	}
	for _, name := range w.names {
		value, p := h.Store().Cell(name)
		want, ok := all.cells[name]
		if (value != nil) != ok || !bytes.Equal(value, want) {
			t.Fatalf("Cell(%q) = %.40q, want %.40q (set: %t)", name, value, want, ok)
		}
		w.checkPosition(t, name, p, w.at[name])
	}
	wantUsage(t, h.Store(), live, dead)
	var want []item
	for _, key := range slices.Sorted(maps.Keys(all.records)) {
		r := all.records[key]
		if strings.HasPrefix(string(key), string(prefix)) && key > after && !r.Tag.IsZero() {
			want = append(want, item{key, r.Tag, r.Deleted})
		}
	}
	if got := list(t, h.Store(), prefix, after, len(all.records)+1); !slices.Equal(got, want) {
		t.Fatalf("Scan(%q, %q) = %v, want %v", prefix, after, got, want)
	}
}

// checkPosition checks where something stands that was set at want, 0 if it
// was durable then.
func (w *world) checkPosition(t *testing.T, name string, p, want env.Position) {
	t.Helper()
	if want > w.committed && p != want {
		t.Fatalf("%q isn't durable and stands at %d, want %d", name, p, want)
	} else if want <= w.committed && p > w.committed {
		t.Fatalf("%q is durable and stands at %d, the journal at %d", name, p, w.committed)
	}
}

// model does at random what a node does, and crashes.
func model(t *testing.T, h Harness) {
	const seed = 20
	r := rand.New(rand.NewPCG(seed, seed))
	var keys []abd.Key
	for i := range 40 {
		keys = append(keys, abd.Key(fmt.Sprintf("%c%c%d", 'a'+i%3, "\x00/z"[i%3], i)))
	}
	w := &world{
		durable: newChange(), open: newChange(),
		positions: map[abd.Key]env.Position{}, at: map[string]env.Position{},
	}
	for i := range 6 {
		w.names = append(w.names, fmt.Sprint("cell ", i))
	}
	pick := func() abd.Key { return keys[r.IntN(len(keys))] }
	for n := 1; n <= 2500; n++ {
		switch x := r.IntN(1000); {
		case x < 50:
			name, value := w.names[r.IntN(len(w.names))], make([]byte, r.IntN(300))
			fillRandom(r, value)
			w.at[name] = setCell(t, h.Store(), name, string(value))
			w.open.cells[name] = value
		case x < 700:
			key, rec := pick(), abd.Record{Tag: tag(n)}
			if r.IntN(6) == 0 {
				rec.Deleted = true
			} else {
				rec.Value = make([]byte, r.IntN(1+r.IntN(600)))
				fillRandom(r, rec.Value)
			}
			switch {
			case x < 80:
				rec = abd.Record{}
				w.positions[key] = heal(t, h.Store(), key, rec)
			case x < 120:
				w.positions[key] = heal(t, h.Store(), key, rec)
			default:
				if x >= 600 {
					h.Store().Expect(slices.Values(keys[r.IntN(len(keys)):]))
				}
				w.positions[key] = put(t, h.Store(), key, rec)
			}
			w.open.records[key] = rec
		case x < 850:
			h.Store().Cut()
			w.cut()
		case x < 940:
			w.commit(commit(t, h.Store()))
		case x < 990:
			w.check(t, h, keys, pick()[:r.IntN(3)], pick())
		case x < 996:
			h.Crash()
			w.crash(t, h, keys)
			w.check(t, h, keys, "", "")
		default:
			h.Store().Cut()
			w.cut()
			w.commit(commit(t, h.Store()))
			h.Reopen()
			w.committed = commit(t, h.Store())
			w.check(t, h, keys, "", "")
		}
	}
}
