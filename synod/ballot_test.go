package synod_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"atoll/quorum"
	"atoll/synod"
	"atoll/tags"
)

// The order is that of R1, and the zero ballot is the least.
func TestBallotsAreOrdered(t *testing.T) {
	id := func(n uint64) tags.PID { return tags.NewPID(n, 0, 0) }
	ordered := []synod.Ballot{
		{},
		{ID: id(1)},
		{Round: 1, ID: id(1)},
		{Round: 1, ID: id(2)},
		{Round: 2, ID: id(1)},
		{Index: 1},
		{Index: 1, Round: 1, ID: id(1)},
		{Index: math.MaxUint64, Round: math.MaxUint64, ID: id(math.MaxUint64)},
	}
	for i, a := range ordered {
		for j, b := range ordered {
			want := slices.Compare([]int{i}, []int{j})
			if got := a.Compare(b); got != want || a.Less(b) != (want < 0) {
				t.Errorf("%v, %v: %d, less %v, want %d", a, b, got, a.Less(b), want)
			}
		}
		if a.IsZero() != (i == 0) {
			t.Errorf("%v is zero: %v", a, a.IsZero())
		}
	}
	if got, want := (synod.Ballot{Index: 3, Round: 7, ID: id(1)}).String(), "3.7."+id(1).String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		err error
		ok  bool
	}{
		{synod.Instance("").Check(), false},
		{synod.Instance("i").Check(), true},
		{synod.Instance(strings.Repeat("i", synod.MaxInstance)).Check(), true},
		{synod.Instance(strings.Repeat("i", synod.MaxInstance+1)).Check(), false},
		{synod.CheckValue(nil), false},
		{synod.CheckValue(make([]byte, 1)), true},
		{synod.CheckValue(make([]byte, synod.MaxValue)), true},
		{synod.CheckValue(make([]byte, synod.MaxValue+1)), false},
	} {
		if (c.err == nil) != c.ok {
			t.Errorf("%v, want an error: %v", c.err, !c.ok)
		}
	}
	if !synod.Instance("key/a").Travels() || synod.Instance("recon/1").Travels() {
		t.Error("the votes of keys travel, those of recon don't")
	}
}

// configurationsKnown is a Known that takes what it is told.
type configurationsKnown struct{ m *quorum.Map }

func (k *configurationsKnown) Map() *quorum.Map { return k.m }

func (k *configurationsKnown) Learn(n *quorum.News) *quorum.Map {
	if m, err := k.m.Merge(n.Map); err == nil {
		k.m = m
	}
	return k.m
}
