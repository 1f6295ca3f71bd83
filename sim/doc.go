// Package sim runs whole clusters on a simulated network, disk and clock,
// from one seed.
//
// The code that it runs is the code that production runs: replica steps
// (a [Stepper], which replica.Node is) over a simulated [Disk], and callers
// over a simulated env.Env. Only the world around them is made up.
//
// # The nouns
//
// A [World] has processes, and a schedule of events. A [Process] is a node,
// which has a disk and a stepper, or a client, which has neither. It has one
// life after another. A [Scope] is an operation on a process: the driver gives
// it a function over an Env, and lets the world run until it is done. A [Link]
// is what the way from one process to another is like; a [Delay] says how
// long something takes.
//
//	w := sim.New(sim.Config{Seed: 1})
//	defer w.Close()
//	w.AddNode("a", boot)
//	read := w.AddClient("p").Scope(5 * time.Second)
//	read.Start(func(e env.Env) error { ... })
//	err := w.Wait(time.Minute, read)
//
// # How it works
//
// There is one scheduler on one goroutine: a heap of events, ordered by time,
// then by kind, then by the order in which they were scheduled. A message in
// flight is a value in that heap. A caller is a coroutine (iter.Pull): it runs
// until it waits for something, and then the scheduler goes on. The function
// that a caller gives to Ask is called by the scheduler where an answer
// arrives; the coroutine is resumed once, when the conversation is done.
//
// A node acts on a message when it arrives, as the server's loop does: its
// records are cut into a group, a commit runs in the background, one at a
// time, and what the step sent leaves as soon as the disk is durable up to its
// position.
//
// A node whose stepper has tasks ([Tasked]) runs them in each of its lives, from
// its boot on, by the rule of replica.Task by which production runs them: one
// that returns is started again after replica.TaskPause of the node's clock. What
// a task asks its own node arrives at once, over a way on which nothing is lost
// or intercepted, and is stepped, and answered when the disk is durable, as
// everybody's. A crash ends the tasks where they wait. A world with a task that
// sleeps and wakes has always something left to happen: Wait and RunFor end by
// what they wait for, and by their time.
//
// What is asked is bound to a connection, of which there is one between any
// two processes that live and are on the network. When it ends, the far end
// has forgotten whom to answer, and when there is a new one, whatever waits is
// asked over it at once. The connections of a process end with its life, or
// with its time on the network. What is on its way to it then is lost; what it
// has sent still arrives, as in reality, where it may have been received before
// anybody noticed. But an answer of that kind doesn't count as one.
//
// # What can be relied on
//
// The same seed and the same driver give the same run, event by event, in any
// process and under any GOMAXPROCS. [World.Hash] is a rolling hash over all
// events and [World.Checkpoints] tell where two runs parted. All arithmetic
// that decides anything is in integers.
//
// Draws are counter-based: the delay of the fifth message from a to b is a
// hash of the seed, a, b, five, and "delay". It stays the same whatever else
// happens, or is taken out of the run.
//
// # Faults
//
// The driver brings every fault about, at a time of its choice: the kernel
// draws only what a fault leaves open.
//
//   - Messages: distributions of delays ([Delay]), loss, duplicates,
//     overtaking, or the order and the waiting of a stream ([Stream]); ways that
//     are cut in one direction ([World.Cut]), for good if nobody mends them;
//     processes whose absence shows ([Process.Disconnect]); connections that
//     break with what was on them ([World.Break]); ways and nodes that are slow
//     ([World.Slow], [Process.Gray]); first copies that reach exactly a minimal
//     quorum ([World.Narrow]); and messages that the driver holds and releases
//     at will ([Fate]).
//   - Processes: [Process.Crash], which loses what wasn't written,
//     [Process.PowerLoss], which loses what wasn't synced but for a prefix,
//     [Process.Restart], [Process.Pause] and [Process.Resume].
//   - Disks: slow commits ([Process.SlowDisk]), hanging ones ([Process.Stall]),
//     failing ones ([Process.FailSync]), torn writes
//     ([Process.TornPowerLoss]), flipped bits ([Disk.Damage]), writes that land
//     elsewhere ([Disk.Misdirect]), disks that are full ([Disk.Fill]), lost
//     ([Process.LoseDisk]), or replaced by an older copy
//     ([Process.RestoreDisk]).
//   - Clocks: [Process.JumpClock], [Process.DriftClock]. The deadlines, sleeps
//     and resends of a process go by its clock.
//
// A crash ends every caller of the process where it waits, by a panic that
// only the scheduler recovers. Deferred functions run, and can't do anything
// in the world: nothing that they send leaves, and waiting panics again.
//
// The zero [Rules] are the correct ones. The others make mutants of the
// kernel, for tests of the tests.
//
// # Transcripts
//
// A [Script] drives a world by short commands, holds every message until the
// script delivers it, and prints what happened. Package sim/schedule plays with
// it the schedules that break wrong implementations (abd/testdata,
// repair/testdata, rambo/testdata, join/testdata).
package sim
