package env

import (
	"errors"
	"time"

	"atoll/quorum"
	"atoll/tags"
)

// The ways in which a scope ends before its work is done.
var (
	ErrCanceled = errors.New("canceled")
	ErrDeadline = errors.New("deadline exceeded")
	ErrStopped  = errors.New("stopped")
)

// Env is the scope of one operation or task. Its methods must be called from
// the caller's own code, never from the function given to Ask.
type Env interface {
	// Ask sends req to each of to, and calls each with every answer as it
	// comes, one at a time, until each returns true (then Ask returns nil) or
	// the scope ends (then it returns an *Unfinished). All of to are sent the
	// request, even if each is done before the last of them: who puts a value
	// wants every member to have it. With nobody to ask, Ask waits until the
	// scope ends.
	//
	// What is lost is sent again with backoff while the conversation lasts, so
	// every request must be idempotent, and each must bear to see a node's
	// answer more than once, another one after the first too.
	//
	// A node that has answered, by a refusal too, is not asked again while its
	// connection lives. A connection ends when either end dies or is cut off.
	// With it the node forgets the conversation, and what it would still have
	// pushed would never come: so it waits to be asked again, and is, as soon
	// as there is another connection. Hence an Ask that watches a node goes on
	// across the node's restarts; what happened meanwhile it learns if the
	// node's first answer says so.
	//
	// Only answers to this very call are passed to each: the answer to an
	// earlier conversation, or to one of an earlier life of this process,
	// never is. But when req is Wakeable, each is given a Woken as well, as from a
	// node without a name, after the process has learned something.
	//
	// each must not block, nor call any method of an Env: it may run on
	// another goroutine, where the answer arrived.
	Ask(to []quorum.NodeID, req Message, each func(c Conversation, from quorum.NodeID, answer Message) (done bool)) error

	// AskSome is Ask for whom a part of the members will do. It asks first,
	// and leaves spare alone until one of first is later than usual, or is
	// known to be out of reach (the network refused the request, or the
	// connection ended). Then all of spare are asked, and from there on it is
	// as if Ask had been called with both. What is usual is the kernel's to
	// know, which learns it from the answers to AskSome. Each may Add or
	// Redirect one of spare earlier, when an answer shows that first won't do.
	//
	// Mostly a conversation is done before, and spare are never asked; an
	// Unfinished lists them as not sent to. Now and then a kernel asks one of
	// spare all the same, with the others, to see whether a slow node still
	// is. So a caller must bear an answer of any of spare at any time.
	//
	// Ask(to, ...) is AskSome(to, nil, ...).
	AskSome(first, spare []quorum.NodeID, req Message, each func(c Conversation, from quorum.NodeID, answer Message) (done bool)) error

	// Nearest returns nodes in the order in which they are expected to answer,
	// the soonest first; those that are about equal take turns. It is a guess,
	// on which no safety may hang. Neither the argument nor the result may be
	// changed afterwards.
	Nearest(nodes []quorum.NodeID) []quorum.NodeID

	// Tell sends m to each of to once. It may be lost, and nobody learns of it.
	Tell(to []quorum.NodeID, m Message)

	// Sleep returns nil after d, or earlier why the scope ended.
	Sleep(d time.Duration) error

	// Go starts f as a task in a scope within this one, which ends when this
	// one does, or when f returns. The name is for people. Tasks share
	// nothing that changes: they meet at a mailbox or at Join.
	//
	// Who starts a task joins it before returning. To forget that is a bug,
	// at which the simulator panics; in the real Env the task's scope ends
	// with this one, and nobody hears of its error. When the process is being stopped, f may not run at
	// all, and Join returns ErrStopped.
	Go(name string, f func(Env) error) Task

	// Receive returns everything that waits in m, at least one envelope, in
	// the order of arrival, and waits while there is nothing. The slice is
	// the caller's; the messages in it, like all, must not be changed.
	//
	// The first Receive makes the mailbox the scope's own until that ends. A
	// Receive by another scope in that time, also by one within, is a bug, and
	// panics.
	Receive(m Mailbox) ([]Envelope, error)

	// Send answers an envelope, once or many times. It may be lost: whoever
	// asked asks again if no answer comes, but a push that is lost is lost
	// until the next. When the connection over which to was asked has ended,
	// all is lost, and whoever asked asks again from another address.
	Send(to Address, answer Message)

	// ID returns a fresh operation id, unique across restarts and tasks.
	ID() tags.PID

	// Now is the time since some fixed moment in this process. It never goes
	// back. No protocol's safety may hang on it.
	Now() time.Duration

	// Rand returns 64 random bits, for backoff and for picking targets.
	Rand() uint64

	// Self is the node that this code runs on; empty in a client.
	Self() quorum.NodeID

	// Trace tells an observer (a simulator's checks, a debug log) what the
	// protocol just did. It never changes what happens next.
	Trace(Event)
}

