package transport_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"atoll/abd"
	"atoll/internal/identity"
	"atoll/internal/logtest"
	"atoll/internal/transport"
	"atoll/quorum"
)

// TestReconnect kills a node's process, so to speak, and starts it again on
// the same port: the client notices with its next message, and not after the
// idle timeout.
func TestReconnect(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	config := transport.Config{
		Credentials: c.node(), Listen: []string{"127.0.0.1:0"},
		Handler: newHandler(t, echo), StatelessResetKey: [32]byte{1, 2, 3},
	}
	first, err := transport.New(config)
	if err != nil {
		t.Fatal(err)
	}
	address := first.Addrs()[0].String()
	got, collect := answers()
	h := newHandler(t, collect)
	client := open(t, transport.Config{Credentials: c.client(), Handler: h,
		Addresses: func(quorum.NodeID) []string { return []string{address} }})
	node := config.Credentials.Self().Node

	var unreachable *transport.UnreachableError
	if err := client.Send(node, 1, put(100)); !errors.As(err, &unreachable) || !errors.Is(err, transport.ErrConnecting) {
		t.Errorf("Send before there is a session: %v", err)
	}
	receive(t, h.up)
	if err := client.Send(node, 1, put(100)); err != nil {
		t.Fatal(err)
	}
	receive(t, got)

	if err := first.Crash(); err != nil {
		t.Logf("crash: %v", err)
	}
	config.Listen = []string{address}
	config.Handler = newHandler(t, echo)
	open(t, config)
	if err := client.Send(node, 2, put(100)); err != nil {
		t.Fatalf("nobody could know yet, but: %v", err)
	}
	var reset *quic.StatelessResetError
	if err := receive(t, h.down); !errors.As(err, &reset) || !errors.Is(err, transport.ErrClosed) {
		t.Errorf("the session ended with: %v", err)
	}
	receive(t, h.up)
	if !client.Connected(node) {
		t.Error("up, and not connected")
	}
	if err := client.Send(node, 3, put(100)); err != nil {
		t.Fatal(err)
	}
	if in := receive(t, got); in.Conversation != 3 {
		t.Errorf("conversation %d was answered", in.Conversation)
	}
}

// TestPeerCloses: who closes in an orderly way is noticed at once, and Send
// says why there is no session.
func TestPeerCloses(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	server, address, _ := server(t, c)
	h := newHandler(t, nil)
	client := open(t, transport.Config{Credentials: c.client(), Handler: h})
	s := dial(t, client, address)
	receive(t, h.up)
	closeIt(t, server)
	var closed *transport.ClosedError
	if err := receive(t, h.down); !errors.As(err, &closed) || !closed.Remote || closed.Code != transport.CodeShutdown {
		t.Errorf("the session ended with: %v", err)
	}
	if err := client.Send(s.Node(), 1, put(1)); !errors.Is(err, transport.ErrNoAddress) {
		t.Errorf("Send to a node that is gone: %v", err)
	}
}

// TestName: of all that a name stands for, one that answers is enough.
func TestName(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, address, _ := server(t, c) // on 127.0.0.1; localhost may be ::1 as well
	client := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, nil)})
	dial(t, client, "localhost"+strings.TrimPrefix(address, "127.0.0.1"))
}

func TestDialAddressTwiceIsOneSession(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, address, _ := server(t, c)
	client := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, nil)})
	a, b := dial(t, client, address), dial(t, client, address)
	if a != b {
		t.Error("two sessions with one node")
	}
}

func TestWrongNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, address, h := server(t, c)
	missing := c.node().Self().Node
	client := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, nil),
		Addresses: func(quorum.NodeID) []string { return []string{address} }})
	var wrong *transport.WrongNodeError
	until(t, "Send says that another node is there", func() bool {
		return errors.As(client.Send(missing, 1, put(1)), &wrong)
	})
	if wrong.Want != missing || wrong.Address != address || !strings.Contains(wrong.Error(), "belongs to node") {
		t.Errorf("got %v", wrong)
	}
	if client.Stats().Dial.WrongNode == 0 {
		t.Error("not counted")
	}
	if len(h.up) > 0 {
		t.Error("the other node took it for a session")
	}
}

