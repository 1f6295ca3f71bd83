package quorum_test

import (
	"cmp"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atoll/quorum"
)

// The twin: quorums as the package doc defines them, in the dumbest way, over
// subsets that are bit masks of the sorted members. Everything else that the
// package says must follow from it by going through all subsets.

type twin struct {
	members     []quorum.NodeID // sorted
	read, write []bool          // by mask: contains a quorum
}

func newTwin(members []quorum.NodeID, s quorum.System) twin {
	t := twin{members: slices.Sorted(slices.Values(members))}
	for mask := range uint(1) << len(members) {
		t.read = append(t.read, t.isQuorum(mask, s, true))
		t.write = append(t.write, t.isQuorum(mask, s, false))
	}
	return t
}

func (t twin) isQuorum(mask uint, s quorum.System, read bool) bool {
	count := bits.OnesCount(mask)
	switch s.Kind {
	case quorum.Majority:
		return 2*count > len(t.members)
	case quorum.Threshold:
		if read {
			return count >= s.Get
		}
		return count >= s.Put
	case quorum.Weighted:
		var in, all int
		for _, w := range s.Weights {
			all += int(w.Value)
			if mask>>slices.Index(t.members, w.Node)&1 == 1 {
				in += int(w.Value)
			}
		}
		return 2*in > all
	case quorum.Grid:
		has := func(row, column int) bool { return mask>>(row*s.Columns+column)&1 == 1 }
		if read {
			return anyLine(s.Rows, s.Columns, has)
		}
		return anyLine(s.Columns, s.Rows, func(column, row int) bool { return has(row, column) })
	}
	panic("unknown kind")
}

func anyLine(lines, length int, has func(line, i int) bool) bool {
	for line := range lines {
		whole := true
		for i := range length {
			whole = whole && has(line, i)
		}
		if whole {
			return true
		}
	}
	return false
}

// accepts reports whether quorums exist and each read quorum meets each write
// quorum.
func (t twin) accepts() bool {
	last := len(t.read) - 1
	if !t.read[last] || !t.write[last] {
		return false
	}
	for r, isRead := range t.read {
		for w, isWrite := range t.write {
			if isRead && isWrite && r&w == 0 {
				return false
			}
		}
	}
	return true
}

// readsAreWrites reports whether every minimal read quorum contains a write
// quorum.
func (t twin) readsAreWrites() bool {
	for r, isRead := range t.read {
		if isRead && minimal(uint(r), t.read) && !t.write[r] {
			return false
		}
	}
	return true
}

// minimal reports whether mask has the property, and no mask with one member
// less has it.
func minimal(mask uint, property []bool) bool {
	if !property[mask] {
		return false
	}
	for rest := mask; rest != 0; rest &= rest - 1 {
		if property[mask&^(rest&-rest)] {
			return false
		}
	}
	return true
}

func (t twin) set(mask uint) quorum.Set {
	var s quorum.Set
	for i := range t.members {
		if mask>>i&1 == 1 {
			s = s.Add(i)
		}
	}
	return s
}

