package transport_test

import (
	"errors"
	"testing"

	"atoll/internal/transport"
	"atoll/quorum"
)

// TestForget: a node that isn't wanted any more loses its session, isn't dialed
// again, and comes back when it is wanted.
func TestForget(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	credentials := c.node()
	node := credentials.Self().Node
	sh, h := newHandler(t, nil), newHandler(t, nil)
	server := open(t, transport.Config{Credentials: credentials, Listen: []string{"127.0.0.1:0"}, Handler: sh})
	address := server.Addrs()[0].String()
	client := open(t, transport.Config{Credentials: c.client(), Handler: h,
		Addresses: func(quorum.NodeID) []string { return []string{address} }})
	client.Connect(node)
	receive(t, h.up)
	receive(t, sh.up)
	client.Forget("nobody", node)
	var closed *transport.ClosedError
	if err := receive(t, h.down); !errors.As(err, &closed) || closed.Remote || closed.Code != transport.CodeUnwanted {
		t.Errorf("the session ended with: %v", err)
	}
	if err := receive(t, sh.down); !errors.As(err, &closed) || !closed.Remote || closed.Code != transport.CodeUnwanted {
		t.Errorf("the node was told: %v", err)
	}
	if n := client.Peers(); n != 0 || client.Connected(node) {
		t.Errorf("%d nodes are remembered", n)
	}
	client.Forget(node)
	client.Connect(node)
	receive(t, h.up)
	closeIt(t, client) // whatever was begun has ended
	if stats := server.Stats(); stats.Accepted != 2 {
		t.Errorf("%d connections were made, want 2", stats.Accepted)
	}
}

// TestForgetWhileDialing: an attempt that goes on ends, and there is no other.
func TestForgetWhileDialing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	dead := silence(t)
	client := open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, nil),
		Addresses: func(quorum.NodeID) []string { return []string{dead} }})
	node := c.node().Self().Node
	client.Connect(node)
	client.Forget(node)
	if n := client.Peers(); n != 0 {
		t.Errorf("%d nodes are remembered", n)
	}
	closeIt(t, client)
	if failures := client.Stats().Dial; failures != (transport.DialFailures{}) {
		t.Errorf("an attempt went on: %+v", failures)
	}
}

// TestForgetLeavesWhatCameIn: a node that dialed this side may still ask.
func TestForgetLeavesWhatCameIn(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	one, address, oneHandler := server(t, c)
	got, collect := answers()
	credentials := c.node()
	other := open(t, transport.Config{Credentials: credentials, Handler: newHandler(t, collect)})
	s := dial(t, other, address)
	receive(t, oneHandler.up)
	one.Connect(credentials.Self().Node) // it has no address
	one.Forget(credentials.Self().Node)
	send(t, s, 3, put(10))
	if in := receive(t, got); in.Conversation != 3 {
		t.Errorf("conversation %d was answered", in.Conversation)
	}
}

// TestMoved: a node that is being dialed where nobody answers is dialed elsewhere as
// soon as that is known, and not when the attempt has failed.
func TestMoved(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	credentials := c.node()
	node := credentials.Self().Node
	server := open(t, transport.Config{Credentials: credentials, Listen: []string{"127.0.0.1:0"}, Handler: newHandler(t, nil)})
	var where addresses
	dialing := make(chan struct{}, 100)
	where.set(node, silence(t))
	h := newHandler(t, nil)
	client := open(t, transport.Config{Credentials: c.client(), Handler: h, Addresses: func(id quorum.NodeID) []string {
		dialing <- struct{}{}
		return where.get(id)
	}})
	client.Connect(node)
	receive(t, dialing)
	client.Moved("nobody", node) // without news: the attempt goes on
	receive(t, dialing)
	where.set(node, server.Addrs()[0].String())
	client.Moved(node)
	receive(t, h.up)
	if failures := client.Stats().Dial; failures != (transport.DialFailures{}) {
		t.Errorf("an attempt had to fail first: %+v", failures)
	}
}