// TestProbe: an address is tried, and nobody takes that for a session.
func TestProbe(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	credentials, h := c.node(), newHandler(t, nil)
	address := open(t, transport.Config{Credentials: credentials, Listen: []string{"127.0.0.1:0"}, Handler: h}).Addrs()[0].String()
	_, elsewhere, _ := server(t, c)
	client := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, nil)})
	node := credentials.Self().Node
	if err := client.Probe(t.Context(), node, []string{address}); err != nil {
		t.Errorf("at its address: %v", err)
	}
	var wrong *transport.WrongNodeError
	if err := client.Probe(t.Context(), c.node().Self().Node, []string{address}); !errors.As(err, &wrong) {
		t.Errorf("at another one's: %v", err)
	}
	if err := client.Probe(t.Context(), node, []string{elsewhere, address}); err != nil {
		t.Errorf("at one of two addresses: %v", err)
	}
	if err := client.Probe(t.Context(), node, nil); err == nil {
		t.Error("nowhere")
	}
	if len(h.up) > 0 || client.Connected(node) {
		t.Error("it was taken for a session")
	}
	// Where it was dialed, it needn't be again; elsewhere it must.
	dial(t, client, address)
	before := client.Stats().Dial
	if err := client.Probe(t.Context(), node, []string{address}); err != nil {
		t.Error(err)
	}
	if err := client.Probe(t.Context(), node, []string{elsewhere}); err == nil || client.Stats().Dial == before {
		t.Errorf("where another one is: %v", err)
	}
}

// TestStrangers: whoever isn't accepted is told why, and so is the other side.
func TestStrangers(t *testing.T) {
	t.Parallel()
	ours := newCluster(t)
	other := newCluster(t)
	impostor := ours.sameName()
	past := time.Now().Add(-48 * time.Hour)
	for _, test := range []struct {
		name           string
		server, client *identity.Credentials
		which          identity.Which
		log            identity.Which
	}{
		{"client of another cluster", ours.node(), other.client(), identity.OtherCluster, identity.OtherCluster},
		{"node of another cluster", other.node(), ours.client(), identity.OtherCluster, identity.OtherCluster},
		{"wrong CA", ours.node(), impostor.client(), identity.WrongCA, identity.WrongCA},
		{"expired client", ours.node(), ours.issue(identity.RoleClient, past), identity.Expired, identity.Expired},
		{"expired node", ours.issue(identity.RoleNode, past), ours.client(), identity.Expired, identity.Expired},
		{"future client", ours.node(), ours.issue(identity.RoleClient, time.Now().Add(3*time.Hour)), identity.Expired, identity.NotYetValid},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			book := new(logtest.Book)
			sh := newHandler(t, nil)
			server := open(t, transport.Config{Credentials: test.server, Listen: []string{"127.0.0.1:0"}, Handler: sh, Log: book.Log(slog.LevelInfo)})
			ch := newHandler(t, nil)
			client := open(t, transport.Config{Credentials: test.client, Handler: ch})
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			_, err := client.DialAddress(ctx, server.Addrs()[0].String())
			var ourSide *identity.PeerError
			var otherSide *identity.RefusedError
			switch {
			case identity.ClassOf(err) != identity.Certificate:
				t.Fatalf("not about a certificate: %v", err)
			case errors.As(err, &ourSide) && ourSide.Which == test.which:
			case errors.As(err, &otherSide) && otherSide.Which == test.which:
			default:
				t.Errorf("want %q, got %v", test.which, err)
			}
			until(t, "the server's log says why", func() bool { return book.Contains("a connection failed") })
			if !book.Contains(string(test.log)) {
				t.Errorf("want %q in the server's log: %s", test.log, book)
			}
			if len(sh.up)+len(ch.up) > 0 {
				t.Error("somebody had a session")
			}
			if client.Stats().Dial.Certificate != 1 || server.Stats().Handshakes != 1 {
				t.Errorf("not counted: %+v, %+v", client.Stats().Dial, server.Stats().Handshakes)
			}
		})
	}
}

