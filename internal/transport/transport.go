package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"atoll/internal/identity"
	"atoll/quorum"
)

// Transport is a process's place on the network. Its methods may be called by
// any goroutine.
type Transport struct {
	cfg       Config
	log       *slog.Logger
	serverTLS *tls.Config
	clientTLS *tls.Config
	ctx       context.Context // ends when the transport closes
	cancel    context.CancelFunc
	work      sync.WaitGroup // everything that was started, but for handshakes
	door      door
	budget    *budget
	counters  counters
	buffers   bufferPool
	bulk      bulkPool

	mu struct {
		sync.RWMutex
		closed      bool
		sockets     []*socket
		sessions    map[uint64]*Session
		lastSession uint64
		peers       map[quorum.NodeID]*peer
		attempts    map[string]*attempt // by address; see DialAddress
	}
}

// New binds the addresses of c and accepts connections on them. The error is a
// *ListenError when one of them can't be had; then nothing stays bound.
func New(c Config) (*Transport, error) {
	c, err := c.validated()
	if err != nil {
		return nil, err
	}
	t := &Transport{
		cfg:       c,
		log:       c.Log,
		serverTLS: withALPN(c.Credentials.ServerTLS()),
		clientTLS: withALPN(c.Credentials.ClientTLS()),
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.budget = newBudget(c.Memory, c.Log, &t.counters)
	t.door.limit, t.door.budget, t.door.log, t.door.counters = int64(c.MaxIncoming), t.budget, c.Log, &t.counters
	t.mu.sessions = make(map[uint64]*Session)
	t.mu.peers = make(map[quorum.NodeID]*peer)
	t.mu.attempts = make(map[string]*attempt)
	t.quietBuffers()
	var listening []*socket
	for _, address := range c.Listen {
		made, err := t.listenOn(address)
		if err != nil {
			return nil, errors.Join(err, t.Close())
		}
		t.mu.Lock()
		t.mu.sockets = append(t.mu.sockets, made...)
		t.mu.Unlock()
		listening = append(listening, made...)
	}
	for _, s := range listening {
		t.work.Go(func() { t.accept(s.listener) })
	}
	return t, nil
}

// Addrs returns where the transport listens, in the order of Config.Listen.
func (t *Transport) Addrs() []netip.AddrPort {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var addrs []netip.AddrPort
	for _, s := range t.mu.sockets {
		if s.listener != nil {
			addrs = append(addrs, s.local)
		}
	}
	return addrs
}

// Close tells all peers, closes all sessions and sockets, and returns when no
// goroutine of the transport is left and every session's Down has returned.
// Messages that are pending are lost. It must not be called by a Handler. A
// second call returns nil at once.
func (t *Transport) Close() error {
	t.mu.Lock()
	if t.mu.closed {
		t.mu.Unlock()
		return nil
	}
	t.mu.closed = true
	sockets := t.mu.sockets
	var sessions []*Session
	for _, s := range t.mu.sessions {
		sessions = append(sessions, s)
	}
	t.mu.Unlock()

	// Sessions first: to close one tells its peer, and to close QUIC doesn't.
	t.cancel()
	var closing sync.WaitGroup
	for _, s := range sessions {
		closing.Go(func() { s.Close(CodeShutdown, shutdownText) })
	}
	closing.Wait()
	t.work.Wait()
	var err error
	for _, s := range sockets {
		err = errors.Join(err, s.close())
	}
	t.door.departure.Wait()
	return err
}

// start runs f on a goroutine of its own unless the transport is closed, and
// reports whether it does.
func (t *Transport) start(f func()) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.mu.closed {
		return false
	}
	t.work.Go(f)
	return true
}

func newSession(t *Transport, l *link, id uint64) *Session {
	s := &Session{
		link:      *l,
		t:         t,
		id:        id,
		node:      l.peer.Node,
		limit:     t.cfg.MaxPending,
		bulkLimit: t.cfg.MaxBulk,
		born:      time.Now(),
		ready:     make(chan struct{}, 1),
		over:      make(chan struct{}),
	}
	if l.peer.Role != identity.RoleNode {
		s.node = quorum.NodeID(fmt.Sprintf("client-%d", id))
		s.limit, s.bulkLimit = t.cfg.MaxPendingClient, t.cfg.MaxBulkClient
	}
	s.silence = s.watchSilence()
	return s
}
