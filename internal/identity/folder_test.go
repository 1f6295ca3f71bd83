package identity_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atoll/internal/identity"
)

var memberFiles = []string{"identity.json", "cluster.json", "ca.crt", "node.crt", "node.key"}

// two makes two clusters and returns their folders.
func two(t *testing.T) (ours, theirs string) {
	t.Helper()
	spec := identity.Spec{Now: start}
	return cluster(t, spec), cluster(t, spec)
}

// Each file of a folder: missing, empty, cut off anywhere, garbage, oversized,
// a folder, of another node, of another cluster.
func TestDamagedFolders(t *testing.T) {
	t.Parallel()
	ours, theirs := two(t)
	dir := filepath.Join(ours, "a")
	open := func() error {
		_, err := identity.OpenFolderAt(dir, start)
		return err
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, file, what string) {
		t.Helper()
		before := tree(t, dir)
		err := open()
		e, ok := errors.AsType[*identity.FolderError](err)
		if !ok {
			t.Fatalf("%s %s: error is %v", file, what, err)
		}
		if e.File != filepath.Join(dir, file) || e.Class != identity.Damaged || e.Problem == "" || e.WayOut == "" {
			t.Errorf("%s %s: error is %+v", file, what, e)
		}
		contains(t, err, filepath.Join(dir, file))
		if !maps.Equal(before, tree(t, dir)) {
			t.Errorf("%s %s: the folder was changed", file, what)
		}
	}
	for _, file := range memberFiles {
		path := filepath.Join(dir, file)
		whole := read(t, path)
		for what, data := range map[string][]byte{
			"empty":     {},
			"cut off":   whole[:len(whole)/2],
			"garbage":   []byte("\x00\xff\x00garbage"),
			"oversized": append(bytes.Clone(whole), bytes.Repeat([]byte("\n"), identity.MaxFileSize)...),
			"doubled":   append(bytes.Clone(whole), whole...),
		} {
			if file == "ca.crt" && what == "doubled" {
				continue // a CA that is named twice
			}
			write(t, data, path)
			check(t, file, what)
		}
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		check(t, file, "a folder")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		check(t, file, "missing")
		write(t, read(t, theirs, "a", file), path)
		check(t, file, "of another cluster")
		if other := read(t, ours, "b", file); !bytes.Equal(other, whole) {
			write(t, other, path)
			check(t, file, "of another node")
		}
		write(t, whole, path)
	}
	if err := open(); err != nil {
		t.Error(err)
	}
}

// However short a file is cut, the folder isn't opened.
func TestEveryTruncation(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(cluster(t, identity.Spec{Now: start}), "a")
	for _, file := range memberFiles {
		path := filepath.Join(dir, file)
		whole := read(t, path)
		for n := 0; n < len(bytes.TrimSpace(whole)); n += 23 {
			write(t, whole[:n], path)
			if _, err := identity.OpenFolderAt(dir, start); identity.ClassOf(err) != identity.Damaged {
				t.Errorf("%s, %d of %d bytes: %v", file, n, len(whole), err)
			}
		}
		write(t, whole, path)
	}
}

