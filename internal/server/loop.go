package server

import (
	"atoll/abd"
	"atoll/env"
	"atoll/internal/transport"
	"atoll/repair"
	"atoll/replica"
)

// loop steps the node on everything that arrives.
func (s *Server) loop() {
	t := turn{server: s, sender: newSender(s)}
	var items []item
	for s.held.admit() {
		t.crowded = s.held.crowded()
		var ok bool
		if items, ok = s.inbox.take(items, s.held.keepsUp); !ok {
			return
		}
		s.turns.begin()
		err := t.run(items)
		s.turns.end()
		if err != nil {
			s.fail(err)
			return
		}
	}
}

// turn is the loop's work on what it has taken from the inbox.
type turn struct {
	server *Server
	sender *sender
	outs   []env.Out
	later  []item // to be taken again
	large  []item // to be taken when there is room for their large answers
	// About the bytes of values that outs hold, and that the steps behind
	// them have appended.
	answered, appended int
	// crowded: the disk hangs, and only what needs no write is done.
	crowded bool
}

// run steps the node on items. Answers leave as they gather, so that a turn
// holds few of them however large they are. When a peer doesn't take its
// answers, what else it asked goes back to the inbox.
func (t *turn) run(items []item) error {
	t.later, t.large = t.later[:0], t.large[:0]
	for i := range items {
		it := &items[i]
		if t.congested(it) {
			t.later = append(t.later, *it)
			continue
		}
		if err := t.step(it); err != nil {
			return err
		}
		if len(t.outs) >= maxAnswers || t.answered >= maxAnswerBytes {
			t.flush()
		}
	}
	t.flush()
	t.server.metrics.turn(len(items) - len(t.later) - len(t.large))
	t.server.showRepair()
	t.server.tellUnreached()
	if len(t.later) > 0 {
		t.server.inbox.giveBack(t.later)
		clear(t.later)
	}
	if len(t.large) > 0 {
		t.server.inbox.demote(t.large)
		clear(t.large)
	}
	return nil
}

// congested reports that the peer wouldn't take an item's answer.
func (t *turn) congested(it *item) bool {
	if it.answer > 0 {
		return it.source.BulkCongested()
	}
	return it.source.Congested()
}

// step steps the node on one item. A get whose answer turns out to be large
// while the peer takes no more of those is put off: it has changed nothing, and
// its answer would be memory that nobody asked the peer's limit for.
func (t *turn) step(it *item) error {
	if t.crowded && !onlyReads(it.message) {
		t.server.metrics.shed.Inc()
		return nil
	}
	n := len(t.outs)
	var err error
	if t.outs, err = t.server.node.Step(it.from, it.message, t.outs); err != nil {
		return err
	}
	answered := 0
	for _, o := range t.outs[n:] {
		answered += weight(o.Message)
	}
	if _, reads := it.message.(*abd.Get); reads && it.answer == 0 && answered > transport.BulkAbove && it.source.BulkCongested() {
		it.answer = answered
		t.large = append(t.large, *it)
		clear(t.outs[n:])
		t.outs = t.outs[:n]
		return nil
	}
	t.appended += weight(it.message)
	t.answered += answered
	return nil
}

// onlyReads reports whether a step on m appends nothing.
func onlyReads(m env.Message) bool {
	switch m.(type) {
	case *abd.Get, *abd.List, *abd.Confirm, *replica.Describe, *replica.StatusQuery, *env.Refused:
		return true
	}
	return repair.OnlyReads(m)
}

// flush sends what may leave, and has the rest held.
func (t *turn) flush() {
	s := t.server
	t.sender.send(s.held.sift(t.outs, s.store.Cut(), t.appended))
	clear(t.outs)
	t.outs, t.answered, t.appended = t.outs[:0], 0, 0
}

// commit makes what was stepped durable, over and over, and lets go what
// waits for it.
func (s *Server) commit() {
	var free []env.Out
	sender := newSender(s)
	for s.held.await() {
		s.commits.begin()
		durable, err := s.store.Commit()
		s.commits.end()
		if err != nil {
			s.fail(err)
			return
		}
		free = s.held.release(durable, free[:0])
		s.inbox.roomAgain()
		sender.send(free)
		clear(free)
	}
}

// sender lets go what may leave: it puts messages into mailboxes, gives answers
// to the node's own tasks, and queues the others for the sessions that they go
// to, each of which then writes what it got, at once. One goroutine uses it.
type sender struct {
	server  *Server
	touched map[uint64]*transport.Session
}

func newSender(s *Server) *sender {
	return &sender{server: s, touched: make(map[uint64]*transport.Session)}
}

// send sends outs. What a session can't take, because it is gone or its peer
// doesn't read, is dropped: who asked asks again.
func (s *sender) send(outs []env.Out) {
	for _, o := range outs {
		switch {
		case o.Mailbox != "":
			s.server.runtime.Mail(o.Mailbox, env.Envelope{From: o.To, Message: o.Message})
			continue
		case o.To.Session == selfSession:
			s.server.runtime.Deliver(o.To.Node, o.To.Conversation, o.Message)
			continue
		}
		session := s.touched[o.To.Session]
		if session == nil {
			if session = s.server.transport.Session(o.To.Session); session == nil {
				continue
			}
			s.touched[o.To.Session] = session
		}
		if err := session.Queue(o.To.Conversation, o.Message); err != nil {
			s.server.metrics.dropped.Inc()
		}
	}
	for _, session := range s.touched {
		session.Flush()
	}
	clear(s.touched)
}
