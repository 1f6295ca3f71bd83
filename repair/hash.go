package repair

import (
	"encoding/binary"

	"atoll/abd"
	"atoll/tags"
)

// hash is FNV-1a over 64 bits.
type hash uint64

const (
	hashBasis = 14695981039346656037
	hashPrime = 1099511628211
)

func newHash() hash { return hashBasis }

// add hashes a key, with its length so that no two lists of keys run together,
// and its tag.
func (h *hash) add(key abd.Key, tag tags.Tag) {
	x := *h
	x = x.number(uint64(len(key)))
	for i := range len(key) {
		x = (x ^ hash(key[i])) * hashPrime
	}
	pid := tag.PID.Bytes()
	x = x.number(uint64(tag.Seq)).number(binary.BigEndian.Uint64(pid[:8])).number(binary.BigEndian.Uint64(pid[8:])).number(uint64(tag.RMW))
	*h = x
}

// number hashes a word at once. FNV goes by bytes; all that is asked of this
// one is that a small difference is seen.
func (h hash) number(n uint64) hash {
	h = (h ^ hash(n)) * hashPrime
	return h ^ h>>32
}
