package transport_test

import (
	"context"
	"errors"
	"io"
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

// large is the size of a value whose frame is a large one.
const large = transport.BulkAbove + 1

func isLarge(m env.Message) bool { return wire.ValueSize(m) > transport.BulkAbove }

// TestSmallPassesLarge: while nobody takes the large frames, of which there are
// more than fit on the way, small ones come and go.
func TestSmallPassesLarge(t *testing.T) {
	t.Parallel()
	const size, n = 1 << 20, 6
	c := newCluster(t)
	hold := make(chan struct{})
	waiting := make(chan struct{}, n)
	server := open(t, transport.Config{Credentials: c.node(), Listen: []string{"127.0.0.1:0"}, Handler: newHandler(t,
		func(s *transport.Session, in []transport.Incoming) {
			if isLarge(in[0].Message) {
				waiting <- struct{}{}
				<-hold
			}
			echo(s, in)
		})})
	got, collect := answers()
	client := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, collect)})
	s := dial(t, client, server.Addrs()[0].String())
	for i := range n {
		send(t, s, uint64(i), put(size))
	}
	receive(t, waiting)
	for i := range 100 {
		send(t, s, uint64(1000+i), put(100))
		if in := receive(t, got); in.Conversation != uint64(1000+i) {
			t.Fatalf("conversation %d was answered, want %d", in.Conversation, 1000+i)
		}
	}
	close(hold)
	for i := range n {
		in := receive(t, got)
		if in.Conversation != uint64(i) || len(in.Message.(*abd.GetAck).Record.Value) != size {
			t.Fatalf("conversation %d was answered, want %d", in.Conversation, i)
		}
	}
}

// TestManyKeysAreLarge: a frame is large by what it holds, not by its kind.
func TestManyKeysAreLarge(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	got, collect := answers()
	server := open(t, transport.Config{Credentials: c.node(), Listen: []string{"127.0.0.1:0"}, Handler: newHandler(t, collect)})
	client := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, nil)})
	s := dial(t, client, server.Addrs()[0].String())
	page := &abd.Page{Items: make([]abd.Item, abd.MaxPage)}
	for i := range page.Items {
		page.Items[i].Key = abd.Key(strings.Repeat("k", abd.MaxKey))
	}
	send(t, s, 1, page)
	if m, ok := receive(t, got).Message.(*abd.Page); !ok || len(m.Items) != len(page.Items) {
		t.Errorf("got %T", m)
	}
	if stats := client.Stats(); stats.BulkOut != 1 {
		t.Errorf("%d large frames", stats.BulkOut)
	}
}

// drains is a handler that is told when a session is no longer congested.
type drains struct {
	*handler
	drained chan struct{}
	server  *transport.Transport // whose handler it is
}

func (d *drains) Drained(*transport.Session) { d.drained <- struct{}{} }

// rawPeer is a server with limits, and a peer of it that takes large frames on
// their own stream when the test reads that.
func rawPeer(t *testing.T, limit int, stall time.Duration) (h *drains, s *transport.Session, conn *quic.Conn, stream *quic.Stream) {
	t.Helper()
	const window = 32 << 10
	c := newCluster(t)
	h = &drains{handler: newHandler(t, nil), drained: make(chan struct{}, 10)}
	h.server = open(t, transport.Config{
		Credentials: c.node(), Listen: []string{"127.0.0.1:0"}, Handler: h, MaxBulkClient: limit, StallTimeout: stall,
	})
	credentials := c.client()
	conn, stream = rawDial(t, credentials, h.server.Addrs()[0].String(), &quic.Config{
		InitialStreamReceiveWindow: window, MaxStreamReceiveWindow: window, MaxIncomingUniStreams: 1,
	})
	shakeBulk(t, credentials, stream)
	return h, receive(t, h.up), conn, stream
}

// nextFrame reads a frame from a stream.
func nextFrame(t testing.TB, r io.Reader) (conversation uint64, m env.Message) {
	t.Helper()
	body := readFrame(t, r)
	if _, err := io.ReadFull(r, body); err != nil {
		t.Fatal(err)
	}
	conversation, m, err := wire.DecodeFrame(body)
	if err != nil {
		t.Fatal(err)
	}
	return conversation, m
}

// TestBulkIsBounded: large frames that nobody reads take up to their limit and
// no more, small ones go on meanwhile, and in the end the session is closed.
func TestBulkIsBounded(t *testing.T) {
	t.Parallel()
	const limit = 20 * large
	h, s, _, stream := rawPeer(t, limit, 500*time.Millisecond)
	n := 0
	var err error
	for ; err == nil; n++ {
		err = s.Queue(0, put(large))
	}
	if !errors.Is(err, transport.ErrQueueFull) || n < 19 || n > 21 {
		t.Errorf("%d large frames were taken, then: %v", n-1, err)
	}
	if !s.BulkCongested() || s.Congested() {
		t.Errorf("congested: %v, for large frames: %v", s.Congested(), s.BulkCongested())
	}
	send(t, s, 7, put(10))
	if conversation, _ := nextFrame(t, stream); conversation != 7 {
		t.Errorf("conversation %d came on the first stream", conversation)
	}
	var closed *transport.ClosedError
	if err := receive(t, h.down); !errors.As(err, &closed) || closed.Code != transport.CodeStalled || closed.Remote {
		t.Errorf("the session ended with: %v", err)
	}
}

