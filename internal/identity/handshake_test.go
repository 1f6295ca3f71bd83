package identity_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"atoll/internal/identity"
)

const (
	protocol       = "atoll-test"
	handshakeLimit = time.Minute // far above what any handshake takes
)

// outcome is what each end says of a handshake.
type outcome struct {
	server, client         error
	serverPeer, clientPeer identity.Peer // who is at the other end, as the server and the client see it
}

// overTCP shakes hands with crypto/tls on loopback. Neither end closes before
// the other is done: a reset would take an alert with it.
func overTCP(t *testing.T, server, client *tls.Config) outcome {
	t.Helper()
	listener := must[net.Listener](t)(net.Listen("tcp4", "127.0.0.1:0"))
	defer listener.Close()
	right := must[net.Conn](t)(net.Dial("tcp4", listener.Addr().String()))
	defer right.Close()
	left := must[net.Conn](t)(listener.Accept())
	defer left.Close()
	deadline := time.Now().Add(handshakeLimit)
	if err := errors.Join(left.SetDeadline(deadline), right.SetDeadline(deadline)); err != nil {
		t.Fatal(err)
	}
	s, c := tls.Server(left, server), tls.Client(right, client)
	var o outcome
	done := make(chan struct{})
	go func() {
		defer close(done)
		if o.server = s.Handshake(); o.server == nil {
			o.serverPeer, o.server = identity.PeerOf(s.ConnectionState())
			_, err := s.Write([]byte{1})
			o.server = errors.Join(o.server, err)
		}
	}()
	if o.client = c.Handshake(); o.client == nil {
		o.clientPeer, o.client = identity.PeerOf(c.ConnectionState())
		_, err := c.Read(make([]byte, 1)) // where the server's verdict comes
		o.client = errors.Join(o.client, err)
	}
	<-done
	return o
}

// overQUIC shakes hands with quic-go on loopback.
func overQUIC(t *testing.T, server, client *tls.Config) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), handshakeLimit)
	defer cancel()
	socket := must[*net.UDPConn](t)(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))
	defer socket.Close()
	accepted := make(chan context.Context, 1)
	transport := &quic.Transport{
		Conn: socket,
		// The context of a connection is the only thing by which a listener
		// learns why a handshake failed.
		ConnContext: func(ctx context.Context, _ *quic.ClientInfo) (context.Context, error) {
			accepted <- ctx
			return ctx, nil
		},
	}
	defer transport.Close()
	listener := must[*quic.Listener](t)(transport.Listen(server, &quic.Config{}))
	defer listener.Close()

	var o outcome
	done := make(chan struct{})
	go func() {
		defer close(done)
		var attempt context.Context
		select {
		case attempt = <-accepted:
		case <-ctx.Done():
			o.server = ctx.Err()
			return
		}
		acceptCtx, stop := context.WithCancel(ctx)
		defer stop()
		context.AfterFunc(attempt, stop)
		conn, err := listener.Accept(acceptCtx)
		if err != nil {
			<-attempt.Done()
			o.server = context.Cause(attempt)
			return
		}
		o.serverPeer, o.server = identity.PeerOf(conn.ConnectionState().TLS)
		if stream, err := conn.OpenUniStream(); err == nil {
			_, _ = stream.Write([]byte{1})
			_ = stream.Close()
		}
		<-conn.Context().Done()
	}()

	conn, err := quic.DialAddr(ctx, socket.LocalAddr().String(), client, &quic.Config{})
	if o.client = err; err == nil {
		o.clientPeer, o.client = identity.PeerOf(conn.ConnectionState().TLS)
		stream, err := conn.AcceptUniStream(ctx)
		if err == nil {
			_, err = io.ReadAll(stream)
		}
		o.client = errors.Join(o.client, err)
		_ = conn.CloseWithError(0, "")
	}
	<-done
	return o
}

func serverTLS(c *identity.Credentials) *tls.Config { return withProtocol(c.ServerTLS()) }
func clientTLS(c *identity.Credentials) *tls.Config { return withProtocol(c.ClientTLS()) }

func withProtocol(c *tls.Config) *tls.Config {
	c.NextProtos = []string{protocol}
	return c
}

