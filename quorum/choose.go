package quorum

import "slices"

// ReadQuorum splits the members into first, which contains a read quorum of
// every configuration and none without any of them, and spare, the others. It
// takes them greedily from order, which says whom one would rather ask, and
// gives up again those of them that turn out not to be needed, the last of
// them first; both results are in that order. A node of order that is no member, or that is there twice, is left
// out. If order has no read quorum, first is all of it.
//
// Where order has the members alone, and each is needed as it comes, as with
// majorities and thresholds, the results are parts of order and nothing is
// allocated. The caller must not change them.
func (cs Configurations) ReadQuorum(order []NodeID) (first, spare []NodeID) {
	var t Tally
	t.Begin(cs)
	for n, id := range order {
		if !t.grow(id) {
			return cs.readQuorumOf(order)
		}
		if t.HasRead() {
			if !t.minimal(order[:n]) || !t.allNew(order[n+1:]) {
				return cs.readQuorumOf(order)
			}
			return order[: n+1 : n+1], order[n+1:]
		}
	}
	return order, nil
}

// SharedFirst returns order with those first that more configurations name, and
// otherwise as it is. With one configuration that is order itself.
func (cs Configurations) SharedFirst(order []NodeID) []NodeID {
	if len(cs) < 2 {
		return order
	}
	in := func(id NodeID) (n int) {
		for _, c := range cs {
			if _, member := c.Place(id); member {
				n++
			}
		}
		return n
	}
	order = slices.Clone(order)
	slices.SortStableFunc(order, func(a, b NodeID) int { return in(b) - in(a) })
	return order
}

// grow counts a node that is a member of some configuration and wasn't counted,
// and reports whether it is one.
func (t *Tally) grow(id NodeID) bool {
	grown := false
	for i, c := range t.configs {
		if p, ok := c.Place(id); ok {
			if s := t.in(i); !s.Has(p) {
				*s = s.Add(p)
				grown = true
			}
		}
	}
	return grown
}

// allNew reports whether all nodes are members that weren't counted, each there
// once.
func (t *Tally) allNew(nodes []NodeID) bool {
	for i, id := range nodes {
		if t.Has(id) || !t.isMember(id) || slices.Contains(nodes[:i], id) {
			return false
		}
	}
	return true
}

func (t *Tally) isMember(id NodeID) bool {
	for _, c := range t.configs {
		if _, ok := c.Place(id); ok {
			return true
		}
	}
	return false
}

// minimal reports whether t, which has a read quorum, has none without any of
// nodes.
func (t *Tally) minimal(nodes []NodeID) bool {
	for _, id := range nodes {
		if t.spares(id) {
			return false
		}
	}
	return true
}

// spares reports whether t has a read quorum without a node.
func (t *Tally) spares(id NodeID) bool {
	for i, c := range t.configs {
		s := *t.in(i)
		if p, ok := c.Place(id); ok {
			s = s.Minus(Set{}.Add(p))
		}
		if !c.IsRead(s) {
			return false
		}
	}
	return true
}

// readQuorumOf is ReadQuorum where nodes must be left out of its results.
func (cs Configurations) readQuorumOf(order []NodeID) (first, spare []NodeID) {
	var t, all Tally
	t.Begin(cs)
	all.Begin(cs)
	nodes := make([]NodeID, 0, len(order)) // members, once each
	chosen := 0
	for _, id := range order {
		if !all.grow(id) {
			continue
		}
		nodes = append(nodes, id)
		if chosen == 0 {
			if t.Add(id); t.HasRead() {
				chosen = len(nodes)
			}
		}
	}
	if chosen == 0 {
		return nodes, nil
	}
	needed := make([]bool, chosen)
	for i := chosen - 1; i >= 0; i-- {
		if needed[i] = !t.spares(nodes[i]); !needed[i] {
			t.Remove(nodes[i])
		}
	}
	for i, id := range nodes {
		if i < chosen && needed[i] {
			first = append(first, id)
		} else {
			spare = append(spare, id)
		}
	}
	return first, spare
}
