package simreal_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/live"
	"atoll/internal/porttest"
	"atoll/internal/server"
	"atoll/internal/store"
	"atoll/internal/transport"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim/scenario"
)

// patience is how long a test waits for what must come. It is no measure.
const patience = time.Minute

// real is a cluster of servers in this process, on loopback.
type real struct {
	counted *counts
	clients []*realClient
}

// realClient is what package client is made of, with an eye on its messages.
type realClient struct {
	number    int
	counted   *counts
	runtime   *live.Runtime
	transport *transport.Transport
	self      scenario.Client
	members   []quorum.NodeID
	up        chan quorum.NodeID
}

func newReal(t *testing.T, s setting) *real {
	dir := filepath.Join(t.TempDir(), "cluster")
	spec := identity.Spec{Quorum: s.quorum, Prepare: func(dir string) error {
		return store.Create(store.Config{Dir: dir, SegmentBytes: 256 << 10})
	}}
	for i := range s.members {
		spec.Members = append(spec.Members, identity.MemberSpec{Name: string(rune('a' + i)), Address: porttest.Address(t)})
	}
	if _, err := identity.CreateCluster(dir, spec); err != nil {
		t.Fatal(err)
	}
	var folder *identity.Folder
	for _, m := range spec.Members {
		var err error
		if folder, err = identity.OpenFolder(filepath.Join(dir, m.Name)); err != nil {
			t.Fatal(err)
		}
		node, err := server.Start(server.Config{Folder: folder, Greeting: -1, Store: store.Config{SegmentBytes: 256 << 10}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := node.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	w := &real{counted: newCounts()}
	told := scenario.Cluster{
		ID:             folder.Cluster.Cluster,
		Configurations: quorum.Configurations{folder.Configuration},
		MaxValue:       folder.Cluster.MaxValue,
	}
	for i := range clients {
		c := w.open(t, i, dir, folder)
		c.self = s.algorithm.Client(told)
	}
	return w
}

// open opens a client and waits until it is connected to every member: what
// is sent before isn't sent at all.
func (w *real) open(t *testing.T, number int, dir string, folder *identity.Folder) *realClient {
	file, err := identity.LoadContext(filepath.Join(dir, identity.FileContext))
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := identity.ParseCredentials([]byte(file.CA), []byte(file.Certificate), []byte(file.Key))
	if err != nil {
		t.Fatal(err)
	}
	members := folder.Configuration.Members()
	c := &realClient{number: number, counted: w.counted, members: members, up: make(chan quorum.NodeID, len(members))}
	// How fast nodes are decides whom it asks, and must not decide how many.
	c.runtime = live.New(live.Config{Network: c, HedgeLeast: patience, ProbeEvery: patience})
	t.Cleanup(c.runtime.Stop)
	c.transport, err = transport.New(transport.Config{Credentials: credentials, Handler: c, Addresses: func(id quorum.NodeID) []string {
		m, _ := folder.Cluster.Member(id)
		return m.Addresses
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.transport.Close(); err != nil {
			t.Error(err)
		}
	})
	c.transport.Connect(members...)
	late := time.After(patience)
	for range members {
		select {
		case <-c.up:
		case <-late:
			t.Fatal("a client isn't connected to every member")
		}
	}
	w.clients = append(w.clients, c)
	return c
}

func (w *real) counts() *counts { return w.counted }

func (w *real) run(client int, f func(env.Env, scenario.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := w.clients[client]
	if err := f(&counting{c.runtime.Scope(ctx), w.counted}, c.self); err != nil {
		return err
	}
	for {
		silent, change := w.counted.silent()
		if silent {
			return c.flush(ctx)
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// flush asks every member how it is. Its answer comes after whatever was told
// it before, which has no answer of its own.
func (c *realClient) flush(ctx context.Context) error {
	heard := make(map[quorum.NodeID]bool)
	return c.runtime.Scope(ctx).Ask(c.members, &replica.StatusQuery{}, func(_ env.Conversation, from quorum.NodeID, _ env.Message) bool {
		heard[from] = true
		return len(heard) == len(c.members)
	})
}

// Send implements live.Network. What goes out is counted before, or its answer
// could come earlier.
func (c *realClient) Send(to quorum.NodeID, conversation uint64, m env.Message) error {
	c.counted.count(exchange{client: c.number, node: to, conversation: conversation}, m)
	return c.transport.Send(to, conversation, m)
}

// Answer implements live.Network: nobody asks a client anything.
func (c *realClient) Answer(env.Address, env.Message) error { return nil }

// Up implements transport.Handler.
func (c *realClient) Up(s *transport.Session) {
	c.runtime.PeerUp(s.Node())
	select {
	case c.up <- s.Node():
	default: // a connection that came again
	}
}

// Down implements transport.Handler.
func (c *realClient) Down(s *transport.Session, err error) { c.runtime.PeerDown(s.Node(), err) }

// Messages implements transport.Handler.
func (c *realClient) Messages(s *transport.Session, in []transport.Incoming) {
	for _, m := range in {
		c.counted.count(exchange{client: c.number, node: s.Node(), conversation: m.Conversation, answer: true}, m.Message)
		c.runtime.Deliver(s.Node(), m.Conversation, m.Message)
	}
}
