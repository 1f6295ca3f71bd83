package transport_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/transport"
	"atoll/internal/wire"
)

// rawSocket is QUIC on a free port of loopback without the package under test. With
// the test it ends, and with it all of its connections, whatever their peers have heard.
func rawSocket(t testing.TB) *quic.Transport {
	t.Helper()
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	tr := &quic.Transport{Conn: udp}
	t.Cleanup(func() {
		if err := errors.Join(tr.Close(), udp.Close()); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// rawDial makes a connection and stream to a server without the package under
// test, so that anything can be sent.
func rawDial(t testing.TB, c *identity.Credentials, address string, config *quic.Config) (*quic.Conn, *quic.Stream) {
	t.Helper()
	tr := rawSocket(t)
	to, err := net.ResolveUDPAddr("udp4", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tls := c.ClientTLS()
	tls.NextProtos = []string{wire.ALPN}
	conn, err := tr.Dial(ctx, to, tls, config)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := conn.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	return conn, stream
}

func frame(t testing.TB, conversation uint64, m env.Message) []byte {
	t.Helper()
	var e wire.Encoder
	b, err := e.AppendFrame(nil, conversation, m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// raw is a frame with any body.
func raw(body ...byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func TestGarbage(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	stranger := c.client()
	hello := func(h wire.Hello) []byte { return frame(t, 0, &h) }
	good := hello(wire.Hello{Version: wire.Version, Cluster: c.ca.Cluster()})
	after := func(b ...byte) []byte { return append(append([]byte{}, good...), b...) }
	for _, test := range []struct {
		name string
		send []byte
		code transport.Code
		text string
	}{
		{"length of 4 GiB", after(0xff, 0xff, 0xff, 0xff), transport.CodeBadFrame, "bad frame"},
		{"length beyond the limit", after(binary.BigEndian.AppendUint32(nil, wire.MaxFrame+1)...), transport.CodeBadFrame, "bad frame"},
		{"length 0", after(0, 0, 0, 0), transport.CodeBadFrame, "bad frame"},
		{"body of noise", after(raw([]byte("GET / HTTP/1.1\r\n")...)...), transport.CodeBadFrame, "bad frame"},
		{"good message, then noise", after(append(frame(t, 1, put(10)), raw(0xc1)...)...), transport.CodeBadFrame, "bad frame"},
		{"a second hello", after(good...), transport.CodeBadFrame, "second hello"},
		{"no hello", frame(t, 1, put(10)), transport.CodeBadFrame, "not a hello"},
		{"noise for a hello", raw(0x93, 0x01), transport.CodeBadFrame, "bad frame"},
		{"hello of 4 GiB", []byte{0xff, 0xff, 0xff, 0xff}, transport.CodeBadFrame, "bad frame"},
		{"hello too long", binary.BigEndian.AppendUint32(nil, 100_000), transport.CodeBadFrame, "a hello of 100000 bytes"},
		{"hello of another cluster", hello(wire.Hello{Version: wire.Version, Cluster: "cother"}), transport.CodeRefused, `cluster "cother"`},
		{"hello of a node", hello(wire.Hello{Version: wire.Version, Cluster: c.ca.Cluster(), Node: "nother"}), transport.CodeRefused, `node "nother"`},
		{"hello of another version", hello(wire.Hello{Version: wire.Version + 1, Cluster: c.ca.Cluster()}), transport.CodeRefused, "wire version"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server, address, _ := server(t, c)
			got, collect := answers()
			bystander := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, collect)})
			s := dial(t, bystander, address)

			var err error
			var closed *quic.ApplicationError
			// Why it is closed is said once, and the packet may be lost.
			for tries := 0; tries < 3 && closed == nil; tries++ {
				conn, stream := rawDial(t, stranger, address, &quic.Config{MaxIdleTimeout: transport.IdleTimeout})
				if _, err := stream.Write(test.send); err != nil {
					t.Fatal(err)
				}
				receive(t, conn.Context().Done())
				err = context.Cause(conn.Context())
				errors.As(err, &closed)
			}
			if closed == nil || !closed.Remote || closed.ErrorCode != quic.ApplicationErrorCode(test.code) {
				t.Errorf("closed with: %v", err)
			} else if !strings.Contains(closed.ErrorMessage, test.text) {
				t.Errorf("the reason is %q, want %q in it", closed.ErrorMessage, test.text)
			}
			// Everybody else is served on.
			send(t, s, 5, put(10))
			if in := receive(t, got); in.Conversation != 5 {
				t.Errorf("conversation %d", in.Conversation)
			}
			until(t, "one session is left", func() bool { return server.Stats().Sessions == 1 })
		})
	}
}

// TestNoHello: who says nothing is sent away.
func TestNoHello(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	server, address, _ := server(t, c)
	conn, _ := rawDial(t, c.client(), address, nil) // a stream shows when something is written
	receive(t, conn.Context().Done())
	var closed *quic.ApplicationError
	if err := context.Cause(conn.Context()); !errors.As(err, &closed) || closed.ErrorCode != quic.ApplicationErrorCode(transport.CodeSilent) {
		t.Errorf("closed with: %v", err)
	}
	until(t, "it is counted", func() bool { return server.Stats().Handshakes == 1 })
}

// shake says hello as a peer of an older version does, which has no bulk
// stream, and takes the answer.
func shake(t testing.TB, c *identity.Credentials, stream *quic.Stream) {
	t.Helper()
	sayHello(t, stream, &wire.Hello{Version: wire.Version, Cluster: c.Cluster(), Node: c.Self().Node})
}

// shakeBulk is shake for a peer that takes large frames on their own stream.
func shakeBulk(t testing.TB, c *identity.Credentials, stream *quic.Stream) {
	t.Helper()
	sayHello(t, stream, &wire.Hello{Version: wire.Version, Cluster: c.Cluster(), Node: c.Self().Node, Bulk: true})
}

func sayHello(t testing.TB, stream *quic.Stream, h *wire.Hello) {
	t.Helper()
	hello := frame(t, 0, h)
	if _, err := stream.Write(hello); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stream, readFrame(t, stream)); err != nil {
		t.Fatal(err)
	}
}

// readFrame reads a header and returns room for the body.
func readFrame(t testing.TB, r io.Reader) []byte {
	t.Helper()
	var header [wire.HeaderSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		t.Fatal(err)
	}
	n, err := wire.BodySize(header)
	if err != nil {
		t.Fatal(err)
	}
	return make([]byte, n)
}

// TestUnknownMessage: a newer peer's message is refused, and the session goes
// on.
func TestUnknownMessage(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, address, _ := server(t, c)
	credentials := c.client()
	_, stream := rawDial(t, credentials, address, nil)
	shake(t, credentials, stream)
	unknown := raw(0x93, 0xcd, 0x7f, 0xff, 42, 0x90) // [32767, 42, []]
	if _, err := stream.Write(append(unknown, frame(t, 43, put(10))...)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []uint64{42, 43} {
		body := readFrame(t, stream)
		if _, err := io.ReadFull(stream, body); err != nil {
			t.Fatal(err)
		}
		conversation, m, err := wire.DecodeFrame(body)
		if err != nil || conversation != want {
			t.Fatalf("conversation %d, %v", conversation, err)
		}
		if _, refused := m.(*env.Refused); refused != (want == 42) {
			t.Errorf("conversation %d: got %T", want, m)
		}
	}
}

// TestMoreStreamsAreRefused: a peer has one stream in both directions, and one
// for its large frames.
func TestMoreStreamsAreRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, address, _ := server(t, c)
	credentials := c.client()
	conn, stream := rawDial(t, credentials, address, nil)
	shake(t, credentials, stream)
	var limit *quic.StreamLimitReachedError
	if _, err := conn.OpenStream(); !errors.As(err, &limit) {
		t.Errorf("a second stream: %v", err)
	}
	if _, err := conn.OpenUniStream(); err != nil {
		t.Errorf("a stream in one direction: %v", err)
	}
	if _, err := conn.OpenUniStream(); !errors.As(err, &limit) {
		t.Errorf("a second stream in one direction: %v", err)
	}
}

// TestPeerThatNeverReads costs a bounded amount of memory and is closed.
func TestPeerThatNeverReads(t *testing.T) {
	t.Parallel()
	const limit, window, size = 1 << 20, 128 << 10, 50_000
	c := newCluster(t)
	h := newHandler(t, nil)
	server := open(t, transport.Config{
		Credentials: c.node(), Listen: []string{"127.0.0.1:0"}, Handler: h,
		MaxPendingClient: limit, StallTimeout: 2 * time.Second,
	})
	credentials := c.client()
	conn, stream := rawDial(t, credentials, server.Addrs()[0].String(), &quic.Config{
		InitialStreamReceiveWindow: window, MaxStreamReceiveWindow: window,
		InitialConnectionReceiveWindow: window, MaxConnectionReceiveWindow: window,
	})
	shake(t, credentials, stream)
	s := receive(t, h.up)
	accepted := 0
	var err error
	for ; err == nil; accepted++ {
		err = s.Queue(0, put(size))
	}
	if !errors.Is(err, transport.ErrQueueFull) {
		t.Fatalf("Queue: %v", err)
	}
	if most := (limit + window) / size; accepted > most+2 || accepted < limit/size/2 {
		t.Errorf("accepted %d messages, at most %d fit", accepted, most)
	}
	var closed *transport.ClosedError
	if err := receive(t, h.down); !errors.As(err, &closed) || closed.Code != transport.CodeStalled || closed.Remote {
		t.Errorf("the session ended with: %v", err)
	}
	receive(t, conn.Context().Done())
	if stats := server.Stats(); stats.Stalls != 1 || stats.QueueFull == 0 {
		t.Errorf("not counted: %+v", stats)
	}
}

// TestSlowReaderIsNotStalled: a peer that reads a little now and then is
// slow, and alive.
func TestSlowReaderIsNotStalled(t *testing.T) {
	t.Parallel()
	const window, stall = 64 << 10, time.Second
	c := newCluster(t)
	h := newHandler(t, nil)
	server := open(t, transport.Config{
		Credentials: c.node(), Listen: []string{"127.0.0.1:0"}, Handler: h, StallTimeout: stall,
	})
	credentials := c.client()
	_, stream := rawDial(t, credentials, server.Addrs()[0].String(), &quic.Config{
		InitialStreamReceiveWindow: window, MaxStreamReceiveWindow: window,
		InitialConnectionReceiveWindow: window, MaxConnectionReceiveWindow: window,
	})
	shake(t, credentials, stream)
	s := receive(t, h.up)
	send(t, s, 0, put(7*window))
	body := readFrame(t, stream)
	tick := time.NewTicker(stall / 4)
	defer tick.Stop()
	for read := 0; read < len(body); { // longer than the stall timeout in all
		receive(t, tick.C)
		n, err := io.ReadFull(stream, body[read:min(read+window, len(body))])
		if err != nil {
			t.Fatalf("after %d bytes: %v", read, err)
		}
		read += n
	}
	if _, m, err := wire.DecodeFrame(body); err != nil || len(m.(*abd.Put).Record.Value) != 7*window {
		t.Errorf("got %T, %v", m, err)
	}
	if len(h.down) > 0 {
		t.Errorf("the session ended: %v", <-h.down)
	}
}
