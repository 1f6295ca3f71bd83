package live

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"atoll/env"
	"atoll/quorum"
)

// never is when a conversation is due in which nobody is asked again.
const never = time.Duration(math.MaxInt64)

// conversation is a place in the table, and the conversation that uses it.
type conversation struct {
	place uint32
	next  atomic.Uint32 // the place below, among those that are free
	// wake holds a token after the conversation has ended. A token of an
	// earlier conversation may be left in it: whoever takes one looks at key.
	wake chan struct{}

	// key is the conversation's number with no redirects in it while the
	// conversation is open, and else zero. It is set with mu held. While it
	// is zero, everything below belongs to whoever took the place.
	key atomic.Uint64
	// due is the time, by Runtime.Now, at which the sweeper resends, and hedge
	// that at which it asks the spares. They are set with mu held while the
	// conversation is open.
	due, hedge atomic.Int64

	generation uint64

	mu struct {
		sync.Mutex
		req     env.Message
		each    func(env.Conversation, quorum.NodeID, env.Message) bool
		targets []target
		spares  int   // of targets, those that weren't asked
		bulk    int   // bytes that an answer is expected to have, 0: the usual
		looking bool  // each is running
		cause   error // why it ended; nil: each has returned true
	}
}

// target is a node that was asked, or is a spare.
type target struct {
	node      quorum.NodeID
	req       env.Message
	pace      *pace // nil: it isn't measured
	err       error // what the network last said about the node
	copies    int   // handed to the network, or about to be
	redirects uint8 // the part of the number that its answer carries
	spare     bool  // it isn't asked yet
	unsent    bool  // noted down by each, and not yet sent
	waiting   bool  // its answer hasn't come, or is no longer worth anything
	answered  bool  // at least one answer has come

	asked  time.Duration // when it was asked first
	due    time.Duration // when it is asked again, while it is waiting
	resend time.Duration // the last pause after a copy that its connection took, 0 if there was none
	retry  time.Duration // the last pause after one that the network didn't take
}

// question is what AskSome is given.
type question struct {
	first, spare []quorum.NodeID
	req          env.Message
	each         func(env.Conversation, quorum.NodeID, env.Message) bool
}

// outgoing is a request on its way to the network.
type outgoing struct {
	to           quorum.NodeID
	conversation uint64
	req          env.Message
	err          error // set when it was refused
}

// begin opens the conversation, and returns its key, when it is due, and out
// with what is to be sent added.
func (c *conversation) begin(q question, ps *paces, now time.Duration, out []outgoing) (key uint64, due time.Duration, _ []outgoing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.generation = (c.generation + 1) & (1<<generationBits - 1)
	key = c.generation<<(64-generationBits) | uint64(c.place)
	c.mu.req, c.mu.each = q.req, q.each
	c.mu.cause = nil
	c.mu.spares, c.mu.bulk = 0, 0
	for _, id := range q.first {
		c.add(id)
	}
	hedge := never
	if len(q.spare) > 0 {
		hedge = c.keep(key, q.spare, ps, now)
	}
	due = now + FirstResend
	c.due.Store(int64(due))
	c.hedge.Store(int64(hedge))
	c.key.Store(key)
	return key, min(due, hedge), c.unsent(key, now, out)
}

// keep notes down the spares, and returns when those that are asked are late,
// never if there are no spares. Now and then one of these is asked as well.
// Called with mu held.
func (c *conversation) keep(key uint64, spare []quorum.NodeID, ps *paces, now time.Duration) time.Duration {
	c.mu.bulk = bulkOf(c.mu.req)
	usual := time.Duration(0)
	for i := range c.mu.targets {
		t := &c.mu.targets[i]
		if t.pace = ps.of(t.node, now); t.pace != nil {
			usual = max(usual, t.pace.usual(c.mu.bulk))
		}
	}
	probed := c.mu.bulk > 0 // that would cost too much
	for _, id := range spare {
		if c.target(id) != nil {
			continue
		}
		t := c.add(id)
		t.pace = ps.of(id, now)
		if !probed && ps.wantsProbe(t.pace, now) {
			probed = true
			t.pace.watch(t.number(key), now)
			continue
		}
		t.spare, t.unsent, t.waiting = true, false, false
		c.mu.spares++
	}
	if c.mu.spares == 0 {
		return never
	}
	return now + ps.delay(usual)
}

// release makes targets of the spares, which are sent with what is unsent.
// Called with mu held.
func (c *conversation) release() {
	for i := range c.mu.targets {
		c.ask(&c.mu.targets[i])
	}
}

// ask makes a target of a spare. Called with mu held.
func (c *conversation) ask(t *target) {
	if !t.spare {
		return
	}
	t.spare, t.unsent, t.waiting = false, true, true
	if c.mu.spares--; c.mu.spares == 0 {
		c.hedge.Store(int64(never))
	}
}

