package server

import (
	"errors"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/live"
	"atoll/internal/transport"
	"atoll/quorum"
	"atoll/repair"
	"atoll/replica"
)

// Why a message of a task didn't leave. Whoever asked asks again.
var (
	errBusy    = errors.New("this node has too much to do for its own tasks")
	errGone    = errors.New("that connection has ended")
	errClosing = errors.New("this node is stopping")
)

// runTasks starts the node's tasks. They end with s.tasks.
func (s *Server) runTasks() {
	s.serving.Store(true)
	for _, t := range s.node.Tasks() {
		restarts := s.metrics.restarts.WithLabelValues(t.Name)
		s.workers.Go(func() {
			ended := t.Keep(s.runtime.Scope(s.tasks), func(err error) {
				restarts.Inc()
				s.log.Warn("a task has ended, it is started again", "task", t.Name, "reason", err)
			})
			s.log.Debug("task ended", "task", t.Name, "reason", ended)
		})
	}
}

// panicked ends the server because of what a task has panicked with, as an
// error of a step does: nobody knows what the task has left undone.
func (s *Server) panicked(p *live.PanicError) {
	s.log.Error("a task panicked", "task", p.Task, "panic", p.Value, "stack", string(p.Stack))
	s.fail(p)
}

// selfSession is the session in the address of what the node's own tasks ask
// it. The transport gives no session this number.
const selfSession = 0

// self is where what the node's own tasks ask it comes from: one more source,
// with a queue and turns like a session's, so that tasks neither overtake
// clients nor starve.
type self struct{}

func (self) ID() uint64 { return selfSession }

// Congested is false: an answer is looked at where it is made.
func (self) Congested() bool { return false }

// BulkCongested is false, too.
func (self) BulkCongested() bool { return false }

// Discharge does nothing: what the node asks itself is no peer's cost.
func (self) Discharge(int) {}

// ChargeAgain does nothing, too.
func (self) ChargeAgain(int) {}

// otherNode is a session with another node.
type otherNode struct{ *transport.Session }

// Congested is false, whatever waits for the node. Requests and answers of both
// nodes share the session. If each left the other's requests alone until it
// took more, both queues could be full, neither node would read, and neither
// would ever take anything. So a node is answered as long as there is room
// (see transport.Config), and then its answers are dropped, and it asks
// again.
func (otherNode) Congested() bool { return false }

// BulkCongested is false for the same reason.
func (otherNode) BulkCongested() bool { return false }

// isNode reports whether a session is with another node, and not with a client:
// nodes are asked, and their answers believed.
func isNode(session *transport.Session) bool { return session.Peer().Role == identity.RoleNode }

// network is how the node's tasks send. It implements live.Network.
type network Server

// Send implements live.Network. What is for the node itself goes the way of all
// that others send it.
func (n *network) Send(to quorum.NodeID, conversation uint64, m env.Message) error {
	if to != n.folder.ID {
		return n.transport.Send(to, conversation, m)
	}
	it := item{source: self{}, from: env.Address{Node: to, Session: selfSession, Conversation: conversation}, message: m}
	if !n.open.Load() {
		return (*Server)(n).offerEarly(it)
	}
	return n.inbox.offer(it)
}

// Answer implements live.Network.
func (n *network) Answer(to env.Address, m env.Message) error {
	if to.Session == selfSession {
		n.runtime.Deliver(to.Node, to.Conversation, m)
		return nil
	}
	session := n.transport.Session(to.Session)
	if session == nil {
		return errGone
	}
	err := session.Queue(to.Conversation, m)
	if err != nil {
		n.metrics.dropped.Inc()
	}
	session.Flush()
	return err
}

// addresses are where a node can be dialed: where it says that it is, or else
// where the cluster's file says. It is dialed when a task asks it.
func (s *Server) addresses(id quorum.NodeID) []string {
	if news := s.known.Load(); news != nil {
		for _, m := range news.Members {
			if m.ID == id {
				return m.Addresses
			}
		}
	}
	m, _ := s.folder.Cluster.Member(id)
	return m.Addresses
}

// learned is told what the node knows of others. Where a node says that it is now
// it is dialed at once, if it is being dialed; who was forgotten is dialed no more.
func (s *Server) learned(news *quorum.News) {
	old := s.known.Swap(news)
	s.tellChange(old, news)
	if news == nil {
		return
	}
	s.transport.Moved(quorum.MovedSince(old, news)...)
	gone := quorum.GoneSince(old, news)
	s.transport.Forget(gone...)
	s.forgetProbes(gone)
	if old != nil && old.Map != news.Map {
		s.runtime.Wake()
	}
}

// node is what the server drives. A replica.Node is one.
type node interface {
	Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error)
	Tasks() []replica.Task
	// Progress is that of repair, and Damaged the first key whose record is known
	// to be damaged.
	Progress() repair.Progress
	Damaged() (first abd.Key, found bool)
	// Unreached says which others can't dial the node.
	Unreached() string
}
