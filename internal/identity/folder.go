package identity

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"atoll/quorum"
)

// Names of files: of what a member's folder holds, and of the context files
// that CreateCluster writes for a client and for an admin.
const (
	FileIdentity    = "identity.json"
	FileCluster     = "cluster.json"
	FileCA          = "ca.crt" // in the CA's folder, too
	FileCertificate = "node.crt"
	FileKey         = "node.key"
	FileContext     = "client.json"
	FileAdmin       = "admin.json"

	fileCAKey = "ca.key"
)

// memberFiles are what every member's folder holds.
var memberFiles = [...]string{FileIdentity, FileCluster, FileCA, FileCertificate, FileKey}

// resetLabel keeps the stateless reset key apart from whatever else may be
// derived from a node's key.
const resetLabel = "atoll stateless reset key, version 1"

// Folder is a member's folder, opened and found whole.
type Folder struct {
	Dir     string
	ID      quorum.NodeID
	Name    string
	Cluster ClusterFile
	// Configuration is the cluster's first; nil in the folder of a node that
	// joined later.
	Configuration *quorum.Configuration
	Credentials   *Credentials
	// Warnings are what a person should know and no reason to stop.
	Warnings []string

	key ed25519.PrivateKey
}

// OpenFolder opens a member's folder. It checks that every file is there and
// whole, that all belong to the same node of the same cluster, that the
// certificate is one of the cluster's CA and valid now, and that the folder
// can be written to. It changes nothing. Its errors are *FolderError.
func OpenFolder(dir string) (*Folder, error) { return openFolder(dir, time.Now()) }

func openFolder(dir string, now time.Time) (*Folder, error) {
	m, err := readMember(dir)
	if err != nil {
		return nil, err
	}
	if err := m.agree(); err != nil {
		return nil, err
	}
	files := Files{CA: m.path(FileCA), Certificate: m.path(FileCertificate), Key: m.path(FileKey)}
	credentials, err := LoadCredentials(files)
	if err == nil {
		err = credentials.Check(now)
	}
	if err != nil {
		return nil, m.certificate(err)
	}
	configuration, err := m.cluster.Configuration()
	if err != nil {
		return nil, m.damaged(FileCluster, "is not as expected: "+err.Error())
	}
	f := &Folder{Dir: dir, ID: m.identity.ID, Name: m.identity.Name, Cluster: m.cluster,
		Configuration: configuration, Credentials: credentials, key: m.key}
	if path := m.path(FileKey); readableByOthers(path) {
		f.Warnings = append(f.Warnings, fmt.Sprintf("%s is a private key and other users can read it: chmod 600 %[1]s", path))
	}
	return f, nil
}

// Grant returns the CA's word that this node may join; ok is false if it is one of
// the first members, who need none.
func (f *Folder) Grant() (g Grant, ok bool) {
	j := f.Cluster.Joined
	if j == nil {
		return Grant{}, false
	}
	return Grant{Cluster: f.Cluster.Cluster, Node: f.ID, Name: f.Name, Expires: j.Expires, Signature: j.Signature}, true
}

// Listen returns where the node listens unless it is told otherwise.
func (f *Folder) Listen() []string {
	if j := f.Cluster.Joined; j != nil {
		return j.Listen
	}
	return f.Advertise()
}

// Advertise returns where others dial the node; nothing if that is where it
// listens.
func (f *Folder) Advertise() []string {
	if j := f.Cluster.Joined; j != nil {
		return j.Addresses
	}
	self, _ := f.Cluster.Member(f.ID)
	return self.Addresses
}

// StatelessResetKey returns the key by which this node, after a restart, tells
// its peers' connections at once that it has forgotten them. It follows from
// the node's key, so it is the same in every run and no file of its own.
func (f *Folder) StatelessResetKey() [32]byte {
	b, err := hkdf.Key(sha256.New, f.key.Seed(), nil, resetLabel, 32)
	if err != nil {
		panic("identity: deriving the stateless reset key: " + err.Error()) // only lengths could fail
	}
	return [32]byte(b)
}

