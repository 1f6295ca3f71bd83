// Package server drives a replica.Node: it owns clock, disk and network.
//
// Three kinds of goroutine work on what arrives, and none waits for a caller:
//
//	session readers   decode frames and put messages into the inbox
//	the loop          takes everything from the inbox, steps the node on each
//	                  message, and lets answers go that depend on nothing
//	                  that isn't durable yet; the others are held
//	the committer     makes what the steps wrote durable, with one write and
//	                  one sync for all of it, and lets the held answers go
//
// While the committer waits for the disk, the loop steps on: reads don't wait
// for the syncs of others' writes, and the longer a sync takes the more it
// carries.
//
// # Tasks
//
// What a node does besides answering are tasks (replica.Task): callers on it,
// run by a live.Runtime. They start when the server serves, end first when it
// closes, and are started again when they return. They ask
//
//   - other nodes, over the sessions that there are, whoever dialed; a member
//     with which there is none is dialed when a task asks it, where the
//     cluster's file says, and not before. Over a session with a node come
//     requests, for the loop, and answers (replica.IsAnswer), which the reader
//     gives to the task that waits. Of clients nothing is an answer.
//   - their own node: that goes into the inbox, as one more source with a queue
//     and turns of its own, and when it doesn't fit the task asks again. The
//     answer waits for the disk like all others, and is looked at by the loop or
//     the committer: what a task gives to Ask must be quick.
//
// What a step puts into a mailbox waits for the disk as well. A task that panics
// ends the server, as a step that fails does.
//
// # Before it serves
//
// A node greets others (package join), and waits a second at most for the first of
// them to answer: one that has lost what it acknowledged ends there. Until then what
// others ask waits in the inbox, but for their own greetings. A node that isn't
// known to its cluster runs no tasks until Server.Join has made it known.
//
// # What bounds it
//
// The inbox has two bounded queues for each session, one for large items;
// while one is full, that reader of the session doesn't read, and QUIC's flow
// control tells the sender. The loop takes a megabyte of large items at a time,
// and those that bring values only while the disk keeps up with them: so small
// requests wait for neither. Sessions take turns, so that one that asks for
// much doesn't hold up the others. A session whose peer takes its answers more
// slowly than it asks is congested: what else it asks stays a request, and
// becomes an answer when there is room. With other nodes it isn't so: two nodes
// that ask each other over one session, and leave each other's requests alone,
// would wait for each other; an answer for which there is no room is dropped, and
// the node asks again. Within a turn answers leave as they gather. When more is
// held for the disk than a named limit, the loop waits, and with it everybody.
//
// What waits in the inbox is charged to its session, in the budget that all
// connections share (package transport): however many clients there are, and
// whatever they send, what they cost together has a limit.
//
// A failed commit ends the server: after a failed fsync nobody knows what the
// disk holds (see replica.Store).
package server
