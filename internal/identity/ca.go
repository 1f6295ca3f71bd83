package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"atoll/quorum"
)

// CA is a cluster's certificate authority. Whoever has its key can make
// members, clients and admins.
type CA struct {
	cluster quorum.ClusterID
	cert    *x509.Certificate
	key     ed25519.PrivateKey
}

// NewCA makes the CA of a cluster, valid from now, less Backdate, for
// CAValidity.
func NewCA(cluster quorum.ClusterID, now time.Time) (*CA, error) {
	if _, err := ParseClusterID(string(cluster)); err != nil {
		return nil, err
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the CA's key: %w", err)
	}
	uri, err := url.Parse(uriOfCA(cluster))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "atoll CA of cluster " + string(cluster)},
		URIs:                  []*url.URL{uri},
		NotBefore:             now.Add(-Backdate),
		NotAfter:              now.Add(CAValidity),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		return nil, fmt.Errorf("making the CA's certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("making the CA's certificate: %w", err)
	}
	return &CA{cluster: cluster, cert: cert, key: key}, nil
}

// Cluster returns the id of the cluster.
func (ca *CA) Cluster() quorum.ClusterID { return ca.cluster }

// Certificate returns the CA's certificate in PEM, which everyone in the
// cluster needs and which is no secret.
func (ca *CA) Certificate() []byte { return encodeCertificate(ca.cert.Raw) }

// Request is what a certificate is to say.
type Request struct {
	Role Role
	// Name is the name of a client or an admin. A node has its key's id
	// instead, and Name is only shown, as the certificate's subject.
	Name string
	Key  ed25519.PublicKey
	// Now is when the certificate is made. Its life begins by Backdate
	// earlier.
	Now time.Time
	// Validity is how long it lives from Now; 0 means DefaultValidity. It
	// ends with the CA's at the latest.
	Validity time.Duration
}

// Issue makes a certificate and returns it in PEM.
func (ca *CA) Issue(r Request) ([]byte, error) {
	p := Peer{Cluster: ca.cluster, Role: r.Role, Name: r.Name}
	if len(r.Key) != ed25519.PublicKeySize {
		return nil, errors.New("a certificate needs an Ed25519 public key")
	}
	if r.Role == RoleNode {
		p.Name = string(NodeIDOf(r.Key))
	}
	if _, err := ParsePeerURI(p.URI()); err != nil {
		return nil, err
	}
	if err := checkValidity(r.Validity); err != nil {
		return nil, err
	}
	if r.Validity == 0 {
		r.Validity = DefaultValidity
	}
	uri, err := url.Parse(p.URI())
	if err != nil {
		return nil, err
	}
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if r.Role == RoleNode {
		usage = append(usage, x509.ExtKeyUsageServerAuth)
	}
	end := r.Now.Add(r.Validity)
	if end.After(ca.cert.NotAfter) {
		end = ca.cert.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		Subject:               pkix.Name{CommonName: r.Name},
		URIs:                  []*url.URL{uri},
		NotBefore:             r.Now.Add(-Backdate),
		NotAfter:              end,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           usage,
	}, ca.cert, r.Key, ca.key)
	if err != nil {
		return nil, fmt.Errorf("making the certificate of %v: %w", p, err)
	}
	return encodeCertificate(der), nil
}

func checkValidity(d time.Duration) error {
	if d < 0 || d > CAValidity {
		return fmt.Errorf("a certificate lives for up to %v, not %v", CAValidity, d)
	}
	return nil
}

// Save writes ca.crt and ca.key (mode 0600) into dir, which must exist. The
// key is replaced first: a crash in between leaves a pair that LoadCA refuses.
func (ca *CA) Save(dir string) error {
	key, err := encodeKey(ca.key)
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(dir, fileCAKey), key, secretMode); err != nil {
		return fmt.Errorf("writing the CA's key: %w", err)
	}
	if err := replaceFile(filepath.Join(dir, FileCA), ca.Certificate(), publicMode); err != nil {
		return fmt.Errorf("writing the CA's certificate: %w", err)
	}
	return nil
}

// LoadCA reads what Save wrote. Its errors are *FolderError.
func LoadCA(dir string) (*CA, error) {
	ca := &CA{}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, refuseFolder(dir, err, "doesn't exist", "give the folder of the cluster's CA, ca beside the members' that replica init wrote")
	}
	if _, err := os.Stat(filepath.Join(dir, FileCA)); errors.Is(err, fs.ErrNotExist) {
		inner := filepath.Join(dir, "ca")
		if _, inside := os.Stat(filepath.Join(inner, fileCAKey)); inside == nil {
			return nil, refuseFolder(dir, err, "isn't a CA's folder; "+inner+" is", "give that one")
		}
	}
	files := folderReader{dir: dir, wayOut: "restore it from a backup of the cluster's ca folder"}
	cert, err := files.read(FileCA)
	if err != nil {
		return nil, err
	}
	key, err := files.read(fileCAKey)
	if err != nil {
		return nil, err
	}
	certs, cluster, err := parseCAs(cert)
	if err == nil && len(certs) > 1 {
		err = errors.New("holds more than one certificate")
	}
	if err != nil {
		return nil, files.damaged(FileCA, err.Error())
	}
	if ca.key, err = parseKey(key); err != nil {
		return nil, files.damaged(fileCAKey, err.Error())
	}
	if !ca.key.Public().(ed25519.PublicKey).Equal(certs[0].PublicKey) {
		return nil, files.damaged(fileCAKey, "is not the key of "+FileCA)
	}
	ca.cert, ca.cluster = certs[0], cluster
	return ca, nil
}
