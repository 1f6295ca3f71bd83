package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"atoll/env"
	"atoll/internal/identity"
	"atoll/quorum"
)

// A peer is a node that was dialed, or that came in, and its sessions.
type peer struct {
	node quorum.NodeID
	// session is the one that Send uses, nil if there is none.
	session atomic.Pointer[Session]
	// failure is why there is none.
	failure atomic.Pointer[UnreachableError]
	// wake holds a token when there is a new session, or Connect was called.
	wake chan struct{}
	// wanted holds a token when Send found no session.
	wanted chan struct{}

	// The rest is guarded by Transport.mu.

	live []*Session         // all sessions with the node
	kept context.CancelFunc // ends the goroutine that keeps a session with it; nil: there is none
}

// poke wakes the goroutine that keeps a session.
func (p *peer) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// calm forgets what poke and Send said: what follows is about something newer.
func (p *peer) calm() {
	for _, c := range []chan struct{}{p.wake, p.wanted} {
		select {
		case <-c:
		default:
		}
	}
}

func (p *peer) fail(err error) { p.failure.Store(&UnreachableError{Node: p.node, Err: err}) }

// Send queues m for a node and flushes. It returns nil if the message was
// handed to a live session; that doesn't mean that it arrives. Otherwise
// nothing was kept, and the error says why: an *UnreachableError when there is
// no session (ErrConnecting while the first attempt goes on), or what
// Session.Queue says. Send never blocks on the network.
//
// The first Send to a node that has an address starts to dial it, and from
// then on a session with it is kept.
func (t *Transport) Send(to quorum.NodeID, conversation uint64, m env.Message) error {
	p := t.peer(to)
	if p == nil {
		if len(t.cfg.Addresses(to)) == 0 {
			return &UnreachableError{Node: to, Err: ErrNoAddress}
		}
		var err error
		if p, err = t.keep(to); err != nil {
			return &UnreachableError{Node: to, Err: err}
		}
	}
	if s := p.session.Load(); s != nil {
		err := s.Queue(conversation, m)
		if err == nil {
			s.Flush()
		}
		return err
	}
	select {
	case p.wanted <- struct{}{}:
	default:
	}
	if err := p.failure.Load(); err != nil {
		return err
	}
	return &UnreachableError{Node: to, Err: ErrConnecting}
}

// Connect starts to dial nodes and to keep sessions with them. A node that is
// between two attempts is dialed at once: call it when an address has become
// known.
func (t *Transport) Connect(to ...quorum.NodeID) {
	for _, node := range to {
		p, err := t.keep(node)
		if err != nil {
			t.log.Warn("can't keep a session", "peer", node, "err", err)
			continue
		}
		p.poke()
	}
}

// Moved says that other addresses of nodes have become known: those that are
// being dialed, or will be, are dialed there at once.
func (t *Transport) Moved(nodes ...quorum.NodeID) {
	for _, node := range nodes {
		if p := t.peer(node); p != nil {
			p.poke()
		}
	}
}

// Forget is for nodes that aren't wanted any more, because no configuration
// names them: sessions with them are no longer kept, an attempt to dial one
// ends, and those sessions that this side dialed are closed. What is pending
// for such a node is lost. Sessions that it dialed stay until it ends them: it
// may have something to ask. A later Connect or Send wants the node again.
func (t *Transport) Forget(nodes ...quorum.NodeID) {
	var unwanted []*Session
	t.mu.Lock()
	for _, node := range nodes {
		p := t.mu.peers[node]
		if p == nil || p.kept == nil {
			continue
		}
		p.kept()
		p.kept = nil
		for _, s := range p.live {
			if s.dialed {
				unwanted = append(unwanted, s)
			}
		}
		if len(p.live) == 0 {
			delete(t.mu.peers, node)
		}
	}
	t.mu.Unlock()
	for _, s := range unwanted { // unlocked: to close one takes as long as QUIC needs
		s.Close(CodeUnwanted, unwantedText)
	}
}

// Connected reports whether there is a session with a node.
func (t *Transport) Connected(node quorum.NodeID) bool {
	p := t.peer(node)
	return p != nil && p.session.Load() != nil
}

// Session returns a live session by its number, nil if there is none.
func (t *Transport) Session(id uint64) *Session {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.mu.sessions[id]
}

