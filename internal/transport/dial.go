package transport

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"atoll/internal/identity"
	"atoll/quorum"
)

// DialAddress makes a session with whichever node is at an address,
// "host:port"; Peer tells who that is. If there is a session with that node
// already, that one is returned. The session isn't made again when it breaks,
// unless the node is one that Send or Connect was asked for.
//
// ctx bounds how long it waits. The attempt isn't given up with it: others may
// wait for the same one, and the session that comes of it is kept.
//
// The error is a *DialError that wraps the reason: a certificate that one side
// doesn't accept (see identity.ClassOf), no answer, another version.
func (t *Transport) DialAddress(ctx context.Context, address string) (*Session, error) {
	a, err := t.attemptAt(address)
	if err != nil {
		return nil, &DialError{Address: address, Err: err}
	}
	select {
	case <-a.over:
		return a.session, a.err
	case <-ctx.Done():
		return nil, &DialError{Address: address, Err: explainDial(context.Cause(ctx))}
	}
}

// dialNode makes a session with a node at one of these addresses, or returns the
// one that there is by then.
func (t *Transport) dialNode(ctx context.Context, p *peer, addresses []string) (*Session, error) {
	if len(addresses) == 0 {
		return nil, ErrNoAddress
	}
	l, err := dialAny(ctx, addresses, func(ctx context.Context, address string) (*link, error) {
		if err := t.giveWay(ctx, p.node, address); err != nil {
			return nil, err
		}
		return t.dialNamed(ctx, address, p.node, t.introduce)
	})
	if s := p.session.Load(); errors.Is(err, errThere) && s != nil {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	return t.register(l)
}

// Probe finds out whether a node can be dialed at one of these addresses. It makes
// no session: the other side sees a connection that ends before anything was said.
// The error is that of DialAddress.
func (t *Transport) Probe(ctx context.Context, node quorum.NodeID, addresses []string) error {
	if len(addresses) == 0 {
		return ErrNoAddress
	}
	if t.dialedAt(node, addresses) {
		return nil
	}
	ctx, cancel := t.scope(ctx)
	defer cancel()
	l, err := dialAny(ctx, addresses, func(ctx context.Context, address string) (*link, error) {
		return t.dialNamed(ctx, address, node, t.recognise)
	})
	if err == nil {
		l.close(CodeUnwanted, "only to see whether the address is right")
	}
	return err
}

// dialedAt reports whether this side has dialed a session that lives at one of
// these addresses.
func (t *Transport) dialedAt(node quorum.NodeID, addresses []string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	p := t.mu.peers[node]
	return p != nil && slices.ContainsFunc(p.live, func(s *Session) bool { return s.dialed && slices.Contains(addresses, s.Remote()) })
}

// dialAny makes a link to a node at one of these addresses.
func dialAny(ctx context.Context, addresses []string, dial func(ctx context.Context, address string) (*link, error)) (*link, error) {
	addresses = addresses[:min(len(addresses), maxAddresses)]
	return race(ctx, len(addresses), func(ctx context.Context, i int) (*link, error) { return dial(ctx, addresses[i]) })
}

// A meeting is what is said on a connection that was dialed, until the link is made:
// introduce, or recognise.
type meeting func(l *link, address string, want quorum.NodeID) error

// scope returns a context that ends with ctx and with the transport.
func (t *Transport) scope(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(t.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// race tries n ways to reach a peer, each with a head start over the next, and
// returns the first that succeeds. When one fails, the next starts at once.
// The error joins those of all ways. All attempts have ended when it returns.
func race(ctx context.Context, n int, try func(ctx context.Context, i int) (*link, error)) (*link, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		link *link
		err  error
	}
	results := make(chan result, n)
	stagger := time.NewTimer(DialStagger)
	defer stagger.Stop()

	var winner *link
	errs := make([]error, 0, n)
	started, running := 0, 0
	for winner == nil && len(errs) < n || running > 0 {
		var next <-chan time.Time
		if winner == nil && started < n {
			if running == 0 {
				stagger.Reset(0)
			}
			next = stagger.C
		}
		select {
		case <-next:
			i := started
			started, running = started+1, running+1
			stagger.Reset(DialStagger)
			go func() {
				l, err := try(ctx, i)
				results <- result{l, err}
			}()
		case r := <-results:
			running--
			switch {
			case r.err != nil:
				errs = append(errs, r.err)
				stagger.Reset(0)
			case winner == nil:
				winner = r.link
				cancel()
			default:
				r.link.close(CodeDuplicate, "another address was faster")
			}
		}
	}
	if winner == nil {
		return nil, joinErrors(errs)
	}
	return winner, nil
}

// joinErrors is errors.Join in one line, each text once.
func joinErrors(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return &manyErrors{errs}
}

type manyErrors struct{ errs []error }

func (e *manyErrors) Error() string {
	text := ""
	for i, err := range e.errs {
		if i > 0 {
			text += "; "
		}
		text += err.Error()
	}
	return text
}

func (e *manyErrors) Unwrap() []error { return e.errs }

// dialNamed makes a link to what is at an address: any node when want is
// empty. A name is resolved now, and all that it stands for are tried.
func (t *Transport) dialNamed(ctx context.Context, address string, want quorum.NodeID, meet meeting) (*link, error) {
	fail := func(err error) (*link, error) {
		if ctx.Err() == nil { // it failed by itself
			t.counters.dialFailed(err)
		}
		return nil, &DialError{Address: address, Err: err}
	}
	endpoint, err := identity.ParseEndpoint(address)
	if err != nil {
		return fail(err)
	}
	host, port, err := splitHostPort(endpoint)
	if err != nil {
		return fail(err)
	}
	ips, err := t.resolve(ctx, host)
	if err != nil {
		return fail(err)
	}
	l, err := race(ctx, len(ips), func(ctx context.Context, i int) (*link, error) {
		to := netip.AddrPortFrom(ips[i], port)
		l, err := t.dial(ctx, to, address, want, meet)
		if err != nil && len(ips) > 1 {
			err = &DialError{Address: to.String(), Err: err}
		}
		return l, err
	})
	if err != nil {
		return fail(err)
	}
	return l, nil
}

// dial makes a link to one address.
func (t *Transport) dial(ctx context.Context, to netip.AddrPort, address string, want quorum.NodeID, meet meeting) (*link, error) {
	s, err := t.socketFor(to.Addr())
	if err != nil {
		return nil, err
	}
	conn, err := s.quic.Dial(ctx, net.UDPAddrFromAddrPort(to), t.clientTLS, dialerConfig(t.cfg.Self == ""))
	if err != nil {
		return nil, explainDial(err)
	}
	l := &link{conn: conn, dialed: true, account: t.budget.open()}
	if l.account == nil {
		err := t.budget.full()
		l.close(CodeOverBudget, err.Error())
		return nil, err
	}
	context.AfterFunc(conn.Context(), l.account.gone)
	stop := context.AfterFunc(ctx, func() { l.close(CodeDuplicate, "another address was faster") })
	err = meet(l, address, want)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		l.closeBad(err)
		return nil, explainDial(err)
	}
	return l, nil
}

// recognise learns who is at the other end of a connection that was dialed.
func (t *Transport) recognise(l *link, address string, want quorum.NodeID) error {
	var err error
	if l.peer, err = identity.PeerOf(l.conn.ConnectionState().TLS); err != nil {
		return &refusal{err.Error()}
	}
	if want != "" && l.peer.Node != want {
		return &WrongNodeError{Address: address, Want: want, Got: l.peer.Node}
	}
	return nil
}

// introduce learns who is there, and says hello. A node that isn't the one wanted
// gets none, so that it never takes this for a session.
func (t *Transport) introduce(l *link, address string, want quorum.NodeID) error {
	err := t.recognise(l, address, want)
	if err != nil {
		return err
	}
	if l.stream, err = l.conn.OpenStream(); err != nil {
		return err
	}
	if err := l.stream.SetDeadline(time.Now().Add(HelloTimeout)); err != nil {
		return err
	}
	if err := t.writeHello(l.stream); err != nil {
		return err
	}
	// In TLS 1.3 this side is done before the other has seen its certificate:
	// if that is refused, it shows here.
	h, err := readHello(l.stream)
	if err != nil {
		return err
	}
	if err := t.checkHello(h, l.peer); err != nil {
		return err
	}
	l.bulk = h.Bulk
	return l.stream.SetDeadline(time.Time{})
}
