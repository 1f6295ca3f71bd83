// Package transport carries frames between nodes over QUIC.
//
// # Nouns
//
// A [Transport] is a process's place on the network: the UDP sockets, who may
// come in, and whom to dial. A [Session] is one connection with one peer: a
// QUIC connection that holds one bidirectional stream, opened by the side that
// dialed, and up to two streams in one direction for large frames, see below.
// Either side sends frames, each a message and the conversation that it
// belongs to (see internal/wire). A [Handler] is told of sessions and messages.
//
// A peer is known by its certificate and never by its address. Before the
// first frame each side says in a hello which cluster and node it is, and
// which version it speaks; the other side holds that against the certificate.
// Whoever dials node X and reaches node Y gets a [WrongNodeError] that names
// the address, and no session.
//
// # Sending
//
// [Session.Queue] encodes a message into the session's pending buffer and
// returns; [Session.Flush] wakes the session's writer, which gives everything
// that is pending to QUIC in one write. While that write goes on, the next
// batch gathers: under load many messages share a write by themselves, with
// no timer and no delay when there is none.
//
// [Transport.Send] is Queue and Flush on the session with a node. The session
// is made and remade in the background: dialed at once, then with a jittered
// backoff of at most [BackoffCap], with the node's addresses asked for anew at
// each attempt; [Transport.Moved] ends one that goes to old ones. Clients that
// have nothing to send come back at random moments of a time that grows with
// each failure, up to [LongestSpread]: so a node that was restarted isn't kept
// from taking in any by the handshakes of all. When there is no session, Send
// returns at once with what is known about the reason, and keeps nothing:
// repeating what was lost is the business of conversations, whose requests are
// idempotent.
//
// On Linux the datagrams themselves are read and written past Go's scheduler,
// see packetConn.
//
// Two nodes that dial each other at the same moment end up with two sessions.
// Both sides then use the one that the node with the smaller id dialed, and
// the other one is closed after [DuplicateLinger], when the answers that were
// on their way over it have arrived.
//
// # Large frames
//
// A frame of more than [BulkAbove] bytes would hold up everything behind it, so
// it goes another way: its own queue, writer, stream, reader and goroutine in
// the handler. The streams take turns packet by packet. So there is no order
// between large and small frames; the protocols ask for none. Large frames
// have an order among themselves, and leave one after the other: the first of
// two is there when half of the bytes are.
//
// The hello says whether a peer knows this (wire.Hello, Bulk). One that doesn't
// gets and sends all on the first stream.
//
// A request that is sent again while its first copy still waits here isn't
// queued twice: on a network or disk that is too slow for what is asked of it,
// repeating what is large would make it slower still.
//
// # What is bounded
//
// Every queue has a limit in limits.go. A peer that doesn't read costs at most
// MaxPending bytes of small frames (MaxPendingClient, if it is no node) and
// MaxBulk of large ones (MaxBulkClient), then Queue returns [ErrQueueFull], and
// when the peer took nothing for StallTimeout the session is closed; all are
// in [Config]. Nobody ever waits for a peer: Queue, Flush and Send don't block
// on the network.
//
// All connections together share a budget of memory, Config.Memory: each has an
// account in it, for what has come of frames, what the Handler keeps of them
// (Session.Charge), what waits to be sent, what QUIC may hold unread, and for the
// connection itself. When it is used up, the client that has the most makes room
// for those that have less than their share: its session is closed with
// CodeOverBudget. Nodes have a part that no client can use. See budget.go, and
// docs/adr/0015-one-budget.md for what isn't in it.
//
// What a peer sends is checked before it is believed: the length of a frame
// against wire.MaxFrame before space is made for it, and space grows with the
// bytes that have come, not with those that were announced. A frame that
// doesn't decode closes its connection, with a reason that the peer can read;
// the process and all other sessions go on.
//
// # What is noticed, and when
//
// A peer that closes is noticed at once, and so is one that was restarted, by
// the first message sent to it (this needs its StatelessResetKey). A peer that
// vanished, or whose process was killed, is noticed after [IdleTimeout], and by
// a client that sends it nothing within [ClientIdleTimeout]: UDP
// tells nothing of a closed port. Until then messages to it are accepted and
// lost. 0-RTT is never used: it can be replayed.
//
// # Memory of received messages
//
// The bytes of a received message's key and value are part of the buffer that
// they were read into. Such a buffer is never reused, so they may be kept;
// but a small value keeps its neighbours' bytes alive, 64 KiB at most. Who
// stores values for long copies the small ones. A large value has a buffer of
// its own.
package transport
