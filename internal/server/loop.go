package server

import (
	"atoll/env"
	"atoll/internal/transport"
)

// loop steps the node on everything that arrives.
func (s *Server) loop() {
	var items []item
	var outs []env.Out
	sender := newSender(s)
	for s.held.admit() {
		var ok bool
		if items, ok = s.inbox.take(items); !ok {
			return
		}
		outs = outs[:0]
		bytes := 0
		for _, it := range items {
			var err error
			if outs, err = s.node.Step(it.from, it.message, outs); err != nil {
				s.fail(err)
				return
			}
			bytes += weight(it.message)
		}
		s.metrics.turn(len(items))
		sender.send(s.held.sift(outs, s.store.Cut(), bytes))
		clear(outs)
	}
}

// commit makes what was stepped durable, over and over, and lets go what
// waits for it.
func (s *Server) commit() {
	var free []env.Out
	sender := newSender(s)
	for s.held.await() {
		durable, err := s.store.Commit()
		if err != nil {
			s.fail(err)
			return
		}
		free = s.held.release(durable, free[:0])
		sender.send(free)
		clear(free)
	}
}

// sender queues messages for the sessions that they go to, and then lets each
// session write what it got, at once. One goroutine uses it.
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
