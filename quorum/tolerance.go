package quorum

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxBlocking is how many minimal blocking sets a Deaths lists. Every system
// of up to 9 members has fewer: no more than C(9,4) = 126 sets of 9 members
// can be such that none contains another.
const MaxBlocking = 128

// textBlocking is how many of them a text for people names.
const textBlocking = 6

// Tolerance is after which deaths of members a configuration has a read quorum,
// and after which a write quorum. It is computed from the quorum system, whoever is
// alive now.
type Tolerance struct {
	Members int    `json:"members"`
	Reads   Deaths `json:"reads"`
	Writes  Deaths `json:"writes"`
	// ConfirmedReads: there are deaths after which only a read quorum is left, as in
	// get=1,put=3. Then those reads go on that needn't write back what they find: of
	// values that a node that answers knows as confirmed, which it doesn't any more
	// after a restart.
	ConfirmedReads bool `json:"confirmed_reads,omitempty"`
}

// Deaths says after which deaths quorums of one kind are left.
//
// With a majority or thresholds only the number of deaths counts, and Any and
// Best are the same. With weights and grids it may matter which members die.
// Then a set of deaths stops the quorums if, and only if, it contains one of
// the minimal blocking sets.
type Deaths struct {
	// Any is the largest number such that a quorum is left whichever members
	// die. It is exact for every configuration.
	Any int `json:"any"`
	// Best is the largest number of deaths that can leave a quorum, if the
	// right members die: all others than the smallest quorum.
	Best int `json:"best"`
	// Blocking are the minimal blocking sets: the shortest first, each sorted.
	// It is empty if Any equals Best, for then they are all sets of Any+1
	// members.
	Blocking [][]NodeID `json:"blocking,omitempty"`
	// Omitted is set if Any is less than Best and there are more than
	// [MaxBlocking] minimal blocking sets. Blocking is empty then.
	Omitted bool `json:"omitted,omitempty"`
}

// Tolerance computes what c tolerates.
func (c *Configuration) Tolerance() Tolerance {
	n := len(c.members)
	t := Tolerance{Members: n, ConfirmedReads: !c.ReadsAreWrites()}
	switch c.system.Kind {
	case Weighted:
		t.Reads = c.weightDeaths()
		t.Writes = c.weightDeaths()
	case Grid:
		t.Reads = c.gridDeaths(c.rows)
		t.Writes = c.gridDeaths(c.cols)
	default:
		t.Reads = Deaths{Any: n - c.read, Best: n - c.read}
		t.Writes = Deaths{Any: n - c.write, Best: n - c.write}
	}
	return t
}

// gridDeaths computes the deaths after which one of lines, the rows or the
// columns of a grid, is left whole. One death in each line, and no less,
// leaves none.
func (c *Configuration) gridDeaths(lines []Set) Deaths {
	d := Deaths{Any: len(lines) - 1, Best: len(c.members) - lines[0].Len()}
	if d.Any == d.Best {
		return d
	}
	sets := []Set{{}}
	for _, line := range lines {
		if d.Omitted = len(sets)*line.Len() > MaxBlocking; d.Omitted {
			return d
		}
		var longer []Set
		for _, s := range sets {
			for m := range line.All() {
				longer = append(longer, s.Add(m))
			}
		}
		sets = longer
	}
	d.Blocking = c.name(sets)
	return d
}

// weightDeaths computes the deaths after which those left weigh more than half.
// The worst that f deaths can do is to take the f heaviest.
func (c *Configuration) weightDeaths() Deaths {
	w := c.heaviestFirst()
	var d Deaths
	for sum := uint64(0); d.Any < len(w); d.Any++ {
		if sum += c.weights[w[d.Any]]; c.outweighs(sum) {
			break
		}
	}
	for sum := uint64(0); d.Best < len(w); d.Best++ {
		if sum += c.weights[w[len(w)-1-d.Best]]; c.outweighs(sum) {
			break
		}
	}
	if d.Any == d.Best {
		return d
	}
	sets := c.blockingByWeight(w)
	if d.Omitted = len(sets) > MaxBlocking; !d.Omitted {
		d.Blocking = c.name(sets)
	}
	return d
}

