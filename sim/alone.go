package sim

import (
	"atoll/env"
)

// A process is a function of what happens to it. A driver can run one alone, in
// a world whose other processes do nothing: it says itself what these ask and
// answer, and takes note of what the one sends.

// Asker names who waits for the answer to a request, within its process: the
// caller, which has one conversation at a time, and how often it has redirected
// its request to that node. The zero Asker: nobody.
type Asker struct{ Caller, Redirects uint64 }

// Word returns a number for a. It is zero if nobody waits.
func (a Asker) Word() uint64 {
	if a.Caller == 0 {
		return 0
	}
	return fold(a.Caller, a.Redirects) | 1
}

// Asker returns who waits for the answer to a held request.
func (w *World) Asker(h Held) Asker { return w.askerOf(h.asker(), h.e.asker) }

// Waits reports whether anybody waits for an answer in a process's conversation of
// that number.
func (p *Process) Waits(conversation uint64) bool {
	return p.w.askerOf(p, env.Address{Conversation: conversation}) != Asker{}
}

// askerOf returns who waits in a conversation of p.
func (w *World) askerOf(p *Process, in env.Address) Asker {
	place := in.Conversation % maxPlaces
	if in.Conversation == 0 || place >= uint64(len(w.asking)) {
		return Asker{}
	}
	c := w.asking[place]
	if c.p != p || !c.listens() || c.turn != in.Conversation>>turnShift {
		return Asker{}
	}
	return Asker{c.label(), in.Conversation >> placeBits & maxRedirects}
}

// Conversations returns in which one each caller of the process is that waits for
// answers. It is another one if the number is another one.
func (p *Process) Conversations() map[uint64]uint64 {
	all := make(map[uint64]uint64)
	for _, c := range p.callers {
		if c.listens() {
			all[c.label()] = c.turn<<turnShift | uint64(c.place)
		}
	}
	return all
}

// Ask sends a request from a process that does nothing, in a conversation that
// the driver numbers. Answers to it have that number in their Transit.
func (w *World) Ask(from, to *Process, number uint64, m env.Message) {
	from.driven = true
	_ = from.request(to, number, m, false) // it is not if to is down
}

// Answer sends a process an answer to what one of its callers asks another one.
// Nothing is sent if that caller waits no more.
func (w *World) Answer(from, to *Process, a Asker, m env.Message) {
	for _, c := range to.callers {
		if !c.listens() || c.label() != a.Caller {
			continue
		}
		number := c.turn<<turnShift | a.Redirects<<placeBits | uint64(c.place)
		from.answer(env.Address{Node: to.id, Session: to.connection(from)<<sessionShift | to.index, Conversation: number}, m)
		return
	}
}

// State is the part of World.State that the process is.
func (p *Process) State() uint64 { return p.w.cfg.Memory.process(p) }

// Message returns the hash of a message, by all that it contains.
func (h *Memory) Message(m env.Message) uint64 { return h.message(m) }
