package client_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"atoll/client"
	"atoll/internal/identity"
	"atoll/internal/porttest"
	"atoll/internal/server"
	"atoll/internal/store"
	"atoll/rambo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come. It is no measure.
const patience = time.Minute

// segmentBytes is small: a new segment is written full, and tests make many.
const segmentBytes = 256 << 10

// cluster is a cluster whose replicas run in this process, on loopback.
type cluster struct {
	dir     string
	servers map[string]*server.Server // those that run, by their names
	listen  map[string]string         // where replicas listen; the others where they are dialed
	pace    rambo.Pace                // of those that are started from now on
	release func()                    // lets others have the ports
}

// newCluster makes a cluster in dir and starts its replicas, which are called
// a, b, c and so on. spec may leave everything out.
func newCluster(dir string, replicas int, spec identity.Spec) (*cluster, error) {
	addresses, release, err := porttest.Reserve(replicas)
	if err != nil {
		return nil, err
	}
	for i, address := range addresses {
		m := identity.MemberSpec{Name: string(rune('a' + i)), Address: address}
		spec.Members = append(spec.Members, m)
	}
	spec.Prepare = func(dir string) error { return store.Create(store.Config{Dir: dir, SegmentBytes: segmentBytes}) }
	if _, err := identity.CreateCluster(dir, spec); err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, servers: make(map[string]*server.Server), release: release}
	for _, m := range spec.Members {
		if err := c.start(m.Name); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

func (c *cluster) start(names ...string) error {
	for _, name := range names {
		folder, err := identity.OpenFolder(filepath.Join(c.dir, name))
		if err != nil {
			return err
		}
		cfg := server.Config{Folder: folder, Version: "test", Greeting: -1, Store: store.Config{SegmentBytes: segmentBytes}, Reconfiguration: c.pace}
		if address, ok := c.listen[name]; ok {
			cfg.Listen = []string{address}
		}
		if c.servers[name], err = server.Start(cfg); err != nil {
			delete(c.servers, name)
			return err
		}
	}
	return nil
}

func (c *cluster) stop(names ...string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, c.servers[name].Close())
		delete(c.servers, name)
	}
	return errors.Join(errs...)
}

func (c *cluster) close() error {
	var errs []error
	for _, s := range c.servers {
		errs = append(errs, s.Close())
	}
	clear(c.servers)
	c.release()
	return errors.Join(errs...)
}

// config is how a client reaches the cluster.
func (c *cluster) config() (client.Config, error) {
	return client.LoadContext(filepath.Join(c.dir, identity.FileContext))
}

// harness is a cluster and its test.
type harness struct {
	*cluster
	t testing.TB
}

func startCluster(t testing.TB, replicas int, spec identity.Spec) harness {
	t.Helper()
	c, err := newCluster(filepath.Join(t.TempDir(), "cluster"), replicas, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	})
	return harness{c, t}
}

func (h harness) open() *client.Client {
	h.t.Helper()
	return openClient(h.t, h.clientConfig())
}

// clientConfig is a config with which nothing fails for want of time.
func (h harness) clientConfig() client.Config {
	h.t.Helper()
	cfg, err := h.config()
	if err != nil {
		h.t.Fatal(err)
	}
	cfg.Timeout = patience
	return cfg
}

func (h harness) down(names ...string) {
	h.t.Helper()
	if err := h.stop(names...); err != nil {
		h.t.Fatal(err)
	}
}

func (h harness) up(names ...string) {
	h.t.Helper()
	if err := h.start(names...); err != nil {
		h.t.Fatal(err)
	}
}

func openClient(t testing.TB, cfg client.Config) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := client.Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, client.ErrClosed) {
			t.Error(err)
		}
	})
	return c
}
