package sim

import (
	"slices"
	"time"

	"atoll/env"
	"atoll/quorum"
)

// conversation is the Ask that a caller is in, if any. A caller has a place
// among the world's conversations for as long as it lives; the number of a
// conversation is that place and how many the caller has had, so that an
// answer finds its conversation without a search, and not a later one.
type conversation struct {
	place uint32
	turn  uint64 // counts the conversations at this place
	open  bool
	done  bool
	// looking: each is running, and may use the Conversation.
	looking bool

	each    func(c env.Conversation, from quorum.NodeID, answer env.Message) bool
	req     env.Message
	targets []target
	spared  []quorum.NodeID // whom the first copy doesn't reach
	again   time.Duration   // when what wasn't answered is sent again
	pause   time.Duration   // and after how much more time once more
	hedging bool            // there are spares, which are asked when they are due
	hedge   time.Duration   // which is then
	woken   bool            // Process.Wake was called, and each isn't told yet
	asker   *caller
}

// target is one of those whom a conversation asks.
type target struct {
	id        quorum.NodeID
	p         *Process // nil: nobody of that id
	req       env.Message
	redirects uint64
	copies    int  // of req and what it replaced that were sent
	spare     bool // it isn't asked yet
	answered  bool // req was, over the connection that there is now
	heard     bool // anything ever was
	err       error
}

// The parts of a conversation's number, from the lowest bit up: its place, how
// often the node in question was redirected, which tells the answers to its
// former requests from those to the last, and the turn.
const (
	placeBits    = 24
	redirectBits = 8
	turnShift    = placeBits + redirectBits

	maxPlaces = 1 << placeBits
	// A node that was redirected more often is asked for as long as the
	// conversation lasts.
	maxRedirects = 1<<redirectBits - 1
)

// settle gives a caller a place among the conversations.
func (w *World) settle(c *caller) uint32 {
	c.asker = c
	if n := len(w.vacant); n > 0 {
		place := w.vacant[n-1]
		w.vacant = w.vacant[:n-1]
		c.turn = w.asking[place].turn
		w.asking[place] = c
		return place
	}
	if len(w.asking) == maxPlaces {
		panic("sim: too many callers")
	}
	w.asking = append(w.asking, c)
	return uint32(len(w.asking) - 1)
}

func (w *World) vacate(c *caller) {
	c.open = false
	w.vacant = append(w.vacant, c.place)
}

// number is the number of the present conversation towards a target. It is
// never zero.
func (v *conversation) number(t *target) uint64 {
	return v.turn<<turnShift | t.redirects<<placeBits | uint64(v.place)
}

// listens reports whether the conversation is under way, and the asker alive.
func (c *caller) listens() bool { return c.open && !c.done && !c.inert }

// conversation returns the caller of a process whose conversation has this
// number, nil if that conversation has ended.
func (w *World) conversation(p, from *Process, number uint64) *caller {
	if place := int(number % maxPlaces); place < len(w.asking) {
		if c := w.asking[place]; c.listens() && c.turn == number>>turnShift && c.p == p {
			return c
		}
	}
	if w.cfg.Rules.MatchAnyConversation {
		for _, c := range p.callers {
			if c.open && !c.done && c.target(from.id) != nil {
				return c
			}
		}
	}
	return nil
}

// Ask implements env.Env.
func (c *caller) Ask(to []quorum.NodeID, req env.Message, each func(c env.Conversation, from quorum.NodeID, answer env.Message) (done bool)) error {
	return c.AskSome(to, nil, req, each)
}

// AskSome implements env.Env.
func (c *caller) AskSome(first, spare []quorum.NodeID, req env.Message, each func(c env.Conversation, from quorum.NodeID, answer env.Message) (done bool)) error {
	c.alive()
	v := &c.conversation
	v.turn++
	v.open, v.done = true, false
	v.each, v.req = each, req
	c.asks(req)
	clear(v.targets) // keep nothing alive
	v.targets = v.targets[:0]
	v.hedging, v.woken = false, false
	if c.ended == nil {
		c.begin(first, spare)
	} else {
		v.keep(first)
		v.keep(spare)
	}
	for !v.done && c.ended == nil {
		c.park(anAnswer)
	}
	v.open = false
	v.each, v.req = nil, nil
	if v.done {
		return nil
	}
	return c.unfinished()
}

// begin sends the first copies of a request.
func (c *caller) begin(first, spare []quorum.NodeID) {
	v := &c.conversation
	now := c.p.Clock()
	v.pause = c.w.cfg.ResendFirst
	v.again = now + v.pause
	next := v.again
	c.narrowTo(v.req)
	v.keep(first)
	asked := len(v.targets)
	v.keep(spare)
	switch {
	case asked == len(v.targets):
	case len(c.spared) > 0:
		// The network decides which quorum a request reaches, so all are sent it.
		asked = len(v.targets)
	case !c.w.cfg.Rules.NeverHedge:
		v.hedging, v.hedge = true, now+c.w.cfg.Hedge
		next = min(next, v.hedge)
	}
	for i := asked; i < len(v.targets); i++ {
		v.targets[i].spare = true
	}
	for i := range asked {
		v.send(&v.targets[i])
	}
	c.arm(next)
}

func (c *caller) unfinished() error {
	u := &env.Unfinished{Cause: c.ended, Targets: make([]env.Target, 0, len(c.targets))}
	for i := range c.targets {
		t := &c.targets[i]
		u.Targets = append(u.Targets, env.Target{Node: t.id, Sent: t.copies > 0, Answered: t.heard, Err: t.err})
	}
	return u
}

