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
// Its predicates cost a few machine words a configuration. It must not be
// copied once Begin was called.
type Tally struct {
	configs Configurations
	sets    []Set
	one     [1]Set // sets, when there is one configuration: no allocation
}

// Begin empties t and makes it count for cs.
func (t *Tally) Begin(cs Configurations) {
	t.configs = cs
	if len(cs) == 1 {
		t.one[0] = Set{}
		t.sets = t.one[:]
		return
	}
	t.sets = make([]Set, len(cs))
}

// Clear empties t.
func (t *Tally) Clear() { clear(t.sets) }

// Add counts a node in every configuration of which it is a member. A node
// that is counted already changes nothing.
func (t *Tally) Add(id NodeID) {
	for i, c := range t.configs {
		if p, ok := c.Place(id); ok {
			t.sets[i] = t.sets[i].Add(p)
		}
	}
}

// HasRead reports whether t contains a read quorum of every configuration.
func (t *Tally) HasRead() bool {
	for i, c := range t.configs {
		if !c.IsRead(t.sets[i]) {
			return false
		}
	}
	return len(t.configs) > 0
}

// HasWrite reports whether t contains a write quorum of every configuration.
func (t *Tally) HasWrite() bool {
	for i, c := range t.configs {
		if !c.IsWrite(t.sets[i]) {
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
		if !c.IsRead(firstN(len(c.members)).Minus(t.sets[i])) {
			return false
		}
	}
	return true
}

// LeavesWrite is LeavesRead for write quorums.
func (t *Tally) LeavesWrite() bool {
	for i, c := range t.configs {
		if !c.IsWrite(firstN(len(c.members)).Minus(t.sets[i])) {
			return false
		}
	}
	return true
}

// HasAll reports whether t contains every member of every configuration.
func (t *Tally) HasAll() bool {
	for i, c := range t.configs {
		if t.sets[i].Len() < len(c.members) {
			return false
		}
	}
	return true
}