func TestConfigMustMatchCertificate(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	h := newHandler(t, nil)
	for name, config := range map[string]transport.Config{
		"other node":       {Credentials: c.node(), Handler: h, Self: "nother"},
		"other cluster":    {Credentials: c.node(), Handler: h, Cluster: "cother"},
		"client listens":   {Credentials: c.client(), Handler: h, Listen: []string{"127.0.0.1:0"}},
		"no handler":       {Credentials: c.client()},
		"no credentials":   {Handler: h},
		"negative pending": {Credentials: c.client(), Handler: h, MaxPending: -1},
	} {
		if tr, err := transport.New(config); err == nil {
			t.Errorf("%s: accepted", name)
			closeIt(t, tr)
		}
	}
}

func TestListenErrors(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, taken, _ := server(t, c)
	for _, test := range []struct{ listen, want string }{
		{taken, "taken by another process"},
		{"127.0.0.1", "HOST:PORT"},
		{"::1:7400", "ambiguous"},
		{"192.0.2.1:0", "doesn't have that address"},
		{"127.0.0.1:99999", "port"},
	} {
		// The first address is given back when the second can't be had.
		tr, err := transport.New(transport.Config{Credentials: c.node(), Listen: []string{"127.0.0.1:0", test.listen}, Handler: newHandler(t, nil)})
		if err == nil {
			t.Errorf("%s: accepted", test.listen)
			closeIt(t, tr)
			continue
		}
		var listen *transport.ListenError
		if !errors.As(err, &listen) || listen.Address != test.listen || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.listen, err)
		}
		if test.listen == taken && !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%s: %v is not EADDRINUSE", taken, err)
		}
	}
}

func TestListenEverywhere(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	server := open(t, transport.Config{Credentials: c.node(), Listen: []string{":0"}, Handler: newHandler(t, echo)})
	if len(server.Addrs()) != 2 {
		t.Fatalf("listens on %v, want both families", server.Addrs())
	}
	for _, a := range server.Addrs() {
		loopback := "127.0.0.1"
		if a.Addr().Is6() {
			loopback = "::1"
		}
		client := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, nil)})
		dial(t, client, net.JoinHostPort(loopback, a.String()[strings.LastIndexByte(a.String(), ':')+1:]))
	}
}

// silence is an address where nobody answers.
func silence(t testing.TB) string {
	t.Helper()
	deaf, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := deaf.Close(); err != nil {
			t.Error(err)
		}
	})
	return deaf.LocalAddr().String()
}

// TestSilentAddress: an address that doesn't answer holds up no other one,
// and the error says that nobody answered.
func TestSilentAddress(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	node := c.node()
	sh := newHandler(t, echo)
	server := open(t, transport.Config{Credentials: node, Listen: []string{"127.0.0.1:0"}, Handler: sh})
	dead := silence(t)
	h := newHandler(t, nil)
	var where addresses
	client := open(t, transport.Config{Credentials: c.client(), Handler: h, Addresses: where.get})
	where.set(node.Self().Node, "no such name", dead, server.Addrs()[0].String())
	client.Connect(node.Self().Node)
	receive(t, h.up)
	if timeouts := client.Stats().Dial.Timeout; timeouts != 0 {
		t.Errorf("waited for the silent address: %d timeouts", timeouts)
	}

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := client.DialAddress(ctx, dead)
	var failed *transport.DialError
	if !errors.As(err, &failed) || failed.Address != dead || !strings.Contains(err.Error(), "no answer within") {
		t.Errorf("dialed silence: %v", err)
	}
	if client.Stats().Dial.Timeout != 1 {
		t.Errorf("not counted: %+v", client.Stats().Dial)
	}
	impatient, cancel2 := context.WithCancel(context.Background())
	cancel2()
	if _, err := client.DialAddress(impatient, dead); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestNotReachedYet: while the first attempt goes on, the error says where.
func TestNotReachedYet(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	node, dead := c.node().Self().Node, silence(t)
	client := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, nil), Addresses: func(quorum.NodeID) []string { return []string{dead} }})
	want := fmt.Sprintf("node %s: %s: not reached yet", node, dead)
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		err := client.Send(node, 1, put(100))
		if !errors.Is(err, transport.ErrConnecting) || time.Now().After(deadline) {
			t.Fatalf("sent while the first attempt goes on: %v, want %q", err, want)
		}
		if err.Error() == want {
			return
		}
	}
}

