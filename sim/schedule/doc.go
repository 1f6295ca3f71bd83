// Package schedule runs schedules: orders of events, written down, in which a
// wrong implementation does what its promises forbid.
//
// A schedule is a transcript in a package's testdata: commands, and below a line
// of dashes what happened on the real code. Then the same commands are run
// without one of the rules (a mutant), and must show what the rule is there to
// prevent. A test of the package plays them all:
//
//	func TestSchedules(t *testing.T) {
//		schedule.Test(t, "testdata", schedule.Registers)
//	}
//
// and `go test ./abd -run TestSchedules -rewrite` writes anew what happened.
//
// # The nouns
//
// A [Run] is one run of a schedule's commands: a simulated cluster of
// replica.Nodes, and what its clients saw of the registers. A [Vocabulary] gives
// a run its words: the operations, commands and rules of a protocol ([Table]).
// [Registers] is that of package abd, [Repair] that of package repair, [Rambo]
// that of package rambo, [Joining] that of package join. A test names those that its schedules use; one that it
// alone needs stands beside it.
//
// # Commands
//
// Those about processes, messages, disks, clocks and time are the commands of
// every [sim.Script]: node, client, crash, restart, powerloss, pause, cut,
// partition, deliver, drop, exchange, flow, disk, advance and so on. A run adds
// those about configurations:
//
//	cluster SYSTEM [a b c]  the first configuration, c0: these nodes under a
//	                        quorum system. All know it, and the nodes are started.
//	                        If none are named, a, b and c
//	configuration c1 1 SYSTEM d e
//	                        another one, of which nobody knows yet: its name, its
//	                        index, its quorum system and its members
//	active c0 c1 [on p d]   from now on the configurations over which operations
//	                        work, and with which nodes boot, are these: for all
//	                        processes, or for those that are named
//
// A quorum system is written as everywhere ("majority", "get=2,put=3"). A node
// that no configuration names is started by "node x".
//
// And the commands that say what the schedule is for:
//
//	verdict          check that what the clients saw is linearizable, and that
//	                 nothing else is wrong (see [Run.Fail])
//	verdict ended    and that every operation has ended
//	verdict within D and that none took longer
//	mutant NAME      run all commands above once more without the rule NAME,
//	                 and show how the operations ended: the verdict must fail
//
// A rule is named by its field, NoWriteBack, or with its package,
// abd.NoWriteBack, where several have one of that name.
//
// # What a run leaves out
//
// The tasks of nodes don't run by themselves: a schedule says when they do what
// ("heal a", "pull a b").
package schedule
