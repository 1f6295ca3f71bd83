package quorum

import (
	"iter"
	"math/bits"
)

// MaxMembers is the largest number of members of a configuration.
const MaxMembers = 256

const wordBits = 64

// Set is a set of members of one configuration, by their place in its sorted
// list. The zero Set is empty. It is a value: copies are independent.
type Set [MaxMembers / wordBits]uint64

// Add returns s with member i in it.
func (s Set) Add(i int) Set {
	s[i/wordBits] |= 1 << (i % wordBits)
	return s
}

// Has reports whether member i is in s.
func (s Set) Has(i int) bool { return s[i/wordBits]&(1<<(i%wordBits)) != 0 }

// Len returns the number of members in s.
func (s Set) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// Contains reports whether every member of t is in s.
func (s Set) Contains(t Set) bool {
	for i := range s {
		if t[i]&^s[i] != 0 {
			return false
		}
	}
	return true
}

// Minus returns the members of s that are not in t.
func (s Set) Minus(t Set) Set {
	for i := range s {
		s[i] &^= t[i]
	}
	return s
}

// Meets reports whether s and t have a member in common.
func (s Set) Meets(t Set) bool {
	for i := range s {
		if s[i]&t[i] != 0 {
			return true
		}
	}
	return false
}

// All yields the members of s in order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s {
			for ; w != 0; w &= w - 1 {
				if !yield(i*wordBits + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// firstN returns the set of the members 0 to n-1.
func firstN(n int) Set {
	var s Set
	for i := range s {
		rest := min(max(n-i*wordBits, 0), wordBits)
		s[i] = ^uint64(0) >> (wordBits - rest)
	}
	return s
}
