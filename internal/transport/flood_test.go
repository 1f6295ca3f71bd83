package transport_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"atoll/internal/transport"
	"atoll/internal/udpproxy"
	"atoll/internal/wire"
)

// TestHandshakesThatNeverEnd: while more handshakes go on than strangers are
// believed, who finishes one gets in. (How many one host may have is door's
// test.)
func TestHandshakesThatNeverEnd(t *testing.T) {
	t.Parallel()
	const flood = 2 * transport.RetryAbove
	c := newCluster(t)
	server := open(t, transport.Config{
		Credentials: c.node(), Listen: []string{"127.0.0.1:0"}, Handler: newHandler(t, echo),
	})
	address := server.Addrs()[0].String()
	proxy, err := udpproxy.New(udpproxy.Config{To: address})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	// What proves an address is small, and a certificate isn't.
	proxy.SetWay(udpproxy.ToClient, udpproxy.Faults{MTU: 600})

	stranger := rawSocket(t)
	tls := c.client().ClientTLS()
	tls.NextProtos = []string{wire.ALPN}
	ctx, cancel := context.WithCancel(t.Context())
	var dials sync.WaitGroup
	defer dials.Wait()
	defer cancel()
	for range flood {
		dials.Go(func() {
			for ctx.Err() == nil {
				if conn, err := stranger.Dial(ctx, net.UDPAddrFromAddrPort(proxy.Addr()), tls, nil); err == nil {
					t.Error("a handshake ended")
					_ = conn.CloseWithError(0, "")
				}
			}
		})
	}
	until(t, "strangers must prove their address", func() bool { return server.Unproven() >= transport.RetryAbove })
	got, collect := answers()
	client := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, collect)})
	send(t, dial(t, client, address), 1, put(10))
	receive(t, got)

	cancel()
	dials.Wait()
	until(t, "the places are free again", func() bool { return server.Unproven() == 0 && server.Hosts() == 0 })
}
