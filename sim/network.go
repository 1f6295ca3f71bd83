package sim

import (
	"errors"
	"time"

	"atoll/env"
)

// Link is what the way from one process to another is like. Messages on it
// overtake each other as their delays fall, unless it is Ordered. Chances are
// counted per million.
type Link struct {
	Delay     Delay
	Loss      uint32 // chance of being lost
	Duplicate uint32 // chance of arriving twice, the second time after another Delay
	// Ordered: no message arrives before one that was sent earlier, as on one
	// stream of a connection.
	Ordered bool
	// Retransmit, when set, makes a loss cost time instead of the message:
	// the transport sends it again after this, as often as it takes. With
	// Ordered everything behind it waits, too: that is a QUIC stream.
	Retransmit Delay
}

// Stream returns the link that a QUIC stream is over packets with that delay
// and chance of being lost: nothing is lost or overtaken, and a lost packet
// holds up what comes behind it until it was sent again.
func Stream(delay Delay, loss uint32, retransmit Delay) Link {
	return Link{Delay: delay, Loss: loss, Ordered: true, Retransmit: retransmit}
}

// link is a Link and what has happened on it.
type link struct {
	Link
	from, to *Process
	base     uint64        // hash of the seed and of both ends
	count    uint64        // messages that were sent
	stream   uint64        // the connection that was used last
	latest   time.Duration // arrival on it
	cut      bool
	slow     Delay // on top
}

// Fate is what becomes of a message that is sent.
type Fate uint8

// The fates of a message.
const (
	// Pass: the link decides.
	Pass Fate = iota
	// Lose: the sender believes that it was sent.
	Lose
	// Twice: the link decides, for each of two copies.
	Twice
	// Hold: it waits until the driver releases or discards it.
	Hold
)

// Transit is a message between two processes.
type Transit struct {
	From, To *Process
	Message  env.Message
	// Answer: it belongs to a conversation of the receiver.
	Answer bool
	// Conversation is the asker's number for it, zero for what was told.
	Conversation uint64
}

// Held is a message that was held.
type Held struct {
	Transit
	link *link
	e    event
}

// What is what an Observation is about.
type What uint8

// What happens to messages and processes.
const (
	// Sent: a message was handed to the network.
	Sent What = iota
	// Arrived: a message has arrived and is acted upon.
	Arrived
	// ArrivedTooLate: a message has arrived at a process that died since, or
	// an answer at a conversation that has ended. Nobody sees it.
	ArrivedTooLate
	// Lost: a message got lost.
	Lost
	// Synced: a node's commit has ended.
	Synced
	// Failed: a node's step returned an error, and the node is down.
	Failed
	// TaskAgain: a node's task has returned, and is started again.
	TaskAgain
)

// Observation is something that happened in a world.
type Observation struct {
	What What
	// Transit is the message, where it is about one.
	Transit
	// Process is the node, where it is about one.
	Process *Process
	// Task is the name of a task, where it is about one, and Err what it
	// returned.
	Task string
	Err  error
}

// A connection is there between any two processes that live and are on the
// network, and ends when one of them dies or is disconnected. It is what an
// env.Address names, as in the real world: when it has ended, the answers that
// a node still has for it get lost, even if another one is there by then, and
// what was asked over it must be asked again.

// connection numbers the connections between two processes, one after the
// other. What a process says to itself needs none, and has its life instead.
func (p *Process) connection(q *Process) uint64 {
	if p == q {
		return p.life
	}
	return p.sessionsWith(q) + q.sessionsWith(p)
}

// sessionsWith counts what has ended connections with q, on the side of p.
func (p *Process) sessionsWith(q *Process) uint64 {
	if p.broken == nil {
		return p.sessions
	}
	return p.sessions + p.broken[q.index]
}

// over is told that the connections of a process have ended: what they were
// asked over them, those who answered have forgotten.
func (w *World) over(p *Process) {
	p.sessions++
	for _, c := range w.asking {
		if c.listens() {
			c.forgotten(p)
		}
	}
}

// back is told that a process can be reached again: what waits for an answer
// from it, or is asked by it, is sent at once.
func (w *World) back(p *Process) {
	for _, c := range w.asking {
		if c.listens() {
			c.reconnect(p)
		}
	}
}

// What the transport says about a process that it can't reach.
var (
	errNoProcess    = errors.New("no such process")
	errDown         = errors.New("connection refused")
	errDisconnected = errors.New("unreachable")
	errBroken       = errors.New("connection lost")
)

// linkTo returns the link from p to another process.
func (p *Process) linkTo(to *Process) *link {
	if l := p.links[to.index]; l != nil {
		return l
	}
	l := &link{
		Link: p.w.cfg.Link(p.id, to.id),
		from: p,
		to:   to,
		base: fold(fold(mix(p.w.cfg.Seed), p.hash), to.hash),
	}
	p.links[to.index] = l
	return l
}

// SetLink changes what the way from one process to another is like from now
// on.
func (w *World) SetLink(from, to *Process, l Link) { from.linkTo(to).Link = l }

// Cut cuts the way from one process to another, not back. What is sent on it
// is lost, silently, and what is on it arrives.
func (w *World) Cut(from, to *Process) { from.linkTo(to).cut = true }