// folderReader reads files of a folder and makes errors about them.
type folderReader struct {
	dir    string
	wayOut string // what to do about a damaged file
}

func (r folderReader) path(name string) string { return filepath.Join(r.dir, name) }

func (r folderReader) damaged(name, problem string) error {
	return &FolderError{File: r.path(name), Problem: problem, WayOut: r.wayOut, Class: Damaged}
}

// read reads a file that must be there.
func (r folderReader) read(name string) ([]byte, error) {
	data, err := readRegular(r.path(name))
	switch {
	case err == nil && len(data) == 0:
		return nil, r.damaged(name, "is empty")
	case err == nil:
		return data, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, &FolderError{File: r.path(name), Problem: "is missing", WayOut: r.wayOut, Class: Damaged}
	case errors.Is(err, fs.ErrPermission):
		return nil, &FolderError{File: r.path(name), Problem: "may not be read", Class: Precondition, Err: err,
			WayOut: "run as the user that owns the folder"}
	case errors.Is(err, errTooLarge), errors.Is(err, errNotRegular):
		return nil, &FolderError{File: r.path(name), Problem: err.Error(), WayOut: r.wayOut, Class: Damaged, Err: err}
	}
	return nil, &FolderError{File: r.path(name), Problem: "can't be read: " + reason(err), Class: Damaged, Err: err,
		WayOut: "check the disk; " + r.wayOut}
}

// member is what the files of a member's folder say, each by itself.
type member struct {
	folderReader
	identity identityFile
	cluster  ClusterFile
	cas      []*x509.Certificate
	caOf     quorum.ClusterID
	cert     *x509.Certificate
	holder   Peer
	key      ed25519.PrivateKey
}

// readMember reads the files of a member's folder, each of which must be whole.
func readMember(dir string) (*member, error) {
	m := &member{folderReader: folderReader{dir: dir,
		wayOut: "restore it from the folder that init wrote; if it is lost, this member is, and the cluster goes on with the others as far as its quorums tolerate"}}
	if err := checkFolder(dir); err != nil {
		return nil, err
	}
	var data [len(memberFiles)][]byte
	for i, name := range memberFiles {
		var err error
		if data[i], err = m.read(name); err != nil {
			return nil, err
		}
	}
	var errs [len(memberFiles)]error
	m.identity, errs[0] = parseIdentityFile(data[0])
	m.cluster, errs[1] = ParseClusterFile(data[1])
	m.cas, m.caOf, errs[2] = parseCAs(data[2])
	m.cert, m.holder, errs[3] = parseCertificate(data[3])
	m.key, errs[4] = parseKey(data[4])
	for i, err := range errs {
		if err != nil {
			return nil, m.damaged(memberFiles[i], err.Error())
		}
	}
	return m, nil
}

// checkFolder checks that dir is a folder that we may read and write, and that
// it looks like a member's.
func checkFolder(dir string) error {
	bad := func(err error, problem, wayOut string) error {
		return &FolderError{File: dir, Problem: problem, WayOut: wayOut, Class: Precondition, Err: err}
	}
	entries, err := os.ReadDir(dir)
	info, statErr := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bad(err, "doesn't exist", "make a cluster with replica init, and give the folder of one member")
	case statErr == nil && !info.IsDir():
		return bad(err, "is not a folder", "give the folder of one member")
	case errors.Is(err, fs.ErrPermission):
		return bad(err, "may not be read", "run as the user that owns it")
	case err != nil:
		return bad(err, "can't be read: "+reason(err), "check the disk")
	}
	var found bool
	var members []string
	for _, e := range entries {
		for _, name := range memberFiles {
			found = found || e.Name() == name && name != FileCA // the CA's folder has that one, too
		}
		if _, err := os.Stat(filepath.Join(dir, e.Name(), FileIdentity)); err == nil {
			members = append(members, filepath.Join(dir, e.Name()))
		}
	}
	switch {
	case !found && len(members) > 0:
		return bad(nil, "holds the folders of several members", "give one of them: "+list(members))
	case !found && len(entries) == 0:
		return bad(nil, "is empty", "make a cluster with replica init, and give the folder of one member")
	case !found:
		return bad(nil, "is not a member's folder: it holds no "+FileIdentity, "make a cluster with replica init, and give the folder of one member")
	}
	if err := writable(dir); err != nil {
		return bad(err, "can't be written to: "+reason(err), "run as the user that owns it, on a disk that isn't read-only")
	}
	return nil
}