func TestWordsOfFolderErrors(t *testing.T) {
	t.Parallel()
	ours, theirs := two(t)
	dir := filepath.Join(ours, "a")
	clean := tree(t, dir)
	edit := func(file, old, new string) func(*testing.T) {
		return func(t *testing.T) { write(t, replace(t, read(t, dir, file), old, new), dir, file) }
	}
	put := func(file string, data []byte) func(*testing.T) {
		return func(t *testing.T) { write(t, data, dir, file) }
	}
	ca := must[*identity.CA](t)(identity.LoadCA(filepath.Join(ours, "ca")))
	self := must[*identity.Folder](t)(identity.OpenFolderAt(dir, start))
	for _, c := range []struct {
		name string
		do   func(*testing.T)
		file string
		want []string
	}{
		{"newer cluster file", edit("cluster.json", `"format": 1`, `"format": 3`), "cluster.json", []string{"format 3", "newer version"}},
		{"format of another kind", edit("cluster.json", `"format": 1`, `"format": 2`), "cluster.json", []string{"format 1", "it is neither"}},
		{"newer identity file", edit("identity.json", `"format": 1`, `"format": 2`), "identity.json", []string{"format 2", "newer version"}},
		{"no format", edit("cluster.json", `"format": 1,`, ``), "cluster.json", []string{"no format number"}},
		{"unknown field", edit("cluster.json", `"quorum"`, `"leader": "a", "quorum"`), "cluster.json", []string{`unknown field "leader"`}},
		{"no quorum", edit("cluster.json", `"majority"`, `"get=1,put=1"`), "cluster.json", []string{"get+put must exceed 3"}},
		{"bad address", edit("cluster.json", `localhost:7400`, `localhost`), "cluster.json", []string{"HOST:PORT"}},
		{"another name", edit("identity.json", `"name": "a"`, `"name": "b"`), "identity.json", []string{`calls this node "b"`, `calls it "a"`}},
		{"another id", edit("identity.json", string(self.ID), "n1"), "identity.json", []string{"is that of node n1", string(self.ID)}},
		{"another cluster", edit("identity.json", string(self.Cluster.Cluster), "c1"), "identity.json", []string{"is of cluster c1", string(self.Cluster.Cluster)}},
		{"not a member", edit("cluster.json", string(self.ID), "n1"), "cluster.json", []string{"doesn't name this node"}},
		{"another's key", put("node.key", read(t, ours, "b", "node.key")), "node.key", []string{"is that of node n", "this folder is that of node " + string(self.ID)}},
		{"another's certificate", put("node.crt", read(t, ours, "b", "node.crt")), "node.crt", []string{"is that of node n"}},
		{"another's identity", put("identity.json", read(t, ours, "b", "identity.json")), "identity.json", []string{"is that of node n"}},
		{"another CA", put("ca.crt", read(t, theirs, "a", "ca.crt")), "ca.crt", []string{"is of cluster c"}},
		{"key for certificate", put("node.crt", read(t, dir, "node.key")), "node.crt", []string{`type "PRIVATE KEY", not CERTIFICATE`}},
		{"CA for certificate", put("node.crt", ca.Certificate()), "node.crt", []string{"not a certificate of ours"}},
		{"certificate for CA", put("ca.crt", read(t, dir, "node.crt")), "ca.crt", []string{"not a CA's certificate"}},
		{"something behind the certificate", put("node.crt", append(read(t, dir, "node.crt"), "x"...)), "node.crt", []string{"something behind"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				for file, data := range clean {
					if !strings.HasSuffix(file, "/") {
						write(t, []byte(data), dir, file)
					}
				}
			}()
			c.do(t)
			_, err := identity.OpenFolderAt(dir, start)
			contains(t, err, append(c.want, filepath.Join(dir, c.file)+" ")...)
			if identity.ClassOf(err) != identity.Damaged {
				t.Errorf("%v has class %v", err, identity.ClassOf(err))
			}
		})
	}
}