// peer returns a node with which a session is kept.
func (t *Transport) peer(node quorum.NodeID) *peer {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if p := t.mu.peers[node]; p != nil && (p.kept != nil || len(p.live) > 0) {
		return p
	}
	return nil
}

// keep starts to keep a session with a node, once.
func (t *Transport) keep(node quorum.NodeID) (*peer, error) {
	if node == t.cfg.Self {
		return nil, errSelf
	}
	if _, err := quorum.ParseNodeID(string(node)); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed {
		return nil, ErrClosed
	}
	p := t.mu.peers[node]
	if p == nil {
		if len(t.mu.peers) >= maxPeers {
			return nil, errPeerLimit
		}
		p = newPeer(node)
		t.mu.peers[node] = p
	}
	if p.kept == nil {
		var ctx context.Context
		ctx, p.kept = context.WithCancel(t.ctx)
		t.work.Go(func() { t.keepSession(ctx, p) })
	}
	return p, nil
}

func newPeer(node quorum.NodeID) *peer {
	p := &peer{node: node, wake: make(chan struct{}, 1), wanted: make(chan struct{}, 1)}
	p.fail(ErrConnecting)
	return p
}

// keepSession dials a node whenever there is no session with it, until ctx
// ends: with the transport, or by Forget. Whether a session was dialed or came
// in makes no difference.
func (t *Transport) keepSession(ctx context.Context, p *peer) {
	attempts := 0
	for ctx.Err() == nil {
		s := p.session.Load()
		if s == nil {
			var err error
			switch s, err = t.dialAfresh(ctx, p); {
			case err != nil && ctx.Err() == nil:
				t.dialFailed(p, attempts, err)
			case err == nil && ctx.Err() != nil && s.dialed:
				s.Close(CodeUnwanted, unwantedText) // forgotten while it was dialed
			}
		}
		if s != nil {
			p.calm()
			select {
			case <-s.over:
			case <-ctx.Done():
			}
			// A session that ends as soon as it is made must not be made
			// again and again without a pause.
			if time.Since(s.born) >= BackoffCap {
				attempts = 0
				t.spread(ctx, p, attempts)
				continue
			}
		}
		attempts++
		p.pause(ctx, backoff(attempts))
		t.spread(ctx, p, attempts)
	}
}

// spread has a client wait for a random time before it dials a node again,
// unless there is something to send to it. The more attempts have failed, the
// longer: if a node can't take in all of its clients at once, those that it has
// no time for mustn't keep it from the others, and asking costs it time as well.
func (t *Transport) spread(ctx context.Context, p *peer, failed int) {
	if t.cfg.Self != "" {
		return // nodes are few, and need each other
	}
	within := RedialSpread
	for ; failed > 0 && within < LongestSpread; failed-- {
		within = min(spreadGrowth*within, LongestSpread)
	}
	timer := time.NewTimer(rand.N(within))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.wanted:
	case <-p.wake:
	case <-ctx.Done():
	}
}

// dialAfresh is dialNode, and begins anew when the node's addresses change
// meanwhile: an attempt at one where nobody is lasts as long as the handshake may.
func (t *Transport) dialAfresh(ctx context.Context, p *peer) (*Session, error) {
	type result struct {
		session *Session
		err     error
	}
	for {
		addresses := t.cfg.Addresses(p.node)
		if len(addresses) > 0 && errors.Is(p.failure.Load(), ErrConnecting) {
			p.fail(fmt.Errorf("%s: %w", strings.Join(addresses, ", "), ErrConnecting)) // until it is known why
		}
		attempt, cancel := context.WithCancel(ctx)
		results := make(chan result, 1)
		go func() {
			s, err := t.dialNode(attempt, p, addresses)
			results <- result{s, err}
		}()
		var r result
		moved, woken := false, false
		for done := false; !done; {
			select {
			case r = <-results:
				done = true
			case <-p.wake:
				woken = true
				if moved = !slices.Equal(addresses, t.cfg.Addresses(p.node)); moved {
					cancel()
				}
			}
		}
		cancel()
		if r.err != nil && moved && ctx.Err() == nil {
			continue
		}
		if woken && !moved {
			p.poke() // it was for who waits for the next attempt
		}
		return r.session, r.err
	}
}

// dialFailed notes why a node can't be reached, and logs it the first time.
func (t *Transport) dialFailed(p *peer, attempts int, err error) {
	last := p.failure.Load()
	p.fail(err)
	if attempts == 0 || last.Err.Error() != err.Error() {
		t.log.Info("node not reached, trying on", "peer", p.node, "err", err)
	}
}