// deaths goes through all sets of deaths and looks at what is left.
func (t twin) deaths(quorums []bool) quorum.Deaths {
	all := uint(len(quorums) - 1)
	blocked := make([]bool, len(quorums))
	d := quorum.Deaths{Any: len(t.members)}
	for dead := range blocked {
		blocked[dead] = !quorums[all&^uint(dead)]
		if size := bits.OnesCount(uint(dead)); blocked[dead] {
			d.Any = min(d.Any, size-1)
		} else {
			d.Best = max(d.Best, size)
		}
	}
	for dead := range blocked {
		if d.Any < d.Best && minimal(uint(dead), blocked) {
			var names []quorum.NodeID
			for i := range t.set(uint(dead)).All() {
				names = append(names, t.members[i])
			}
			d.Blocking = append(d.Blocking, names)
		}
	}
	slices.SortFunc(d.Blocking, func(a, b []quorum.NodeID) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), slices.Compare(a, b))
	})
	return d
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkShape compares everything that can be asked about one configuration
// with its twin.
func checkShape(t failer, members []quorum.NodeID, s quorum.System) {
	t.Helper()
	twin := newTwin(members, s)
	c, err := quorum.NewConfiguration(3, members, s)
	if accepts := twin.accepts(); (err == nil) != accepts {
		t.Fatalf("%v of %v: NewConfiguration returned the error %v; that its quorums exist and intersect is %v", s, members, err, accepts)
	}
	if err != nil {
		return
	}
	if !slices.Equal(c.Members(), twin.members) || c.Index() != 3 || c.System().String() != s.String() {
		t.Fatalf("%v of %v: made %v", s, members, c)
	}
	for mask := range uint(1) << len(members) {
		set := twin.set(mask)
		if got, want := c.IsRead(set), twin.read[mask]; got != want {
			t.Fatalf("%v: IsRead(%b) = %v, want %v", c, mask, got, want)
		}
		if got, want := c.IsWrite(set), twin.write[mask]; got != want {
			t.Fatalf("%v: IsWrite(%b) = %v, want %v", c, mask, got, want)
		}
		for i := range members {
			more := set.Add(i)
			if c.IsRead(set) && !c.IsRead(more) || c.IsWrite(set) && !c.IsWrite(more) {
				t.Fatalf("%v: %b is a quorum, and not with member %d added", c, mask, i)
			}
		}
	}
	if got, want := c.ReadsAreWrites(), twin.readsAreWrites(); got != want {
		t.Fatalf("%v: ReadsAreWrites() = %v, want %v", c, got, want)
	}
	want := quorum.Tolerance{Members: len(members), Reads: twin.deaths(twin.read), Writes: twin.deaths(twin.write), ConfirmedReads: !twin.readsAreWrites()}
	if got := c.Tolerance(); !reflect.DeepEqual(got, want) {
		t.Fatalf("%v: tolerates\n%+v, want\n%+v", c, got, want)
	}
}

// names returns n node ids in an order that isn't theirs.
func names(n int) []quorum.NodeID {
	var ids []quorum.NodeID
	for i := range n {
		ids = append(ids, quorum.NodeID(string(rune('a'+(i*5+2)%n))))
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for i := len(ids); i < n; i++ { // where 5 and n have a common divisor
		ids = append(ids, quorum.NodeID(fmt.Sprintf("x%d", i)))
	}
	slices.Reverse(ids)
	return ids
}

func TestTwinMajority(t *testing.T) {
	for n := 1; n <= 9; n++ {
		checkShape(t, names(n), quorum.System{})
	}
}

func TestTwinThreshold(t *testing.T) {
	for n := 1; n <= 7; n++ {
		for get := range n + 2 {
			for put := range n + 2 {
				checkShape(t, names(n), quorum.System{Kind: quorum.Threshold, Get: get, Put: put})
			}
		}
	}
}

func TestTwinGrid(t *testing.T) {
	for rows := 1; rows <= 9; rows++ {
		for columns := 1; rows*columns <= 9; columns++ {
			checkShape(t, names(rows*columns), quorum.System{Kind: quorum.Grid, Rows: rows, Columns: columns})
		}
	}
}

func weighted(members []quorum.NodeID, values ...uint32) quorum.System {
	s := quorum.System{Kind: quorum.Weighted}
	for i, m := range members {
		s.Weights = append(s.Weights, quorum.Weight{Node: m, Value: values[i]})
	}
	slices.SortFunc(s.Weights, func(a, b quorum.Weight) int { return strings.Compare(string(a.Node), string(b.Node)) })
	return s
}

// TestTwinWeightedSmall goes through all weights of 0 to 4 of three members.
func TestTwinWeightedSmall(t *testing.T) {
	ids := names(3)
	for i := range uint32(5 * 5 * 5) {
		checkShape(t, ids, weighted(ids, i%5, i/5%5, i/25))
	}
}

func TestTwinWeighted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		w := rapid.OneOf(rapid.Uint32Range(0, 3), rapid.Uint32Range(0, 20), rapid.Uint32Range(1<<32-2, 1<<32-1))
		checkShape(t, names(n), weighted(names(n), rapid.SliceOfN(w, n, n).Draw(t, "weights")...))
	})
}

