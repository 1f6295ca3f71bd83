// Package reconfig agrees on the next configuration, and decides when one is
// needed and which.
//
// Configuration k+1 is decided once, among the members of configuration k, by
// package synod: RAMBO's Recon (Lynch and Shvartsman, DISC 2002, section 6), one
// consensus an index. What is then done about it, to move the state there and
// to let go of the members before, is package rambo's.
//
// # From a proposal to a decision
//
//   - Check. A [Proposal] says members and quorum system. A target that would
//     tolerate no death is refused, unless it is forced ([FragileError]).
//   - Ready. A decision can't be undone, and from it on every operation needs
//     quorums of the target. So the target's members are asked first
//     ([Ready]), and each notes durably that it has been named before it
//     answers. All that are new must be ready, and of the others enough that with
//     the new ones they have a read and a write quorum. So a dead
//     member can be removed, and another one kept. Who is missing is named
//     ([NotReadyError]).
//   - Propose, by package synod. Several may race: one configuration is decided, and
//     each is told which ([Decision]).
//
// A proposer may die at any moment. Until a member has accepted something,
// nothing has happened. From then on any other proposer finds it, and
// [Proposer.Finish] is what a node does when it holds something that was accepted and
// nothing comes of it.
//
// # Taking back
//
// Only what isn't decided can be aborted, and only by deciding something else:
// [Proposer.Abort] has the present members decided once more, under the next
// index. When somebody has accepted the proposal already, that may be too late,
// and it says so ([TooLateError]). Readiness can't be taken back: who has been told of
// it may propose at any time.
//
// # The node's half
//
// [Replica] is a step over a few cells of a node's store: notes of what it was
// ready for, and the acceptor's records of the decisions that its
// configuration takes.
package reconfig
