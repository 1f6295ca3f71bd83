package quorum_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"atoll/quorum"
)

// readQuorum is the twin of ReadQuorum: of all subsets of order that contain a
// read quorum in every configuration and lose it with any node, the one that
// the greedy choice leads to, found by trying.
func (t tallyTwin) readQuorum(order []quorum.NodeID) (first, spare []quorum.NodeID) {
	isRead := func(nodes []quorum.NodeID) bool {
		return len(t.twins) > 0 && tallyTwin{t.twins, nodes}.all(false, func(w twin, mask uint) bool { return w.read[mask] })
	}
	var members []quorum.NodeID
	for _, id := range order {
		member := slices.ContainsFunc(t.twins, func(w twin) bool { return slices.Contains(w.members, id) })
		if member && !slices.Contains(members, id) {
			members = append(members, id)
		}
	}
	for _, id := range members {
		if !isRead(first) {
			first = append(first, id)
		}
	}
	for i := len(first) - 1; i >= 0 && isRead(first); i-- {
		if without := slices.Delete(slices.Clone(first), i, i+1); isRead(without) {
			first = without
		}
	}
	for _, id := range members {
		if !slices.Contains(first, id) {
			spare = append(spare, id)
		}
	}
	return first, spare
}

func TestTwinReadQuorum(t *testing.T) {
	universe := names(7)
	rapid.Check(t, func(t *rapid.T) {
		var configs quorum.Configurations
		var model tallyTwin
		for i := range rapid.IntRange(0, 3).Draw(t, "configurations") {
			c, w := drawConfiguration(t, universe, i)
			configs, model.twins = append(configs, c), append(model.twins, w)
		}
		// Mostly the members in some order; at times fewer, strangers, doubles.
		order := rapid.Permutation(configs.Members()).Draw(t, "order")
		if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
			order = rapid.SliceOfN(rapid.SampledFrom(append([]quorum.NodeID{"stranger"}, universe...)), 0, 9).Draw(t, "nodes")
		}
		given := slices.Clone(order)
		first, spare := configs.ReadQuorum(order)
		wantFirst, wantSpare := model.readQuorum(order)
		if len(configs) == 0 {
			wantFirst = first // nobody is a member, and nothing is asked of it
		}
		if !slices.Equal(first, wantFirst) || !slices.Equal(spare, wantSpare) {
			t.Fatalf("%v from %v: first %v, spare %v; want %v and %v", configs, order, first, spare, wantFirst, wantSpare)
		}
		if !slices.Equal(order, given) {
			t.Fatalf("the order was changed from %v to %v", given, order)
		}
	})
}

func TestReadQuorum(t *testing.T) {
	for _, test := range []struct {
		system       string
		order        string
		first, spare string
	}{
		{"majority", "cab", "[c a]", "[b]"},
		{"get=1,put=3", "bca", "[b]", "[c a]"},
		{"get=3,put=1", "bca", "[b c a]", "[]"},
		{"weights=a:3,b:1,c:1", "cba", "[a]", "[c b]"}, // both are given up again
		{"weights=a:2,b:2,c:1", "cab", "[c a]", "[b]"},
		{"grid=2x2", "adbc", "[a b]", "[d c]"},
	} {
		s, err := quorum.ParseSystem(test.system)
		if err != nil {
			t.Fatal(err)
		}
		var order []quorum.NodeID
		for _, r := range test.order {
			order = append(order, quorum.NodeID(string(r)))
		}
		cs := quorum.Configurations{newConfiguration(t, order, s)}
		first, spare := cs.ReadQuorum(order)
		if got := fmt.Sprint(first, spare); got != test.first+" "+test.spare {
			t.Errorf("%s from %s: %s, want %s %s", test.system, test.order, got, test.first, test.spare)
		}
	}
}

func TestSharedFirst(t *testing.T) {
	ids := func(text string) (all []quorum.NodeID) {
		for _, r := range text {
			all = append(all, quorum.NodeID(string(r)))
		}
		return all
	}
	old, next := newConfiguration(t, ids("abc"), quorum.System{}), newConfiguration(t, ids("abd"), quorum.System{})
	for _, test := range []struct {
		cs                 quorum.Configurations
		order, want, first string
	}{
		{quorum.Configurations{old}, "cab", "[c a b]", "[c a]"},
		{quorum.Configurations{old, next}, "dbca", "[b a d c]", "[b a]"}, // in place of d b c
	} {
		order := ids(test.order)
		got := test.cs.SharedFirst(order)
		first, _ := test.cs.ReadQuorum(got)
		if fmt.Sprint(got) != test.want || fmt.Sprint(first) != test.first || !slices.Equal(order, ids(test.order)) {
			t.Errorf("%s: %v, and %v are a read quorum; want %s and %s; order is %v", test.order, got, first, test.want, test.first, order)
		}
	}
}

func BenchmarkReadQuorum(b *testing.B) {
	order := []quorum.NodeID{"n4y2a", "n0b7c", "nzz31"}
	s := quorum.System{}
	c, err := quorum.NewConfiguration(0, order, s)
	if err != nil {
		b.Fatal(err)
	}
	cs := quorum.Configurations{c}
	b.ReportAllocs()
	for b.Loop() {
		cs.ReadQuorum(order)
	}
}
