package repair

import (
	"encoding/binary"

	"atoll/abd"
	"atoll/synod"
	"atoll/tags"
)

// hash is FNV-1a over 64 bits, word by word.
type hash uint64

const (
	hashBasis = 14695981039346656037
	hashPrime = 1099511628211
)

func newHash() hash { return hashBasis }

// add hashes a key, with its length so that no two lists of keys run together,
// and its tag.
func (h *hash) add(key abd.Key, tag tags.Tag) {
	*h = text(*h, key).number(uint64(tag.Seq)).id(tag.PID).number(uint64(tag.RMW))
}

// vote hashes an instance and the ballot of the vote on it, to which the value
// belongs.
func (h *hash) vote(c *synod.Carried) {
	b := c.Vote.Ballot
	*h = text(*h, c.Instance).number(uint64(b.Index)).number(uint64(b.Round)).id(b.ID)
}

func text[S ~string](h hash, s S) hash {
	h = h.number(uint64(len(s)))
	for ; len(s) >= 8; s = s[8:] {
		h = h.number(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56) // one word of memory
	}
	rest := uint64(0)
	for i := range len(s) {
		rest |= uint64(s[i]) << (8 * i)
	}
	return h.number(rest)
}

func (h hash) id(p tags.PID) hash {
	b := p.Bytes()
	return h.number(binary.BigEndian.Uint64(b[:8])).number(binary.BigEndian.Uint64(b[8:]))
}

// number hashes a word at once. FNV goes by bytes, which costs eight times as much;
// all that is asked of this one is that a small difference is seen.
func (h hash) number(n uint64) hash {
	h = (h ^ hash(n)) * hashPrime
	return h ^ h>>32
}
