package transport

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"atoll/internal/identity"
)

var errCrowded = errors.New("too many connections")

// A door counts who comes in, and turns away those who are too many. A
// handshake costs this side a signature; a stranger, one packet.
type door struct {
	limit    int64 // connections, unfinished ones included; nodeReserve more for nodes
	budget   *budget
	log      *slog.Logger
	counters *counters

	inside    atomic.Int64 // connections
	unproven  atomic.Int64 // those of them that haven't said hello yet
	departure sync.WaitGroup

	mu struct {
		sync.Mutex
		hosts map[netip.Addr]int // unproven connections by host, without zeros
	}

	crowded, strange, lost occasional // what is logged
}

// occasional keeps lines of one kind in a log apart by failureLogEvery.
type occasional struct {
	last     atomic.Int64 // when there was one, nanoseconds of the Unix epoch
	unlogged atomic.Int64 // since
}

// allow reports whether it is time for another line, and how many there might
// have been since the last one.
func (o *occasional) allow() (unlogged int64, ok bool) {
	now, last := time.Now().UnixNano(), o.last.Load()
	if now-last < int64(failureLogEvery) || !o.last.CompareAndSwap(last, now) {
		o.unlogged.Add(1)
		return 0, false
	}
	return o.unlogged.Swap(0), true
}

// A guest is a connection that came in, from its first packet to its end.
type guest struct {
	door    *door
	host    netip.Addr
	account *account
	proven  atomic.Bool
}

type guestKey struct{}

// guestOf returns the guest that a connection is, nil if this side dialed it.
func guestOf(conn *quic.Conn) *guest {
	g, _ := conn.Context().Value(guestKey{}).(*guest)
	return g
}

// enter is called with the first packet of each connection that comes in. QUIC
// ends the context together with the connection.
func (d *door) enter(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	d.counters.incoming.Add(1)
	g := &guest{door: d, host: hostOf(info.RemoteAddr)}
	if d.inside.Add(1) > d.limit+nodeReserve || !d.begin(g.host) {
		d.inside.Add(-1)
		d.turnAway(info.RemoteAddr)
		return nil, errCrowded
	}
	if g.account = d.budget.open(); g.account == nil {
		d.inside.Add(-1)
		d.end(g.host)
		d.turnAway(info.RemoteAddr)
		return nil, errCrowded
	}
	d.departure.Add(1)
	context.AfterFunc(ctx, func() {
		defer d.departure.Done()
		d.inside.Add(-1)
		g.account.gone()
		if g.prove() {
			d.failed(info.RemoteAddr, context.Cause(ctx))
		}
	})
	return context.WithValue(ctx, guestKey{}, g), nil
}

// widen is QUIC's question whether more of a connection may be unread. QUIC
// holds locks meanwhile: nothing may be asked of the connection but its context.
func (d *door) widen(conn *quic.Conn, bytes uint64) bool {
	g := guestOf(conn)
	return g == nil || g.account.tryWindow(int(bytes))
}

// turnAway counts and logs a connection that is one too many.
func (d *door) turnAway(remote net.Addr) {
	d.counters.refused.Add(1)
	if unlogged, ok := d.crowded.allow(); ok {
		memory, _ := d.budget.used()
		d.log.Warn("a connection was turned away, there are too many", "remote", remote.String(),
			"connections", d.inside.Load(), "most", d.limit, "unproven", d.unproven.Load(), "most_unproven", maxHandshakes,
			"most_unproven_of_a_host", maxHandshakesPerHost, "memory", memory, "most_memory", d.budget.limit, "unlogged", unlogged)
	}
}

// admits reports whether there is a place for a peer, now that it is known who
// it is: the last places are for nodes, which clients can't do without.
func (d *door) admits(p identity.Peer) bool {
	return p.Role == identity.RoleNode || d.inside.Load() <= d.limit
}

// begin counts one more connection of a host that hasn't said who it is, unless
// there are too many.
func (d *door) begin(host netip.Addr) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unproven.Load() >= maxHandshakes || d.mu.hosts[host] >= maxHandshakesPerHost {
		return false
	}
	if d.mu.hosts == nil {
		d.mu.hosts = make(map[netip.Addr]int)
	}
	d.mu.hosts[host]++
	d.unproven.Add(1)
	return true
}

