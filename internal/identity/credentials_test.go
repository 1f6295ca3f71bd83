package identity_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"atoll/internal/identity"
)

func TestParseCredentials(t *testing.T) {
	t.Parallel()
	ca, twin, other := newCA(t, "c1", start), newCA(t, "c1", start), newCA(t, "c2", start)
	cert := issue(t, ca, identity.RoleClient, "x", 1, start)
	key := keyPEM(t, keyOf(1))
	c := must[*identity.Credentials](t)(identity.ParseCredentials(ca.Certificate(), cert, key))
	if got := c.Self(); got != (identity.Peer{Cluster: "c1", Role: identity.RoleClient, Name: "x"}) || c.Cluster() != "c1" {
		t.Errorf("the credentials are of %+v", got)
	}
	if got, want := c.Expiry(), start.Add(identity.DefaultValidity); !got.Equal(want) {
		t.Errorf("they expire at %v, want %v", got, want)
	}
	elliptic := keyPEM(t, must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)))
	both := append(twin.Certificate(), ca.Certificate()...)
	must[*identity.Credentials](t)(identity.ParseCredentials(both, cert, key))
	for _, tc := range []struct {
		name          string
		ca, cert, key []byte
		part          identity.Part
		which         identity.Which
		want          string
	}{
		{"no CA", nil, cert, key, identity.PartCA, identity.Malformed, "holds no PEM block"},
		{"no certificate", ca.Certificate(), nil, key, identity.PartCertificate, identity.Malformed, "holds no PEM block"},
		{"no key", ca.Certificate(), cert, nil, identity.PartKey, identity.Malformed, "holds no PEM block"},
		{"key first", key, cert, key, identity.PartCA, identity.Malformed, `type "PRIVATE KEY"`},
		{"two certificates", ca.Certificate(), append(bytes.Clone(cert), cert...), key, identity.PartCertificate, identity.Malformed, "more than 1"},
		{"CAs of two clusters", append(ca.Certificate(), other.Certificate()...), cert, key, identity.PartCA, identity.Malformed, "two clusters, c1 and c2"},
		{"too many CAs", bytes.Repeat(ca.Certificate(), identity.MaxCAs+1), cert, key, identity.PartCA, identity.Malformed, "more than 8"},
		{"a client for a CA", cert, cert, key, identity.PartCA, identity.Malformed, "not a CA's certificate"},
		{"a CA for a client", ca.Certificate(), ca.Certificate(), key, identity.PartCertificate, identity.Malformed, "not a certificate of ours"},
		{"another kind of key", ca.Certificate(), cert, elliptic, identity.PartKey, identity.Malformed, "not Ed25519"},
		{"another's key", ca.Certificate(), cert, keyPEM(t, keyOf(2)), identity.PartKey, identity.WrongKey, "not the key of the certificate of client x"},
		{"another CA", twin.Certificate(), cert, key, identity.PartCertificate, identity.WrongCA, "not signed by the CA"},
		{"another cluster", other.Certificate(), cert, key, identity.PartCertificate, identity.OtherCluster, "of cluster c1, the CA is of cluster c2"},
	} {
		_, err := identity.ParseCredentials(tc.ca, tc.cert, tc.key)
		e, ok := errors.AsType[*identity.CredentialError](err)
		if !ok || e.Part != tc.part || e.Which != tc.which {
			t.Errorf("%s: error is %v", tc.name, err)
			continue
		}
		contains(t, err, tc.want, string(tc.part), string(tc.which))
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	ca := newCA(t, "c1", start)
	late := start.Add(identity.CAValidity - time.Hour)
	c := credentials(t, ca, identity.RoleClient, "x", 1, late)
	if got, want := c.Expiry(), start.Add(identity.CAValidity); !got.Equal(want) {
		t.Errorf("a certificate outlives its CA: it ends at %v, the CA at %v", got, want)
	}
	for _, tc := range []struct {
		at    time.Time
		which identity.Which
	}{
		{late, ""},
		{late.Add(-time.Hour), ""},
		{late.Add(-2 * time.Hour), identity.NotYetValid},
		{late.Add(time.Hour + time.Second), identity.Expired},
	} {
		err := c.Check(tc.at)
		e, _ := errors.AsType[*identity.CredentialError](err)
		if tc.which == "" && err != nil || tc.which != "" && (e == nil || e.Which != tc.which) {
			t.Errorf("at %v: %v, want %q", tc.at, err, tc.which)
		}
	}
}

