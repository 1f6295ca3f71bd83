package sim

import "math/bits"

// Randomness is counter-based: a draw is a hash of the seed, of who draws, of
// how often it has drawn, and of what for. No two purposes share a stream, so
// that taking one fault out of a run leaves all other draws as they were.

// purpose says what a draw is for.
type purpose uint64

const (
	forDelay purpose = iota + 1
	forLoss
	forDuplicate
	forSecondDelay
	forSync
	forIdentity
	forCaller
	forRetransmit
	forRetransmitDelay
	forSlowLink
	forGrayOut
	forGrayIn
	forSlowDisk
	forFailedSync
	forResume
	forNarrow
	forNearest
)

// mix spreads every bit of x over the whole result (the finalizer of
// splitmix64, which is a bijection).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// fold takes one more word into a rolling hash.
func fold(h, x uint64) uint64 {
	hi, lo := bits.Mul64(h^0x9e3779b97f4a7c15, x^0xd6e8feb86659fd93)
	return bits.RotateLeft64(h, 23) ^ hi ^ lo
}

// foldString takes a string into a rolling hash.
func foldString(h uint64, s string) uint64 {
	h = fold(h, uint64(len(s)))
	for ; len(s) >= 8; s = s[8:] {
		h = fold(h, uint64(s[0])|uint64(s[1])<<8|uint64(s[2])<<16|uint64(s[3])<<24|
			uint64(s[4])<<32|uint64(s[5])<<40|uint64(s[6])<<48|uint64(s[7])<<56)
	}
	var rest uint64
	for i := range len(s) {
		rest |= uint64(s[i]) << (8 * i)
	}
	return fold(h, rest)
}

// draw returns the random number that belongs to a base (the hash of the seed
// and of who draws), a count and a purpose.
func draw(base, count uint64, p purpose) uint64 {
	return mix(base ^ mix(count<<8|uint64(p)))
}

// million is what chances are counted in.
const million = 1_000_000

// happens reports whether a chance of perMillion comes true for the draw u.
func happens(u uint64, perMillion uint32) bool {
	hi, _ := bits.Mul64(u, million)
	return hi < uint64(perMillion)
}