// end takes one such connection off.
func (d *door) end(host netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unproven.Add(-1)
	if d.mu.hosts[host]--; d.mu.hosts[host] == 0 {
		delete(d.mu.hosts, host)
	}
}

// hostOf is who counts as one host: an IPv4 address, or what one customer of
// IPv6 has at least.
func hostOf(remote net.Addr) netip.Addr {
	udp, ok := remote.(*net.UDPAddr)
	if !ok {
		return netip.Addr{}
	}
	a := udp.AddrPort().Addr().Unmap()
	if a.Is6() {
		prefix, err := a.WithZone("").Prefix(64)
		if err == nil {
			return prefix.Addr()
		}
	}
	return a
}

// doubts reports whether strangers must prove that their address is theirs,
// which costs them a round trip.
func (d *door) doubts(net.Addr) bool { return d.unproven.Load() >= retryAbove }

// prove notes that the guest has said who it is, and reports whether that is
// news.
func (g *guest) prove() bool {
	if g.proven.Swap(true) {
		return false
	}
	g.door.end(g.host)
	return true
}

// failed counts and logs a connection that ended before its hello.
func (d *door) failed(remote net.Addr, err error) {
	err = explain(err)
	if c, ok := errors.AsType[*ClosedError](err); ok && (c.Code == CodeShutdown || c.Code == CodeDuplicate) {
		return // nobody's fault
	}
	d.counters.handshakes.Add(1)
	// Who just goes away is usual: a command that was interrupted, a host that
	// lost its network. It must not keep the others out of the log either.
	kind, level := &d.lost, slog.LevelDebug
	if strange(err) {
		kind, level = &d.strange, slog.LevelWarn
	}
	if unlogged, ok := kind.allow(); ok {
		d.log.Log(context.Background(), level, "a connection failed before it was known whose it is",
			"remote", remote.String(), "err", err, "unlogged", unlogged)
	}
}

// strange reports whether a connection failed because of what the other side
// is or sent, about which an operator can do something.
func strange(err error) bool {
	if c, ok := errors.AsType[*ClosedError](err); ok {
		return c.Code == CodeRefused || c.Code == CodeBadFrame
	}
	return identity.ClassOf(err) == identity.Certificate
}

// accept takes connections off a listener until it is closed.
func (t *Transport) accept(l *quic.Listener) {
	for {
		conn, err := l.Accept(t.ctx)
		if err != nil {
			if t.ctx.Err() == nil {
				t.log.Error("nothing is accepted any more", "address", l.Addr().String(), "err", err)
			}
			return
		}
		t.start(func() { t.greet(conn) }) // if not, closing the socket ends it
	}
}

// greet exchanges hellos with a connection that came in, and makes it a
// session.
func (t *Transport) greet(conn *quic.Conn) {
	l := &link{conn: conn}
	stop := context.AfterFunc(t.ctx, func() { l.close(CodeShutdown, shutdownText) })
	err := t.hear(l)
	if !stop() {
		return
	}
	if err != nil {
		l.closeBad(err)
		return // the door tells of it
	}
	if g := guestOf(conn); g != nil {
		g.prove()
		l.account = g.account
	}
	if _, err := t.register(l); err != nil {
		t.log.Debug("no session", "peer", l.peer.String(), "remote", l.conn.RemoteAddr().String(), "err", err)
	}
}

// hear waits for the stream and hello of a connection that came in, and
// answers with this side's.
func (t *Transport) hear(l *link) error {
	var err error
	if l.peer, err = identity.PeerOf(l.conn.ConnectionState().TLS); err != nil {
		return &refusal{err.Error()}
	}
	if !t.door.admits(l.peer) {
		t.door.turnAway(l.conn.RemoteAddr())
		return &refusal{errCrowded.Error()}
	}
	ctx, cancel := context.WithTimeout(t.ctx, HelloTimeout)
	defer cancel()
	if l.stream, err = l.conn.AcceptStream(ctx); err != nil {
		return err
	}
	deadline, _ := ctx.Deadline()
	if err := l.stream.SetDeadline(deadline); err != nil {
		return err
	}
	h, err := readHello(l.stream)
	if err != nil {
		return err
	}
	if err := t.checkHello(h, l.peer); err != nil {
		return err
	}
	l.bulk = h.Bulk
	if err := t.writeHello(l.stream); err != nil {
		return err
	}
	return l.stream.SetDeadline(time.Time{})
}
