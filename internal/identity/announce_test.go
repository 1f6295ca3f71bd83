package identity_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"atoll/internal/identity"
	"atoll/quorum"
)

// What a node says of itself is believed as it was said, of that node, in that
// cluster, and in no other way.
func TestAnnouncements(t *testing.T) {
	t.Parallel()
	ours, theirs := two(t)
	a := must[*identity.Folder](t)(identity.OpenFolderAt(filepath.Join(ours, "a"), start))
	b := must[*identity.Folder](t)(identity.OpenFolderAt(filepath.Join(ours, "b"), start))
	other := must[*identity.Folder](t)(identity.OpenFolderAt(filepath.Join(theirs, "a"), start))
	cluster := a.Cluster.Cluster
	said := quorum.Member{ID: a.ID, Name: "a", Addresses: []string{"h:1", "h:2"}, Version: 7}
	said.Proof = a.Sign(said)
	if err := identity.VerifyMember(cluster, said); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		name   string
		change func(*quorum.Member)
	}{
		{"name", func(m *quorum.Member) { m.Name = "b" }},
		{"an address", func(m *quorum.Member) { m.Addresses[1] = "h:3" }},
		{"fewer addresses", func(m *quorum.Member) { m.Addresses = m.Addresses[:1] }},
		{"addresses cut elsewhere", func(m *quorum.Member) { m.Addresses = []string{"h:1h", ":2"} }},
		{"version", func(m *quorum.Member) { m.Version++ }},
		{"node", func(m *quorum.Member) { m.ID = b.ID }},
		{"no proof", func(m *quorum.Member) { m.Proof = nil }},
		{"a shorter proof", func(m *quorum.Member) { m.Proof = m.Proof[:len(m.Proof)-1] }},
		{"another format", func(m *quorum.Member) { m.Proof[0]++ }},
		{"another's word", func(m *quorum.Member) { m.Proof = b.Sign(*m) }},
		{"another cluster's word", func(m *quorum.Member) { m.Proof = other.Sign(*m) }},
	} {
		m := said
		m.Addresses, m.Proof = slices.Clone(said.Addresses), bytes.Clone(said.Proof)
		c.change(&m)
		if identity.VerifyMember(cluster, m) == nil {
			t.Errorf("%s: believed", c.name)
		}
	}
	if identity.VerifyMember(other.Cluster.Cluster, said) == nil {
		t.Error("believed in another cluster")
	}
}

// Bytes of any kind are no proof, and no panic.
func FuzzVerifyMember(f *testing.F) {
	f.Add([]byte{1}, "n1", "h:1")
	f.Add(bytes.Repeat([]byte{1}, 97), "n1", "h:1")
	f.Fuzz(func(t *testing.T, proof []byte, id, address string) {
		if identity.VerifyMember("c1", quorum.Member{ID: quorum.NodeID(id), Addresses: []string{address}, Proof: proof}) == nil {
			t.Error("believed")
		}
	})
}
