package server_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atoll/client"
	"atoll/internal/cli"
	"atoll/internal/identity"
	"atoll/internal/logtest"
)

// replace gives a file a new content at once.
func (n node) replace(data []byte, path ...string) {
	n.t.Helper()
	name := filepath.Join(path...)
	if err := os.WriteFile(name+".new", data, 0o600); err != nil {
		n.t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		n.t.Fatal(err)
	}
}

// load puts and gets over and over, with as many callers, until end is
// called. No operation may fail.
func load(t *testing.T, c *client.Client, callers int) (done *atomic.Int64, end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	done = new(atomic.Int64)
	for caller := range callers {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key, value := fmt.Sprint(caller), fmt.Appendf(nil, "%d", i)
				if _, err := c.Put(context.Background(), key, value); err != nil {
					t.Errorf("put %s: %v", key, err)
					return
				}
				got, err := c.Get(context.Background(), key)
				if err != nil || !bytes.Equal(got.Bytes, value) {
					t.Errorf("get %s: %q, %v, want %q", key, got.Bytes, err, value)
					return
				}
				done.Add(1)
			}
		})
	}
	return done, func() { cancel(); all.Wait() }
}

// TestCertificatesAreReplacedUnderLoad: those of the node and of a client that
// runs, for new ones of the same CA, and then of another CA; and then the node
// is started again, so that what counts is what was taken over. Nothing fails,
// and nobody is left who knows the old CA.
func TestCertificatesAreReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	cfg := n.config()
	cfg.Metrics = "127.0.0.1:0"
	var book logtest.Book
	cfg.Log = book.Log(slog.LevelWarn)
	s := n.start(cfg)
	c := n.client()
	done, end := load(t, c, 4)
	defer end()
	goOn := func(what string) {
		t.Helper()
		n.await(what, func() bool { return done.Load() > 0 })
		from := done.Load()
		n.await(what, func() bool { return done.Load() > from+20 })
	}
	goOn("load at first")

	folder, contextFile := cfg.Folder.Dir, filepath.Join(n.dir, identity.FileContext)
	ca, err := identity.LoadCA(filepath.Join(n.dir, "ca"))
	if err != nil {
		t.Fatal(err)
	}
	ends := metric(t, s, "atoll_certificate_expiry_seconds")
	for _, path := range []string{folder, contextFile} {
		if _, err := ca.Renew(path, time.Now(), 48*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	n.await("the node takes the renewed certificate", func() bool { return metric(t, s, "atoll_certificate_expiry_seconds") != ends })
	if status, err := n.client().Status(t.Context()); err != nil || float64(status.Members[0].Status.CertificateEnd) == ends {
		t.Errorf("status: %+v, %v", status, err)
	}
	// Two days are short: that is said at once, and not only at the next hour.
	n.await("the node warns of the end", func() bool { return book.Contains("the node's certificate ends soon") })
	goOn("load with renewed certificates")

	n.changeCA(folder, contextFile)
	goOn("load with another CA")
	n.stop(s)
	s = n.start(n.config())
	goOn("load after a restart")
	// The old CA's certificates are worth nothing any more.
	old := client.Config{Endpoints: []string{n.address}, CA: ca.Certificate()}
	file, err := identity.LoadContext(filepath.Join(n.dir, identity.FileAdmin)) // as it was
	if err != nil {
		t.Fatal(err)
	}
	old.Certificate, old.Key = []byte(file.Certificate), []byte(file.Key)
	if c, err := client.Open(t.Context(), old); err == nil {
		c.Close()
		t.Error("who knows only the old CA is served")
	} else if cli.ExitCode(err) != cli.ExitDenied {
		t.Errorf("who knows only the old CA: %v, exit code %d", err, cli.ExitCode(err))
	}
}

// changeCA replaces the CA of a node and a client that run, in the order in
// which an operator does it: both CAs are trusted before anybody shows a
// certificate of the new one.
func (n node) changeCA(folder, contextFile string) {
	n.t.Helper()
	old, err := identity.LoadCA(filepath.Join(n.dir, "ca"))
	if err != nil {
		n.t.Fatal(err)
	}
	ca, err := identity.NewCA(old.Cluster(), time.Now())
	if err != nil {
		n.t.Fatal(err)
	}
	file, err := identity.LoadContext(contextFile)
	if err != nil {
		n.t.Fatal(err)
	}
	save := func() {
		if err := identity.SaveContext(contextFile, file); err != nil {
			n.t.Fatal(err)
		}
	}
	both := append(old.Certificate(), ca.Certificate()...)
	n.replace(both, folder, identity.FileCA)
	file.CA = string(both)
	save()

	f := n.folder()
	certificate, err := ca.Issue(identity.Request{Role: identity.RoleNode, Name: f.Name, Key: n.publicKey(filepath.Join(folder, identity.FileKey)), Now: time.Now()})
	if err != nil {
		n.t.Fatal(err)
	}
	n.replace(certificate, folder, identity.FileCertificate)
	certificate, err = ca.Issue(identity.Request{Role: identity.RoleClient, Name: "client", Key: publicKeyOf(n.t, []byte(file.Key)), Now: time.Now()})
	if err != nil {
		n.t.Fatal(err)
	}
	file.Certificate = string(certificate)
	save()

	n.replace(ca.Certificate(), folder, identity.FileCA)
	file.CA = string(ca.Certificate())
	save()
}

// TestTheEndOfACertificateIsNamed: that of the node, at the client, whose
// command ends with its own code; and the client's own.
func TestTheEndOfACertificateIsNamed(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	cfg := n.config()
	expire(n, cfg.Folder)
	n.start(cfg)
	contextFile := filepath.Join(n.dir, identity.FileContext)
	open := func() error {
		cfg, err := client.LoadContext(contextFile)
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.Open(t.Context(), cfg)
		if err == nil {
			c.Close()
		}
		return err
	}
	err := open()
	if err == nil || cli.ExitCode(err) != cli.ExitDenied || !strings.Contains(err.Error(), "certificate expired") || !strings.Contains(err.Error(), n.address) {
		t.Errorf("a node whose certificate has ended: %v, exit code %d", err, cli.ExitCode(err))
	}
	ca, err := identity.LoadCA(filepath.Join(n.dir, "ca"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ca.Renew(contextFile, time.Now().Add(-3*time.Hour), 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	err = open()
	if err == nil || cli.ExitCode(err) != cli.ExitDenied || !strings.Contains(err.Error(), "our own certificate: certificate expired") {
		t.Errorf("a client whose certificate has ended: %v, exit code %d", err, cli.ExitCode(err))
	}
}