// Mend undoes Cut.
func (w *World) Mend(from, to *Process) { from.linkTo(to).cut = false }

// Disconnect takes a process off the network. Unlike Cut it shows: whoever
// sends to it is told, and what it sends itself and what is on its way to it
// is lost.
func (p *Process) Disconnect() {
	if p.connected {
		p.connected = false
		p.w.over(p)
	}
}

// Reconnect undoes Disconnect: there are new connections.
func (p *Process) Reconnect() {
	if !p.connected {
		p.connected = true
		p.w.back(p)
	}
}

// send sends e from one process to another. The error is what the transport
// knows; nil means that e was sent, which it is even if it is lost on the way.
func (w *World) send(l *link, e event, lost bool) error {
	switch {
	case !l.to.connected || !l.from.connected:
		return errDisconnected
	case !l.to.up:
		return errDown
	case l.from.redialing[l.to.index] > 0:
		return errBroken
	}
	e.kind, e.link, e.session = messageEvent, l, l.to.sessionsWith(l.from)
	fate := Pass
	if w.cfg.Observe != nil || w.cfg.Intercept != nil {
		t := e.transit()
		if w.cfg.Observe != nil {
			w.cfg.Observe(Observation{What: Sent, Transit: t})
		}
		if w.cfg.Intercept != nil {
			fate = w.cfg.Intercept(t)
		}
	}
	if lost {
		fate = Lose
	}
	switch fate {
	case Lose:
		w.lost(&e)
	case Hold:
		w.held = append(w.held, Held{e.transit(), l, e})
	case Twice:
		w.travel(l, e)
		w.travel(l, e)
	default:
		w.travel(l, e)
	}
	return nil
}

// travel puts e on the link.
func (w *World) travel(l *link, e event) {
	l.count++
	lost := l.Loss > 0 && happens(draw(l.base, l.count, forLoss), l.Loss)
	if l.cut || lost && l.Retransmit.zero() {
		w.lost(&e)
		return
	}
	at := w.now + l.Delay.at(draw(l.base, l.count, forDelay)) + l.hindrance()
	if lost {
		at += l.retransmission()
	}
	if l.Ordered {
		if c := l.from.connection(l.to); c != l.stream {
			l.stream, l.latest = c, 0
		}
		at = max(at, l.latest)
		l.latest = at
	}
	if l.Duplicate > 0 && happens(draw(l.base, l.count, forDuplicate), l.Duplicate) {
		w.schedule.add(at+l.Delay.at(draw(l.base, l.count, forSecondDelay)), e)
	}
	w.schedule.add(at, e)
}

func (w *World) lost(e *event) {
	if w.cfg.Observe != nil {
		w.cfg.Observe(Observation{What: Lost, Transit: e.transit()})
	}
}

func (e *event) transit() Transit {
	return Transit{From: e.link.from, To: e.link.to, Message: e.message, Answer: e.answer, Conversation: e.asker.Conversation}
}

// Held returns the messages that are held, in the order in which they were
// sent. The caller must not change the result.
func (w *World) Held() []Held { return w.held }

// Release puts the i-th of the held messages on its link.
func (w *World) Release(i int) {
	h := w.take(i)
	w.travel(h.link, h.e)
}

// Copy puts a copy of the i-th of the held messages on its link.
func (w *World) Copy(i int) { w.travel(w.held[i].link, w.held[i].e) }

// Discard loses the i-th of the held messages.
func (w *World) Discard(i int) {
	h := w.take(i)
	w.lost(&h.e)
}

func (w *World) take(i int) Held {
	h := w.held[i]
	w.held = append(w.held[:i], w.held[i+1:]...)
	return h
}

// arrive is the end of a message's way.
func (w *World) arrive(e *event) {
	from, to := e.link.from, e.link.to
	if to.frozen != nil {
		to.frozen.take(w, e)
		return
	}
	w.messages++
	w.hash = fold(w.hash, from.hash^e.asker.Conversation)
	w.hash = fold(w.hash, to.hash^w.digest(e.message))
	present := to.connected && e.session == to.sessionsWith(from)
	if from == to {
		present = e.session == to.life // it talks to itself off the network, too
	}
	if !to.up || !present {
		w.observeArrival(e, ArrivedTooLate)
		return
	}
	if !e.answer {
		// Observed first, so that what follows from it comes after it.
		w.observeArrival(e, Arrived)
		to.step(e.asker, e.message)
		return
	}
	c := w.conversation(to, from, e.asker.Conversation)
	if c == nil {
		w.observeArrival(e, ArrivedTooLate)
		return
	}
	w.observeArrival(e, Arrived)
	c.hear(from, e.asker, e.message)
}

func (w *World) observeArrival(e *event, what What) {
	if w.cfg.Observe != nil {
		w.cfg.Observe(Observation{What: what, Transit: e.transit()})
	}
}

// loopback is the link of a process to itself: it loses nothing and takes no
// time, and nobody intercepts it.
func (w *World) loopback(p *Process, e event) {
	e.kind, e.link, e.session = messageEvent, p.linkTo(p), p.life
	w.schedule.add(w.now, e)
}
