package live

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/tags"
)

// Network is what a Runtime sends with. Both methods are called from many
// goroutines at a time, must not block, and may lose what they were given.
// They may call the Runtime's own methods.
type Network interface {
	// Send sends a request, or with conversation 0 a message that has no
	// answer. It returns nil if a live connection to the node took it, and
	// otherwise what is wrong with the node right now.
	Send(to quorum.NodeID, conversation uint64, m env.Message) error
	// Answer sends an answer to an envelope that was given to Runtime.Mail.
	// An error says that it was lost for certain.
	Answer(to env.Address, m env.Message) error
}

// Config says what a Runtime works with.
type Config struct {
	// Self is the node that the process is; empty in a client.
	Self quorum.NodeID
	// Network is required.
	Network Network
	// Log is told what is dropped. Nil: nobody.
	Log *slog.Logger
	// Trace, if set, is called with what the protocols report, on the
	// goroutine of whoever reports.
	Trace func(env.Event)
	// HedgeLeast is the shortest time after which AskSome asks its spares, and
	// ProbeEvery how often a slow node is asked with the others. 0: the
	// defaults, constants of the same names.
	HedgeLeast, ProbeEvery time.Duration
	// Panicked, if set, is told what a task that was started with Go has
	// panicked with, on the task's goroutine, and the task's Join returns a
	// *PanicError. Nil: such a panic ends the process.
	Panicked func(*PanicError)
}

// PanicError is what a task has panicked with.
type PanicError struct {
	Task  string // its name
	Value any
	Stack []byte
}

// Error says so, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("task %s panicked: %v", e.Task, e.Value) }

// Runtime runs the callers and tasks of one process. All its methods may be
// called from any goroutine.
type Runtime struct {
	self     quorum.NodeID
	network  Network
	log      *slog.Logger
	trace    func(env.Event)
	panicked func(*PanicError)
	start    time.Time

	ids struct {
		hi    uint64
		lo    uint16
		count atomic.Uint64
	}

	table table
	paces paces
	sweep sweeper
	mail  postOffice

	stop     chan struct{} // closed by Stop
	stopping atomic.Bool   // set before any conversation is ended by Stop

	// running counts the goroutines of the Runtime. mu keeps Stop's wait apart
	// from the start of another.
	running sync.WaitGroup
	mu      struct {
		sync.Mutex
		stopped bool
	}
}