// hear passes an answer on. The node has answered if it is one to the last
// request that it was sent, over the connection that there is now.
func (c *caller) hear(from *Process, to env.Address, answer env.Message) {
	if t := c.target(from.id); t != nil {
		t.heard, t.err = true, nil
		redirects := to.Conversation >> placeBits & maxRedirects
		if redirects == t.redirects && redirects < maxRedirects && to.Session>>sessionShift == c.p.connection(from) {
			t.answered = true
		}
	}
	c.pass(from.id, answer)
}

// pass calls each.
func (c *caller) pass(from quorum.NodeID, answer env.Message) {
	redirects := c.redirects(from)
	c.told(from, answer)
	c.looking = true
	done := c.each(&c.conversation, from, answer)
	c.looking = false
	if c.redirects(from) != redirects {
		c.turned(from, answer)
	}
	if done {
		c.done = true
		c.wake()
	}
}

// Wake is told that the process has learned something by which those of its
// callers go whose requests are env.Wakeable. They are told at once, and yet not
// now: it may be called from anywhere.
func (p *Process) Wake() {
	for _, c := range p.callers {
		if _, ok := c.req.(env.Wakeable); ok && c.listens() {
			c.woken = true
			c.arm(p.Clock())
		}
	}
}

// repeat sends again what wasn't answered.
func (c *caller) repeat() {
	for i := range c.targets {
		if t := &c.targets[i]; !t.answered && !t.spare && !c.w.cfg.Rules.NeverResend {
			c.send(t)
		}
	}
	c.pause = min(2*c.pause, c.w.cfg.ResendMost)
	c.again = c.p.Clock() + c.pause
}

// forgotten is told that the connections of a process have ended. If one of
// those that are asked is at the other end, the spares are needed.
func (v *conversation) forgotten(p *Process) {
	lost := false
	for i := range v.targets {
		if t := &v.targets[i]; !t.spare && v.connects(t, p) {
			t.answered = false
			lost = true
		}
	}
	if lost && v.hasSpare() {
		// At once, and yet not now: the asker may be dying itself, or frozen.
		v.hedging, v.hedge = true, v.asker.p.Clock()
		v.asker.arm(v.hedge)
	}
}

func (v *conversation) hasSpare() bool {
	return slices.ContainsFunc(v.targets, func(t target) bool { return t.spare })
}

// release asks the spares that weren't asked yet.
func (v *conversation) release() {
	v.hedging = false
	for i := range v.targets {
		if t := &v.targets[i]; t.spare {
			v.send(t)
		}
	}
}

// reconnected is told that there are new ones: what waits for an answer over
// them is sent again.
func (v *conversation) reconnected(p *Process) {
	for i := range v.targets {
		if t := &v.targets[i]; v.connects(t, p) && !t.answered && !t.spare {
			v.send(t)
		}
	}
}

// connects reports whether a target is asked over a connection of p.
func (v *conversation) connects(t *target, p *Process) bool {
	return t.p != v.asker.p && (t.p == p || v.asker.p == p)
}

// send sends a target what it is asked. When the network doesn't take that, the
// spares are asked.
func (v *conversation) send(t *target) {
	lost := t.copies == 0 && slices.Contains(v.spared, t.id)
	t.spare = false
	t.err = v.asker.p.request(t.p, v.number(t), t.req, lost)
	if t.err == nil {
		t.copies++
	} else {
		v.release()
	}
}

// redirects returns how often the request to a node has been redirected.
func (v *conversation) redirects(id quorum.NodeID) uint64 {
	if t := v.target(id); t != nil {
		return t.redirects
	}
	return 0
}

func (v *conversation) target(id quorum.NodeID) *target {
	for i := range v.targets {
		if v.targets[i].id == id {
			return &v.targets[i]
		}
	}
	return nil
}

// check panics unless each is running: as in production, where the place may
// be another conversation's by then. A dead caller is past that, too.
func (v *conversation) check() {
	switch {
	case v.asker.inert:
		panic(unwinding{})
	case !v.looking:
		panic("sim: a Conversation was used outside the function given to Ask")
	}
}

// Sent implements env.Conversation.
func (v *conversation) Sent(to quorum.NodeID) int {
	v.check()
	if t := v.target(to); t != nil {
		return t.copies
	}
	return 0
}

// Add implements env.Conversation.
func (v *conversation) Add(to ...quorum.NodeID) {
	v.check()
	for _, id := range to {
		if t := v.target(id); t == nil {
			v.send(v.add(id))
		} else if t.spare {
			v.send(t)
		}
	}
}

// keep notes down those who are to be asked the request.
func (v *conversation) keep(to []quorum.NodeID) {
	v.targets = slices.Grow(v.targets, len(to))
	for _, id := range to {
		if v.target(id) == nil {
			v.add(id)
		}
	}
}

func (v *conversation) add(id quorum.NodeID) *target {
	v.targets = append(v.targets, target{id: id, p: v.asker.w.byID[id], req: v.req})
	return &v.targets[len(v.targets)-1]
}

// Redirect implements env.Conversation.
func (v *conversation) Redirect(to quorum.NodeID, req env.Message) {
	v.check()
	t := v.target(to)
	switch {
	case t == nil:
		t = v.add(to)
	case !t.spare:
		t.redirects = min(t.redirects+1, maxRedirects)
	}
	t.req, t.answered = req, false
	v.send(t)
}
