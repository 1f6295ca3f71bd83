package transport_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"atoll/internal/transport"
	"atoll/quorum"
)

// TestOneAttempt: whoever wants a session with the node at an address waits for
// the attempt that is under way, and neither dials as well nor ends it for the
// others. A handshake for nothing costs both sides as much as one for a session.
func TestOneAttempt(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	credentials := c.node()
	server := open(t, transport.Config{Credentials: credentials, Listen: []string{"127.0.0.1:0"}, Handler: newHandler(t, echo)})
	loopback := server.Addrs()[0].String()
	address := "node.test" + strings.TrimPrefix(loopback, "127.0.0.1")
	asked, resolve := make(chan struct{}, 8), make(chan struct{})
	h := newHandler(t, nil)
	client := open(t, transport.Config{
		Credentials: c.client(), Handler: h,
		Addresses: func(quorum.NodeID) []string { return []string{address} },
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			asked <- struct{}{}
			<-resolve
			return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
		},
	})

	impatient, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := client.DialAddress(impatient, address)
		gone <- err
	}()
	receive(t, asked)
	client.Connect(credentials.Self().Node)
	cancel()
	if err := receive(t, gone); err == nil {
		t.Error("there is a session with an address that isn't known yet")
	}
	patient := make(chan *transport.Session, 1)
	go func() {
		s, err := client.DialAddress(t.Context(), address)
		if err != nil {
			t.Errorf("who waits gets: %v", err)
		}
		patient <- s
	}()
	close(resolve)
	s := receive(t, h.up)
	if other := receive(t, patient); other != s {
		t.Error("another session with the same node")
	}
	until(t, "the node has it, too", func() bool { return server.Stats().Sessions == 1 })
	closeIt(t, client) // all that it does has ended
	came, again, late := server.Stats().Incoming, uint64(len(asked)), client.Stats().Dial.Timeout
	if came > 1+late || again > late {
		t.Errorf("%d connections for one session, dialed %d times more, and %d that were too slow", came, again, late)
	}
}

// TestMovedDuringAnAttempt: who waits for an attempt at an address doesn't wait on
// when the node turns out to be elsewhere.
func TestMovedDuringAnAttempt(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	credentials := c.node()
	node := credentials.Self().Node
	server := open(t, transport.Config{Credentials: credentials, Listen: []string{"127.0.0.1:0"}, Handler: newHandler(t, nil)})
	const nowhere = "nowhere.test:1"
	var where addresses
	where.set(node, nowhere)
	hanging, resolve, dialing := make(chan struct{}, 8), make(chan struct{}), make(chan struct{}, 100)
	h := newHandler(t, nil)
	client := open(t, transport.Config{
		Credentials: c.client(), Handler: h,
		Addresses: func(id quorum.NodeID) []string {
			known := where.get(id)
			dialing <- struct{}{}
			return known
		},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			hanging <- struct{}{}
			<-resolve
			return nil, errors.New("no such host")
		},
	})
	gone := make(chan error, 1)
	go func() {
		_, err := client.DialAddress(t.Context(), nowhere)
		gone <- err
	}()
	defer func() {
		close(resolve)
		if err := receive(t, gone); err == nil {
			t.Error("there is a session with nobody")
		}
	}()
	receive(t, hanging)
	client.Connect(node)
	receive(t, dialing)
	where.set(node, server.Addrs()[0].String())
	client.Moved(node)
	receive(t, h.up)
}
