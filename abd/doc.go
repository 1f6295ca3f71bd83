// Package abd implements the get and put phases of multi-writer atomic
// registers over a given set of configurations.
//
// # The protocol
//
// A replica keeps one [Record], a tag and a value, for each [Key]. An
// operation on a register is one or two phases, and a phase is one request to
// members that ends as soon as what answered contains a quorum of every
// configuration. A get phase asks a read quorum that is expected to answer soon,
// and the others if that is late or no help; a put phase asks all:
//
//   - a get phase asks for records (or tags alone), ends with a read quorum
//     R, and yields the record with the largest tag;
//   - a put phase sends a record, and ends with a write quorum W. A replica
//     stores it if its tag is larger than what it has, and acks always.
//
// A read is a get phase and then a put phase of what it found: without the
// second a later read could miss the value (schedule 1 in
// abd/testdata). A write is a get phase for tags, then a put phase with a
// larger one. Every R meets every W, and so every operation sees each one
// that ended before it began.
//
// The source is Lynch and Shvartsman's multi-writer version (FTCS 1997) of
// Attiya, Bar-Noy and Dolev's algorithm (JACM 42, 1995), with quorums as in
// RAMBO; docs/PROTOCOLS.md restates the rules, R1 and R2, that the code cites.
//
// # Saving the second phase of a read
//
// A read returns after its get phase when a put phase could add nothing:
// when those of its repliers that hold the maximum contain a *write* quorum
// (a read quorum isn't enough), or one of them says that the tag is
// confirmed, or when nobody has ever written.
//
// # Large values
//
// A read doesn't take a value of more than [DefaultInline] bytes from each
// member of its read quorum. They say how large it is, and one that holds the
// largest tag is asked for it, in one more round.
//
// # Outcomes
//
// A phase that can't find its quorum ends in a [QuorumError], which names
// each node and what it said, and says whether the operation has certainly
// not taken effect or may have, now or later. An [Operation] whose outcome is
// unknown keeps its id and its tag, and can be tried again with both: that is
// the same write, not a second one (schedule 5).
//
// # What a caller must know
//
//   - A delete is a write of a tombstone. Tombstones are never erased.
//   - A list is atomic for each key and is no snapshot across keys.
//   - Registers compare and order nothing but writes to one key.
package abd