// hedged asks the spares because those who were asked before are late, of whom
// it takes note.
func (c *conversation) hedged(key uint64, ps *paces) {
	for i := range c.mu.targets {
		t := &c.mu.targets[i]
		if t.waiting && t.pace != nil && c.mu.bulk == 0 && t.pace.overdue(t.number(key), t.asked) {
			ps.version.Add(1)
		}
	}
	ps.hedged.Add(1)
	c.release()
}

// forget drops what the conversation held, so that it can be collected.
func (c *conversation) forget() {
	clear(c.mu.targets)
	c.mu.targets = c.mu.targets[:0]
	c.mu.req, c.mu.each, c.mu.cause = nil, nil, nil
}

// lock takes the conversation's lock if the conversation key is still open,
// and reports whether it did.
func (c *conversation) lock(key uint64) bool {
	if key == 0 {
		return false
	}
	c.mu.Lock()
	if c.key.Load() != key {
		c.mu.Unlock()
		return false
	}
	return true
}

// end ends the conversation, if it is still open, for the given cause, and
// wakes the caller.
func (c *conversation) end(key uint64, cause error) {
	if !c.lock(key) {
		return
	}
	c.mu.cause = cause
	c.key.Store(0)
	c.mu.Unlock()
	c.signal()
}

func (c *conversation) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// answer takes an answer and calls each with it. out is returned with what
// each wants to be sent; later reports that something became due at that time.
func (c *conversation) answer(key uint64, redirects uint8, from quorum.NodeID, m env.Message, ps *paces, now func() time.Duration,
	out []outgoing) (_ []outgoing, due time.Duration) {

	if !c.lock(key) {
		return out, never
	}
	t := c.target(from)
	if t == nil || t.spare || redirects > t.redirects {
		c.mu.Unlock()
		return out, never
	}
	if t.pace != nil && !t.answered && t.copies == 1 {
		at := now()
		ps.took(t.pace, at-t.asked, at, c.mu.bulk)
	}
	t.answered = true
	// A node that was redirected more often than can be told apart is asked
	// for as long as the conversation lasts.
	if redirects == t.redirects && redirects < maxRedirects {
		t.waiting = false
	}
	return c.pass(key, from, m, now, out)
}

// woken tells each that the process has learned something, if the request is
// Wakeable. It returns what answer does.
func (c *conversation) woken(key uint64, now func() time.Duration, out []outgoing) (_ []outgoing, due time.Duration) {
	if !c.lock(key) {
		return out, never
	}
	if _, ok := c.mu.req.(env.Wakeable); !ok {
		c.mu.Unlock()
		return out, never
	}
	return c.pass(key, "", env.Woken{}, now, out)
}

// pass calls each, and returns what answer does. Called with mu held, which it
// gives back.
func (c *conversation) pass(key uint64, from quorum.NodeID, m env.Message, now func() time.Duration, out []outgoing) (_ []outgoing, due time.Duration) {
	c.mu.looking = true
	done := c.mu.each(c, from, m)
	c.mu.looking = false
	due = never
	if c.hasUnsent() {
		at := now()
		out = c.unsent(key, at, out)
		if !done {
			due = c.dueBy(at + FirstResend)
		}
	}
	if done {
		c.key.Store(0)
	}
	c.mu.Unlock()
	if done {
		c.signal()
	}
	return out, due
}

// hasUnsent reports whether requests were noted down that weren't sent. Called
// with mu held.
func (c *conversation) hasUnsent() bool {
	for i := range c.mu.targets {
		if c.mu.targets[i].unsent {
			return true
		}
	}
	return false
}

// unsent returns out with the requests added that were noted down, and marks
// them as sent. Called with mu held.
func (c *conversation) unsent(key uint64, now time.Duration, out []outgoing) []outgoing {
	for i := range c.mu.targets {
		if t := &c.mu.targets[i]; t.unsent {
			out = append(out, t.copy(key, now))
		}
	}
	return out
}

// waiting does the same for a request to a node that waits for an answer, over
// a connection that is new. The copies that went before tell nothing about it.
// Called with mu held.
func (c *conversation) waiting(key uint64, node quorum.NodeID, now time.Duration, out []outgoing) []outgoing {
	if t := c.target(node); t != nil && t.waiting {
		t.resend, t.retry = 0, 0
		out = append(out, t.copy(key, now))
	}
	return out
}

// overdue does the same for those that wait and are due, and returns when the
// others are, never if there are none. Called with mu held.
func (c *conversation) overdue(key uint64, now time.Duration, out []outgoing) (_ []outgoing, due time.Duration) {
	due = never
	for i := range c.mu.targets {
		t := &c.mu.targets[i]
		if !t.waiting {
			continue
		}
		if t.due <= now {
			out = append(out, t.copy(key, now))
		}
		due = min(due, t.due)
	}
	return out, due
}

// dueBy sees to it that the conversation is looked at by then at the latest.
// It returns then if that is news, and otherwise never. Called with mu held.
func (c *conversation) dueBy(then time.Duration) time.Duration {
	if time.Duration(c.due.Load()) <= then {
		return never
	}
	c.due.Store(int64(then))
	return then
}

