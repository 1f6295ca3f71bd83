package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/quic-go/quic-go"
)

// ServerTLS returns the configuration of the end that is dialed. It demands a
// certificate, of any role, of our cluster. The caller sets NextProtos; a
// connection's Peer is had by PeerOf.
func (c *Credentials) ServerTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// Only that there is one: verified it is below, by the same code as
		// on the other end, which can say more than crypto/tls.
		ClientAuth: tls.RequireAnyClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &c.secrets().tls, nil
		},
		VerifyConnection: func(state tls.ConnectionState) error {
			return c.verify(state, x509.ExtKeyUsageClientAuth, RoleNode, RoleClient, RoleAdmin)
		},
		// A resumed session would stand on a certificate that was checked
		// some time ago, for the price of one signature.
		SessionTicketsDisabled: true,
	}
}

// ClientTLS returns the configuration of the end that dials. It accepts only a
// node of our cluster, whatever its address or name: which one it is, PeerOf
// says afterwards. The caller sets NextProtos.
func (c *Credentials) ClientTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// This turns off the comparison with a host name, which we don't
		// have, and with it everything else: all of it is done in
		// VerifyConnection, without which crypto/tls would accept anyone.
		InsecureSkipVerify: true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &c.secrets().tls, nil
		},
		VerifyConnection: func(state tls.ConnectionState) error {
			return c.verify(state, x509.ExtKeyUsageServerAuth, RoleNode)
		},
		SessionTicketsDisabled: true,
	}
}

// verify reports, as a *PeerError, why the other side isn't to be trusted.
func (c *Credentials) verify(state tls.ConnectionState, usage x509.ExtKeyUsage, roles ...Role) error {
	if len(state.PeerCertificates) == 0 {
		return &PeerError{Which: Missing, Detail: "the other side sent no certificate"}
	}
	s, cert, now := c.secrets(), state.PeerCertificates[0], c.clock()
	if err := s.diagnose(cert, now, roles); err != nil {
		return err
	}
	// What decides is the library's verification: it also knows rules that
	// were not named above (critical extensions, constraints, key usage).
	_, err := cert.Verify(x509.VerifyOptions{Roots: s.pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}})
	if err != nil {
		return &PeerError{Which: Malformed, Detail: err.Error()}
	}
	return nil
}

// diagnose names what is wrong with a certificate, the most telling fault
// first: one of another cluster is also signed by a CA that isn't ours, and
// may have expired besides. What a certificate says of itself before its
// signature was checked is used to refuse it only.
func (s *secrets) diagnose(cert *x509.Certificate, now time.Time, roles []Role) error {
	bad := func(which Which, format string, args ...any) error {
		return &PeerError{Which: which, Detail: fmt.Sprintf(format, args...)}
	}
	issuer := s.issuer(cert)
	peer, err := holder(cert)
	switch {
	case err != nil && issuer == nil:
		return bad(WrongCA, "the other side's certificate was not signed by the CA of our cluster, %s (and %v)", s.self.Cluster, err)
	case err != nil:
		return bad(Malformed, "%v", err)
	case peer.Cluster != s.self.Cluster:
		return bad(OtherCluster, "the other side is %v of cluster %s, ours is %s", peer, peer.Cluster, s.self.Cluster)
	case issuer == nil:
		return bad(WrongCA, "the certificate of %v was signed by a CA that is not ours, though it names our cluster, %s", peer, s.self.Cluster)
	}
	if which, detail := dates(cert, now); which != "" {
		return bad(which, "the certificate of %v: %s", peer, detail)
	}
	if which, detail := dates(issuer, now); which != "" {
		return bad(which, "the CA of our cluster: %s", detail)
	}
	for _, r := range roles {
		if peer.Role == r {
			return nil
		}
	}
	return bad(WrongRole, "the other side is %v, and only a %s may be dialed", peer, RoleNode)
}

// dates says whether, and how, now is outside of a certificate's life.
func dates(cert *x509.Certificate, now time.Time) (Which, string) {
	const layout = time.RFC3339
	switch {
	case now.After(cert.NotAfter):
		return Expired, fmt.Sprintf("it expired at %s, by our clock it is %s", cert.NotAfter.UTC().Format(layout), now.UTC().Format(layout))
	case now.Before(cert.NotBefore):
		return NotYetValid, fmt.Sprintf("it is valid from %s, by our clock it is %s", cert.NotBefore.UTC().Format(layout), now.UTC().Format(layout))
	}
	return "", ""
}

// ExplainHandshake makes a sentence of the error of a connection, of quic-go or
// crypto/tls, that ended over certificates or the protocol's version: a
// *PeerError if we refused the other side, a *RefusedError if it refused us.
// Any other error is returned as it is.
//
// In TLS 1.3 the end that dials is done before the other has seen its
// certificate: there, a refusal comes as the error of the connection's first
// use.
func ExplainHandshake(err error) error {
	if e, ok := errors.AsType[*PeerError](err); ok {
		return e
	}
	alert, remote, ok := alertOf(err)
	if !ok {
		return err
	}
	which := whichOf(alert)
	switch {
	case remote:
		return &RefusedError{Which: which, Alert: alert, Err: err}
	case which == Missing:
		return &PeerError{Which: Missing, Detail: "the other side sent no certificate"}
	case which == Version:
		return &PeerError{Which: Version, Detail: "the other side speaks no protocol version that we speak"}
	}
	return err
}

// alertOf finds the alert in an error, and whether the other side sent it.
func alertOf(err error) (alert tls.AlertError, remote, ok bool) {
	const firstCryptoError = 0x100 // RFC 9001, section 4.8
	if e, ok := errors.AsType[*quic.TransportError](err); ok {
		return tls.AlertError(e.ErrorCode & 0xff), e.Remote, e.ErrorCode&^0xff == firstCryptoError
	}
	// Over TCP, the other side's alert is of an unexported type, which can be
	// known by its text only.
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "remote error" && e.Err != nil {
		for alert := range 256 {
			if a := tls.AlertError(alert); a.Error() == e.Err.Error() {
				return a, true, true
			}
		}
	}
	return 0, false, false
}

// whichOf is the inverse of PeerError.Unwrap, as far as there is one.
func whichOf(alert tls.AlertError) Which {
	switch alert {
	case alertUnknownCA:
		return WrongCA
	case alertCertificateExpired:
		return Expired
	case alertCertificateUnknown:
		return OtherCluster
	case alertAccessDenied:
		return WrongRole
	case alertBadCertificate:
		return Malformed
	case alertCertificateRequired:
		return Missing
	case alertNoApplicationProto:
		return Version
	}
	return Unknown
}

// refusal is the sentence for what an alert told.
func refusal(which Which, alert tls.AlertError) string {
	switch which {
	case WrongCA:
		return "our certificate was signed by a CA that it doesn't know"
	case Expired:
		return "by its clock, our certificate has expired or is not valid yet"
	case OtherCluster:
		return "it belongs to another cluster than our certificate"
	case WrongRole:
		return "our certificate's role is not allowed there"
	case Malformed:
		return "it doesn't accept our certificate; its log says why"
	case Missing:
		return "it demands a certificate, and we sent none"
	case Version:
		return "it speaks no protocol version that we speak"
	}
	return alert.Error()
}