func TestCertificateOfFolder(t *testing.T) {
	t.Parallel()
	ours := cluster(t, identity.Spec{Now: start, Validity: 24 * time.Hour})
	dir := filepath.Join(ours, "a")
	for _, c := range []struct {
		at   time.Duration
		file string // "" if it is fine
		want string
	}{
		{-2 * time.Hour, "node.crt", "not yet valid"},
		{-30 * time.Minute, "", ""}, // our clock is slow: Backdate is for that
		{23 * time.Hour, "", ""},
		{25 * time.Hour, "node.crt", "expired at 2026-03-02T12:00:00Z, by our clock it is 2026-03-02T13:00:00Z"},
	} {
		_, err := identity.OpenFolderAt(dir, start.Add(c.at))
		if c.file == "" {
			if err != nil {
				t.Errorf("%v: %v", c.at, err)
			}
			continue
		}
		contains(t, err, filepath.Join(dir, c.file), c.want, "clock")
		if identity.ClassOf(err) != identity.Certificate {
			t.Errorf("%v: class %v", err, identity.ClassOf(err))
		}
	}
	// A certificate of a CA that isn't ours though it says so.
	f := must[*identity.Folder](t)(identity.OpenFolderAt(dir, start))
	public := must[*tls.Certificate](t)(f.Credentials.ServerTLS().GetCertificate(nil)).Leaf.PublicKey.(ed25519.PublicKey)
	impostor := newCA(t, f.Cluster.Cluster, start)
	write(t, must[[]byte](t)(impostor.Issue(identity.Request{Role: identity.RoleNode, Key: public, Now: start})), dir, "node.crt")
	_, err := identity.OpenFolderAt(dir, start)
	contains(t, err, "node.crt", "wrong CA")
	if identity.ClassOf(err) != identity.Certificate {
		t.Errorf("%v: class %v", err, identity.ClassOf(err))
	}
	// One of our CA for this key, but for a client.
	ca := must[*identity.CA](t)(identity.LoadCA(filepath.Join(ours, "ca")))
	write(t, must[[]byte](t)(ca.Issue(identity.Request{Role: identity.RoleClient, Name: "x", Key: public, Now: start})), dir, "node.crt")
	_, err = identity.OpenFolderAt(dir, start)
	contains(t, err, "node.crt", "is that of client x, not of a node")
}

func TestWrongFolders(t *testing.T) {
	t.Parallel()
	ours := cluster(t, identity.Spec{})
	empty := t.TempDir()
	other := t.TempDir()
	write(t, nil, other, "notes")
	for _, c := range []struct{ dir, want string }{
		{filepath.Join(ours, "z"), "doesn't exist; make a cluster with replica init"},
		{filepath.Join(ours, "client.json"), "is not a folder"},
		{empty, "is empty"},
		{other, "is not a member's folder"},
		{filepath.Join(ours, "ca"), "is not a member's folder"},
		{ours, "holds the folders of several members; give one of them: " + filepath.Join(ours, "a") + ", " + filepath.Join(ours, "b")},
	} {
		_, err := identity.OpenFolder(c.dir)
		contains(t, err, c.dir, c.want)
		if got := identity.ClassOf(err); got != identity.Precondition {
			t.Errorf("%v has class %v", err, got)
		}
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(cluster(t, identity.Spec{}), "a")
	if err := os.Chmod(filepath.Join(dir, "node.key"), 0o640); err != nil {
		t.Fatal(err)
	}
	f := must[*identity.Folder](t)(identity.OpenFolder(dir))
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], "chmod 600 "+filepath.Join(dir, "node.key")) {
		t.Errorf("warnings are %q", f.Warnings)
	}
	if os.Geteuid() == 0 {
		t.Skip("root may do everything: what follows needs another user")
	}
	defer os.Chmod(dir, 0o700)
	for _, c := range []struct {
		path string
		mode os.FileMode
		want string
	}{
		{filepath.Join(dir, "node.key"), 0, "may not be read"},
		{dir, 0o500, "can't be written to"},
		{dir, 0o300, "may not be read"},
	} {
		if err := os.Chmod(c.path, c.mode); err != nil {
			t.Fatal(err)
		}
		_, err := identity.OpenFolder(dir)
		contains(t, err, c.path, c.want)
		if identity.ClassOf(err) != identity.Precondition {
			t.Errorf("%v has class %v", err, identity.ClassOf(err))
		}
		if err := os.Chmod(c.path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Chmod(dir, 0o500)
	_, err := identity.CreateCluster(filepath.Join(dir, "x"), oneMember)
	contains(t, err, "can't be made")
	if identity.ClassOf(err) != identity.Precondition {
		t.Errorf("%v has class %v", err, identity.ClassOf(err))
	}
}

func TestStatelessResetKey(t *testing.T) {
	t.Parallel()
	ours := cluster(t, identity.Spec{})
	open := func(name string) [32]byte {
		return must[*identity.Folder](t)(identity.OpenFolder(filepath.Join(ours, name))).StatelessResetKey()
	}
	a := open("a")
	if again := open("a"); a != again {
		t.Errorf("the key of a is %x, then %x", a, again)
	}
	if b := open("b"); a == b {
		t.Errorf("a and b have the same key, %x", a)
	}
}
