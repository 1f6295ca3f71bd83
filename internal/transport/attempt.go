package transport

import (
	"context"
	"errors"

	"atoll/quorum"
)

// errThere ends an attempt to dial a node with which there is a session by now.
var errThere = errors.New("there is a session already")

// An attempt is one to make a session with whichever node is at an address. Who
// wants one there meanwhile waits for its end instead of dialing as well: a
// client that looks for its cluster asks at all addresses, and keeps sessions
// with those that it then finds to be members. Handshakes are most of what a new
// client costs.
type attempt struct {
	over    chan struct{} // closed at its end
	session *Session
	err     error
}

// attemptAt returns the attempt at an address that is under way, or begins one.
// It belongs to nobody, and ends as handshakes do, or with the transport. The
// error is ErrClosed.
func (t *Transport) attemptAt(address string) (*attempt, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed {
		return nil, ErrClosed
	}
	a := t.mu.attempts[address]
	if a != nil {
		return a, nil
	}
	a = &attempt{over: make(chan struct{})}
	t.mu.attempts[address] = a
	t.work.Go(func() {
		a.session, a.err = t.visit(address)
		t.mu.Lock()
		delete(t.mu.attempts, address)
		t.mu.Unlock()
		close(a.over)
	})
	return a, nil
}

// visit makes a session with whichever node is at an address.
func (t *Transport) visit(address string) (*Session, error) {
	l, err := t.dialNamed(t.ctx, address, "", t.introduce)
	if err != nil {
		return nil, err
	}
	return t.register(l)
}

// giveWay waits for the attempt at an address that is under way, if there is
// one, and returns errThere if there is a session with a node then.
func (t *Transport) giveWay(ctx context.Context, node quorum.NodeID, address string) error {
	t.mu.RLock()
	a := t.mu.attempts[address]
	t.mu.RUnlock()
	if a != nil {
		select {
		case <-a.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if t.Connected(node) {
		return errThere
	}
	return nil
}