// forged is a TLS configuration of somebody who doesn't follow our rules: he
// shows a certificate made from template, and accepts anyone.
func forged(t *testing.T, ca *identity.CA, key byte, template *x509.Certificate) *tls.Config {
	t.Helper()
	dir := t.TempDir()
	if err := ca.Save(dir); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(read(t, dir, "ca.key"))
	caKey := must[any](t)(x509.ParsePKCS8PrivateKey(block.Bytes))
	block, _ = pem.Decode(ca.Certificate())
	caCert := must[*x509.Certificate](t)(x509.ParseCertificate(block.Bytes))
	template.SerialNumber = big.NewInt(1)
	template.NotBefore, template.NotAfter = start.Add(-time.Hour), start.Add(time.Hour)
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, caCert, publicOf(key), caKey.(ed25519.PrivateKey)))
	return withProtocol(&tls.Config{
		InsecureSkipVerify: true,
		ClientAuth:         tls.RequestClientCert,
		Certificates:       []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: keyOf(key)}},
	})
}

func uris(t *testing.T, all ...string) (us []*url.URL) {
	t.Helper()
	for _, s := range all {
		us = append(us, must[*url.URL](t)(url.Parse(s)))
	}
	return us
}

// Each fault, seen from both ends, over both carriers.
func TestHandshakes(t *testing.T) {
	ca, twin, other := newCA(t, "c1", start), newCA(t, "c1", start), newCA(t, "c2", start)
	aged := newCA(t, "c1", start.Add(-identity.CAValidity-time.Hour))
	long := start.Add(-identity.DefaultValidity - time.Hour)
	soon := start.Add(identity.Backdate + time.Minute)
	node := func(ca *identity.CA, now time.Time) *identity.Credentials {
		return credentials(t, ca, identity.RoleNode, "", 1, now)
	}
	user := func(ca *identity.CA, now time.Time) *identity.Credentials {
		return credentials(t, ca, identity.RoleClient, "x", 2, now)
	}
	self := identity.Peer{Cluster: "c1", Role: identity.RoleNode, Name: string(identity.NodeIDOf(publicOf(2)))}.URI()
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	type refusals struct{ byServer, byClient identity.Which } // one of them, or none
	for _, tc := range []struct {
		name           string
		server, client *tls.Config
		want           refusals
		detail         string // what the end says that refuses
	}{
		{"client", serverTLS(node(ca, start)), clientTLS(user(ca, start)), refusals{}, ""},
		{"admin", serverTLS(node(ca, start)), clientTLS(credentials(t, ca, identity.RoleAdmin, "root", 3, start)), refusals{}, ""},
		{"node", serverTLS(node(ca, start)), clientTLS(credentials(t, ca, identity.RoleNode, "", 3, start)), refusals{}, ""},
		{"client's other CA", serverTLS(node(ca, start)), unchecking(user(twin, start)), refusals{byServer: identity.WrongCA}, "client x was signed by a CA that is not ours"},
		{"server's other CA", serverTLS(node(twin, start)), clientTLS(user(ca, start)), refusals{byClient: identity.WrongCA}, "was signed by a CA that is not ours"},
		{"client of another cluster", serverTLS(node(ca, start)), unchecking(user(other, start)), refusals{byServer: identity.OtherCluster}, "client x of cluster c2, ours is c1"},
		{"server of another cluster", serverTLS(node(other, start)), clientTLS(user(ca, start)), refusals{byClient: identity.OtherCluster}, "of cluster c2, ours is c1"},
		{"client expired", serverTLS(node(ca, start)), clientTLS(user(ca, long)), refusals{byServer: identity.Expired}, "client x: it expired at 2026-03-01T11:00:00Z, by our clock it is 2026-03-01T12:00:00Z"},
		{"server expired", serverTLS(node(ca, long)), clientTLS(user(ca, start)), refusals{byClient: identity.Expired}, "it expired at 2026-03-01T11:00:00Z"},
		{"client not yet valid", serverTLS(node(ca, start)), clientTLS(user(ca, soon)), refusals{byServer: identity.NotYetValid}, "it is valid from 2026-03-01T12:01:00Z"},
		{"server not yet valid", serverTLS(node(ca, soon)), clientTLS(user(ca, start)), refusals{byClient: identity.NotYetValid}, "it is valid from"},
		{"CA expired", forged(t, aged, 2, &x509.Certificate{ExtKeyUsage: both, URIs: uris(t, self)}), clientTLS(user(aged, start)), refusals{byClient: identity.Expired}, "the CA of our cluster: it expired at"},
		{"a client that serves", serverTLS(user(ca, start)), clientTLS(user(ca, start)), refusals{byClient: identity.WrongRole}, "client x, and only a node may be dialed"},
		{"no certificate", serverTLS(node(ca, start)), withProtocol(&tls.Config{InsecureSkipVerify: true}), refusals{byServer: identity.Missing}, "sent no certificate"},
		{"client without identity", serverTLS(node(ca, start)), forged(t, ca, 2, &x509.Certificate{ExtKeyUsage: both}), refusals{byServer: identity.Malformed}, "carries no atoll identity"},
		{"server without identity", forged(t, ca, 2, &x509.Certificate{ExtKeyUsage: both}), clientTLS(user(ca, start)), refusals{byClient: identity.Malformed}, "carries no atoll identity"},
		{"stranger without identity", serverTLS(node(ca, start)), forged(t, other, 2, &x509.Certificate{ExtKeyUsage: both}), refusals{byServer: identity.WrongCA}, "not signed by the CA of our cluster"},
		{"two identities", serverTLS(node(ca, start)), forged(t, ca, 2, &x509.Certificate{ExtKeyUsage: both, URIs: uris(t, self, "atoll://c1/admin/root")}), refusals{byServer: identity.Malformed}, "2 identities"},
		{"another node's id", forged(t, ca, 3, &x509.Certificate{ExtKeyUsage: both, URIs: uris(t, self)}), clientTLS(user(ca, start)), refusals{byClient: identity.Malformed}, "but its key is that of node"},
		{"a usage that wasn't given", forged(t, ca, 2, &x509.Certificate{ExtKeyUsage: both[:1], URIs: uris(t, self)}), clientTLS(user(ca, start)), refusals{byClient: identity.Malformed}, "key usage"},
		{"a CA's identity", serverTLS(node(ca, start)), forged(t, ca, 2, &x509.Certificate{ExtKeyUsage: both, URIs: uris(t, "atoll://c1/ca")}), refusals{byServer: identity.Malformed}, "is not an identity"},
	} {
		for carrier, shake := range map[string]func(*testing.T, *tls.Config, *tls.Config) outcome{"tcp": overTCP, "quic": overQUIC} {
			t.Run(tc.name+"/"+carrier, func(t *testing.T) {
				t.Parallel()
				o := shake(t, tc.server.Clone(), tc.client.Clone())
				switch {
				case tc.want.byServer == identity.Missing && carrier == "tcp":
					// The server's own error is one of crypto/tls without a type.
					contains(t, o.server, "client didn't provide a certificate")
					refused(t, "client", o.client, identity.Missing, carrier)
				case tc.want.byServer != "":
					refusal(t, "server", o.server, tc.want.byServer, tc.detail)
					refused(t, "client", o.client, tc.want.byServer, carrier)
				case tc.want.byClient != "":
					refusal(t, "client", o.client, tc.want.byClient, tc.detail)
					refused(t, "server", o.server, tc.want.byClient, carrier)
				case o.server != nil || o.client != nil:
					t.Fatalf("server: %v, client: %v", o.server, o.client)
				case o.clientPeer.Node != identity.NodeIDOf(publicOf(1)):
					t.Errorf("the client has reached %+v", o.clientPeer)
				case o.serverPeer.Cluster != "c1" || o.serverPeer.Role == "" || o.serverPeer.Name == "":
					t.Errorf("the server was reached by %+v", o.serverPeer)
				}
			})
		}
	}
}

