package server_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"atoll/abd"
	"atoll/client"
	"atoll/internal/identity"
	"atoll/internal/store"
	"atoll/rambo"
	"atoll/tags"
)

const (
	installKeys  = 200_000
	installValue = 100 // bytes
)

// BenchmarkInstall puts a fresh node in a member's place, in one process: all
// four nodes and what changes the members.
func BenchmarkInstall(b *testing.B) {
	nodes := newNodes(b, identity.Spec{Prepare: func(dir string) error { return store.Create(store.Config{Dir: dir}) }}, "a", "b", "c")
	size := 0
	for _, n := range nodes {
		size = n.fill()
	}
	for _, n := range nodes {
		cfg := n.config()
		cfg.Store = store.Config{}
		n.start(cfg)
	}
	admin := nodes[0].admin()
	b.SetBytes(int64(size))
	old := "a"
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		fresh := fmt.Sprintf("d%d", i)
		d := nodes[0].accept(nodes[0].ticket(fresh, nodes...))
		cfg := d.config()
		cfg.Store, cfg.Reconfiguration = store.Config{}, rambo.Pace{Rate: -1}
		if err := d.join(d.start(cfg)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, err := admin.Reconfigure(b.Context(), client.Change{Replace: []client.Replacement{{Old: old, New: fresh}}}); err != nil {
			b.Fatal(err)
		}
		old = fresh
	}
}

// fill writes keys to the store of a node that doesn't run, and returns how many
// bytes that are.
func (n node) fill() (size int) {
	s, err := store.Open(store.Config{Dir: filepath.Join(n.dir, n.name), TableBytes: 4 << 20})
	if err != nil {
		n.t.Fatal(err)
	}
	value := make([]byte, installValue)
	for i := range uint64(installKeys) {
		key := abd.Key(fmt.Sprintf("k%07d", i))
		size += len(key) + len(value)
		if _, err := s.Store(key, abd.Record{Tag: tags.Tag{Seq: 1, PID: tags.NewPID(1, 1, i)}, Value: value}); err != nil {
			n.t.Fatal(err)
		}
		if i%1000 == 0 {
			s.Cut()
			if _, err := s.Commit(); err != nil {
				n.t.Fatal(err)
			}
		}
	}
	s.Cut()
	_, err = s.Commit()
	if err := errors.Join(err, s.Close()); err != nil {
		n.t.Fatal(err)
	}
	return size
}

// admin opens a client that may change the members.
func (n node) admin() *client.Client {
	cfg, err := client.LoadContext(filepath.Join(n.dir, "admin.json"))
	if err != nil {
		n.t.Fatal(err)
	}
	c, err := client.Open(n.t.Context(), cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}
