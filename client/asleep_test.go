package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"atoll/client"
	"atoll/internal/identity"
)

// asleep is a cluster whose only member was replaced twice, a by b and b by c,
// while a client slept that knows a. It runs on three addresses of one port.
type asleep struct {
	harness
	port    int
	sleeper *client.Client
}

// hosts are the addresses of a, b and c: one name may stand for all.
var hosts = map[string]netip.Addr{
	"a": netip.MustParseAddr("127.0.0.1"), "b": netip.MustParseAddr("127.0.0.2"), "c": netip.MustParseAddr("127.0.0.3"),
}

// addresses are where nodes are.
func (s asleep) addresses(names ...string) []string {
	var all []string
	for _, name := range names {
		all = append(all, netip.AddrPortFrom(hosts[name], uint16(s.port)).String())
	}
	return all
}

// fallAsleep replaces the member twice, and leaves no node running. configure says
// what the sleeper is given; unless it changes that, a's address.
func fallAsleep(t *testing.T, configure func(asleep, *client.Config)) asleep {
	t.Helper()
	s := asleep{harness: startCluster(t, 1, identity.Spec{})}
	cfg := s.clientConfig()
	_, port, err := net.SplitHostPort(cfg.Endpoints[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(port, &s.port); err != nil {
		t.Fatal(err)
	}
	s.listen = map[string]string{"b": s.addresses("b")[0], "c": s.addresses("c")[0]}
	configure(s, &cfg)
	s.sleeper = openClient(t, cfg)
	admin := s.admin()
	if _, err := admin.Put(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	s.join("b", "c")
	change(t, admin, client.Change{Set: []string{"b"}})
	change(t, admin, client.Change{Set: []string{"c"}})
	s.down("a", "b", "c")
	return s
}

// works fails the test unless the sleeper reads what was written and writes.
func (s asleep) works() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if v, err := s.sleeper.Get(ctx, "k"); err != nil || string(v.Bytes) != "v" {
		s.t.Errorf("get: %q, %v", v.Bytes, err)
	}
	if _, err := s.sleeper.Put(ctx, "k", []byte("w")); err != nil {
		s.t.Errorf("put: %v", err)
	}
}

// TestARemovedNodeTellsAClientThatSlept: the first member's address is the only one
// that the client knows, and c, which is the member now, it has never met.
func TestARemovedNodeTellsAClientThatSlept(t *testing.T) {
	t.Parallel()
	s := fallAsleep(t, func(asleep, *client.Config) {})
	s.up("a", "c")
	s.works()
	// It needs a no more.
	s.down("a")
	if _, err := s.sleeper.Put(t.Context(), "k", []byte("x")); err != nil {
		t.Error(err)
	}
}

// TestAnyGivenAddressFindsTheClusterAgain: of those that the client was given only
// that of the second generation lives, with which it was never connected.
func TestAnyGivenAddressFindsTheClusterAgain(t *testing.T) {
	t.Parallel()
	s := fallAsleep(t, func(s asleep, cfg *client.Config) { cfg.Endpoints = s.addresses("a", "b") })
	s.up("b", "c")
	s.works()
}

// TestANameFindsTheClusterAgain: a name is resolved afresh, and all addresses that
// it stands for are tried, most of which are dead.
func TestANameFindsTheClusterAgain(t *testing.T) {
	t.Parallel()
	s := fallAsleep(t, func(s asleep, cfg *client.Config) {
		cfg.Endpoints = []string{fmt.Sprintf("members.example:%d", s.port)}
		*cfg = cfg.ResolvedBy(func(_ context.Context, host string) ([]netip.Addr, error) {
			if host != "members.example" {
				return nil, fmt.Errorf("no such name: %s", host)
			}
			return []netip.Addr{hosts["a"], netip.MustParseAddr("127.0.0.4"), hosts["b"], hosts["c"]}, nil
		})
	})
	s.up("c")
	s.works()
}

// TestOperationsUnderWayGoOnWithNewMembers: what waits for members that are gone is
// woken when the client finds out who took their places.
func TestOperationsUnderWayGoOnWithNewMembers(t *testing.T) {
	t.Parallel()
	s := fallAsleep(t, func(s asleep, cfg *client.Config) { cfg.Endpoints = s.addresses("a", "c") })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, put := make(chan error, 1), make(chan error, 1)
	go func() {
		v, err := s.sleeper.Get(ctx, "k")
		if err == nil && string(v.Bytes) != "v" {
			err = fmt.Errorf("found %q", v.Bytes)
		}
		got <- err
	}()
	go func() {
		_, err := s.sleeper.Put(ctx, "other", []byte("w"))
		put <- err
	}()
	for s.sleeper.Runtime().Asking < 2 && ctx.Err() == nil {
		runtime.Gosched()
	}
	s.up("c")
	if err := <-got; err != nil {
		t.Errorf("get: %v", err)
	}
	if err := <-put; err != nil {
		t.Errorf("put: %v", err)
	}
}

// TestWhereTheClusterWasLookedForInVain: an error says which addresses were tried,
// and what to do.
func TestWhereTheClusterWasLookedForInVain(t *testing.T) {
	t.Parallel()
	s := fallAsleep(t, func(s asleep, cfg *client.Config) { cfg.Endpoints = s.addresses("a", "b") })
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := s.sleeper.Get(ctx, "k")
	failed, ok := errors.AsType[*client.NoQuorumError](err)
	if !ok {
		t.Fatalf("get: %v", err)
	}
	want := "no node is found at any address that is known: " + strings.Join(s.addresses("a", "b"), ", ") + "; give an address"
	if !strings.Contains(failed.Error(), want) {
		t.Errorf("got  %v\nwant %s", failed, want)
	}
	cfg := s.clientConfig()
	cfg.Endpoints = s.addresses("a", "b")
	_, err = client.Open(ctx, cfg)
	var unreachable *client.UnreachableError
	if !errors.As(err, &unreachable) || len(unreachable.Endpoints) != 2 || !strings.Contains(err.Error(), "give an address where a node") {
		t.Errorf("open: %v", err)
	}
}