// unchecking are credentials of a client that trusts every server, so that it
// is the server's turn to refuse.
func unchecking(c *identity.Credentials) *tls.Config {
	config := clientTLS(c)
	config.VerifyConnection = nil
	return config
}

// refusal checks what the end says that refuses.
func refusal(t *testing.T, end string, err error, which identity.Which, detail string) {
	t.Helper()
	err = identity.ExplainHandshake(err)
	e, ok := errors.AsType[*identity.PeerError](err)
	if !ok || e.Which != which {
		t.Fatalf("the %s says %v, want a PeerError: %s", end, err, which)
	}
	contains(t, err, detail, string(which))
	if identity.ClassOf(err) != identity.Certificate {
		t.Errorf("%v has class %v", err, identity.ClassOf(err))
	}
}

// refused checks what the end says that is refused. Over TCP, the alert
// says only that it is.
func refused(t *testing.T, end string, err error, which identity.Which, carrier string) {
	t.Helper()
	err = identity.ExplainHandshake(err)
	e, ok := errors.AsType[*identity.RefusedError](err)
	if !ok {
		t.Fatalf("the %s says %v (%T), want a RefusedError: %s", end, err, err, which)
	}
	switch {
	case carrier == "tcp" && which != identity.Missing:
		which = identity.Malformed
	case which == identity.NotYetValid:
		which = identity.Expired // one alert for both
	}
	if e.Which != which {
		t.Errorf("the %s says %v, want %s", end, err, which)
	}
	contains(t, err, "refused by the other side", string(which))
	if identity.ClassOf(err) != identity.Certificate {
		t.Errorf("%v has class %v", err, identity.ClassOf(err))
	}
}

