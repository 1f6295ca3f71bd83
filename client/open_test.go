package client_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/client"
	"atoll/internal/identity"
	"atoll/internal/porttest"
	"atoll/quorum"
)

// issue has a CA make the certificate of a client, and returns how that
// client reaches endpoints.
func issue(t *testing.T, ca *identity.CA, made time.Time, endpoints []string) client.Config {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := ca.Issue(identity.Request{Role: identity.RoleClient, Name: "someone", Key: public, Now: made, Validity: 2 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return client.Config{Endpoints: endpoints, CA: ca.Certificate(), Certificate: certificate, Key: key}
}

func newCA(t *testing.T, cluster quorum.ClusterID) *identity.CA {
	t.Helper()
	ca, err := identity.NewCA(cluster, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// nobody returns an address that nobody answers at, and keeps it.
func nobody(t *testing.T) string {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.LocalAddr().String()
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 1, identity.Spec{})
	good := h.clientConfig()
	ca, err := identity.LoadCA(filepath.Join(h.dir, "ca"))
	if err != nil {
		t.Fatal(err)
	}
	silent := nobody(t)
	mixed := good
	mixed.CA = newCA(t, identity.NewClusterID()).Certificate()
	cut := good
	cut.Key = cut.Key[:len(cut.Key)/2]
	at := func(endpoints ...string) client.Config {
		cfg := good
		cfg.Endpoints = endpoints
		return cfg
	}
	for _, test := range []struct {
		name  string
		cfg   client.Config
		class identity.Class
		want  []string // in the text, once each
	}{
		{"no endpoints", at(), identity.NoClass, []string{"no endpoints"}},
		{"nobody there", at(silent), identity.NoClass, []string{"cannot reach the cluster: " + silent + ": "}},
		{"no address", at("nonsense"), identity.NoClass, []string{`"nonsense"`, "HOST:PORT"}},
		{"IPv6 without brackets", at("::1:7400"), identity.NoClass, []string{"[::1]:7400"}},
		{"several", at(silent, "127.0.0.1", "[::1"), identity.NoClass, []string{silent, `"127.0.0.1" is not`, `"[::1" is not`}},
		{"half a key", cut, identity.Certificate, []string{"our own key", "malformed"}},
		{"CA and certificate of two clusters", mixed, identity.Certificate, []string{"our own certificate: other cluster"}},
		{"another cluster", issue(t, newCA(t, identity.NewClusterID()), time.Now(), good.Endpoints), identity.Certificate,
			[]string{good.Endpoints[0], "other cluster"}},
		{"another CA of the same name", issue(t, newCA(t, ca.Cluster()), time.Now(), good.Endpoints), identity.Certificate,
			[]string{good.Endpoints[0], "wrong CA"}},
		// These two ask nobody: where they would go, nobody answers.
		{"expired", issue(t, ca, time.Now().Add(-3*time.Hour), []string{silent}), identity.Certificate, []string{"our own certificate: certificate expired"}},
		{"not yet valid", issue(t, ca, time.Now().Add(3*time.Hour), []string{silent}), identity.Certificate, []string{"our own certificate: certificate not yet valid"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			limit := patience
			if slices.Contains(test.cfg.Endpoints, silent) {
				limit = short
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			c, err := client.Open(ctx, test.cfg)
			if err == nil {
				t.Fatal(errors.Join(errors.New("it was opened"), c.Close()))
			}
			if got := identity.ClassOf(err); got != test.class {
				t.Errorf("class %d, want %d: %v", got, test.class, err)
			}
			for _, want := range test.want {
				if strings.Count(err.Error(), want) != 1 {
					t.Errorf("%q doesn't say once %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("several lines: %q", err)
			}
		})
	}
}

func TestUnreachableTellsOfEachEndpoint(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 1, identity.Spec{})
	cfg := h.clientConfig()
	cfg.Endpoints = []string{"nonsense", "h:0"}
	_, err := client.Open(t.Context(), cfg)
	var unreachable *client.UnreachableError
	if !errors.As(err, &unreachable) || len(unreachable.Endpoints) != 2 {
		t.Errorf("got %v, want an UnreachableError of two endpoints", err)
	}
}

func TestOneEndpointIsEnough(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 3, identity.Spec{})
	h.down("b")
	cfg := h.clientConfig()
	cfg.Endpoints = []string{nobody(t), "nonsense", cfg.Endpoints[0], cfg.Endpoints[1], cfg.Endpoints[2]}
	put(t, openClient(t, cfg), "k", "v")
}

func TestIPv6(t *testing.T) {
	t.Parallel()
	probe, err := net.ListenUDP("udp6", &net.UDPAddr{IP: net.IPv6loopback})
	if err != nil {
		t.Skip("this machine has no IPv6: ", err)
	}
	probe.Close()
	address := "[::1]" + strings.TrimPrefix(porttest.Address(t), "127.0.0.1")
	h := startCluster(t, 0, identity.Spec{Members: []identity.MemberSpec{{Name: "a", Address: address}}})
	cfg := h.clientConfig()
	if cfg.Endpoints[0] != address {
		t.Fatalf("the context file says %q", cfg.Endpoints)
	}
	c := openClient(t, cfg)
	wantValue(t, c, "k", "v", put(t, c, "k", "v"))
}

func TestLoadContextNamesTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "client.json")
	if _, err := client.LoadContext(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want an error that names %s", err, path)
	}
}