// New returns a Runtime. It has a goroutine of its own until Stop is called.
func New(c Config) *Runtime {
	if c.Network == nil {
		panic("live: a Runtime needs a Network")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	r := &Runtime{
		self:     c.Self,
		network:  c.Network,
		log:      c.Log,
		trace:    c.Trace,
		panicked: c.Panicked,
		start:    time.Now(),
		stop:     make(chan struct{}),
	}
	var seed [18]byte
	crand.Read(seed[:]) // never fails
	r.ids.hi = binary.BigEndian.Uint64(seed[0:])
	r.ids.lo = binary.BigEndian.Uint16(seed[8:])
	r.table.init(binary.BigEndian.Uint64(seed[10:]) >> (64 - generationBits))
	r.paces.init(c)
	r.sweep.init()
	r.mail.mu.boxes = make(map[env.Mailbox]*mailbox)
	r.running.Go(func() { r.sweepUntilStopped() })
	return r
}

// Scope returns an Env whose scope ends when ctx does, or when Stop is called.
func (r *Runtime) Scope(ctx context.Context) env.Env { return &scope{r: r, ctx: ctx} }

// Stop ends all scopes with env.ErrStopped, and returns when all tasks have
// returned. From then on no function given to an Ask runs, no call of the
// Network begins, and no goroutine of the Runtime is left; callers, which are
// not its own, may still be on their way out. A task, or a function given to
// an Ask, must not call it. It may be called more than once.
func (r *Runtime) Stop() {
	r.mu.Lock()
	if !r.mu.stopped {
		r.mu.stopped = true
		r.stopping.Store(true)
		close(r.stop)
		// A caller that opens a conversation after its place was passed here
		// finds that the Runtime is stopping.
		for c := range r.table.all() {
			c.end(c.key.Load(), env.ErrStopped)
		}
	}
	r.mu.Unlock()
	r.running.Wait()
}

// spawn runs f on a goroutine that Stop waits for, and reports whether it did:
// not once Stop was called.
func (r *Runtime) spawn(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.stopped {
		return false
	}
	r.running.Go(f)
	return true
}

// Deliver takes an answer that arrived from a node, and calls the function
// that waits for it, if there is one, before it returns. The network vouches
// for the sender.
func (r *Runtime) Deliver(from quorum.NodeID, conversation uint64, m env.Message) {
	key := conversation &^ redirectMask
	c := r.table.find(key)
	if c == nil {
		// An answer that comes late: as usual as one that is in time.
		r.paces.lateAnswer(from, conversation, r.now)
		return
	}
	var buf [4]outgoing
	redirects := uint8(conversation & redirectMask >> placeBits)
	out, due := c.answer(key, redirects, from, m, &r.paces, r.now, buf[:0])
	if len(out) > 0 {
		r.sweep.expect(min(due, r.transmit(c, key, out)))
	}
}

// transmit hands requests to the network, and asks the spares when it doesn't
// take them. It returns when something is due, never if the sweeper has that
// in mind anyway.
func (r *Runtime) transmit(c *conversation, key uint64, out []outgoing) (due time.Duration) {
	due = never
	for len(out) > 0 {
		failed := false
		for i := range out {
			o := &out[i]
			if r.stopping.Load() {
				o.err = env.ErrStopped
			} else {
				o.err = r.network.Send(o.to, o.conversation, o.req)
			}
			failed = failed || o.err != nil
		}
		if !failed {
			break
		}
		var then time.Duration
		out, then = c.failed(key, out, &r.paces, r.now(), nil)
		due = min(due, then)
	}
	return due
}

// PeerUp is told that there is a usable connection to a node: a new one, or
// one that is left after PeerDown. What the node was asked and hasn't
// answered, or has forgotten with a connection that ended, is sent to it
// again, before PeerUp returns.
func (r *Runtime) PeerUp(id quorum.NodeID) {
	r.paces.down(r.paces.find(id), false)
	var buf [4]outgoing
	for c := range r.table.all() {
		key := c.key.Load()
		if !c.lock(key) {
			continue
		}
		out := c.waiting(key, id, r.now(), buf[:0])
		c.mu.Unlock()
		r.sweep.expect(r.resend(c, key, out))
	}
}

// errDown is what is known about a node when its connection ended and the
// network doesn't say why.
var errDown = errors.New("the connection ended")

// PeerDown is told that a connection to a node has ended, or that none could
// be made, and why, after the last Deliver of what came over it. Conversations
// that end unfinished report it. Those that go on ask the node again, even if
// it has answered: at once when PeerUp is called next, and otherwise before
// long, in the hope that the Network takes it.
//
// Where two connections to one node overlap, the end of either must be told,
// since a conversation hangs on the one over which it was asked. It goes on at
// once if PeerUp is called when another one is left.
func (r *Runtime) PeerDown(id quorum.NodeID, err error) {
	if err == nil {
		err = errDown
	}
	r.paces.down(r.paces.find(id), true)
	var buf [4]outgoing
	for c := range r.table.all() {
		key := c.key.Load()
		out, due := c.forgotten(key, id, err, r.now, buf[:0])
		r.sweep.expect(min(due, r.transmit(c, key, out)))
	}
}

// Asks reports whether a conversation that goes on waits for an answer of a node.
func (r *Runtime) Asks(id quorum.NodeID) bool {
	for c := range r.table.all() {
		if !c.lock(c.key.Load()) {
			continue
		}
		t := c.target(id)
		waits := t != nil && t.waiting
		c.mu.Unlock()
		if waits {
			return true
		}
	}
	return false
}

// Stats says what a Runtime holds now, and what it has done since New.
type Stats struct {
	// Asking is the number of places for conversations that are taken: as many
	// as there are calls of Ask. Mailboxes is the number of mailboxes.
	Asking, Mailboxes int
	// Resent is the number of requests that were sent again.
	Resent uint64
	// Hedged is the number of conversations whose spares were asked because
	// those before them were late.
	Hedged uint64
	// MailDropped is the number of envelopes for which there was no room.
	MailDropped uint64
}

// Stats returns the counts. They are not of one and the same moment.
func (r *Runtime) Stats() Stats {
	return Stats{Asking: r.table.taken(), Mailboxes: r.mail.len(), Resent: r.sweep.resent.Load(), Hedged: r.paces.hedged.Load(), MailDropped: r.mail.dropped.Load()}
}

func (r *Runtime) now() time.Duration { return time.Since(r.start) }

func (r *Runtime) id() tags.PID {
	return tags.NewPID(r.ids.hi, r.ids.lo, r.ids.count.Add(1))
}
