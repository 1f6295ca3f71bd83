package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Renewed is a certificate that took the place of another one.
type Renewed struct {
	File   string
	Holder Peer
	Until  time.Time // when it ends
}

// Renew makes a new certificate for the holder and the key of one that is
// there, valid from now for the given time (0 means DefaultValidity; it ends
// with the CA's at the latest), and puts it in the place of that one, at once
// or not at all. Processes that run with it take it over by themselves. The
// old one may have ended.
//
// path is a member's folder (its node.crt, and its client.json if it is
// there), or a context file, or a certificate in PEM, which is all that must
// be carried to where the CA is. What wasn't signed by this CA isn't renewed:
// that would make anybody an admin whose file comes to the wrong place. The
// errors are *FolderError and *ContextError; a plain one if the validity is
// out of range.
func (ca *CA) Renew(path string, now time.Time, validity time.Duration) ([]Renewed, error) {
	if err := checkValidity(validity); err != nil {
		return nil, err
	}
	r := renewal{ca: ca, now: now, validity: validity}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return r.member(path)
	}
	data, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, refuseFolder(path, err, "doesn't exist", renewable)
	case err != nil:
		return nil, refuseFolder(path, err, "can't be read: "+reason(err), renewable)
	case bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")):
		return one(r.context(path))
	}
	return one(r.certificate(path, data))
}

// renewable says what can be renewed.
const renewable = "give a member's folder, a context file, or a certificate"

func one(r Renewed, err error) ([]Renewed, error) {
	if err != nil {
		return nil, err
	}
	return []Renewed{r}, nil
}

// renewal is one call of Renew.
type renewal struct {
	ca       *CA
	now      time.Time
	validity time.Duration
}

// member renews what a member's folder holds. All of it is looked at before
// anything is written.
func (r renewal) member(dir string) ([]Renewed, error) {
	m, err := readMember(dir)
	if err != nil {
		return nil, err
	}
	if err := m.agree(); err != nil {
		return nil, err
	}
	data, err := m.read(FileCertificate)
	if err != nil {
		return nil, err
	}
	if err := r.check(m.path(FileCertificate), m.cert, m.holder); err != nil {
		return nil, err
	}
	var all []Renewed
	context := m.path(FileContext)
	if _, err := os.Lstat(context); err == nil {
		renewed, err := r.context(context)
		if err != nil {
			return nil, err
		}
		all = append(all, renewed)
	}
	node, err := r.certificate(m.path(FileCertificate), data)
	if err != nil {
		return all, err
	}
	return append([]Renewed{node}, all...), nil
}

func (r renewal) context(path string) (Renewed, error) {
	c, err := LoadContext(path)
	if err != nil {
		return Renewed{}, err
	}
	renewed, pem, err := r.issue(path, []byte(c.Certificate))
	if err != nil {
		return Renewed{}, err
	}
	c.Certificate = string(pem)
	return renewed, SaveContext(path, c)
}

func (r renewal) certificate(path string, data []byte) (Renewed, error) {
	renewed, pem, err := r.issue(path, data)
	if err != nil {
		return Renewed{}, err
	}
	if err := replaceFile(path, pem, publicMode); err != nil {
		return Renewed{}, refuseFolder(path, err, "can't be replaced: "+reason(err), "run as the user that owns it")
	}
	return renewed, nil
}

// issue makes the certificate that takes the place of the one in path, whose
// PEM is old.
func (r renewal) issue(path string, old []byte) (Renewed, []byte, error) {
	cert, holder, err := parseCertificate(old)
	if err != nil {
		return Renewed{}, nil, &FolderError{File: path, Problem: err.Error(), WayOut: renewable, Class: Damaged, Err: err}
	}
	if err := r.check(path, cert, holder); err != nil {
		return Renewed{}, nil, err
	}
	name := holder.Name
	if holder.Role == RoleNode {
		name = cert.Subject.CommonName
	}
	pem, err := r.ca.Issue(Request{Role: holder.Role, Name: name, Key: cert.PublicKey.(ed25519.PublicKey), Now: r.now, Validity: r.validity})
	if err != nil {
		return Renewed{}, nil, err
	}
	renewed, _, err := parseCertificate(pem)
	if err != nil {
		return Renewed{}, nil, err
	}
	return Renewed{File: path, Holder: holder, Until: renewed.NotAfter}, pem, nil
}

// check refuses a certificate that this CA didn't make.
func (r renewal) check(path string, cert *x509.Certificate, holder Peer) error {
	problem := ""
	switch {
	case holder.Cluster != r.ca.cluster:
		problem = fmt.Sprintf("is of cluster %s, and the CA of cluster %s", holder.Cluster, r.ca.cluster)
	case cert.CheckSignatureFrom(r.ca.cert) != nil:
		problem = "holds a certificate that this CA hasn't signed"
	default:
		return nil
	}
	return &FolderError{File: path, Problem: problem, Class: Damaged,
		WayOut: "give the folder of the CA that made it, which init wrote beside the members' (" + filepath.Join("CLUSTER", caPart) + ")"}
}
