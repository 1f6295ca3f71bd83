// Package history records what clients saw of registers and decides whether it
// is linearizable.
//
// A [History] is a list of operations: who read, wrote or deleted which key,
// when the operation began and ended, and what came of it. [Check] says
// whether registers could have behaved so, and else returns a [Violation]:
// a few operations that can't be, with a sentence that says why. It always
// answers, in O(n log n) time, whatever the number of concurrent operations.
//
// The registers are those of this store: each key is one, independent of the
// others, and has no value at first. An operation that is OK took effect at
// one moment between its call and its return. One whose outcome is Unknown
// may have taken effect at any moment after its call, also long after its
// client gave up, or never. One that Failed never did.
//
// In return for its speed the oracle asks one thing of whoever makes a
// history: no two writes to a key write the same value, or a read doesn't
// tell which of them it saw. A client that tries an unknown write once more,
// as the same operation, has one operation in the history.
//
// # How it decides
//
// All operations on one value together tell when the value was there: from
// the earliest return among them to the latest call, if the call is later.
// In a register, such stretches don't overlap, and no other value can have
// come and gone within one. If that holds for all, the values can be put in
// an order (Gibbons and Korach, "Testing shared memories", SIAM J. Comput.
// 26(4), 1997). Deletes aren't unique: a read that found nothing doesn't tell
// which delete it saw. But such a read tells between which times some delete
// must have taken effect, and deletes are given to reads by the rule of the
// earliest deadline. docs/adr/0006-zone-test-oracle.md has the proofs.
//
// A twin is in the tests: porcupine, which tries orders one after another,
// must come to the same verdict on random histories, and on the proof of each
// violation. A million of them:
//
//	go test ./sim/history -run TestAgainstPorcupine -histories 1000000 -timeout 0
//
// # Files
//
// A file has a line for each operation, in any order, and on each line a JSON
// object. That makes histories of other systems as good as ours:
//
//	{"client":"c1","op":"write","key":"k","value":"v1","call":100,"return":250,"outcome":"ok"}
//	{"client":"c2","op":"read","key":"k","value":"v1","call":180,"return":260,"outcome":"ok"}
//	{"client":"c1","op":"delete","key":"k","call":300,"outcome":"unknown"}
//	{"client":"c2","op":"read","key":"k","call":400,"return":410,"outcome":"ok"}
//
// The fields:
//
//	client   text. Who did it, for people. May be left out.
//	op       "read", "write" or "delete".
//	key      text. The register.
//	value    text. What was written, or what a read with the outcome "ok"
//	         found; such a read without a value found nothing. Nothing else
//	         has one. No two writes to a key have the same, whatever their
//	         outcomes.
//	call     whole number. When the operation began.
//	return   whole number, not less than call. When its client learned the
//	         outcome. May be left out if that is "unknown", and means nothing
//	         then.
//	outcome  "ok", "failed" (it had no effect and never will) or "unknown".
//	         "ok" if left out.
//
// Times are on one clock for all clients: nanoseconds, or the numbers of
// events in a log that has them in order. Where return and call are equal,
// the operations count as concurrent, so a clock that is too coarse, or that
// adds its own error to both sides, hides violations but never makes one up.
// Clocks of several machines that differ by more than is added do.
//
// Reading is strict. A name that isn't listed, in its case, or that comes
// twice is an error, as is text that isn't Unicode: what is overlooked could
// turn a violation into a pass. null is the same as a field that is left out.
// Empty lines are skipped. A line has at most [MaxLine] bytes.
package history