// list names the first few of several things.
func list(names []string) string {
	if len(names) > listedEntries {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:listedEntries], ", "), len(names)-listedEntries)
	}
	return strings.Join(names, ", ")
}

// claim is what one file says of something that several files say.
type claim struct{ file, value string }

// odd returns the claim that differs from most others, and what most say. If
// no value is that of most, it is the last that differs from the first.
func odd(claims []claim) (c claim, others string, differ bool) {
	count := map[string]int{}
	others = claims[0].value
	for _, c := range claims {
		count[c.value]++
		if count[c.value] > count[others] {
			others = c.value
		}
	}
	for _, d := range claims {
		if d.value != others {
			c, differ = d, true
		}
	}
	return c, others, differ
}

// agree checks that the files belong together. Three and four files say which
// node and which cluster it is, so the one that was exchanged can be named.
func (m *member) agree() error {
	public := m.key.Public().(ed25519.PublicKey)
	c, others, differ := odd([]claim{
		{FileIdentity, string(m.identity.ID)},
		{FileCertificate, string(NodeIDOf(m.cert.PublicKey.(ed25519.PublicKey)))},
		{FileKey, string(NodeIDOf(public))},
	})
	if differ {
		return m.mismatch(c.file, fmt.Sprintf("is that of node %s, but this folder is that of node %s", c.value, others))
	}
	c, others, differ = odd([]claim{
		{FileIdentity, string(m.identity.Cluster)},
		{FileCluster, string(m.cluster.Cluster)},
		{FileCA, string(m.caOf)},
		{FileCertificate, string(m.holder.Cluster)},
	})
	if differ {
		return m.mismatch(c.file, fmt.Sprintf("is of cluster %s, but this folder is of cluster %s", c.value, others))
	}
	if m.holder.Role != RoleNode {
		return m.mismatch(FileCertificate, fmt.Sprintf("is that of %v, not of a node", m.holder))
	}
	if m.cluster.Joined != nil {
		return nil // it names others
	}
	self, ok := m.cluster.Member(m.identity.ID)
	switch {
	case !ok:
		return m.mismatch(FileCluster, fmt.Sprintf("doesn't name this node, %s, among its members", m.identity.ID))
	case self.Name != m.identity.Name:
		return m.mismatch(FileIdentity, fmt.Sprintf("calls this node %q, but %s calls it %q", m.identity.Name, FileCluster, self.Name))
	}
	return nil
}

func (m *member) mismatch(name, problem string) error {
	return &FolderError{File: m.path(name), Problem: problem, Class: Damaged,
		WayOut: "copy the member's folder again as a whole, without mixing files of several"}
}

// certificate makes an error of what is wrong with credentials whose files are
// whole and belong to the same node.
func (m *member) certificate(err error) error {
	e, ok := errors.AsType[*CredentialError](err)
	if !ok {
		return err
	}
	files := map[Part]string{PartCA: FileCA, PartCertificate: FileCertificate, PartKey: FileKey}
	f := &FolderError{File: m.path(files[e.Part]), Class: Certificate, Err: err, Problem: fmt.Sprintf("isn't accepted (%s): %s", e.Which, e.Detail)}
	switch {
	case e.Which == NotYetValid:
		f.WayOut = "check this host's clock"
	case e.Part == PartCA:
		f.WayOut = "check this host's clock; a CA that has ended must be replaced on all members"
	default:
		f.WayOut = "have the cluster's CA make a new certificate for " + FileKey + " (and check this host's clock)"
	}
	return f
}
