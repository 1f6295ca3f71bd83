package main

import (
	"context"
	"path/filepath"
	"testing"

	"atoll/client"
	"atoll/internal/identity"
)

// TestAllReplicasAreReplaced: each replica of a cluster is replaced by a new one and
// then killed, until none of the first lives, while a client writes. No write fails,
// and every acked one is there.
func TestAllReplicasAreReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	cs := startCluster(t, dir, 3, "majority")
	c := openClient(t, dir)
	admin := openAdmin(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := startLoad(ctx, c, 16)
	l.reach(t, 200)
	for i := range 3 {
		old := cs.all[i]
		fresh, err := cs.join(t.Context(), dir, c.MaxValue())
		if err != nil {
			t.Fatal(err)
		}
		r := client.Replacement{Old: old.serving.Name, New: fresh.serving.Name}
		target, err := admin.Reconfigure(t.Context(), client.Change{Replace: []client.Replacement{r}})
		if err != nil || int(target.Index()) != i+1 {
			t.Fatalf("%+v: %v, %v", r, target, err)
		}
		if err := old.kill(); err != nil {
			t.Fatal(err)
		}
		l.reach(t, l.total.Load()+200)
	}
	cancel()
	l.ended(t)
	cfg, err := client.LoadContext(filepath.Join(dir, identity.FileContext))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Endpoints = cs.all[3].serving.Addresses
	late, err := client.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	l.check(t, late)
}
