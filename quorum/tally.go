package quorum

import "slices"

// Configurations are the active configurations of a cluster, in the order of
// their indices. Every phase of an operation needs its quorum in each.
type Configurations []*Configuration

// Members returns every node that is a member of one of them, sorted. The
// caller must not change the result.
func (cs Configurations) Members() []NodeID {
	if len(cs) == 1 {
		return cs[0].members
	}
	var all []NodeID
	for _, c := range cs {
		all = append(all, c.members...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ReadsAreWrites reports whether that is so in every configuration.
func (cs Configurations) ReadsAreWrites() bool {
	for _, c := range cs {
		if !c.ReadsAreWrites() {
			return false
		}
	}
	return true
}

// Tally is a growing set of nodes, seen by each of several configurations.
// Its predicates cost a few machine words a configuration. Over one
// configuration it allocates nothing. A Tally must not be copied once Begin
// was called.
//
// A Tally over no configurations has no quorum and leaves none: a phase
// without configurations can't end, rather than being done.
type Tally struct {
	configs Configurations
	first   Set   // as configs[0] sees it; apart, so that one costs no allocation
	rest    []Set // as the others do
}

// Begin empties t and makes it count for cs.
func (t *Tally) Begin(cs Configurations) {
	t.configs = cs
	if n := len(cs) - 1; n > cap(t.rest) {
		t.rest = make([]Set, n)
	} else {
		t.rest = t.rest[:max(n, 0)]
	}
	t.Clear()
}

// Grow makes t count for cs from now on. The nodes that it has counted stay
// counted, in every configuration of which they are members; those that are
// members of none of cs are returned, sorted.
func (t *Tally) Grow(cs Configurations) (left []NodeID) {
	counted := t.Nodes()
	t.Begin(cs)
	for _, id := range counted {
		if !t.grow(id) {
			left = append(left, id)
		}
	}
	return left
}

// Nodes returns the nodes that are counted, sorted.
func (t *Tally) Nodes() []NodeID {
	var all []NodeID
	for i, c := range t.configs {
		for p := range t.in(i).All() {
			all = append(all, c.members[p])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Clear empties t.
func (t *Tally) Clear() {
	t.first = Set{}
	clear(t.rest)
}

// in returns what configs[i] sees.
func (t *Tally) in(i int) *Set {
	if i == 0 {
		return &t.first
	}
	return &t.rest[i-1]
}

// Add counts a node in every configuration of which it is a member. A node
// that is counted already changes nothing.
func (t *Tally) Add(id NodeID) {
	for i, c := range t.configs {
		if p, ok := c.Place(id); ok {
			s := t.in(i)
			*s = s.Add(p)
		}
	}
}

// Remove takes a node out again.
func (t *Tally) Remove(id NodeID) {
	for i, c := range t.configs {
		if p, ok := c.Place(id); ok {
			s := t.in(i)
			*s = s.Minus(Set{}.Add(p))
		}
	}
}

// Has reports whether a node is counted in some configuration.
func (t *Tally) Has(id NodeID) bool {
	for i, c := range t.configs {
		if p, ok := c.Place(id); ok && t.in(i).Has(p) {
			return true
		}
	}
	return false
}

// HasRead reports whether t contains a read quorum of every configuration.
func (t *Tally) HasRead() bool {
	for i, c := range t.configs {
		if !c.IsRead(*t.in(i)) {
			return false
		}
	}
	return len(t.configs) > 0
}

// HasWrite reports whether t contains a write quorum of every configuration.
func (t *Tally) HasWrite() bool {
	for i, c := range t.configs {
		if !c.IsWrite(*t.in(i)) {
			return false
		}
	}
	return len(t.configs) > 0
}

// LeavesRead reports whether the members that t does not contain still have a
// read quorum of every configuration: whether a get phase can end without
// those in t.
func (t *Tally) LeavesRead() bool {
	for i, c := range t.configs {
		if !c.IsRead(c.all.Minus(*t.in(i))) {
			return false
		}
	}
	return len(t.configs) > 0
}

// LeavesWrite is LeavesRead for write quorums.
func (t *Tally) LeavesWrite() bool {
	for i, c := range t.configs {
		if !c.IsWrite(c.all.Minus(*t.in(i))) {
			return false
		}
	}
	return len(t.configs) > 0
}

// HasAll reports whether t contains every member of every configuration.
func (t *Tally) HasAll() bool {
	for i, c := range t.configs {
		if !t.in(i).Contains(c.all) {
			return false
		}
	}
	return true
}
