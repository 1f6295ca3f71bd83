package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The schedule against its dumb twin, a sorted list, with cancellations.
func TestScheduleAgainstTwin(t *testing.T) {
	type entry struct {
		at     time.Duration
		kind   kind
		number uint64
		slot   int32
	}
	const seed = 3
	r := rand.New(rand.NewPCG(seed, seed))
	var s schedule
	var twin []entry
	number := uint64(0)
	for range 20_000 {
		switch x := r.IntN(10); {
		case x < 5:
			number++
			e := entry{time.Duration(r.IntN(50)), []kind{callEvent, syncEvent, messageEvent, timerEvent}[r.IntN(4)], number, 0}
			e.slot = s.add(e.at, event{kind: e.kind, commit: number})
			twin = append(twin, e)
		case x < 8 && len(twin) > 0:
			i := r.IntN(len(twin))
			s.cancel(twin[i].slot)
			twin = slices.Delete(twin, i, i+1)
		default:
			at, ok := s.next()
			if ok != (len(twin) > 0) {
				t.Fatalf("next says %t with %d events", ok, len(twin))
			}
			if !ok {
				continue
			}
			slices.SortFunc(twin, func(a, b entry) int {
				return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.number, b.number))
			})
			want := twin[0]
			twin = twin[1:]
			k, e := s.pop()
			if at != want.at || k.at != want.at || e.commit != want.number || e.kind != want.kind {
				t.Fatalf("event %d at %v, want %d at %v", e.commit, k.at, want.number, want.at)
			}
		}
	}
	if live := len(s.keys) - s.canceled; live != len(twin) {
		t.Errorf("%d events are left, want %d", live, len(twin))
	}
	if s.canceled > len(s.keys)/2+64 {
		t.Errorf("%d of %d keys are of canceled events", s.canceled, len(s.keys))
	}
}

// A Delay is the inverse of its distribution function, exact at the ends.
func TestDelay(t *testing.T) {
	const top = ^uint64(0)
	for _, c := range []struct {
		name string
		d    Delay
		u    uint64
		want time.Duration
	}{
		{"zero", Delay{}, top, 0},
		{"constant", Constant(5), 0, 5},
		{"constant", Constant(5), top, 5},
		{"uniform low", Uniform(10, 20), 0, 10},
		{"uniform middle", Uniform(10, 20), 1 << 63, 15},
		{"uniform high", Uniform(10, 20), top, 19},
		{"table low", Table(0, 100, 1000), 0, 0},
		{"table quarter", Table(0, 100, 1000), 1 << 62, 50},
		{"table half", Table(0, 100, 1000), 1 << 63, 100},
		{"table three quarters", Table(0, 100, 1000), 3 << 62, 550},
	} {
		if got := c.d.at(c.u); got != c.want {
			t.Errorf("%s: at %#x it is %d, want %d", c.name, c.u, got, c.want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a table that falls was accepted")
		}
	}()
	Table(2, 1)
}

// Chances come true as often as they should, and draws for different purposes,
// counts and bases are unrelated.
func TestDraws(t *testing.T) {
	const n = 100_000
	base := fold(mix(1), 2)
	hits, both := 0, 0
	for i := range uint64(n) {
		loss := happens(draw(base, i, forLoss), million/10)
		duplicate := happens(draw(base, i, forDuplicate), million/10)
		if loss {
			hits++
		}
		if loss && duplicate {
			both++
		}
	}
	if hits < n/10-n/100 || hits > n/10+n/100 {
		t.Errorf("a chance of 0.1 came true %d times in %d", hits, n)
	}
	if both < n/100-n/500 || both > n/100+n/500 {
		t.Errorf("two chances of 0.1 came true together %d times in %d", both, n)
	}
	if happens(^uint64(0), million-1) || !happens(^uint64(0), million) || happens(0, 0) {
		t.Error("impossible and certain are not")
	}
}

// Strings of the same bytes but other lengths have other hashes.
func TestFoldString(t *testing.T) {
	seen := map[uint64]string{}
	for _, s := range []string{"", "\x00", "\x00\x00", "12345678", "12345678\x00", "123456789", "a", "b"} {
		h := foldString(0, s)
		if other, ok := seen[h]; ok {
			t.Errorf("%q and %q have the same hash", s, other)
		}
		seen[h] = s
	}
}
