// Package env is what protocol code may ask of the world.
//
// A protocol has two halves, as in the papers, and so has its code here.
//
// # What a replica does with a message
//
// A deterministic step: it reads its state through a view of what the node
// stores, and returns what to send and what to make durable. It has no
// goroutine, no clock and no disk. Each outgoing message, an [Out], carries
// the [Position] in the node's journal after which it may leave: the highest
// of all records that it depends on, written or read. A duplicate put writes
// nothing, and still must wait for the record of the first one.
//
// # What a caller does with the answers
//
// Straight code over one primitive, a conversation: [Env.Ask] sends a request
// to members of one or several configurations and looks at each answer as it
// comes. A read of a register is two such conversations, a watch is one that
// doesn't end. A conversation outlives the connections that it is carried by:
// who has answered over one that has ended is asked once more. Where a part of
// the members will do, [Env.AskSome] leaves the others alone unless those are
// late, and [Env.Nearest] says whom to ask first.
//
// Some callers live on a replica and have a [Mailbox]: tasks. They run the
// same kind of code. A step hands a message to a task by an Out that names
// the mailbox, the task takes everything that waits with [Env.Receive], and
// answers each [Envelope] once, or many times, with [Env.Send].
//
// An Env is the scope of one operation. When the scope ends, every call on it
// returns [ErrCanceled], [ErrDeadline] or [ErrStopped], wrapped in what is
// known about the operation's targets where that matters ([Unfinished]).
// Protocol code never sees a context.Context.
//
// # Two worlds
//
// The real Env (internal/live) runs callers on goroutines and sends over
// QUIC; the simulated one (package sim) makes each caller a coroutine and
// resumes it from one single-threaded scheduler. The cases in env/envtest run
// unchanged in both, and say what an Env must do.
//
// Messages are immutable once sent: the simulator hands the same value to
// several nodes, and the real Env encodes it after Ask has returned.
package env