// pause waits for d, or until there is a reason to look again.
func (p *peer) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.wake:
	case <-ctx.Done():
	}
}

// backoff is the pause before an attempt, the first of which is number 1:
// doubling, at most BackoffCap, and half of it at random, so that nodes that
// lost each other at the same moment don't meet again and again.
func backoff(attempt int) time.Duration {
	d := BackoffCap
	if doublings := attempt - 1; doublings < 10 {
		d = min(d, backoffBase<<doublings)
	}
	return d/2 + rand.N(d/2)
}

// register makes a link a session, and starts it. A node that this side dials
// twice gets one session: the second link is closed and the first session is
// returned. A client waits here while others make room for it. The error is
// ErrClosed when the transport is closed, or an *OverBudgetError when there is no
// memory for another session.
func (t *Transport) register(l *link) (s *Session, err error) {
	if l.peer.Role != identity.RoleNode {
		err = l.account.settle()
	}
	if err == nil {
		s, err = t.enlist(l)
	}
	if err != nil {
		l.close(closeCode(err))
		return nil, err
	}
	if s.conn != l.conn {
		l.close(CodeDuplicate, "there is a session already")
		return s, nil
	}
	t.log.Debug("session", "id", s.id, "peer", s.peer.String(), "remote", s.Remote(), "dialed", s.dialed)
	return s, nil
}

// enlist returns the session that a link has become, or that there was already.
func (t *Transport) enlist(l *link) (*Session, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed {
		return nil, &ClosedError{Code: CodeShutdown, Text: shutdownText}
	}
	var p *peer
	if node := l.peer.Node; node != "" {
		if p = t.mu.peers[node]; p == nil {
			// No limit here: those that come in are counted by the door.
			p = newPeer(node)
			t.mu.peers[node] = p
		}
		for _, other := range p.live {
			if l.dialed && other.dialed {
				return other, nil
			}
		}
	}
	s := newSession(t, l, t.mu.lastSession+1)
	s.account.keep(s.peer, s.peer.Role == identity.RoleNode, s.evict)
	t.mu.lastSession++
	t.mu.sessions[s.id] = s
	if p != nil {
		p.live = append(p.live, s)
		t.choose(p)
	}
	if l.dialed {
		t.counters.dialed.Add(1)
	} else {
		t.counters.accepted.Add(1)
	}
	t.work.Go(s.run)
	return s, nil
}

// remove takes a session off the books, after which Send doesn't use it.
func (t *Transport) remove(s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.mu.sessions, s.id)
	if p := t.mu.peers[s.peer.Node]; p != nil {
		p.live = slices.DeleteFunc(p.live, func(o *Session) bool { return o == s })
		if len(p.live) == 0 {
			p.fail(s.end(nil))
		}
		t.choose(p)
		if len(p.live) == 0 && p.kept == nil {
			delete(t.mu.peers, p.node)
		}
	}
	close(s.over)
}

// choose picks the session that Send uses, by a rule that gives the same
// result at both ends: of those dialed by the smaller node id, the newest.
// (The newest, because a node that dials again has lost the older one.) The
// others are closed when what was on its way has had time to arrive. Transport.mu
// is locked.
func (t *Transport) choose(p *peer) {
	var best *Session
	for _, s := range p.live {
		if best == nil || s.dialer() < best.dialer() || s.dialer() == best.dialer() && s.id > best.id {
			best = s
		}
	}
	if p.session.Swap(best) != best && best != nil {
		p.poke()
	}
	for _, s := range p.live {
		if s != best && !s.leaving {
			s.leaving = true
			time.AfterFunc(DuplicateLinger, func() { t.leave(p, s) })
		}
	}
}

// leave closes a session that another one has replaced, if that still lives.
func (t *Transport) leave(p *peer, s *Session) {
	t.mu.Lock()
	s.leaving = false
	stay := p.session.Load() == s || t.mu.sessions[s.id] != s
	t.mu.Unlock()
	if !stay {
		s.Close(CodeDuplicate, "another session is used")
	}
}

// dialer is the node that dialed the session.
func (s *Session) dialer() quorum.NodeID {
	if s.dialed {
		return s.t.cfg.Self
	}
	return s.peer.Node
}
