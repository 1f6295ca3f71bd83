package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"

	"github.com/quic-go/quic-go"

	"atoll/internal/identity"
	"atoll/internal/wire"
)

// A socket is a UDP socket and the QUIC transport that owns it. It serves for
// listening and for dialing.
type socket struct {
	udp      *net.UDPConn
	quic     *quic.Transport
	listener *quic.Listener // nil: it only dials
	local    netip.AddrPort
}

// close closes the listener, QUIC and the socket. Connections should have been
// closed before: QUIC tells their peers nothing here.
func (s *socket) close() error {
	var err error
	if s.listener != nil {
		err = s.listener.Close()
	}
	return errors.Join(err, s.quic.Close(), s.udp.Close())
}

// reaches reports whether a packet sent from s can get to an address: both of
// one family, and a socket bound to loopback reaches loopback only.
func (s *socket) reaches(to netip.Addr) bool {
	own := s.local.Addr()
	if own.Is4() != to.Is4() {
		return false
	}
	return own.IsUnspecified() || own.IsLoopback() == to.IsLoopback()
}

// bindings turns an address to listen on into those to bind. An empty host is
// every address of both families.
func (t *Transport) bindings(address string) (addrs []netip.AddrPort, optional bool, err error) {
	address, err = identity.ParseAddress(address)
	if err != nil {
		return nil, false, err
	}
	host, port, err := splitHostPort(address)
	if err != nil {
		return nil, false, err
	}
	if host == "" {
		return []netip.AddrPort{
			netip.AddrPortFrom(netip.IPv4Unspecified(), port),
			netip.AddrPortFrom(netip.IPv6Unspecified(), port),
		}, true, nil
	}
	ips, err := t.resolve(t.ctx, host)
	if err != nil {
		return nil, false, err
	}
	// A name stands for one interface here: localhost may mean ::1 as well,
	// and a second port would surprise.
	for _, ip := range ips {
		if ip.Is4() {
			return []netip.AddrPort{netip.AddrPortFrom(ip, port)}, false, nil
		}
	}
	return []netip.AddrPort{netip.AddrPortFrom(ips[0], port)}, false, nil
}

// splitHostPort splits an address that identity.ParseAddress returned.
func splitHostPort(address string) (host string, port uint16, err error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return "", 0, err
	}
	return host, uint16(n), nil
}

// resolve returns the addresses of a host, IPv6 and IPv4 taking turns as in
// RFC 8305, at most maxAddresses.
func (t *Transport) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.Unmap()}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	ips, err := t.cfg.Resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var six, four, mixed []netip.Addr
	for _, ip := range ips {
		if ip = ip.Unmap(); ip.Is4() {
			four = append(four, ip)
		} else {
			six = append(six, ip)
		}
	}
	for i := range max(len(six), len(four)) {
		mixed = append(mixed, six[min(i, len(six)):min(i+1, len(six))]...)
		mixed = append(mixed, four[min(i, len(four)):min(i+1, len(four))]...)
	}
	if len(mixed) == 0 {
		return nil, fmt.Errorf("%s has no address", host)
	}
	return mixed[:min(len(mixed), maxAddresses)], nil
}

// listenOn binds and listens on one configured address.
func (t *Transport) listenOn(address string) ([]*socket, error) {
	addrs, optional, err := t.bindings(address)
	if err != nil {
		return nil, &ListenError{Address: address, Err: err}
	}
	var made []*socket
	for _, addr := range addrs {
		s, err := t.bind(addr)
		if err == nil {
			s.listener, err = s.quic.Listen(t.serverTLS, acceptorConfig(t.door.widen))
			if err != nil {
				err = errors.Join(err, s.close())
			}
		}
		if optional && errors.Is(err, syscall.EAFNOSUPPORT) {
			continue // a host without IPv6 (or IPv4) listens on what it has
		}
		if err != nil {
			for _, s := range made {
				err = errors.Join(err, s.close())
			}
			return nil, NewListenError(address, err)
		}
		made = append(made, s)
	}
	if len(made) == 0 {
		return nil, &ListenError{Address: address, Err: syscall.EAFNOSUPPORT}
	}
	return made, nil
}

// plainBind says in words what the system says in symbols, without repeating
// the address.
func plainBind(err error) error {
	reason := err
	var op *net.OpError
	if errors.As(err, &op) {
		reason = op.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		reason = call.Err
	}
	text := reason.Error()
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		text = "the port is taken by another process: " + text
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		text = "this host doesn't have that address: " + text
	}
	return &worded{text, err}
}

// bind makes a socket. The options that let two processes share a port are
// never set: packets would go to either.
func (t *Transport) bind(addr netip.AddrPort) (*socket, error) {
	network := "udp6"
	if addr.Addr().Is4() {
		network = "udp4"
	}
	udp, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return nil, err
	}
	var resetKey *quic.StatelessResetKey
	if key := quic.StatelessResetKey(t.cfg.StatelessResetKey); key != (quic.StatelessResetKey{}) {
		resetKey = &key
	}
	local := udp.LocalAddr().(*net.UDPAddr).AddrPort()
	packets, err := newPacketConn(udp, addr.Addr().Is4())
	if err != nil {
		return nil, errors.Join(err, udp.Close())
	}
	return &socket{
		udp: udp,
		quic: &quic.Transport{
			Conn:                packets,
			StatelessResetKey:   resetKey,
			ConnContext:         t.door.enter,
			VerifySourceAddress: t.door.doubts,
		},
		local: netip.AddrPortFrom(local.Addr().Unmap(), local.Port()),
	}, nil
}

// socketFor returns a socket from which an address can be reached, and binds
// one to any free port if there is none.
func (t *Transport) socketFor(to netip.Addr) (*socket, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed {
		return nil, ErrClosed
	}
	for _, s := range t.mu.sockets {
		if s.reaches(to) {
			return s, nil
		}
	}
	from := netip.IPv6Unspecified()
	if to.Is4() {
		from = netip.IPv4Unspecified()
	}
	s, err := t.bind(netip.AddrPortFrom(from, 0))
	if err != nil {
		return nil, plainBind(err)
	}
	t.mu.sockets = append(t.mu.sockets, s)
	return s, nil
}

// withALPN returns a TLS configuration that speaks this wire version.
func withALPN(c *tls.Config) *tls.Config {
	c.NextProtos = []string{wire.ALPN}
	return c
}

// quietBuffers keeps quic-go from writing to the standard logger, which is
// nobody's choice, that the system grants less than the 7 MiB of socket
// buffers that it asks for. Packets that don't fit are sent again, so it is
// worth a line for those who look for it.
func (t *Transport) quietBuffers() {
	const name = "QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING"
	if os.Getenv(name) != "" {
		return
	}
	if err := os.Setenv(name, "true"); err != nil {
		t.log.Debug("environment", "err", err)
	}
	t.log.Debug("quic-go asks for UDP buffers of 7 MiB; where net.core.rmem_max and wmem_max are lower, bursts may lose packets")
}
