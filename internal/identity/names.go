package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"

	"atoll/quorum"
)

// Role is what a certificate allows its holder to be.
type Role string

// The roles.
const (
	RoleNode   Role = "node"   // stores values, and is the only role that may serve
	RoleClient Role = "client" // reads and writes
	RoleAdmin  Role = "admin"  // a client that may also change the cluster
)

const (
	scheme = "atoll://"
	caPart = "ca" // in the place of a role, in the CA's URI
)

// text32 is lower-case base32 without padding: safe in ids, names of folders
// and URIs.
var text32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// The bytes of a digest or of randomness behind an id. Of the random ones, two
// among a billion clusters agree with a chance of 10^-6. A node's id is also
// what an impostor would have to hit with a key of his own: 2^96 tries.
const (
	nodeIDBytes    = 12
	clusterIDBytes = 10
)

// NodeIDOf returns the id of the node that has the given key: "n" and 20
// characters of [a-z2-7], from the first 12 bytes of the SHA-256 of the key's
// SubjectPublicKeyInfo.
func NodeIDOf(key ed25519.PublicKey) quorum.NodeID {
	spki, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		panic("identity: an Ed25519 key that can't be marshalled: " + err.Error()) // no such key exists
	}
	digest := sha256.Sum256(spki)
	return quorum.NodeID("n" + text32.EncodeToString(digest[:nodeIDBytes]))
}

// NewClusterID draws the id of a new cluster: "c" and 16 characters of [a-z2-7].
func NewClusterID() quorum.ClusterID {
	var b [clusterIDBytes]byte
	rand.Read(b[:]) // never fails
	return quorum.ClusterID("c" + text32.EncodeToString(b[:]))
}

// ParseClusterID reads a cluster's id from a person, a file or a peer: 1 to
// MaxClusterID characters of [a-z0-9-], the first not a hyphen.
func ParseClusterID(s string) (quorum.ClusterID, error) {
	if err := checkName("a cluster id", s, MaxClusterID); err != nil {
		return "", err
	}
	return quorum.ClusterID(s), nil
}

// ParseName reads the name of a member, a client or an admin: 1 to MaxName
// characters of [a-z0-9-], the first not a hyphen.
func ParseName(s string) (string, error) {
	if err := checkName("a name", s, MaxName); err != nil {
		return "", err
	}
	return s, nil
}

func checkName(what, s string, limit int) error {
	if s == "" || len(s) > limit {
		return fmt.Errorf("%s has 1 to %d characters, %.80q has %d", what, limit, s, len(s))
	}
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	if s[0] == '-' || strings.ContainsFunc(s, bad) {
		return fmt.Errorf("%q is not %s: only a-z, 0-9 and, not in front, - are allowed", s, what)
	}
	return nil
}

// Peer is who is at the other end of a connection, as its certificate says.
type Peer struct {
	Cluster quorum.ClusterID
	Role    Role
	// Node is the node's id, of the role node only.
	Node quorum.NodeID
	// Name is the name of a client or an admin; a node's is its id.
	Name string
}

// String returns "node n…", "client NAME" or "admin NAME".
func (p Peer) String() string { return string(p.Role) + " " + p.Name }

// URI returns the URI that the certificate of p carries.
func (p Peer) URI() string {
	return scheme + string(p.Cluster) + "/" + string(p.Role) + "/" + p.Name
}

// ParsePeerURI is the inverse of Peer.URI. It accepts that one spelling only.
func ParsePeerURI(uri string) (Peer, error) {
	bad := func(why string) (Peer, error) {
		return Peer{}, fmt.Errorf("%.200q is not an identity of the form %sCLUSTER/ROLE/NAME: %s", uri, scheme, why)
	}
	rest, ok := strings.CutPrefix(uri, scheme)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 {
		return bad("wrong shape")
	}
	cluster, err := ParseClusterID(parts[0])
	if err != nil {
		return bad(err.Error())
	}
	p := Peer{Cluster: cluster, Role: Role(parts[1]), Name: parts[2]}
	switch p.Role {
	case RoleNode:
		p.Node, err = quorum.ParseNodeID(p.Name)
	case RoleClient, RoleAdmin:
		_, err = ParseName(p.Name)
	default:
		return bad("unknown role")
	}
	if err != nil {
		return bad(err.Error())
	}
	return p, nil
}

// PeerOf says who is at the other end of a connection that was made with
// ServerTLS or ClientTLS. Those have verified the certificate; PeerOf only
// reads it.
func PeerOf(state tls.ConnectionState) (Peer, error) {
	if len(state.PeerCertificates) == 0 {
		return Peer{}, &PeerError{Which: Malformed, Detail: "the other side sent no certificate"}
	}
	p, err := holder(state.PeerCertificates[0])
	if err != nil {
		return Peer{}, &PeerError{Which: Malformed, Detail: err.Error()}
	}
	return p, nil
}

// holder reads who a certificate belongs to. It doesn't verify the signature.
func holder(cert *x509.Certificate) (Peer, error) {
	uri, err := onlyURI(cert)
	if err != nil {
		return Peer{}, err
	}
	p, err := ParsePeerURI(uri)
	if err != nil {
		return Peer{}, err
	}
	key, ok := cert.PublicKey.(ed25519.PublicKey)
	if !ok {
		return Peer{}, fmt.Errorf("the certificate of %v has a key of type %v, not Ed25519", p, cert.PublicKeyAlgorithm)
	}
	if id := NodeIDOf(key); p.Role == RoleNode && p.Node != id {
		return Peer{}, fmt.Errorf("the certificate names node %s, but its key is that of node %s", p.Node, id)
	}
	return p, nil
}

// holderOfCA reads whose CA a certificate is.
func holderOfCA(cert *x509.Certificate) (quorum.ClusterID, error) {
	uri, err := onlyURI(cert)
	if err != nil {
		return "", err
	}
	rest, ok := strings.CutPrefix(uri, scheme)
	id, part, _ := strings.Cut(rest, "/")
	if !ok || part != caPart || !cert.IsCA {
		return "", fmt.Errorf("%.200q is not a CA's certificate of the form %sCLUSTER/%s", uri, scheme, caPart)
	}
	return ParseClusterID(id)
}

func uriOfCA(cluster quorum.ClusterID) string { return scheme + string(cluster) + "/" + caPart }

func onlyURI(cert *x509.Certificate) (string, error) {
	if len(cert.URIs) == 0 {
		return "", errors.New("the certificate carries no atoll identity (" + scheme + "…)")
	}
	if len(cert.URIs) > 1 {
		return "", fmt.Errorf("the certificate carries %d identities, not one", len(cert.URIs))
	}
	return cert.URIs[0].String(), nil
}
