package client_test

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"testing"

	"atoll/client"
	"atoll/internal/identity"
	"atoll/quorum"
)

// TestOnlyANodeSaysWhereItIs: what others say of a node's address is believed only
// if the node has signed it, and never instead of something newer.
func TestOnlyANodeSaysWhereItIs(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 1, identity.Spec{})
	c := h.open()
	folder, err := identity.OpenFolder(filepath.Join(h.dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	now := c.Addresses(folder.ID)
	said := quorum.Member{ID: folder.ID, Name: "a", Addresses: []string{"elsewhere.invalid:1"}, Version: 1 << 40}
	said.Proof = folder.Sign(quorum.Member{ID: folder.ID, Name: "a", Addresses: []string{"another.invalid:1"}, Version: 1 << 40})
	c.Hear(said)
	if got := c.Addresses(folder.ID); !slices.Equal(got, now) {
		t.Errorf("believed without a proof: %v", got)
	}
	said.Proof = folder.Sign(said)
	c.Hear(said)
	if got := c.Addresses(folder.ID); !slices.Equal(got, said.Addresses) {
		t.Errorf("not believed: %v", got)
	}
	old := quorum.Member{ID: folder.ID, Name: "a", Addresses: now, Version: 1 << 39}
	old.Proof = folder.Sign(old)
	c.Hear(old)
	if got := c.Addresses(folder.ID); !slices.Equal(got, said.Addresses) {
		t.Errorf("something older counts: %v", got)
	}
}

// TestAnyEndpointThatLives: one that does is enough, wherever it stands in the list.
func TestAnyEndpointThatLives(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 1, identity.Spec{})
	cfg := h.clientConfig()
	live := cfg.Endpoints[0]
	_, port, _ := net.SplitHostPort(live)
	cfg.Endpoints = []string{"no.such.name.invalid:1", "localhost:" + port}
	cfg.Timeout = patience
	c, err := client.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Put(t.Context(), "k", []byte("v")); err != nil {
		t.Error(err)
	}
}