func TestNoProtocolInCommon(t *testing.T) {
	t.Parallel()
	ca := newCA(t, "c1", start)
	server, client := serverTLS(credentials(t, ca, identity.RoleNode, "", 1, start)), clientTLS(credentials(t, ca, identity.RoleClient, "x", 2, start))
	client.NextProtos = []string{protocol + "/2"}
	o := overQUIC(t, server, client)
	contains(t, identity.ExplainHandshake(o.client), "refused by the other side", "no protocol version in common")
	contains(t, identity.ExplainHandshake(o.server), "the other side speaks no protocol version that we speak")
}

func TestExplainLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		nil,
		io.EOF,
		context.DeadlineExceeded,
		&net.OpError{Op: "dial", Err: errors.New("tls: bad certificate")},
		&net.OpError{Op: "remote error", Err: errors.New("something else")},
		&quic.HandshakeTimeoutError{},
		&quic.TransportError{Remote: true, ErrorCode: quic.ConnectionRefused},
		&quic.TransportError{ErrorCode: 0x100 + 50},
		&quic.ApplicationError{ErrorCode: 0x100 + 42},
	} {
		if got := identity.ExplainHandshake(err); got != err {
			t.Errorf("ExplainHandshake(%v) = %v", err, got)
		}
	}
	got := identity.ExplainHandshake(&quic.TransportError{Remote: true, ErrorCode: 0x100 + 80})
	contains(t, got, "refused by the other side: handshake failed: tls: internal error")
}

// Open connections keep their certificate; the next one shows the new one.
func TestReplacedCertificateIsShown(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	client := clientTLS(credentials(t, r.ca, identity.RoleClient, "x", 2, start))
	var seen []string
	client.VerifyPeerCertificate = func(raw [][]byte, _ [][]*x509.Certificate) error {
		cert, err := x509.ParseCertificate(raw[0])
		if err == nil {
			seen = append(seen, cert.SerialNumber.String())
		}
		return err
	}
	server := serverTLS(r.c)
	for range 2 {
		if o := overQUIC(t, server, client); o.server != nil || o.client != nil {
			t.Fatalf("server: %v, client: %v", o.server, o.client)
		}
		r.put("crt", issue(t, r.ca, identity.RoleNode, "", 1, start))
		r.pass(identity.ReloadInterval)
	}
	if len(seen) != 2 || seen[0] == seen[1] {
		t.Errorf("the certificates %q were shown", seen)
	}
}

// While one CA replaces another, both are trusted; afterwards the old one is
// not, without a restart.
func TestReplacedCA(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	next := newCA(t, "c1", start)
	old := clientTLS(credentials(t, r.ca, identity.RoleClient, "x", 2, start))
	old.VerifyConnection = nil
	fresh := clientTLS(credentials(t, next, identity.RoleClient, "x", 2, start))
	fresh.VerifyConnection = nil
	server := serverTLS(r.c)
	step := func(what string, oldPasses, freshPasses bool) {
		t.Helper()
		r.pass(identity.ReloadInterval)
		if o := overTCP(t, server, old); (o.server == nil) != oldPasses {
			t.Errorf("%s: a client of the old CA: %v", what, o.server)
		}
		if o := overTCP(t, server, fresh); (o.server == nil) != freshPasses {
			t.Errorf("%s: a client of the new CA: %v", what, o.server)
		}
	}
	step("before", true, false)
	r.put("ca.crt", append(r.ca.Certificate(), next.Certificate()...))
	step("both", true, true)
	r.put("crt", issue(t, next, identity.RoleNode, "", 1, start))
	step("new certificate", true, true)
	r.put("ca.crt", next.Certificate())
	step("after", false, true)
}

func TestFolderAndContextMeet(t *testing.T) {
	t.Parallel()
	dir := cluster(t, identity.Spec{})
	a := must[*identity.Folder](t)(identity.OpenFolder(filepath.Join(dir, "a")))
	b := must[*identity.Folder](t)(identity.OpenFolder(filepath.Join(dir, "b")))
	c := must[*identity.Credentials](t)(must[identity.Context](t)(identity.LoadContext(filepath.Join(dir, "client.json"))).Credentials())
	o := overQUIC(t, serverTLS(a.Credentials), clientTLS(b.Credentials))
	if o.client != nil || o.server != nil || o.clientPeer.Node != a.ID || o.serverPeer.Node != b.ID {
		t.Errorf("b to a: %+v", o)
	}
	o = overQUIC(t, serverTLS(b.Credentials), clientTLS(c))
	if o.client != nil || o.server != nil || o.clientPeer.Node != b.ID || o.serverPeer.Role != identity.RoleClient {
		t.Errorf("client to b: %+v", o)
	}
}
