package quorum

// maxCarriers bounds the search of Carries: it looks at every set of that many
// members at most.
const maxCarriers = 16

// Carries reports whether every read quorum of next holds all that a read
// quorum of c could return, once the members for which merged is true have
// merged it from a read quorum of c (R4.5 in docs/PROTOCOLS.md): each either
// has one of those in it, or contains a read quorum of c. So members that stay
// needn't copy what they have.
//
// It is exact where both systems are majorities or thresholds, and where few
// members haven't merged. Elsewhere it may be false too often, never true.
func (c *Configuration) Carries(next *Configuration, merged func(NodeID) bool) bool {
	var rest []int // the places in next of those that haven't merged
	var left Set
	for i, id := range next.members {
		if !merged(id) {
			rest = append(rest, i)
			left = left.Add(i)
		}
	}
	switch {
	case !next.IsRead(left):
		return true
	case c.counts() && next.counts():
		fresh := 0
		for _, i := range rest {
			if _, stays := c.Place(next.members[i]); !stays {
				fresh++
			}
		}
		return next.read-fresh >= c.read
	case len(rest) > maxCarriers:
		return false
	}
	for bits := range 1 << len(rest) {
		var there, here Set
		for n, i := range rest {
			if bits>>n&1 == 0 {
				continue
			}
			there = there.Add(i)
			if p, stays := c.Place(next.members[i]); stays {
				here = here.Add(p)
			}
		}
		if next.IsRead(there) && !c.IsRead(here) {
			return false
		}
	}
	return true
}

// counts reports whether only the number of members makes a quorum.
func (c *Configuration) counts() bool { return c.system.Kind == Majority || c.system.Kind == Threshold }
