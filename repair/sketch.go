package repair

import (
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

// SketchOf returns the sketch of some tags.
func SketchOf(salt uint64, items []abd.Item) Sketch {
	s := Sketch{Salt: salt, Digests: make([]uint64, len(items))}
	for i := range items {
		s.Digests[i] = s.digest(items[i].Key, items[i].Tag)
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
		known := make(map[uint64]struct{}, len(m.Digests))
		for _, d := range m.Digests {
			known[d] = struct{}{}
		}
		return func(key abd.Key, tag tags.Tag) bool {
			_, has := known[m.digest(key, tag)]
			return !has && !rules.TrustSketch
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