// outweighs reports whether the death of members that weigh so much stops the
// quorums: whether the others weigh no more than half.
func (c *Configuration) outweighs(dead uint64) bool { return 2*dead >= c.weight }

// heaviestFirst returns the places of the members by descending weight.
func (c *Configuration) heaviestFirst() []int {
	places := slices.Collect(c.all.All())
	slices.SortStableFunc(places, func(i, j int) int { return cmp.Compare(c.weights[j], c.weights[i]) })
	return places
}

// blockingByWeight returns the minimal sets of members that outweigh the rest,
// stopping soon after MaxBlocking. It adds members to a set in the order of
// w, the heaviest first, and stops when the set is heavy enough: it wasn't
// before the last one came, and none in it is lighter, so no member can be
// left out. Where those to come can't make a set heavy enough it turns back,
// so each step leads to a result, and the time is bounded by their number.
func (c *Configuration) blockingByWeight(w []int) []Set {
	after := make([]uint64, len(w)+1) // after[i]: the weight of w[i:]
	for i := len(w) - 1; i >= 0; i-- {
		after[i] = after[i+1] + c.weights[w[i]]
	}
	var found []Set
	var extend func(s Set, sum uint64, i int)
	extend = func(s Set, sum uint64, i int) {
		for ; len(found) <= MaxBlocking && i < len(w) && c.outweighs(sum+after[i]); i++ {
			longer, heavier := s.Add(w[i]), sum+c.weights[w[i]]
			if c.outweighs(heavier) {
				found = append(found, longer)
			} else {
				extend(longer, heavier, i+1)
			}
		}
	}
	extend(Set{}, 0, 0)
	return found
}

// name turns sets of places into sorted lists of nodes, the shortest first.
func (c *Configuration) name(sets []Set) [][]NodeID {
	named := make([][]NodeID, len(sets))
	for i, s := range sets {
		for m := range s.All() {
			named[i] = append(named[i], c.members[m])
		}
	}
	slices.SortFunc(named, func(a, b []NodeID) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), slices.Compare(a, b))
	})
	return named
}

// String tells a person what is tolerated:
//
//	reads: any 1 of 3; writes: any 1 of 3
//	reads: any 0 of 3, at best 2 (stopped by a); writes: any 0 of 3, at best 2 (stopped by a)
//	reads of confirmed values: any 2 of 3; writes: any 0 of 3
func (t Tolerance) String() string {
	return t.Text(func(id NodeID) string { return string(id) })
}

// Text is String with the names that name gives to the members.
func (t Tolerance) Text(name func(NodeID) string) string {
	reads := "reads: "
	if t.ConfirmedReads {
		reads = "reads of confirmed values: "
	}
	return reads + t.Reads.text(t.Members, name) + "; writes: " + t.Writes.text(t.Members, name)
}

func (d Deaths) text(members int, name func(NodeID) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "any %d of %d", d.Any, members)
	if d.Any == d.Best {
		return b.String()
	}
	fmt.Fprintf(&b, ", at best %d", d.Best)
	if d.Omitted {
		fmt.Fprintf(&b, " (stopped by any of more than %d sets)", MaxBlocking)
		return b.String()
	}
	named := d.Blocking[:min(len(d.Blocking), textBlocking)]
	for i, set := range named {
		sep := ", "
		if i == 0 {
			sep = " (stopped by "
		}
		for _, id := range set {
			b.WriteString(sep)
			b.WriteString(name(id))
			sep = "+"
		}
	}
	if more := len(d.Blocking) - len(named); more > 0 {
		fmt.Fprintf(&b, " and %d other sets", more)
	}
	b.WriteByte(')')
	return b.String()
}
