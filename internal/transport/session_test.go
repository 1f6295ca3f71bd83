package transport_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"atoll/abd"
	"atoll/internal/identity"
	"atoll/internal/transport"
	"atoll/internal/udpproxy"
	"atoll/internal/wire"
	"atoll/quorum"
)

// answers collects what comes.
func answers() (chan transport.Incoming, func(*transport.Session, []transport.Incoming)) {
	c := make(chan transport.Incoming, 100_000)
	return c, func(_ *transport.Session, in []transport.Incoming) {
		for _, m := range in {
			c <- m
		}
	}
}

func TestEcho(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0", "localhost:0"} {
		t.Run(listen, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			node := c.node()
			sh := newHandler(t, echo)
			server := open(t, transport.Config{Credentials: node, Listen: []string{listen}, Handler: sh})
			got, collect := answers()
			ch := newHandler(t, collect)
			client := open(t, transport.Config{Credentials: c.client(), Handler: ch})

			s := dial(t, client, server.Addrs()[0].String())
			if s.Peer() != node.Self() || s.Node() != node.Self().Node {
				t.Errorf("peer %v, want %v", s.Peer(), node.Self())
			}
			if client.Session(s.ID()) != s {
				t.Error("the session can't be found by its number")
			}
			accepted := receive(t, sh.up)
			want := quorum.NodeID(fmt.Sprintf("client-%d", accepted.ID()))
			if accepted.Peer().Role != identity.RoleClient || accepted.Node() != want {
				t.Errorf("accepted %v as %q, want a client as %q", accepted.Peer(), accepted.Node(), want)
			}
			m := put(100)
			send(t, s, 7, m)
			in := receive(t, got)
			ack, ok := in.Message.(*abd.GetAck)
			if !ok || in.Conversation != 7 || !bytes.Equal(ack.Record.Value, m.Record.Value) {
				t.Errorf("got %#v in conversation %d", in.Message, in.Conversation)
			}
			closeIt(t, client)
			if err := receive(t, sh.down); !errors.Is(err, transport.ErrClosed) {
				t.Errorf("the server was told %v", err)
			}
			if err := s.Queue(8, m); !errors.Is(err, transport.ErrClosed) {
				t.Errorf("Queue on a closed session: %v", err)
			}
			if client.Session(s.ID()) != nil {
				t.Error("a closed session is found by its number")
			}
		})
	}
}

// TestPathGetsNarrower: a client's requests arrive, and each is acknowledged, but
// the large packets of an answer don't get through, and the small ones of others
// wait behind them. The session ends, though nothing more is to be written.
func TestPathGetsNarrower(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	server := open(t, transport.Config{
		Credentials: c.node(), Listen: []string{"127.0.0.1:0"}, Handler: newHandler(t, echo), StallTimeout: 2 * time.Second,
	})
	proxy, err := udpproxy.New(udpproxy.Config{To: server.Addrs()[0].String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	h := newHandler(t, nil)
	client := open(t, transport.Config{Credentials: c.client(), Handler: h})
	s := dial(t, client, proxy.Addr().String())
	proxy.SetWay(udpproxy.ToClient, udpproxy.Faults{MTU: 600})
	send(t, s, 1, put(30_000))
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for range 12 {
		receive(t, tick.C)
		if s.Queue(2, put(10)) == nil { // or it is over
			s.Flush()
		}
	}
	var closed *transport.ClosedError
	if err := receive(t, h.down); !errors.As(err, &closed) || closed.Code != transport.CodeStalled || !closed.Remote {
		t.Errorf("the session ended with: %v", err)
	}
	if stalls := server.Stats().Stalls; stalls != 1 {
		t.Errorf("%d stalls are counted, want 1", stalls)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, address, _ := server(t, c)
	got, collect := answers()
	client := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, collect)})
	s := dial(t, client, address)
	const n = 600
	sizes := []int{0, 1, 100, 1000, 1500, 40_000}
	for i := range n {
		if err := s.Queue(uint64(i), put(sizes[i%len(sizes)])); err != nil {
			t.Fatal(err)
		}
		if i%97 == 0 {
			s.Flush()
		}
	}
	s.Flush()
	for i := range n {
		in := receive(t, got)
		if in.Conversation != uint64(i) {
			t.Fatalf("answer %d is to conversation %d", i, in.Conversation)
		}
		if m := put(sizes[i%len(sizes)]); !bytes.Equal(in.Message.(*abd.GetAck).Record.Value, m.Record.Value) {
			t.Fatalf("answer %d has another value", i)
		}
	}
}

