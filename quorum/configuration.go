package quorum

import (
	"fmt"
	"slices"
	"strings"
)

// ConfigIndex numbers the configurations of a cluster in the order in which
// they were agreed. The first is 0.
type ConfigIndex uint64

// Configuration is a set of members and the quorums over them. It is
// immutable, and made by NewConfiguration only, which refuses one in which
// some read quorum misses some write quorum.
type Configuration struct {
	index   ConfigIndex
	members []NodeID // sorted
	all     Set      // of them
	system  System

	// What the predicates need, by kind.
	read, write int      // Majority, Threshold: sizes
	weights     []uint64 // Weighted: by member
	weight      uint64   // Weighted: a quorum has more than half of it
	rows, cols  []Set    // Grid
}

// NewConfiguration returns the configuration with the given members, in any
// order, under system. It refuses, naming what is wrong, an empty, oversized or
// repeating list of members, a system that doesn't fit them, and one whose
// read and write quorums could fail to intersect.
func NewConfiguration(index ConfigIndex, members []NodeID, system System) (*Configuration, error) {
	n := len(members)
	if n == 0 || n > MaxMembers {
		return nil, fmt.Errorf("quorum: a configuration has 1 to %d members, not %d", MaxMembers, n)
	}
	c := &Configuration{index: index, members: slices.Clone(members), all: firstN(n), system: system}
	c.system.Weights = slices.Clone(system.Weights)
	slices.Sort(c.members)
	for i, m := range c.members {
		if _, err := ParseNodeID(string(m)); err != nil {
			return nil, err
		}
		if i > 0 && m == c.members[i-1] {
			return nil, fmt.Errorf("quorum: member %q is named twice", m)
		}
	}
	if err := c.lay(); err != nil {
		return nil, err
	}
	return c, nil
}

// lay lays the quorum system over the members.
func (c *Configuration) lay() error {
	switch c.system.Kind {
	case Majority:
		c.read, c.write = len(c.members)/2+1, len(c.members)/2+1
		return nil
	case Threshold:
		return c.layThreshold()
	case Weighted:
		return c.layWeights()
	case Grid:
		return c.layGrid()
	}
	return fmt.Errorf("quorum: unknown kind of quorum system %d", c.system.Kind)
}

func (c *Configuration) layThreshold() error {
	c.read, c.write = c.system.Get, c.system.Put
	n := len(c.members)
	if c.read < 1 || c.read > n || c.write < 1 || c.write > n {
		return fmt.Errorf("quorum: %v: both sizes must be from 1 to the number of members, %d", c.system, n)
	}
	if c.read+c.write <= n {
		return fmt.Errorf("quorum: %v: a get quorum of %d and a put quorum of %d out of %d members need not intersect; get+put must exceed %d",
			c.system, c.read, c.write, n, n)
	}
	return nil
}

func (c *Configuration) layWeights() error {
	if len(c.system.Weights) != len(c.members) {
		return fmt.Errorf("quorum: %v: %d weights for %d members", c.system, len(c.system.Weights), len(c.members))
	}
	slices.SortFunc(c.system.Weights, compareWeights)
	c.weights = make([]uint64, len(c.members))
	for j, w := range c.system.Weights {
		if j > 0 && w.Node == c.system.Weights[j-1].Node {
			return fmt.Errorf("quorum: %v: %q has two weights", c.system, w.Node)
		}
		i, ok := c.Place(w.Node)
		if !ok {
			return fmt.Errorf("quorum: %v: %q is not a member", c.system, w.Node)
		}
		c.weights[i] = uint64(w.Value)
		c.weight += uint64(w.Value)
	}
	if c.weight == 0 {
		return fmt.Errorf("quorum: %v: all weights are zero, so no set of members has more than half", c.system)
	}
	return nil
}

func (c *Configuration) layGrid() error {
	rows, cols := c.system.Rows, c.system.Columns
	n := len(c.members)
	if rows < 1 || cols < 1 || rows > n || cols > n || rows*cols != n {
		return fmt.Errorf("quorum: %v doesn't fit %d members: rows times columns must be that number", c.system, n)
	}
	c.rows, c.cols = make([]Set, rows), make([]Set, cols)
	for i := range c.members {
		c.rows[i/cols] = c.rows[i/cols].Add(i)
		c.cols[i%cols] = c.cols[i%cols].Add(i)
	}
	return nil
}

// Equal reports whether two configurations are the same: index, members and
// quorum system.
func (c *Configuration) Equal(o *Configuration) bool {
	return c == o || c.index == o.index && slices.Equal(c.members, o.members) && c.system.String() == o.system.String()
}

// Index returns the configuration's number.
func (c *Configuration) Index() ConfigIndex { return c.index }

// Members returns the members, sorted. The caller must not change them.
func (c *Configuration) Members() []NodeID { return c.members }

// System returns the quorum system.
func (c *Configuration) System() System { return c.system }

// Place returns the place of a node in the sorted list of members, which is
// its number in a Set.
func (c *Configuration) Place(id NodeID) (int, bool) { return slices.BinarySearch(c.members, id) }

// IsRead reports whether s contains a read quorum.
func (c *Configuration) IsRead(s Set) bool {
	switch c.system.Kind {
	case Weighted:
		return c.heavy(s)
	case Grid:
		return containsAny(s, c.rows)
	default:
		return s.Len() >= c.read
	}
}

// IsWrite reports whether s contains a write quorum.
func (c *Configuration) IsWrite(s Set) bool {
	switch c.system.Kind {
	case Weighted:
		return c.heavy(s)
	case Grid:
		return containsAny(s, c.cols)
	default:
		return s.Len() >= c.write
	}
}

func (c *Configuration) heavy(s Set) bool {
	var sum uint64
	for i := range s.All() {
		sum += c.weights[i]
	}
	return 2*sum > c.weight
}

func containsAny(s Set, quorums []Set) bool {
	for _, q := range quorums {
		if s.Contains(q) {
			return true
		}
	}
	return false
}

// ReadsAreWrites reports whether every read quorum contains a write quorum,
// as it is with majorities. Then a read whose quorum agrees on the tag needs
// no second phase, and hints that a value is confirmed save nothing.
func (c *Configuration) ReadsAreWrites() bool {
	switch c.system.Kind {
	case Weighted:
		return true
	case Grid:
		return len(c.rows) == 1
	default:
		return c.read >= c.write
	}
}

// String returns "0: majority of a b c".
func (c *Configuration) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d: %v of", c.index, c.system)
	for _, m := range c.members {
		b.WriteByte(' ')
		b.WriteString(string(m))
	}
	return b.String()
}
