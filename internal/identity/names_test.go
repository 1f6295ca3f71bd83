package identity_test

import (
	"strings"
	"testing"

	"atoll/internal/identity"
	"atoll/quorum"
)

// An id is on disks and in configurations for good: the way from key to id
// must never change.
func TestNodeIDIsPinned(t *testing.T) {
	const want = quorum.NodeID("n7zgfbiikkfslnvlyvc3a")
	got := identity.NodeIDOf(publicOf(1))
	if got != want {
		t.Errorf("the node id of key 1 is %q, want %q", got, want)
	}
	if _, err := quorum.ParseNodeID(string(got)); err != nil {
		t.Error(err)
	}
	if other := identity.NodeIDOf(publicOf(2)); other == got {
		t.Errorf("two keys have the id %q", got)
	}
}

func TestClusterIDs(t *testing.T) {
	a, b := identity.NewClusterID(), identity.NewClusterID()
	if a == b {
		t.Errorf("two clusters have the id %q", a)
	}
	if _, err := identity.ParseClusterID(string(a)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "-a", "A", "a b", "ä", "a/b", "a\x00", strings.Repeat("a", identity.MaxClusterID+1)} {
		if _, err := identity.ParseClusterID(bad); err == nil {
			t.Errorf("ParseClusterID(%q) passed", bad)
		}
	}
}

func TestNames(t *testing.T) {
	for _, good := range []string{"a", "a-1", "0", strings.Repeat("a", identity.MaxName)} {
		if _, err := identity.ParseName(good); err != nil {
			t.Errorf("ParseName(%q): %v", good, err)
		}
	}
	for _, bad := range []string{"", "-a", "A", ".", "..", "a/b", "a_b", strings.Repeat("a", identity.MaxName+1)} {
		if _, err := identity.ParseName(bad); err == nil {
			t.Errorf("ParseName(%q) passed", bad)
		}
	}
}

func TestPeerURIs(t *testing.T) {
	for _, uri := range []string{
		"atoll://c1/node/n1",
		"atoll://c1/client/bench-1",
		"atoll://c1/admin/root",
	} {
		p, err := identity.ParsePeerURI(uri)
		if err != nil {
			t.Errorf("ParsePeerURI(%q): %v", uri, err)
		}
		if p.URI() != uri {
			t.Errorf("ParsePeerURI(%q).URI() = %q", uri, p.URI())
		}
		if isNode := p.Role == identity.RoleNode; isNode != (p.Node != "") || isNode && p.Name != string(p.Node) {
			t.Errorf("ParsePeerURI(%q) = %+v", uri, p)
		}
	}
	for _, uri := range []string{
		"", "atoll://", "atoll://c1", "atoll://c1/", "atoll://c1/node", "atoll://c1/node/", "atoll:///node/n1",
		"atoll://c1/node/n1/", "atoll://c1/node/n1/x", "atoll://c1/node/n1?x", "atoll://c1/node/n1#x", "atoll://c1/node/n%31",
		"atoll://u@c1/node/n1", "atoll://c1:80/node/n1", "Atoll://c1/node/n1", "http://c1/node/n1", "atoll:c1/node/n1",
		"atoll://C1/node/n1", "atoll://c1/Node/n1", "atoll://c1/ca/x", "atoll://c1/ca", "atoll://c1/owner/x", "atoll://c1/client/x y",
		" atoll://c1/node/n1", "atoll://c1/node/n1\n",
	} {
		if p, err := identity.ParsePeerURI(uri); err == nil {
			t.Errorf("ParsePeerURI(%q) = %+v, want an error", uri, p)
		}
	}
}

func FuzzPeerURI(f *testing.F) {
	f.Add("atoll://c1/node/n1")
	f.Add("atoll://c1/client/a-b")
	f.Add("atoll://c1/admin//")
	f.Fuzz(func(t *testing.T, uri string) {
		p, err := identity.ParsePeerURI(uri)
		if err == nil && p.URI() != uri {
			t.Errorf("ParsePeerURI(%q).URI() = %q", uri, p.URI())
		}
	})
}

// FuzzMembers: what is read as a list of members is one that a cluster can
// begin with, and names are what folders and certificates can carry.
func FuzzMembers(f *testing.F) {
	f.Add("a=10.0.0.1:7400,b=host.example:7400,c=[::1]:7400")
	f.Add("a=h:1,a=h:2")
	f.Add("ca=h:1")
	f.Add("=,=")
	f.Fuzz(func(t *testing.T, text string) {
		members, err := identity.ParseMembers(text)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, m := range members {
			if name, err := identity.ParseName(m.Name); err != nil || name != m.Name || seen[name] {
				t.Errorf("%q: member %q passed: %v", text, m.Name, err)
			}
			if _, err := identity.ParseEndpoint(m.Address); err != nil {
				t.Errorf("%q: address %q passed: %v", text, m.Address, err)
			}
			if id, err := identity.ParseClusterID(m.Name); err != nil || string(id) != m.Name {
				t.Errorf("%q is a name and no cluster id: %v", m.Name, err)
			}
			seen[m.Name] = true
		}
	})
}
