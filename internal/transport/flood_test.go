package transport_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/quic-go/quic-go"

	"atoll/internal/transport"
	"atoll/internal/udpproxy"
	"atoll/internal/wire"
)

// TestHandshakesThatNeverEnd: a host that proves its address, begins many
// handshakes and finishes none takes its share of the places and no more, and
// others get in.
func TestHandshakesThatNeverEnd(t *testing.T) {
	t.Parallel()
	const flood = 2 * transport.MaxHandshakesPerHost
	c := newCluster(t)
	server := open(t, transport.Config{
		Credentials: c.node(), Listen: []string{"127.0.0.1:0", "[::1]:0"}, Handler: newHandler(t, echo),
	})
	four, six := server.Addrs()[0], server.Addrs()[1]
	proxy, err := udpproxy.New(udpproxy.Config{To: four.String()})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	// What proves an address is small, and a certificate isn't.
	proxy.SetWay(udpproxy.ToClient, udpproxy.Faults{MTU: 600})

	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	stranger := &quic.Transport{Conn: udp}
	defer func() {
		if err := errors.Join(stranger.Close(), udp.Close()); err != nil {
			t.Error(err)
		}
	}()
	tls := c.client().ClientTLS()
	tls.NextProtos = []string{wire.ALPN}
	ctx, cancel := context.WithCancel(t.Context())
	var dials sync.WaitGroup
	defer dials.Wait()
	defer cancel()
	for range flood {
		dials.Go(func() {
			if conn, err := stranger.Dial(ctx, net.UDPAddrFromAddrPort(proxy.Addr()), tls, nil); err == nil {
				t.Error("a handshake ended")
				_ = conn.CloseWithError(0, "")
			}
		})
	}
	until(t, "some are turned away", func() bool { return server.Stats().Refused > 0 })
	if n := server.Unproven(); n > transport.MaxHandshakesPerHost {
		t.Errorf("%d handshakes of one host go on, at most %d may", n, transport.MaxHandshakesPerHost)
	}
	got, collect := answers()
	client := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, collect)})
	send(t, dial(t, client, six.String()), 1, put(10))
	receive(t, got)

	cancel()
	dials.Wait()
	until(t, "the places are free again", func() bool { return server.Unproven() == 0 && server.Hosts() == 0 })
}