// TestNewAddress: a node that can't be found is found as soon as Connect says
// that there is news.
func TestNewAddress(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	node := c.node()
	server := open(t, transport.Config{Credentials: node, Listen: []string{"127.0.0.1:0"}, Handler: newHandler(t, echo)})
	var where addresses
	h := newHandler(t, nil)
	book := new(logtest.Book)
	client := open(t, transport.Config{Credentials: c.client(), Handler: h, Addresses: where.get, Log: book.Log(slog.LevelInfo)})
	to := node.Self().Node
	if err := client.Send(to, 1, put(1)); !errors.Is(err, transport.ErrNoAddress) {
		t.Errorf("no address, but: %v", err)
	}
	client.Connect(to)
	until(t, "Connect tried", func() bool { return book.Contains("no address is known") })
	where.set(to, server.Addrs()[0].String())
	client.Connect(to)
	receive(t, h.up)
	if err := client.Send("", 1, put(1)); err == nil {
		t.Error("sent to nobody")
	}
}

// TestBothDial: two nodes dial each other at once, keep one session, and lose
// nothing on the way to it.
func TestBothDial(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var where addresses
	type side struct {
		id  quorum.NodeID
		tr  *transport.Transport
		h   *handler
		got chan transport.Incoming
	}
	var sides [2]side
	for i := range sides {
		credentials := c.node()
		s := &sides[i]
		s.id, s.got = credentials.Self().Node, make(chan transport.Incoming, 1000)
		s.h = newHandler(t, func(_ *transport.Session, in []transport.Incoming) {
			for _, m := range in {
				s.got <- m
			}
		})
		s.tr = open(t, transport.Config{Credentials: credentials, Listen: []string{"127.0.0.1:0"}, Handler: s.h, Addresses: where.get})
		where.set(s.id, s.tr.Addrs()[0].String())
	}
	for i, s := range sides {
		s.tr.Connect(sides[1-i].id)
	}
	for i, s := range sides {
		other := sides[1-i]
		receive(t, s.h.up)
		const n = 50
		for sent := uint64(0); sent < n; {
			if err := s.tr.Send(other.id, sent, &abd.Get{Key: "k"}); err == nil {
				sent++
			}
		}
		seen := make(map[uint64]bool)
		for len(seen) < n {
			seen[receive(t, other.got).Conversation] = true
		}
	}
	until(t, "one session remains", func() bool {
		return sides[0].tr.Stats().Sessions == 1 && sides[1].tr.Stats().Sessions == 1
	})
	for i, s := range sides {
		if err := s.tr.Send(sides[1-i].id, 1000, &abd.Get{Key: "k"}); err != nil {
			t.Errorf("Send over the one that remains: %v", err)
		}
		receive(t, sides[1-i].got)
	}
	if err := sides[0].tr.Send(sides[0].id, 1, &abd.Get{Key: "k"}); err == nil {
		t.Error("a node dials itself")
	}
}

func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	sh := newHandler(t, echo)
	book := new(logtest.Book)
	server := open(t, transport.Config{Credentials: c.node(), Listen: []string{"127.0.0.1:0"}, Handler: sh, MaxIncoming: 1, Log: book.Log(slog.LevelInfo)})
	address := server.Addrs()[0].String()
	first := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, nil)})
	dial(t, first, address)
	second := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, nil)})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := second.DialAddress(ctx, address); err == nil || !strings.Contains(err.Error(), "too many connections") {
		t.Errorf("the second was told: %v", err)
	}
	if server.Stats().Refused == 0 || second.Stats().Dial.Refused != 1 {
		t.Errorf("not counted: %+v, %+v", server.Stats(), second.Stats().Dial)
	}
	if !book.Contains("level=WARN msg=\"a connection was turned away, there are too many\"") || !book.Contains("connections=2 most=1") {
		t.Errorf("the log doesn't tell: %s", book)
	}
	node := open(t, transport.Config{Credentials: c.node(), Handler: newHandler(t, nil)})
	dial(t, node, address) // nodes have places of their own
	closeIt(t, node)
	receive(t, sh.down)
	closeIt(t, first)
	receive(t, sh.down)
	until(t, "there is room again", func() bool {
		s, err := second.DialAddress(ctx, address)
		return err == nil && s != nil
	})
}
