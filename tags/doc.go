// Package tags defines the total order on writes.
//
// Every value that a register ever holds carries a [Tag], and of two values
// the one with the larger tag is the later one. The order is that of
// multi-writer ABD (Lynch and Shvartsman, "Robust emulation of shared memory
// using dynamic quorum-acknowledged broadcasts", FTCS 1997, section 3), with
// one component more:
//
//	Tag = (Seq, PID, RMW), compared in that order
//
// Its components:
//
//   - Seq is one more than the largest Seq that the writer found at a read
//     quorum. It makes a write later than every write that ended before it
//     began.
//   - PID names the operation that wrote. It orders writes that found the
//     same maximum. It is the operation's and not the process's: a process
//     that restarts must never give a second value to a tag that one of its
//     earlier lives used (rule R1 in docs/PROTOCOLS.md), and a retry of an
//     operation must be recognised as the same.
//   - RMW is 0 for a write, and counts the updates (compare-and-set) that
//     follow that write. No plain write can come between a value and the
//     updates that were computed from it.
//
// The zero Tag is the least one. It belongs to the initial state of every
// register, "never written", and no operation ever chooses it.
package tags
