package client_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"atoll/client"
	"atoll/internal/identity"
	"atoll/internal/logtest"
	"atoll/internal/porttest"
	"atoll/internal/server"
	"atoll/internal/store"
	"atoll/internal/udpproxy"
)

// bad is a cluster of three whose replicas are reached through proxies.
type bad struct {
	harness
	proxies map[string]*udpproxy.Proxy // by the replica's name
}

func startBad(t *testing.T) bad {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cluster")
	b := bad{harness{&cluster{dir: dir, servers: make(map[string]*server.Server), listen: make(map[string]string), release: func() {}}, t}, make(map[string]*udpproxy.Proxy)}
	spec := identity.Spec{
		Prepare: func(dir string) error { return store.Create(store.Config{Dir: dir, SegmentBytes: segmentBytes}) },
	}
	t.Cleanup(func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
		for _, p := range b.proxies {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	for i, name := range []string{"a", "b", "c"} {
		b.listen[name] = porttest.Address(t)
		var err error
		if b.proxies[name], err = udpproxy.New(udpproxy.Config{To: b.listen[name], Seed: uint64(i)}); err != nil {
			t.Fatal(err)
		}
		spec.Members = append(spec.Members, identity.MemberSpec{Name: name, Address: b.proxies[name].Addr().String()})
	}
	if _, err := identity.CreateCluster(dir, spec); err != nil {
		t.Fatal(err)
	}
	b.up("a", "b", "c")
	return b
}

// all has faults hold between the clients and every replica.
func (b bad) all(f udpproxy.Faults) {
	for _, p := range b.proxies {
		p.Set(f)
	}
}

// rounds runs operations on a key of its own and fails the test if any fails or
// a read doesn't find what was written last.
func (b bad) rounds(c *client.Client, key string, n, size int) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	for i := range n {
		want := bytes.Repeat([]byte{byte('0' + i%10)}, size)
		if _, err := c.Put(ctx, key, want); err != nil {
			b.t.Errorf("put %d of %s: %v", i, key, err)
			return
		}
		got, err := c.Get(ctx, key)
		if err != nil || !bytes.Equal(got.Bytes, want) {
			b.t.Errorf("get %d of %s: %d bytes, %v, want %d", i, key, len(got.Bytes), err, size)
			return
		}
	}
}

// connected waits until every replica answers the client.
func (b bad) connected(c *client.Client) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		status, err := c.Status(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		silent := ""
		for _, m := range status.Members {
			if m.Status == nil {
				silent += fmt.Sprintf(" %s (%s)", m.Name, m.Silence)
			}
		}
		if silent == "" {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("silent:%s", silent)
		}
	}
}

// TestSilentEndpoint: a replica whose datagrams vanish, both ways or one way,
// is no error for anybody, and it is found again.
func TestSilentEndpoint(t *testing.T) {
	t.Parallel()
	hole := udpproxy.Faults{Blackhole: true}
	for name, silence := range map[string]func(*udpproxy.Proxy){
		"both ways":     func(p *udpproxy.Proxy) { p.Set(hole) },
		"to the server": func(p *udpproxy.Proxy) { p.SetWay(udpproxy.ToServer, hole) },
		"to the client": func(p *udpproxy.Proxy) { p.SetWay(udpproxy.ToClient, hole) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := startBad(t)
			c := b.open()
			b.connected(c)
			silence(b.proxies["b"])
			b.rounds(c, "k", 20, 100)
			b.proxies["b"].Set(udpproxy.Faults{})
			b.connected(c)
			b.down("a") // so that b is needed
			b.rounds(c, "k", 5, 100)
		})
	}
}

// TestFlappingEndpoint: replicas that fall silent one after the other, and an
// address translator that forgets its clients, are no error for anybody.
func TestFlappingEndpoint(t *testing.T) {
	t.Parallel()
	b := startBad(t)
	c := b.open()
	b.connected(c)
	for i := range 12 {
		name := string(rune('a' + i%3))
		b.proxies[name].Set(udpproxy.Faults{Blackhole: true})
		b.rounds(c, name, 3, 100)
		b.proxies[name].Set(udpproxy.Faults{})
		if i%3 == 2 {
			b.proxies[name].Rebind()
		}
	}
	b.connected(c)
}

// TestBadNetwork: where a third of all datagrams is lost, and others come
// twice, late, in another order, cut off or with a flipped bit, operations take
// longer, and succeed.
func TestBadNetwork(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]udpproxy.Faults{
		"loss": {Loss: 0.3},
		"disorder": {
			Loss: 0.02, Duplicate: 0.2, Truncate: 0.02, Corrupt: 0.02,
			Reorder: 0.2, ReorderBy: 2 * time.Millisecond, Delay: time.Millisecond, Jitter: time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := startBad(t)
			c := b.open()
			b.all(f)
			var callers sync.WaitGroup
			for i := range 8 {
				callers.Go(func() { b.rounds(c, fmt.Sprint(i), 2, 2000) })
			}
			callers.Wait()
			b.openUnder(f)
			b.all(udpproxy.Faults{})
			b.rounds(c, "after", 2, 100)
		})
	}
}

// openUnder opens another client while faults hold.
func (b bad) openUnder(f udpproxy.Faults) {
	b.t.Helper()
	b.all(f)
	b.rounds(b.open(), "new", 1, 100)
}

// TestNarrowPath: a path that carries no more than QUIC asks for, from the
// beginning or from some moment on.
func TestNarrowPath(t *testing.T) {
	t.Parallel()
	const large = 100_000
	t.Run("always", func(t *testing.T) {
		t.Parallel()
		b := startBad(t)
		b.all(udpproxy.Faults{MTU: 1200})
		c := b.open()
		b.connected(c)
		b.rounds(c, "k", 1, large)
	})
	t.Run("later", func(t *testing.T) {
		t.Parallel()
		b := startBad(t)
		c := b.open()
		b.connected(c)
		b.rounds(c, "k", 2, large) // on packets of more than 1,200 bytes by the end
		b.all(udpproxy.Faults{MTU: 1250})
		b.rounds(c, "k", 1, large)
	})
}

// TestAllReplicasAreKilled: the client is told nothing, and notices by the
// first packet that a new process answers. What it had asked the old ones it
// asks the new ones again, by itself.
func TestAllReplicasAreKilled(t *testing.T) {
	t.Parallel()
	b := startBad(t)
	var book logtest.Book
	cfg := b.clientConfig()
	cfg.Log = book.Log(slog.LevelDebug)
	c := openClient(t, cfg)
	b.connected(c)
	// A machine that takes longer for the restart than silence may last shows
	// nothing: then it is tried again.
	for tries := 0; book.Count("the peer was restarted") == 0; tries++ {
		if tries == 5 {
			t.Fatal("no session ended because its peer was restarted")
		}
		b.killAll(c)
	}
}

// killAll ends all replicas while an operation goes on, so that nobody hears
// of it, and starts them again.
func (b bad) killAll(c *client.Client) {
	b.t.Helper()
	b.rounds(c, "k", 1, 100)
	b.all(udpproxy.Faults{Blackhole: true})
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.rounds(c, "k", 2, 100)
	}()
	b.down("a", "b", "c")
	b.up("a", "b", "c")
	b.all(udpproxy.Faults{})
	select {
	case <-done:
	case <-time.After(patience):
		b.t.Fatal("what was asked of the old processes is not asked of the new ones")
	}
	b.connected(c)
}
