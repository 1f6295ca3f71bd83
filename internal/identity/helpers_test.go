package identity_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atoll/internal/identity"
	"atoll/quorum"
)

// start is a moment to make certificates at.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func newCA(t testing.TB, cluster quorum.ClusterID, now time.Time) *identity.CA {
	t.Helper()
	return must[*identity.CA](t)(identity.NewCA(cluster, now))
}

// keyOf returns the nth of a row of keys, the same in every run.
func keyOf(n byte) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte{n})
	return ed25519.NewKeyFromSeed(seed[:])
}

func publicOf(n byte) ed25519.PublicKey { return keyOf(n).Public().(ed25519.PublicKey) }

func keyPEM(t testing.TB, key any) []byte {
	t.Helper()
	der := must[[]byte](t)(x509.MarshalPKCS8PrivateKey(key))
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func issue(t testing.TB, ca *identity.CA, role identity.Role, name string, key byte, now time.Time) []byte {
	t.Helper()
	return must[[]byte](t)(ca.Issue(identity.Request{Role: role, Name: name, Key: publicOf(key), Now: now}))
}

// credentials returns the credentials of a new holder whose clock says start.
func credentials(t testing.TB, ca *identity.CA, role identity.Role, name string, key byte, now time.Time) *identity.Credentials {
	t.Helper()
	c := must[*identity.Credentials](t)(identity.ParseCredentials(ca.Certificate(), issue(t, ca, role, name, key, now), keyPEM(t, keyOf(key))))
	c.SetClock(func() time.Time { return start })
	return c
}

// cluster makes a cluster of a, b and c in dir/x and returns that path.
func cluster(t testing.TB, spec identity.Spec) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x")
	if spec.Members == nil {
		spec.Members = must[[]identity.MemberSpec](t)(identity.ParseMembers("a=localhost:7400,b=localhost:7401,c=[::1]:7402"))
	}
	must[identity.ClusterFile](t)(identity.CreateCluster(dir, spec))
	return dir
}

// tree returns the path and contents of all that is under dir, folders too.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if d.IsDir() {
			all[rel+"/"] = ""
			return nil
		}
		all[rel] = string(read(t, path))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t testing.TB, path ...string) []byte {
	t.Helper()
	return must[[]byte](t)(os.ReadFile(filepath.Join(path...)))
}

func write(t testing.TB, data []byte, path ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(path...), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// contains fails unless the error says all of what is wanted, in one line.
func contains(t testing.TB, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q doesn't say %q", err, w)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error has several lines: %q", err)
	}
}

// replace puts new in the place of old, which must be there.
func replace(t testing.TB, data []byte, old, new string) []byte {
	t.Helper()
	if !bytes.Contains(data, []byte(old)) {
		t.Fatalf("%q isn't in %q", old, data)
	}
	return bytes.Replace(data, []byte(old), []byte(new), 1)
}
