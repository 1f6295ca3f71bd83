// Package live is the real env.Env: goroutines and conversations over
// transport.
//
// A [Runtime] is one process's part in the protocols, a node's or a client's.
// Callers get an [env.Env] from [Runtime.Scope]; whoever owns the network
// feeds in what arrives, with [Runtime.Deliver], [Runtime.Mail],
// [Runtime.PeerUp] and [Runtime.PeerDown], and sends what goes out, as a
// [Network]. None of those calls waits for a caller, or for another node.
//
// # A conversation
//
// An Ask opens a conversation in the table, sends the requests, and waits on a
// channel. An answer carries the conversation's number, and is looked at right
// where it arrived, on the goroutine of whoever calls Deliver, under the
// conversation's own lock. So a caller is woken once, when its condition
// holds, and not once for each answer.
//
// What each (the function given to Ask) adds or redirects is only noted down
// while the lock is held, and sent after it was let go. No lock is ever held
// while the network is called; a network may deliver an answer from within
// Send.
//
// Places in the table are used again and again, each for one conversation
// after the other, with the buffers that it has grown. A conversation's number
// is
//
//	generation (40 bits) | redirects (4 bits) | place (20 bits)
//
// where the generation goes up with every use of the place. It begins at
// random, so that an answer to an earlier life of the process finds nobody
// either, even if the network should carry one over. Number 0 belongs to no
// conversation: it is that of a Tell.
//
// The bits in the middle count how often the node in question was redirected.
// An answer to what it was asked before is passed to each like any other, but
// doesn't count as the answer to its new request, which is sent again until it
// is answered itself.
//
// An answer counts only if it comes from a node that was asked in that very
// conversation. Others are dropped: a faulty node can't speak for a second.
//
// # What is lost
//
// One goroutine, the sweeper, sends again what wasn't answered. What a live
// connection took isn't lost as long as that lives: it is sent again after
// [FirstResend], in case the node had to drop its answer, and then after twice
// as long each time, up to [MaxResend]. What no connection took is tried again
// after [FirstRetry], and so on up to [MaxRetry]. There is no timer for each
// operation. The sweeper sleeps until something is due, and while nothing can
// become due it isn't woken at all: an idle process, even one with open
// watches, causes no wake-ups. When a node's connection comes (back) up, PeerUp
// sends it at once what it hasn't answered yet.
//
// A node that has answered, by a refusal too, isn't asked again while its
// connection lives, unless it is redirected. When a connection with it ends,
// PeerDown makes it one that hasn't answered: with the connection, the node
// has forgotten whom to tell what comes next.
//
// # Who is asked, and when
//
// For each node that AskSome was given, the Runtime keeps how long its answers
// take (pace.go), from the answers to AskSome alone: puts, which wait for disks,
// go by Ask. From that follow both whom Nearest puts first and when the spares
// of a conversation are asked. A node that was late is behind all others at
// once, until something comes from it; one that isn't asked first is asked with
// the others every [ProbeEvery], so that it is found when it is fast again, by
// an answer that may well come after its conversation's end. The sweeper asks
// the spares, too. It looks at no conversation before something is due.
//
// # Mailboxes
//
// A mailbox exists from the first envelope, or from the first Receive. A scope
// that receives from one owns it until it ends; then the mailbox goes, or, if
// something waits in it, waits for its next owner. What arrives makes at most
// [MaxMailboxes] of them, and fills each up to [MaxMail].
//
// # How a scope ends
//
// A scope ends with its context: by [env.ErrDeadline] if that had a deadline
// which passed, otherwise by [env.ErrCanceled]. A context's own cause, if it
// has one, is kept beside it in the error. [Runtime.Stop] ends all scopes with
// [env.ErrStopped]. A task's scope ends too when the task returns, which ends
// the tasks that it started and didn't join. What a task panics with ends the
// process, or, if somebody wants to know ([Config]), the task alone.
package live