// TestBulkIsCharged: what waits of large frames is the client's, and is given back
// when it has left.
func TestBulkIsCharged(t *testing.T) {
	t.Parallel()
	const frames = 5
	h, s, conn, _ := rawPeer(t, 2*frames*large, 0)
	before := h.server.Stats().MemoryClients
	for conversation := range uint64(frames) {
		if err := s.Queue(conversation+1, put(large)); err != nil {
			t.Fatal(err)
		}
	}
	if more := h.server.Stats().MemoryClients - before; more < (frames-1)*large || more > 4*frames*large {
		t.Fatalf("%d frames of %d bytes wait, and %d bytes are charged", frames, large, more)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	bulk, err := conn.AcceptUniStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range frames {
		nextFrame(t, bulk)
	}
	until(t, "what has left is given back", func() bool {
		left := h.server.Stats().MemoryClients - before
		return left >= 0 && left < large/2
	})
}

// TestSameRequestWaits: what waits already isn't queued again, and Drained
// tells when there is room.
func TestSameRequestWaits(t *testing.T) {
	t.Parallel()
	h, s, conn, _ := rawPeer(t, 4*large, 0)
	for _, conversation := range []uint64{1, 2, 2, 3, 2, 3} {
		if err := s.Queue(conversation, put(large)); err != nil {
			t.Fatal(err)
		}
	}
	if !s.BulkCongested() {
		t.Error("not congested")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	bulk, err := conn.AcceptUniStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []uint64{1, 2, 3} {
		conversation, m := nextFrame(t, bulk)
		if conversation != want || wire.ValueSize(m) != large {
			t.Errorf("conversation %d came, want %d", conversation, want)
		}
	}
	receive(t, h.drained)
	// A request that has left may be sent again: its answer may be lost.
	if err := s.Queue(2, put(large)); err != nil {
		t.Fatal(err)
	}
	if conversation, _ := nextFrame(t, bulk); conversation != 2 {
		t.Errorf("conversation %d came, want 2 again", conversation)
	}
	if s.BulkCongested() {
		t.Error("congested still")
	}
}

// TestGarbageOnBulkStream: it closes the session as it does on the first one.
func TestGarbageOnBulkStream(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(*quic.SendStream) error{
		"length of 4 GiB": func(s *quic.SendStream) error { _, err := s.Write([]byte{0xff, 0xff, 0xff, 0xff}); return err },
		"noise":           func(s *quic.SendStream) error { _, err := s.Write(raw(0xc1)); return err },
		"the end":         func(s *quic.SendStream) error { return s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _, conn, _ := rawPeer(t, 0, 0)
			stream, err := conn.OpenUniStream()
			if err != nil {
				t.Fatal(err)
			}
			if err := send(stream); err != nil {
				t.Fatal(err)
			}
			receive(t, conn.Context().Done())
			if err := receive(t, h.down); name != "the end" && !strings.Contains(err.Error(), "bad frame") {
				t.Errorf("the session ended with: %v", err)
			}
		})
	}
}

// TestOlderPeer: who doesn't know the stream for large frames, whether it
// dials or accepts, gets all on the first, and sends all there.
func TestOlderPeer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	t.Run("dials", func(t *testing.T) {
		t.Parallel()
		_, address, _ := server(t, c)
		credentials := c.client()
		_, stream := rawDial(t, credentials, address, &quic.Config{MaxIncomingUniStreams: -1})
		shake(t, credentials, stream)
		if _, err := stream.Write(frame(t, 5, put(large))); err != nil {
			t.Fatal(err)
		}
		if conversation, m := nextFrame(t, stream); conversation != 5 || wire.ValueSize(m) != large {
			t.Errorf("conversation %d: %T", conversation, m)
		}
	})
	t.Run("accepts", func(t *testing.T) {
		t.Parallel()
		address, stream := olderNode(t, c.node())
		got, collect := answers()
		client := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, collect)})
		s := dial(t, client, address)
		old := receive(t, stream)
		send(t, s, 6, put(large))
		conversation, m := nextFrame(t, old)
		if conversation != 6 || wire.ValueSize(m) != large {
			t.Errorf("conversation %d: %T", conversation, m)
		}
		if _, err := old.Write(frame(t, 6, &abd.GetAck{Record: m.(*abd.Put).Record})); err != nil {
			t.Fatal(err)
		}
		if in := receive(t, got); in.Conversation != 6 {
			t.Errorf("conversation %d was answered", in.Conversation)
		}
	})
}

// olderNode accepts one connection as an older version does, and passes its
// stream on once the hellos are exchanged.
func olderNode(t *testing.T, c *identity.Credentials) (address string, streams <-chan *quic.Stream) {
	t.Helper()
	tls := c.ServerTLS()
	tls.NextProtos = []string{wire.ALPN}
	l, err := rawSocket(t).Listen(tls, &quic.Config{MaxIncomingUniStreams: -1})
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan *quic.Stream, 1)
	done := make(chan error, 1)
	go func() {
		done <- func() error {
			conn, err := l.Accept(context.Background())
			if err != nil {
				return err
			}
			stream, err := conn.AcceptStream(context.Background())
			if err != nil {
				return err
			}
			if _, err := io.ReadFull(stream, readFrame(t, stream)); err != nil {
				return err
			}
			_, err = stream.Write(frame(t, 0, &wire.Hello{Version: wire.Version, Cluster: c.Cluster(), Node: c.Self().Node}))
			accepted <- stream
			return err
		}()
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := receive(t, done); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String(), accepted
}
