package sim

import "time"

// Faults of the network that slow down or break, and don't lose for good.

// Slow makes the way from one process to another take so much longer than the
// link says, until it is called with the zero Delay.
func (w *World) Slow(from, to *Process, more Delay) { from.linkTo(to).slow = more }

// Gray makes all ways from and to the process take so much longer, each of
// both, until it is called with the zero Delay: a node that is slow, and not
// slow enough to be taken for dead.
func (p *Process) Gray(more Delay) { p.gray = more }

// hindrance returns what the message that was counted last takes on top.
func (l *link) hindrance() time.Duration {
	var more time.Duration
	if !l.slow.zero() {
		more += l.slow.at(draw(l.base, l.count, forSlowLink))
	}
	if !l.from.gray.zero() {
		more += l.from.gray.at(draw(l.base, l.count, forGrayOut))
	}
	if !l.to.gray.zero() {
		more += l.to.gray.at(draw(l.base, l.count, forGrayIn))
	}
	return more
}

// maxRetransmissions bounds how often one message is lost on a link that
// retransmits.
const maxRetransmissions = 64

// retransmission returns how long it takes until a message arrives that was
// lost the first time.
func (l *link) retransmission() time.Duration {
	var took time.Duration
	for n := range uint64(maxRetransmissions) {
		base := fold(l.base, n)
		took += l.Retransmit.at(draw(base, l.count, forRetransmitDelay))
		if !happens(draw(base, l.count, forRetransmit), l.Loss) {
			break
		}
	}
	return took
}

// Break ends the connection between two processes. What is on its way on it,
// both ways, is lost, so that who asked can't know whether its request has
// arrived. Both notice, and for as long as redial nothing can be sent between
// them; then what waits for an answer is sent again.
func (w *World) Break(a, b *Process, redial time.Duration) {
	a.breaks(b)
	b.breaks(a)
	w.among(a, b, func(c *caller, whom *Process) { c.forgotten(whom) })
	if redial <= 0 {
		w.among(a, b, (*caller).reconnect)
		return
	}
	a.redials(b, +1)
	b.redials(a, +1)
	w.At(redial, func() {
		a.redials(b, -1)
		b.redials(a, -1)
		w.among(a, b, (*caller).reconnect)
	})
}

// breaks counts a broken connection on the side of p.
func (p *Process) breaks(q *Process) {
	if p.broken == nil {
		p.broken = make(map[uint64]uint64)
	}
	p.broken[q.index]++
}

func (p *Process) redials(q *Process, by int) {
	if p.redialing == nil {
		p.redialing = make(map[uint64]int)
	}
	p.redialing[q.index] += by
}

// among tells the conversations in which one of two processes asks the other.
func (w *World) among(a, b *Process, tell func(c *caller, whom *Process)) {
	for _, c := range w.asking {
		if !c.listens() {
			continue
		}
		switch c.p {
		case a:
			tell(c, b)
		case b:
			tell(c, a)
		}
	}
}