// TestToleranceOfMany checks the formulas where the twin can't go through the
// blocking sets, or not even through the subsets.
func TestToleranceOfMany(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		const n = 13
		values := make([]uint32, n)
		for i := range values {
			values[i] = random.Uint32N(9)
		}
		values[random.IntN(n)] = 9 // not all zero
		s := weighted(names(n), values...)
		c := newConfiguration(t, names(n), s)
		got, want := c.Tolerance().Reads, newTwin(names(n), s).deaths(newTwin(names(n), s).read)
		if len(want.Blocking) > quorum.MaxBlocking {
			want.Blocking, want.Omitted = nil, true
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v: tolerates\n%+v, want\n%+v", c, got, want)
		}
	}

	ids := many(quorum.MaxMembers)
	equal := slices.Repeat([]uint32{1<<32 - 1}, len(ids))
	rising := make([]uint32, len(ids)) // 0 to 255, of 32640: the 75 heaviest weigh 16350, more than half
	for i := range rising {
		rising[i] = uint32(i)
	}
	for _, test := range []struct {
		system         quorum.System
		reads, writes  [2]int // any, best
		readsO, writeO bool   // omitted
		confirmed      bool
	}{
		{quorum.System{}, [2]int{127, 127}, [2]int{127, 127}, false, false, false},
		{quorum.System{Kind: quorum.Threshold, Get: 1, Put: 256}, [2]int{255, 255}, [2]int{0, 0}, false, false, true},
		{quorum.System{Kind: quorum.Grid, Rows: 16, Columns: 16}, [2]int{15, 240}, [2]int{15, 240}, true, true, true},
		{quorum.System{Kind: quorum.Grid, Rows: 1, Columns: 256}, [2]int{0, 0}, [2]int{255, 255}, false, false, false},
		{quorum.System{Kind: quorum.Grid, Rows: 2, Columns: 128}, [2]int{1, 128}, [2]int{127, 254}, true, true, true},
		{weighted(ids, equal...), [2]int{127, 127}, [2]int{127, 127}, false, false, false},
		{weighted(ids, rising...), [2]int{74, 181}, [2]int{74, 181}, true, true, false},
	} {
		got := newConfiguration(t, ids, test.system).Tolerance()
		want := quorum.Tolerance{Members: 256,
			Reads:  quorum.Deaths{Any: test.reads[0], Best: test.reads[1], Omitted: test.readsO},
			Writes: quorum.Deaths{Any: test.writes[0], Best: test.writes[1], Omitted: test.writeO},

			ConfirmedReads: test.confirmed,
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%.40v: tolerates\n%+v, want\n%+v", test.system, got, want)
		}
	}
}

func many(n int) []quorum.NodeID {
	var ids []quorum.NodeID
	for i := range n {
		ids = append(ids, quorum.NodeID(fmt.Sprintf("n%03d", i)))
	}
	return ids
}

func newConfiguration(t testing.TB, members []quorum.NodeID, s quorum.System) *quorum.Configuration {
	t.Helper()
	c, err := quorum.NewConfiguration(0, members, s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tallyTwin is a Tally as a list of twins and of names.
type tallyTwin struct {
	twins   []twin
	counted []quorum.NodeID
}

// all reports whether the property holds in every configuration for the
// members that are counted, or, if left is set, for those that aren't.
func (t tallyTwin) all(left bool, property func(twin, uint) bool) bool {
	for _, w := range t.twins {
		var mask uint
		for i, m := range w.members {
			if slices.Contains(t.counted, m) != left {
				mask |= 1 << i
			}
		}
		if !property(w, mask) {
			return false
		}
	}
	return true
}

func drawConfiguration(t *rapid.T, universe []quorum.NodeID, index int) (*quorum.Configuration, twin) {
	members := rapid.Permutation(universe).Draw(t, "members")[:rapid.IntRange(1, 5).Draw(t, "n")]
	n := len(members)
	var s quorum.System
	switch rapid.SampledFrom([]quorum.Kind{quorum.Majority, quorum.Threshold, quorum.Weighted, quorum.Grid}).Draw(t, "kind") {
	case quorum.Threshold:
		get := rapid.IntRange(1, n).Draw(t, "get")
		s = quorum.System{Kind: quorum.Threshold, Get: get, Put: rapid.IntRange(n-get+1, n).Draw(t, "put")}
	case quorum.Weighted:
		values := rapid.SliceOfN(rapid.Uint32Range(0, 3), n, n).Draw(t, "weights")
		values[0]++ // not all zero
		s = weighted(members, values...)
	case quorum.Grid:
		rows := rapid.SampledFrom(divisors(n)).Draw(t, "rows")
		s = quorum.System{Kind: quorum.Grid, Rows: rows, Columns: n / rows}
	}
	c, err := quorum.NewConfiguration(quorum.ConfigIndex(index), members, s)
	if err != nil {
		t.Fatal(err)
	}
	return c, newTwin(members, s)
}

func divisors(n int) []int {
	var ds []int
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			ds = append(ds, d)
		}
	}
	return ds
}