func TestIssueErrors(t *testing.T) {
	t.Parallel()
	ca := newCA(t, "c1", start)
	for _, r := range []identity.Request{
		{Role: identity.RoleClient, Name: "x", Now: start},
		{Role: "owner", Name: "x", Key: publicOf(1), Now: start},
		{Role: identity.RoleClient, Key: publicOf(1), Now: start},
		{Role: identity.RoleAdmin, Name: "a/b", Key: publicOf(1), Now: start},
		{Role: identity.RoleNode, Key: publicOf(1), Now: start, Validity: -1},
		{Role: identity.RoleNode, Key: publicOf(1), Now: start, Validity: identity.CAValidity + 1},
	} {
		if _, err := ca.Issue(r); err == nil {
			t.Errorf("Issue(%+v) passed", r)
		}
	}
	if _, err := identity.NewCA("C/1", start); err == nil {
		t.Error("a CA for a cluster with a bad id")
	}
}

func TestCAOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newCA(t, "c1", start)
	if err := ca.Save(dir); err != nil {
		t.Fatal(err)
	}
	loaded := must[*identity.CA](t)(identity.LoadCA(dir))
	cert := issue(t, loaded, identity.RoleClient, "x", 1, start)
	must[*identity.Credentials](t)(identity.ParseCredentials(ca.Certificate(), cert, keyPEM(t, keyOf(1))))
	if loaded.Cluster() != "c1" {
		t.Errorf("loaded the CA of %q", loaded.Cluster())
	}

	other := t.TempDir()
	if err := newCA(t, "c1", start).Save(other); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		file string
		data []byte
		want string
	}{
		{"ca.crt", nil, "is empty"},
		{"ca.key", read(t, dir, "ca.key")[:40], "cut off"},
		{"ca.key", read(t, other, "ca.key"), "is not the key of ca.crt"},
		{"ca.crt", cert, "is not a CA's certificate"},
		{"ca.crt", bytes.Repeat(read(t, dir, "ca.crt"), 2), "more than one"},
	} {
		whole := read(t, dir, tc.file)
		write(t, tc.data, dir, tc.file)
		_, err := identity.LoadCA(dir)
		contains(t, err, filepath.Join(dir, tc.file), tc.want)
		if identity.ClassOf(err) != identity.Damaged {
			t.Errorf("%v has class %v", err, identity.ClassOf(err))
		}
		write(t, whole, dir, tc.file)
	}
}

// reloading is credentials in files, a clock to turn, and a log.
type reloading struct {
	t     *testing.T
	dir   string
	ca    *identity.CA
	c     *identity.Credentials
	clock struct {
		sync.Mutex
		now time.Time
	}
	log bytes.Buffer
}

func newReloading(t *testing.T) *reloading {
	r := &reloading{t: t, dir: t.TempDir(), ca: newCA(t, "c1", start)}
	r.clock.now = start
	if err := r.ca.Save(r.dir); err != nil {
		t.Fatal(err)
	}
	r.put("key", keyPEM(t, keyOf(1)))
	r.put("crt", issue(t, r.ca, identity.RoleNode, "", 1, start))
	r.c = must[*identity.Credentials](t)(identity.LoadCredentials(identity.Files{
		CA: filepath.Join(r.dir, "ca.crt"), Certificate: filepath.Join(r.dir, "crt"), Key: filepath.Join(r.dir, "key")}))
	r.c.SetClock(func() time.Time { r.clock.Lock(); defer r.clock.Unlock(); return r.clock.now })
	r.c.LogTo(slog.New(slog.NewTextHandler(&r.log, nil)))
	r.pass(time.Hour)
	return r
}

// put replaces a file by renaming, as tools that renew certificates do.
func (r *reloading) put(name string, data []byte) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	write(r.t, data, path+".new")
	if err := os.Rename(path+".new", path); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reloading) pass(d time.Duration) {
	r.clock.Lock()
	defer r.clock.Unlock()
	r.clock.now = r.clock.now.Add(d)
}

