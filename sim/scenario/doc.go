// Package scenario runs algorithms in simulated worlds under drawn or scripted
// faults, checks every promise, and shrinks what breaks one.
//
// # The nouns
//
// A [Scenario] says what a world is like: how many clusters, nodes, clients and
// keys, what clients do, how the network and the disks are, and which kinds of
// faults there may be. [Scenario.Draw] makes a [Plan] of it for a seed: which
// faults exist in this run, and each of them as a [Decision]: what, when, to
// whom, for how long. A plan is all there is to a run: [Run] gives the same
// [Result], and the same trace hash, for the same plan, in any process and on
// any machine. Both are values that can be written to a file and changed by
// hand.
//
//	s, _ := scenario.Builtin("registers")
//	result, err := scenario.Run(s.Draw(17), scenario.Options{})
//	if result.Violation != nil { ... }
//
// An [Algorithm] is what keeps the registers: what a node does with messages
// and what a client does for an operation. That is the seam for new ones.
//
// # The course of a run
//
// Clients do one operation after another until Scenario.Duration is over, while
// the plan's decisions happen. What a client does next is a hash of the seed,
// its name and a count, so that a fault less, or another algorithm, meets the
// same operations; so are all delays. Two algorithms can be compared seed by
// seed, and plans shrink without falling apart.
//
// Then the faults end for a core of each cluster that has a quorum. The others
// stay dead, or are cut off in one direction ([Healing]). Every operation that
// is under way must end now.
//
// Then every key is read through every minimal read quorum, from what a power
// cut at this moment would leave on the disks, each quorum in a world of its
// own. Then a new client reads every key in the world itself, and the oracle
// (package history) judges all that clients saw.
//
// # What is checked
//
// The first promise that is broken ends the run with a [Violation]. Its Rule is
// one of:
//
//	durable-tag-falls    what a node holds durably of a key never gets older,
//	                     whatever dies
//	durable-on-quorum    when an operation ends, its tag is durable on a write
//	                     quorum (Traits.Settles)
//	tag-order            an operation ends with no smaller tag than any that had
//	                     ended before it began; a write with a larger one
//	tag-binds-one-value  no two values have one tag
//	write-has-one-tag    a write keeps its tag, however often it is tried: it
//	                     takes effect once at most
//	failed-write-seen    what was reported as certainly not applied is stored
//	                     nowhere and seen by nobody
//	value-from-nowhere   what is read was written by somebody
//	quorum               a conversation that an operation counts on was really
//	                     answered by a quorum (Traits.Needs): the answers are
//	                     counted where they arrive, not where they are used
//	rounds, messages     the bounds of an operation
//	liveness             what must end after the healing has ended
//	acked-write-lost     reading back through some quorum finds less than an
//	                     operation had ended with
//	linearizable         the oracle's verdict on the whole history
//	node-stopped, boot   no step and no start of a node fails
//	panic                nor does anything panic
//	no-progress          time passes: at one instant no more than a million
//	                     things happen, and ten thousand for each process
//
// All but the last few are checked at each event, at the cost of a few machine
// words. Those about tags need Traits.Tags; without them the history decides
// alone.
//
// # Members that change
//
// With [Membership], operators propose configurations: decisions of the kind
// "propose", which shrink like faults. Then these are checked as well:
//
//	one-configuration    there is one for each index
//	config-map           a node's config map makes sense
//	config-map-falls     what it durably knows never shrinks
//	fenced               a configuration goes out when a read and a write
//	                     quorum of it durably know of the next one
//	fence-before-merge   pages of a merge come from those that do
//	lost-at-retirement   what every read quorum of it found, every read quorum
//	                     of the next one finds
//	operation-failed     no operation fails but by its own time limit
//	copy-serves          a node over an older copy of its disk does nothing but
//	                     greet, where all others know it further
//
// And durable-on-quorum asks for a member in every read quorum of the newest
// installed configuration. See docs/SIMULATOR.md for why not more. Rounds and
// quorum aren't checked there.
//
// # What it doesn't do
//
// All runs in one goroutine. A Step, or an operation of a client, that loops
// for ever and asks nothing of its Env that could wait (Ask, Sleep, Receive,
// Join) can't be stopped: the run hangs, and the stack that SIGQUIT prints says
// where. One that does ask, and lets no time pass, is a violation.
//
// A node that lost its disk is another node from then on. An older copy of a disk
// is put back only where all others can notice (restore.go). A phase that was refused
// by a node doesn't ask it again, so that a plan in which a disk of the core was
// full needs a timeout of operations, and Plan.Check insists on it; where
// members change, no disk of the core may be full.
package scenario
