package repair

import (
	"math/bits"

	"atoll/abd"
	"atoll/tags"
)

// Sketch stands for a list of tags: a digest of 64 bits for each key and its tag, a
// fifth of what those take.
//
// A digest that says that the asker has a record which it hasn't would lose that one.
// Among n digests that happens to one record in 2^64/n. Salt is drawn anew for each
// question, so that no two members are mistaken about the same record, and nobody can
// choose a key for it.
type Sketch struct {
	Salt    uint64
	Digests []uint64 // up to MaxDigests, in any order
}

// SketchOf returns the sketch of some tags, and of those of entries that the asker
// was given beside. What is more than MaxDigests is left out, and is given once more.
func SketchOf(salt uint64, items []abd.Item, beside []Entry) Sketch {
	items = items[:min(len(items), MaxDigests)]
	beside = beside[:min(len(beside), MaxDigests-len(items))]
	s := Sketch{Salt: salt, Digests: make([]uint64, 0, len(items)+len(beside))}
	for i := range items {
		s.Digests = append(s.Digests, s.digest(items[i].Key, items[i].Tag))
	}
	for i := range beside {
		s.Digests = append(s.Digests, s.digest(beside[i].Key, beside[i].Record.Tag))
	}
	return s
}

func (s *Sketch) digest(key abd.Key, tag tags.Tag) uint64 {
	h := newHash().number(s.Salt)
	h.add(key, tag)
	return uint64(h)
}

// lacks returns a function that reports whether the asker lacks a record. That is
// called in the order of the keys.
func (m *Offer) lacks(rules Rules) func(abd.Key, tags.Tag) bool {
	if len(m.Digests) > 0 {
		known := newDigestSet(m.Digests)
		return func(key abd.Key, tag tags.Tag) bool {
			return !known.has(m.digest(key, tag)) && !rules.TrustSketch
		}
	}
	items := m.Items
	return func(key abd.Key, tag tags.Tag) bool {
		for len(items) > 0 && items[0].Key < key {
			items = items[1:]
		}
		return len(items) == 0 || items[0].Key != key || items[0].Tag.Less(tag)
	}
}

// digestSet is a hash table of digests, which are hashes already. Each is where its
// low bits say, or behind that; 0 is a free place.
type digestSet []uint64

func newDigestSet(digests []uint64) digestSet {
	set := make(digestSet, 1<<bits.Len(uint(2*len(digests))))
	for _, d := range digests {
		set[set.place(d)] = notZero(d)
	}
	return set
}

func (s digestSet) has(d uint64) bool { return s[s.place(d)] != 0 }

// place returns where a digest is, or has its place.
func (s digestSet) place(d uint64) int {
	d = notZero(d)
	i := int(d) & (len(s) - 1)
	for s[i] != 0 && s[i] != d {
		i = (i + 1) & (len(s) - 1)
	}
	return i
}

// notZero stands for a digest in a table. That 0 and 1 are one there makes no
// difference to the odds.
func notZero(d uint64) uint64 { return max(d, 1) }