// A Conversation is the part of an Ask that its each function may change.
type Conversation interface {
	// Sent returns how many copies of requests were handed to the transport
	// for a node in this conversation, over all connections, and before a
	// Redirect too. When as many refusals came back, no copy is left that the
	// node could still act on.
	Sent(to quorum.NodeID) int
	// Add asks further nodes the request that was given to Ask; those asked
	// already are left as they are.
	Add(to ...quorum.NodeID)
	// Redirect sends one node another request in place of the one before, and
	// from now on repeats that one when it is lost. A node that wasn't asked
	// is asked. An answer to an earlier request of this conversation is still
	// passed to each, but the node has answered only when it has answered the
	// last one.
	Redirect(to quorum.NodeID, req Message)
}

// A Task is a task that was started with Go.
type Task interface {
	// Join waits until the task has returned, even if the scope has ended, and
	// returns its error. Only who started the task calls it, as often as it
	// likes.
	Join() error
	// Cancel ends the task's scope, and those within, with ErrCanceled: its
	// next call on its Env returns that, and one that waits does so now. It
	// waits for nothing. Who started the task may call it, and other tasks of
	// the same; a task that has returned doesn't mind.
	Cancel()
}

// A Message is what nodes say to each other. Each protocol declares its own
// message structs; pointers to them implement Message. A message is immutable
// once it was sent. Its encoding is internal/wire's business.
type Message interface {
	// Message does nothing: it marks the types that internal/wire encodes.
	Message()
}

// Bulky is a Message whose answer is expected to be large.
type Bulky interface {
	Message
	// AnswerBytes is about how many bytes the answer has, 0 if that isn't
	// known: so much longer it may take before AskSome calls it late.
	AnswerBytes() int
}

// Wakeable is a request whose asker goes by what its process knows, too: those
// that it has asked may be gone, and others have taken their place.
type Wakeable interface {
	Message
	// Wakes does nothing: it marks the types.
	Wakes()
}

// Woken says that the process has learned something since the question was asked.
// What that is, who asks must look up. It never leaves the process: it is no pointer,
// and has no encoding.
type Woken struct{}

// Message marks the type as a message.
func (Woken) Message() {}

// Position is a place in a node's journal. A record at a position is durable
// once the journal was synced up to it. Zero is before the first record: what
// depends on nothing may leave at once.
type Position uint64

// Mailbox names a place on a node where messages wait for a task.
//
// It begins with the first message for it, or the first Receive. A task that
// ends gives it up, and then it is gone if it is empty; otherwise it waits for
// the next task that receives from it, for as long as the process lives. Both
// the number of mailboxes that messages can make and the messages in each are
// bounded: what finds no room is lost, and whoever asked asks again.
type Mailbox string

// Address says where an answer goes. It is comparable, opaque to protocols,
// and valid as long as the process that asked lives and stays connected. A
// process that is connected anew has another one: who keeps addresses, to push
// to them, must be able to let old ones go.
type Address struct {
	// Node is who sent the message. For a client it is a name that the
	// kernel gave to its connection.
	Node quorum.NodeID
	// Session tells apart the connections, or lives, of that node.
	Session uint64
	// Conversation is the Ask that waits for the answer, zero for a Tell.
	Conversation uint64
}

// Out is one effect of a step: a message that leaves once the journal is
// durable up to After.
type Out struct {
	// To is the far end: where the message goes, or, when Mailbox is set,
	// where the answers to it go.
	To Address
	// Mailbox, when set, keeps the message on this node, in an Envelope for
	// the task that owns the mailbox.
	Mailbox Mailbox
	Message Message
	// After is the highest position of all records on which the message
	// depends, those that the step wrote and those that it read.
	After Position
}

// An Envelope is a message in a mailbox, and whom to answer.
type Envelope struct {
	From    Address
	Message Message
}

// Event is something a protocol tells an observer. Fields that don't apply
// are zero.
type Event struct {
	// Name is the protocol and what happened: "abd.tag-chosen".
	Name string
	Op   tags.PID
	Key  string
	Tag  tags.Tag
}
