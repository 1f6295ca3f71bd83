package identity_test

import (
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/internal/identity"
)

// leaf reads a certificate.
func leaf(t testing.TB, text []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("no PEM in %q", text)
	}
	return must[*x509.Certificate](t)(x509.ParseCertificate(block.Bytes))
}

// TestTheClusterIsNotTheCA: who gives the cluster's folder for that of its CA is told
// which is meant. Nothing is damaged.
func TestTheClusterIsNotTheCA(t *testing.T) {
	t.Parallel()
	dir := cluster(t, identity.Spec{})
	_, err := identity.LoadCA(dir)
	contains(t, err, filepath.Join(dir, "ca")+" is")
	if identity.ClassOf(err) != identity.Precondition {
		t.Errorf("%v has class %v", err, identity.ClassOf(err))
	}
}

// TestRenew: whatever the form, the certificate is a new one of the same
// holder for the same key, and nothing else has changed.
func TestRenew(t *testing.T) {
	t.Parallel()
	made := time.Now().Add(-300 * 24 * time.Hour)
	dir := cluster(t, identity.Spec{Now: made, Validity: 24 * time.Hour}) // all have ended
	ca := must[*identity.CA](t)(identity.LoadCA(filepath.Join(dir, "ca")))
	write(t, read(t, dir, "b", "node.crt"), dir, "carried.crt")
	if _, err := identity.OpenFolder(filepath.Join(dir, "a")); identity.ClassOf(err) != identity.Certificate {
		t.Fatalf("a folder whose certificate has ended: %v", err)
	}
	before := tree(t, dir)
	for _, tc := range []struct {
		path   string
		files  []string
		holder string
	}{
		{"a", []string{"a/node.crt", "a/client.json"}, "node n"},
		{"client.json", []string{"client.json"}, "client client"},
		{"admin.json", []string{"admin.json"}, "admin admin"},
		{"carried.crt", []string{"carried.crt"}, "node n"},
	} {
		now := time.Now()
		renewed, err := ca.Renew(filepath.Join(dir, tc.path), now, 48*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, r := range renewed {
			rel, _ := filepath.Rel(dir, r.File)
			files = append(files, rel)
			if until := now.Add(48 * time.Hour); r.Until.Sub(until).Abs() > 2*time.Second {
				t.Errorf("%s: until %v, want %v", rel, r.Until, until)
			}
		}
		if !slices.Equal(files, tc.files) || !strings.HasPrefix(renewed[0].Holder.String(), tc.holder) {
			t.Errorf("%s: renewed %v of %v, want %v of %s", tc.path, files, renewed[0].Holder, tc.files, tc.holder)
		}
	}
	f := must[*identity.Folder](t)(identity.OpenFolder(filepath.Join(dir, "a")))
	for _, file := range []string{"client.json", "admin.json", "a/client.json"} {
		c := must[identity.Context](t)(identity.LoadContext(filepath.Join(dir, file)))
		if err := must[*identity.Credentials](t)(c.Credentials()).Check(time.Now()); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	old, renewed := leaf(t, []byte(before["a/node.crt"])), leaf(t, read(t, f.Dir, "node.crt"))
	if renewed.Subject.String() != old.Subject.String() || renewed.URIs[0].String() != old.URIs[0].String() || !slices.Equal(renewed.ExtKeyUsage, old.ExtKeyUsage) ||
		renewed.SerialNumber.Cmp(old.SerialNumber) == 0 {
		t.Errorf("renewed %v %v as %v %v", old.Subject, old.URIs, renewed.Subject, renewed.URIs)
	}
	after := tree(t, dir)
	for _, name := range []string{"a/node.crt", "a/client.json", "client.json", "admin.json", "carried.crt"} {
		if after[name] == before[name] {
			t.Errorf("%s is as it was", name)
		}
		delete(before, name)
		delete(after, name)
	}
	if !maps.Equal(before, after) {
		t.Error("other files have changed, too")
	}
	for name, mode := range map[string]os.FileMode{"a/node.crt": 0o644, "client.json": 0o600, "a/client.json": 0o600} {
		if got := must[os.FileInfo](t)(os.Stat(filepath.Join(dir, name))).Mode().Perm(); got != mode {
			t.Errorf("%s has mode %o, want %o", name, got, mode)
		}
	}
}

// TestRenewRefuses: what this CA hasn't made, or isn't whole, stays as it is.
func TestRenewRefuses(t *testing.T) {
	t.Parallel()
	ours, theirs := cluster(t, oneMember), cluster(t, oneMember)
	ca := must[*identity.CA](t)(identity.LoadCA(filepath.Join(ours, "ca")))
	// Another CA of the same cluster, by its own account: it makes an admin.
	forger := newCA(t, ca.Cluster(), time.Now())
	write(t, issue(t, forger, identity.RoleAdmin, "root", 1, time.Now()), ours, "forged.crt")
	write(t, read(t, ours, "a", "node.crt")[:100], ours, "half.crt")
	write(t, nil, ours, "empty.crt")
	mixed := filepath.Join(ours, "mixed")
	if err := os.CopyFS(mixed, os.DirFS(filepath.Join(ours, "a"))); err != nil {
		t.Fatal(err)
	}
	write(t, read(t, theirs, "a", "node.key"), mixed, "node.key")
	before, others := tree(t, ours), tree(t, theirs)
	for _, tc := range []struct {
		path  string
		want  string
		class identity.Class
	}{
		{filepath.Join(theirs, "a"), "and the CA of cluster " + string(ca.Cluster()), identity.Damaged},
		{filepath.Join(theirs, "client.json"), "and the CA of cluster " + string(ca.Cluster()), identity.Damaged},
		{filepath.Join(ours, "forged.crt"), "this CA hasn't signed", identity.Damaged},
		{filepath.Join(ours, "ca", "ca.crt"), "not a certificate of ours", identity.Damaged},
		{filepath.Join(ours, "half.crt"), "cut off", identity.Damaged},
		{filepath.Join(ours, "empty.crt"), "holds no PEM block", identity.Damaged},
		{mixed, "node.key", identity.Damaged},
		{ours, "folders of several members", identity.Precondition},
		{filepath.Join(ours, "nothing"), "doesn't exist", identity.Precondition},
	} {
		renewed, err := ca.Renew(tc.path, time.Now(), 0)
		contains(t, err, tc.path, tc.want)
		if identity.ClassOf(err) != tc.class || len(renewed) > 0 {
			t.Errorf("%s: renewed %v, class %v of %v, want %v", tc.path, renewed, identity.ClassOf(err), err, tc.class)
		}
	}
	if _, err := ca.Renew(filepath.Join(ours, "a"), time.Now(), -time.Hour); err == nil {
		t.Error("a certificate that ends before it begins")
	}
	if !maps.Equal(before, tree(t, ours)) || !maps.Equal(others, tree(t, theirs)) {
		t.Error("something has changed")
	}
}

// TestContextIsFollowed: credentials of a context file are replaced with it.
func TestContextIsFollowed(t *testing.T) {
	t.Parallel()
	dir := cluster(t, oneMember)
	path := filepath.Join(dir, "client.json")
	c := must[*identity.Credentials](t)(identity.LoadContextCredentials(path))
	now := time.Now()
	c.SetClock(func() time.Time { return now })
	c.LogTo(slog.New(slog.DiscardHandler))
	first := c.Expiry()
	ca := must[*identity.CA](t)(identity.LoadCA(filepath.Join(dir, "ca")))
	if _, err := ca.Renew(path, now, time.Hour); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * identity.ReloadInterval)
	if got := c.Expiry(); !got.Before(first) {
		t.Errorf("the context was replaced, and the certificate still ends at %v", got)
	}
	if left, soon := c.EndsSoon(now); !soon || left > time.Hour {
		t.Errorf("it ends in %v, soon: %v", left, soon)
	}
	second := c.Expiry()
	write(t, []byte("{"), path)
	now = now.Add(2 * identity.ReloadInterval)
	if got := c.Expiry(); !got.Equal(second) {
		t.Errorf("half a context was taken over: %v", got)
	}
}