// TestTwinTally drives one Tally through several lives, each over up to three
// configurations that share members, and compares it after every step.
func TestTwinTally(t *testing.T) {
	universe := names(7)
	rapid.Check(t, func(t *rapid.T) {
		var tally quorum.Tally
		for range rapid.IntRange(1, 3).Draw(t, "lives") {
			var configs quorum.Configurations
			var model tallyTwin
			readsAreWrites := true
			for i := range rapid.IntRange(0, 3).Draw(t, "configurations") {
				c, w := drawConfiguration(t, universe, i)
				configs, model.twins = append(configs, c), append(model.twins, w)
				readsAreWrites = readsAreWrites && w.readsAreWrites()
			}
			if got := configs.ReadsAreWrites(); got != readsAreWrites {
				t.Fatalf("%v: ReadsAreWrites() = %v, want %v", configs, got, readsAreWrites)
			}
			checkMembers(t, configs)
			tally.Begin(configs)
			checkTally(t, &tally, configs, model)
			for range rapid.IntRange(0, 12).Draw(t, "steps") {
				if rapid.IntRange(0, 9).Draw(t, "clear") == 0 {
					tally.Clear()
					model.counted = nil
				} else {
					// Often one that is counted already, at times a stranger.
					id := rapid.SampledFrom(append([]quorum.NodeID{"stranger"}, universe...)).Draw(t, "add")
					tally.Add(id)
					model.counted = append(model.counted, id)
				}
				checkTally(t, &tally, configs, model)
			}
		}
	})
}

func checkTally(t failer, tally *quorum.Tally, configs quorum.Configurations, model tallyTwin) {
	t.Helper()
	read := func(w twin, mask uint) bool { return w.read[mask] }
	write := func(w twin, mask uint) bool { return w.write[mask] }
	whole := func(w twin, mask uint) bool { return mask == uint(len(w.read)-1) }
	some := len(configs) > 0
	for _, id := range append([]quorum.NodeID{"stranger"}, configs.Members()...) {
		want := slices.Contains(model.counted, id) && slices.Contains(configs.Members(), id)
		if got := tally.Has(id); got != want {
			t.Fatalf("%v with %v: Has(%s) = %v, want %v", configs, model.counted, id, got, want)
		}
	}
	for _, p := range []struct {
		name      string
		got, want bool
	}{
		{"HasRead", tally.HasRead(), some && model.all(false, read)},
		{"HasWrite", tally.HasWrite(), some && model.all(false, write)},
		{"LeavesRead", tally.LeavesRead(), some && model.all(true, read)},
		{"LeavesWrite", tally.LeavesWrite(), some && model.all(true, write)},
		{"HasAll", tally.HasAll(), model.all(false, whole)},
	} {
		if p.got != p.want {
			t.Fatalf("%v with %v: %s() = %v, want %v", configs, model.counted, p.name, p.got, p.want)
		}
	}
}

func checkMembers(t failer, configs quorum.Configurations) {
	t.Helper()
	var want []quorum.NodeID
	for _, c := range configs {
		for _, m := range c.Members() {
			if !slices.Contains(want, m) {
				want = append(want, m)
			}
		}
	}
	slices.Sort(want)
	if got := configs.Members(); !slices.Equal(got, want) {
		t.Fatalf("%v: Members() = %v, want %v", configs, got, want)
	}
}
