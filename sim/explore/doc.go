// Package explore looks at everything that can happen in a small world.
//
// Random runs (package scenario) find what happens often enough, and schedules
// (package schedule) what somebody has thought of. Here every order is tried in
// which messages can arrive, in which a process can die and an answer be lost,
// and every promise is held against each of them.
//
// # The nouns
//
// A [Scope] is who is there and what they do, each once: the members of two or
// three configurations, a write, a read, and a node that drives the step from one
// configuration to the next. A move is one thing that happens: a message arrives;
// a process dies. A path is a row of moves from the beginning, and leads to a
// state. [Explore] makes every move from every state, and counts ([Report]); a
// [Violation] has the path that leads to it, and [Replay] says what happens on it.
//
//	s, _ := explore.Find("one")
//	r, err := explore.Explore(s, explore.Options{})
//
// # How it works
//
// The world is a sim.World in which every request is held until a move lets it
// arrive. Callers are coroutines and can't be copied, so a world can't be brought
// back to an earlier state: a new one makes the same moves. What is seen a second
// time, by sim.World.State, isn't explored again. Of 64 bits: among ten million
// states the chance that any two are taken for one is below one in 100,000.
//
// # What is left out, and why that loses nothing
//
//   - Commits end at once. One that takes its time only keeps back messages, as
//     the network does; unless the node dies meanwhile. So a disk hangs from some
//     move on only if it will die with that (hangs).
//   - An answer arrives at once, or is lost. That it comes later is the same to
//     who asks, whose phase counts the same answers, ends sooner, and can do
//     nothing with that before a move lets it; unless it has ended by then, and
//     that is the same as a loss. What is only read is never lost: the request may
//     as well not arrive.
//   - A get phase asks all members at once: a request that doesn't arrive is one
//     that wasn't sent.
//   - Operations begin, for the history, when the first of their requests arrives,
//     since nobody could tell before. The read begins behind the write's end: with
//     one of each, no other history can be impossible. What a read alone may not
//     return, and what a member may not lose, the promises of package succession
//     say.
//   - Messages that nobody would notice don't arrive: answers that come too late,
//     and requests that change nothing and whose asker has gone on. When all
//     operations are over, that is the end.
//   - Moves that come to the same in either order are made in one: see frame.
//
// # What is left out, and would be more
//
//   - Time passes only when nothing else can happen: repeats of requests and
//     pauses after failures are slower than every message.
//   - No message arrives twice, but for what is sent again in time, or because a
//     process came back.
//   - A task and its own node talk without anybody coming between.
//   - Lost answers and deaths are counted ([Scope.Lost], [Scope.Crashes]).
//   - Of the tasks of nodes, only the one runs that merges. Gossip and what nodes tell
//     each other when their maps change only bring knowledge earlier that fences and
//     answers bring as well; that a node hears of a configuration that is installed from
//     another than the driver isn't explored. Repair finds no damage here.
//   - What the next configuration is was decided before, its members being ready:
//     consensus has its own tests.
//   - There is one key, and clients know the first configuration.
//
// # Trust
//
// A caller's state is what it has been told since it last asked something that
// says all that it still knows (forgets); of answers in one conversation the order
// doesn't count. Where code breaks that, two states may be taken for one, and
// something may be missed. Nothing is made up: each violation comes with its path.
package explore