// serial returns the serial number of the certificate that a handshake shows.
func (r *reloading) serial() string {
	r.t.Helper()
	cert, err := r.c.ServerTLS().GetCertificate(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	client, err := r.c.ClientTLS().GetClientCertificate(nil)
	if err != nil || client.Leaf.SerialNumber.Cmp(cert.Leaf.SerialNumber) != 0 {
		r.t.Errorf("server and client certificate differ (%v)", err)
	}
	return cert.Leaf.SerialNumber.String()
}

func TestReload(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	first := r.serial()
	r.put("crt", issue(t, r.ca, identity.RoleNode, "", 1, start.Add(time.Hour)))
	if r.serial() != first {
		t.Error("the files were looked at twice within the interval")
	}
	r.pass(identity.ReloadInterval)
	second := r.serial()
	if second == first {
		t.Error("the new certificate isn't used")
	}
	if got, want := r.c.Expiry(), start.Add(time.Hour+identity.DefaultValidity); !got.Equal(want) {
		t.Errorf("Expiry is %v, want %v", got, want)
	}
	if got := r.log.String(); strings.Count(got, "new credentials in use") != 1 {
		t.Errorf("the log says %q", got)
	}
}

// What isn't fit for use is logged once and changes nothing; the next good
// files are taken over.
func TestReloadKeepsTheOldOnes(t *testing.T) {
	t.Parallel()
	stranger := newCA(t, "c2", start)
	for _, tc := range []struct {
		name string
		do   func(r *reloading)
		want string
	}{
		{"half a certificate", func(r *reloading) { r.put("crt", read(t, r.dir, "crt")[:100]) }, "cut off"},
		{"no certificate", func(r *reloading) { os.Remove(filepath.Join(r.dir, "crt")) }, "no such file"},
		{"the key not yet", func(r *reloading) { r.put("crt", issue(t, r.ca, identity.RoleNode, "", 2, start)) }, "wrong key"},
		{"another node", func(r *reloading) {
			r.put("crt", issue(t, r.ca, identity.RoleNode, "", 2, start))
			r.put("key", keyPEM(t, keyOf(2)))
		}, "wrong key: it is of node n"},
		{"another cluster", func(r *reloading) {
			r.put("ca.crt", stranger.Certificate())
			r.put("crt", issue(t, stranger, identity.RoleNode, "", 1, start))
		}, "other cluster: it is of node"},
		{"expired", func(r *reloading) {
			r.put("crt", must[[]byte](t)(r.ca.Issue(identity.Request{Role: identity.RoleNode, Key: publicOf(1), Now: start, Validity: time.Minute})))
		}, "expired"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newReloading(t)
			first := r.serial()
			tc.do(r)
			for range 3 {
				r.pass(identity.ReloadInterval)
				if r.serial() != first {
					t.Error("the old certificate isn't used any more")
				}
			}
			if got := r.log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, tc.want) {
				t.Errorf("the log doesn't say %q once: %s", tc.want, got)
			}
			r.put("ca.crt", r.ca.Certificate())
			r.put("key", keyPEM(t, keyOf(1)))
			r.put("crt", issue(t, r.ca, identity.RoleNode, "", 1, start))
			r.pass(identity.ReloadInterval)
			if r.serial() == first {
				t.Errorf("the whole new pair isn't used; the log says %s", r.log.String())
			}
		})
	}
}

func TestReloadConcurrently(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	certs := [][]byte{issue(t, r.ca, identity.RoleNode, "", 1, start), issue(t, r.ca, identity.RoleNode, "", 1, start)}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				r.pass(identity.ReloadInterval)
				if _, err := r.c.ServerTLS().GetCertificate(nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 50 {
		r.put("crt", certs[i%2])
	}
	wg.Wait()
}

func TestLoadCredentialsErrors(t *testing.T) {
	t.Parallel()
	_, err := identity.LoadCredentials(identity.Files{CA: filepath.Join(t.TempDir(), "none"), Certificate: "x", Key: "y"})
	e, ok := errors.AsType[*identity.CredentialError](err)
	if !ok || e.Part != identity.PartCA {
		t.Errorf("error is %v", err)
	}
	contains(t, err, "none: no such file")
}