// copy returns one more copy of the request to a target. It counts as taken by
// the network from now on, so that what is told about it errs towards "the
// node may have acted on it" while it is on its way; failed takes that back.
func (t *target) copy(key uint64, now time.Duration) outgoing {
	t.unsent = false
	if t.copies++; t.copies == 1 {
		t.asked = now
	}
	t.err = nil
	if t.resend > 0 {
		t.retry = 0 // the one before was taken
	}
	t.resend = longer(t.resend, FirstResend, MaxResend)
	t.due = now + t.resend
	return outgoing{to: t.node, conversation: t.number(key), req: t.req}
}

// number is the conversation's number as the target's answer carries it.
func (t *target) number(key uint64) uint64 { return key | uint64(t.redirects)<<placeBits }

// refused notes down that the network didn't take the last copy.
func (t *target) refused(err error, now time.Duration) {
	t.err = err
	if t.resend > FirstResend {
		return // an earlier one was taken, and is on its way or answered
	}
	t.lost(now)
}

// lost notes down that no copy is on its way.
func (t *target) lost(now time.Duration) {
	t.resend = 0
	t.retry = longer(t.retry, FirstRetry, MaxRetry)
	t.due = now + t.retry
}

// longer is the pause that follows a pause d: twice as long, within bounds.
func longer(d, first, most time.Duration) time.Duration { return min(max(2*d, first), most) }

// failed records which of sent the network didn't take, and then asks the
// spares: out is returned with what that sends. It returns when something is
// due, never if the sweeper has that in mind anyway.
func (c *conversation) failed(key uint64, sent []outgoing, ps *paces, now time.Duration, out []outgoing) (_ []outgoing, due time.Duration) {
	due = never
	if !c.lock(key) {
		return out, due
	}
	defer c.mu.Unlock()
	for i := range sent {
		if sent[i].err != nil {
			t := c.target(sent[i].to)
			t.copies--
			t.refused(sent[i].err, now)
			due = min(due, t.due)
			ps.down(t.pace, true)
		}
	}
	out, later := c.outOfReach(key, now, out)
	return out, min(c.dueBy(due), later)
}

// outOfReach asks the spares, since somebody who was asked can't be reached.
// It returns what failed does. Called with mu held.
func (c *conversation) outOfReach(key uint64, now time.Duration, out []outgoing) (_ []outgoing, due time.Duration) {
	if c.mu.spares == 0 {
		return out, never
	}
	c.release()
	return c.unsent(key, now, out), c.dueBy(now + FirstResend)
}

// forgotten records that a connection with a node has ended, and what is known
// about that. The node waits to be asked again, since it knows nothing of the
// conversation any more; the spares are asked now. It returns what failed does.
func (c *conversation) forgotten(key uint64, node quorum.NodeID, err error, now func() time.Duration, out []outgoing) (_ []outgoing, due time.Duration) {
	if !c.lock(key) {
		return out, never
	}
	defer c.mu.Unlock()
	t := c.target(node)
	if t == nil || t.spare {
		return out, never
	}
	at := now()
	t.err = err
	t.waiting = true
	t.lost(at)
	out, later := c.outOfReach(key, at, out)
	return out, min(c.dueBy(t.due), later)
}

// unfinished is what Ask returns when the conversation ended for a cause.
func (c *conversation) unfinished() *env.Unfinished {
	u := &env.Unfinished{Cause: c.mu.cause, Targets: make([]env.Target, len(c.mu.targets))}
	for i := range c.mu.targets {
		t := &c.mu.targets[i]
		u.Targets[i] = env.Target{Node: t.node, Sent: t.copies > 0, Answered: t.answered, Err: t.err}
	}
	return u
}

func (c *conversation) target(node quorum.NodeID) *target {
	for i := range c.mu.targets {
		if c.mu.targets[i].node == node {
			return &c.mu.targets[i]
		}
	}
	return nil
}

// add notes a node down, unless it was asked already.
func (c *conversation) add(node quorum.NodeID) *target {
	if t := c.target(node); t != nil {
		c.ask(t)
		return t
	}
	c.mu.targets = append(c.mu.targets, target{node: node, req: c.mu.req, unsent: true, waiting: true})
	return &c.mu.targets[len(c.mu.targets)-1]
}

// Sent implements env.Conversation.
func (c *conversation) Sent(to quorum.NodeID) int {
	c.check()
	if t := c.target(to); t != nil {
		return t.copies
	}
	return 0
}

// Add implements env.Conversation.
func (c *conversation) Add(to ...quorum.NodeID) {
	c.check()
	for _, id := range to {
		c.add(id)
	}
}

// Redirect implements env.Conversation.
func (c *conversation) Redirect(to quorum.NodeID, req env.Message) {
	c.check()
	t := c.add(to)
	if t.copies > 0 || t.answered {
		t.redirects = min(t.redirects+1, maxRedirects)
	}
	t.req = req
	t.unsent, t.waiting = true, true
	t.resend = 0
}

// check panics unless each is running. Afterwards the place may be another
// conversation's, which would be sent what was meant for this one.
func (c *conversation) check() {
	if !c.mu.looking {
		panic("live: a Conversation was used outside the function given to Ask")
	}
}
