package server_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/porttest"
	"atoll/internal/server"
	"atoll/internal/store"
	"atoll/internal/transport"
	"atoll/replica"
)

// startSlow starts a node whose commits wait for the test.
func startSlow(n node, rules replica.Rules) (*server.Server, *slowDisk) {
	n.t.Helper()
	var disk *slowDisk
	cfg := n.config()
	cfg.Rules = rules
	cfg.WrapDisk(func(d server.Disk) server.Disk {
		disk = newSlowDisk(d)
		return disk
	})
	s := n.start(cfg)
	// Runs before the server is closed, which waits for commits.
	n.t.Cleanup(func() { close(disk.result) })
	return s, disk
}

// TestNothingLeavesBeforeItIsDurable: while a commit lasts, neither is the put
// acked that waits for it, nor is what it wrote shown, by a get or a list.
// Others aren't held up.
func TestNothingLeavesBeforeItIsDurable(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	_, disk := startSlow(n, replica.Rules{})
	p := n.dial(nil)
	waiting := []uint64{p.send(putOf("k", "v"))}
	receive(t, disk.began)
	waiting = append(waiting,
		p.send(putOf("k", "v")), // writes nothing, and shows that k is there
		p.send(&abd.Get{Key: "k"}),
		p.send(&abd.Get{Key: "k", TagOnly: true}),
		p.send(&abd.List{Limit: 10}))
	later := p.send(putOf("later", "v")) // after the commit has begun

	// These overtake those before them, so they are held back.
	if ack, ok := p.ask(&abd.Get{Key: "other"}).(*abd.GetAck); !ok || !ack.Record.Tag.IsZero() {
		t.Errorf("other holds %+v", ack)
	}
	if s, ok := p.ask(&replica.StatusQuery{}).(*replica.Status); !ok || s.Durable != disk.noted || s.Appended != disk.noted+2 {
		t.Errorf("status: %+v, want 2 records of which none is durable, behind %d", s, disk.noted)
	}
	disk.result <- nil
	for _, conversation := range waiting {
		p.receive(conversation)
	}
	receive(t, disk.began)
	if s, ok := p.ask(&replica.StatusQuery{}).(*replica.Status); !ok || s.Durable != disk.noted+1 || s.Appended != disk.noted+2 {
		t.Errorf("status: %+v, want 2 records of which one is durable, behind %d", s, disk.noted)
	}
	disk.result <- nil
	p.receive(later)
	p.nothing()
}

// TestTheMutantAcksTooEarly shows that the test above can fail.
func TestTheMutantAcksTooEarly(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	_, disk := startSlow(n, replica.Rules{AckBeforeSync: true})
	p := n.dial(nil)
	put := p.send(putOf("k", "v"))
	receive(t, disk.began)
	if _, ok := p.receive(put).(*abd.PutAck); !ok {
		t.Error("the put wasn't acked")
	}
}

func TestAFailedCommitEndsTheServerAndAcksNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	s, disk := startSlow(n, replica.Rules{})
	p := n.dial(nil)
	p.send(putOf("k", "v"))
	receive(t, disk.began)
	p.send(&abd.Get{Key: "k"})
	p.ask(&abd.Get{Key: "other"})
	disk.result <- errDisk

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Wait(ctx); !errors.Is(err, errDisk) {
		t.Errorf("the server ended with %v, want %v", err, errDisk)
	}
	if err := s.Close(); !errors.Is(err, errDisk) {
		t.Errorf("close: %v, want %v", err, errDisk)
	}
	var closed *transport.ClosedError
	if err := receive(t, p.down); !errors.As(err, &closed) || !closed.Remote {
		t.Errorf("the session ended with %v, want that the node closed it", err)
	}
	p.nothing()
}

// unreadable is a disk that can't be read any more.
type unreadable struct{ server.Disk }

func (unreadable) Load(abd.Key, bool) (abd.Record, env.Position, error) {
	return abd.Record{}, 0, errDisk
}

func TestAFailedStepEndsTheServer(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	cfg := n.config()
	cfg.Metrics = "127.0.0.1:0"
	cfg.WrapDisk(func(d server.Disk) server.Disk { return unreadable{d} })
	s := n.start(cfg)
	p := n.dial(nil)
	p.send(&abd.Get{Key: "k"})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Wait(ctx); !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "abd.Get") {
		t.Errorf("the server ended with %v, want %v and what was asked", err, errDisk)
	}
	if status, body := get(t, s, "/healthz"); status != 503 || !strings.Contains(body, errDisk.Error()) {
		t.Errorf("/healthz: %d, %q", status, body)
	}
	p.nothing()
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	s := n.start(n.config())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Wait(ctx); err != nil {
		t.Error(err)
	}
}

// TestStartThatFailsLeavesNothing isn't parallel: it looks at all goroutines.
func TestStartThatFailsLeavesNothing(t *testing.T) {
	n := newNode(t, identity.Spec{})
	empty := newNode(t, identity.Spec{Prepare: func(string) error { return nil }})
	addresses, release, err := porttest.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	release() // for UDP it would be kept
	metrics := addresses[0]
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	for _, test := range []struct {
		name   string
		node   node
		change func(*server.Config)
		is     func(error) bool
		text   string
	}{
		{"address taken", n, func(c *server.Config) { c.Listen = []string{n.address, udp.LocalAddr().String()} },
			as[*transport.ListenError], udp.LocalAddr().String()},
		{"no address", n, func(c *server.Config) { c.Listen = []string{"nonsense"} }, as[*transport.ListenError], "nonsense"},
		{"metrics address taken", n, func(c *server.Config) { c.Metrics = tcp.Addr().String() }, as[*net.OpError], tcp.Addr().String()},
		{"metrics for everybody", n, func(c *server.Config) { c.Metrics = "0.0.0.0:0" }, is(server.ErrNotLoopback), "0.0.0.0:0"},
		{"metrics for everybody, too", n, func(c *server.Config) { c.Metrics = ":0" }, is(server.ErrNotLoopback), "loopback"},
		{"no store", empty, func(*server.Config) {}, is(store.ErrNoStore), ""},
		{"no such folder for the store", n, func(c *server.Config) { c.Folder.Dir += "-not" }, func(error) bool { return true }, n.folder().Dir + "-not"},
		{"a limit that isn't one", n, func(c *server.Config) { c.Folder.Cluster.MaxValue = -1 }, func(error) bool { return true }, "-1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			running := goleak.IgnoreCurrent()
			cfg := test.node.config()
			cfg.Metrics = metrics
			test.change(&cfg)
			s, err := server.Start(cfg)
			if err == nil {
				t.Fatal(errors.Join(errors.New("it started"), s.Close()))
			}
			if !test.is(err) || !strings.Contains(err.Error(), test.text) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v (%T), want one line with %q", err, err, test.text)
			}
			goleak.VerifyNone(t, running)
			if packets, err := net.ListenPacket("udp", test.node.address); err != nil {
				t.Error(err)
			} else {
				packets.Close()
			}
			if listener, err := net.Listen("tcp", metrics); err != nil {
				t.Error(err)
			} else {
				listener.Close()
			}
		})
	}
	// And none of that is in the way of a good start.
	cfg := n.config()
	cfg.Metrics = metrics
	s := n.start(cfg)
	again := n.config()
	again.Listen = []string{"127.0.0.1:0"}
	if second, err := server.Start(again); err == nil {
		t.Error(errors.Join(errors.New("two servers use one folder"), second.Close()))
	} else if !as[*store.InUseError](err) {
		t.Errorf("got %v, want an InUseError", err)
	}
	n.stop(s)
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}
