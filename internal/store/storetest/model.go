package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"atoll/abd"
	"atoll/env"
)

// world is the dumb twin of a store: a map, and the groups that may be lost.
type world struct {
	durable map[abd.Key]abd.Record
	groups  []map[abd.Key]abd.Record // cut, not committed
	open    map[abd.Key]abd.Record   // since the last cut
	// positions of what isn't durable
	positions map[abd.Key]env.Position
	committed env.Position
}

func (w *world) now() map[abd.Key]abd.Record {
	all := maps.Clone(w.durable)
	for _, g := range w.groups {
		maps.Copy(all, g)
	}
	maps.Copy(all, w.open)
	return all
}

func (w *world) cut() {
	if len(w.open) > 0 {
		w.groups = append(w.groups, w.open)
		w.open = map[abd.Key]abd.Record{}
	}
}

func (w *world) commit(p env.Position) {
	for _, g := range w.groups {
		maps.Copy(w.durable, g)
	}
	w.groups = nil
	w.committed = p
}

// crash accepts any number of the first groups, and all of a group or none.
func (w *world) crash(t *testing.T, h Harness, keys []abd.Key) {
	w.open, w.positions = map[abd.Key]abd.Record{}, map[abd.Key]env.Position{}
	groups := w.groups
	w.groups = nil
	for n := 0; ; n++ {
		if w.matches(h, keys) {
			break
		}
		if n == len(groups) {
			t.Fatalf("after the crash the store holds neither what was committed nor that and some of the %d groups behind it", len(groups))
		}
		maps.Copy(w.durable, groups[n])
	}
	w.committed = commit(t, h.Store())
}

func (w *world) matches(h Harness, keys []abd.Key) bool {
	for _, key := range keys {
		r, _, err := h.Store().Load(key, true)
		if err != nil || !same(r, w.durable[key]) {
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
		p := wantRecord(t, h.Store(), key, all[key])
		if want := w.positions[key]; want > w.committed && p != want {
			t.Fatalf("%q isn't durable and stands at %d, want %d", key, p, want)
		} else if want <= w.committed && p > w.committed {
			t.Fatalf("%q is durable and stands at %d, the journal at %d", key, p, w.committed)
		}
		switch r, ok := all[key]; {
		case ok && r.Deleted:
			dead++
		case ok:
			live++
		}
	}
	wantUsage(t, h.Store(), live, dead)
	var want []item
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(string(key), string(prefix)) && key > after {
			want = append(want, item{key, all[key].Tag, all[key].Deleted})
		}
	}
	if got := list(t, h.Store(), prefix, after, len(all)+1); !slices.Equal(got, want) {
		t.Fatalf("Scan(%q, %q) = %v, want %v", prefix, after, got, want)
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
	w := &world{durable: map[abd.Key]abd.Record{}, open: map[abd.Key]abd.Record{}, positions: map[abd.Key]env.Position{}}
	pick := func() abd.Key { return keys[r.IntN(len(keys))] }
	for n := 1; n <= 2500; n++ {
		switch x := r.IntN(1000); {
		case x < 700:
			key, rec := pick(), abd.Record{Tag: tag(n)}
			if r.IntN(6) == 0 {
				rec.Deleted = true
			} else {
				rec.Value = make([]byte, r.IntN(1+r.IntN(600)))
				fillRandom(r, rec.Value)
			}
			w.positions[key] = put(t, h.Store(), key, rec)
			w.open[key] = rec
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
