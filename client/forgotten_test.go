package client_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"atoll/client"
	"atoll/internal/identity"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/replica"
)

// beside returns what status says of a node that isn't a member, nil if nothing.
func beside(t *testing.T, c *client.Client, id quorum.NodeID) *client.MemberStatus {
	t.Helper()
	s, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range s.Standby {
		if m.ID == id {
			return &m
		}
	}
	return nil
}

// until asks for the status of a node beside the members until it is as wanted.
func until(t *testing.T, c *client.Client, id quorum.NodeID, what string, wanted func(*client.MemberStatus) bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		m := beside(t, c, id)
		if wanted(m) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s isn't %s: %+v", id, what, m)
		}
	}
}

func isRemoved(m *client.MemberStatus) bool {
	return m != nil && m.Status != nil && m.Status.Role == replica.RoleRemoved
}

func isForgotten(m *client.MemberStatus) bool { return m == nil }

// TestARemovedNodeIsForgotten: it is shown for as long as it answers, and again when
// it is back. Once it is gone, another node can have its name.
func TestARemovedNodeIsForgotten(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 1, identity.Spec{})
	h.pace = rambo.Pace{Gossip: 50 * time.Millisecond, Silence: 3 * time.Second}
	h.down("a")
	h.up("a")
	admin := h.admin()
	h.join("b")
	first := change(t, admin, client.Change{Set: []string{"b"}}) // a is no member
	folder, err := identity.OpenFolder(filepath.Join(h.dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	until(t, admin, folder.ID, "removed", isRemoved)
	h.down("a")
	until(t, admin, folder.ID, "forgotten", isForgotten)
	cfg := h.clientConfig()
	cfg.Endpoints = []string{h.servers["b"].Addrs()[0].String()}
	if s, err := openClient(t, cfg).Status(t.Context()); err != nil || len(s.Standby) != 0 || len(s.Members) != 1 {
		t.Errorf("who comes new is shown %+v, %v", s.Standby, err)
	}
	// Another node takes its name.
	if err := os.Rename(filepath.Join(h.dir, "a"), filepath.Join(h.dir, "old")); err != nil {
		t.Fatal(err)
	}
	h.join("a")
	second := change(t, admin, client.Change{Add: []string{"a"}, Force: true})
	if _, old := second.Place(folder.ID); old || len(second.Members()) != 2 || members(admin, first) != "b" {
		t.Errorf("configuration %v follows %v, and the old node is %s", second, first, folder.ID)
	}
	// The old one is fenced still, and is known again while it answers.
	h.up("old")
	until(t, admin, folder.ID, "removed", isRemoved)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := admin.Put(ctx, "k", []byte("v")); err != nil {
		t.Error(err)
	}
}
