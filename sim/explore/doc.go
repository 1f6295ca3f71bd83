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
// What a process does depends on what has happened to it, and on nothing else. So
// each is run alone, on a stage (a sim.World) on which the others do nothing: once
// for each state in which it can be and each thing that can happen to it there. What
// it sends then is taken down, and in which state it is. All the rest is looked up:
// a state of the world is a row of numbers, one for each process, and the requests
// under way. There are thousands of times as many of these as there are states of
// single processes.
//
// Callers are coroutines and can't be copied: a process is brought back to an
// earlier state by a new life of the stage, in which the same happens to it. States
// are the same if their hashes are, by sim.Process.State. Of 63 bits: among 25 million
// states the chance that any two are taken for one is below one in 20,000.
//
// The search is breadth first, so that a path to a broken promise is as short as
// there are any. What was found is made again in a whole world before it is
// reported. A test explores small scopes in whole worlds only, and compares the two.
//
// # What is left out, and why that loses nothing
//
//   - Commits end at once. One that takes its time only keeps back messages, as
//     the network does; unless the node dies meanwhile. So a disk hangs from some
//     move on only if it will die with that (hangs).
//   - Of a node whose disk hangs it doesn't count in which order it has stored what will
//     be lost, nor what it would say if that became durable: it dies before
//     (sim.Process.Hang).
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
//   - A second copy of a request that is under way isn't sent.
//   - A state in which less may still go wrong than in another one that is the same
//     is left out once that was seen: what can happen there can happen here (budget).
//   - A request whose answer nobody awaits is dropped when it would change nothing
//     (tidy). It has a node learn a record, a configuration or a life; the node has
//     that durably already, and never forgets it.
//
// # What is left out, and would be more
//
//   - Time passes only when nothing else can happen: repeats of requests and
//     pauses after failures are slower than every message. It does so for all, and
//     long enough for all of these; new members are given up only if that has come to
//     nothing.
//   - What follows at once on one process, nobody comes between: a driver on the node
//     that merges last retires in the same move.
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
// says all that it still knows (forgets), and what it has yet to answer; of answers
// in one conversation neither the order counts nor how often the same one came, nor
// how many copies of a request were sent. Where code breaks that, two states may be
// taken for one, and something may be missed. Nothing is made up: each violation
// comes with its path.
package explore