func TestCoalescing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, address, _ := server(t, c)
	got, collect := answers()
	client := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, collect)})
	s := dial(t, client, address)
	before := client.Stats()
	const n = 200
	for i := range n {
		if err := s.Queue(uint64(i), put(100)); err != nil {
			t.Fatal(err)
		}
	}
	if w := client.Stats().Writes - before.Writes; w != 0 {
		t.Errorf("%d writes before Flush", w)
	}
	s.Flush()
	for range n {
		receive(t, got)
	}
	after := client.Stats()
	if w, f := after.Writes-before.Writes, after.FramesOut-before.FramesOut; w != 1 || f != n {
		t.Errorf("%d frames in %d writes, want %d in 1", f, w, n)
	}
	if after.FramesIn-before.FramesIn != n || after.BytesOut-before.BytesOut < n*100 || after.BytesIn-before.BytesIn < n*100 {
		t.Errorf("stats %+v", after)
	}
}

func TestLargeMessage(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	got, collect := answers()
	server := open(t, transport.Config{Credentials: c.node(), Listen: []string{"127.0.0.1:0"}, Handler: newHandler(t, collect)})
	client := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, nil)})
	s := dial(t, client, server.Addrs()[0].String())
	m := put(abd.LargestMaxValue)
	send(t, s, 1, m)
	send(t, s, 2, put(10))
	seen := make(map[uint64]int) // bytes of values, by conversation
	for len(seen) < 2 {
		in := receive(t, got)
		value := in.Message.(*abd.Put).Record.Value
		seen[in.Conversation] = len(value)
		if !bytes.Equal(value, m.Record.Value[:len(value)]) {
			t.Errorf("conversation %d: the value changed on its way", in.Conversation)
		}
	}
	if seen[1] != abd.LargestMaxValue || seen[2] != 10 {
		t.Errorf("bytes by conversation: %v", seen)
	}
	if out, in := client.Stats(), server.Stats(); out.BulkOut != 1 || in.BulkIn != 1 || out.FramesOut != 2 || in.FramesIn != 2 {
		t.Errorf("counted %+v, %+v", out, in)
	}
}

func TestOversizedMessageIsTheSendersError(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, address, _ := server(t, c)
	got, collect := answers()
	client := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, collect)})
	s := dial(t, client, address)
	if err := s.Queue(1, put(100)); err != nil {
		t.Fatal(err)
	}
	var limit *wire.LimitError
	if err := s.Queue(2, put(abd.LargestMaxValue+1)); !errors.As(err, &limit) {
		t.Errorf("Queue of too large a value: %v", err)
	}
	send(t, s, 3, put(100))
	for _, want := range []uint64{1, 3} {
		if in := receive(t, got); in.Conversation != want {
			t.Errorf("conversation %d, want %d", in.Conversation, want)
		}
	}
}

func TestConcurrentSend(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	node := c.node()
	const senders, each = 64, 200
	type seen struct {
		mu   sync.Mutex
		next [senders]uint64
		n    int
	}
	var s seen
	all := make(chan struct{})
	server := open(t, transport.Config{Credentials: node, Listen: []string{"127.0.0.1:0"}, Handler: newHandler(t,
		func(_ *transport.Session, in []transport.Incoming) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, m := range in {
				sender, number := m.Conversation>>32, m.Conversation&0xffffffff
				if s.next[sender] != number {
					t.Errorf("sender %d: %d comes after %d", sender, number, s.next[sender])
				}
				s.next[sender]++
				if s.n++; s.n == senders*each {
					close(all)
				}
			}
		})})
	h := newHandler(t, nil)
	to := node.Self().Node
	client := open(t, transport.Config{Credentials: c.client(), Handler: h,
		Addresses: func(quorum.NodeID) []string { return []string{server.Addrs()[0].String()} }})
	client.Connect(to)
	receive(t, h.up)
	var wg sync.WaitGroup
	for sender := range uint64(senders) {
		wg.Go(func() {
			for i := range uint64(each) {
				if err := client.Send(to, sender<<32|i, put(64)); err != nil {
					t.Errorf("Send: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	receive(t, all)
}
