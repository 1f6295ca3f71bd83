package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"atoll/abd"
	"atoll/quorum"
)

// The names in the certificates of the first client and the first admin.
const (
	clientName = "client"
	adminName  = "admin"
)

// Spec says what cluster to make.
type Spec struct {
	// Members are its first members, from 1 to quorum.MaxMembers.
	Members []MemberSpec
	// Quorum is the quorum system's text; weights name members by name. ""
	// means majority.
	Quorum string
	// MaxValue is the largest value in bytes that it stores, up to
	// abd.LargestMaxValue; 0 means abd.DefaultMaxValue.
	MaxValue int
	// Validity is how long the certificates of nodes and client live; 0 means
	// DefaultValidity.
	Validity time.Duration
	// Now is when the certificates are made; zero means time.Now().
	Now time.Time
	// Prepare, if not nil, is called for each member with its folder, which
	// OpenFolder opens already, to put its store in. The folder still has
	// another name then: nothing may stay open, or remember the path.
	Prepare func(memberDir string) error
}

// MemberSpec is a member to be.
type MemberSpec struct {
	Name    string // 1 to MaxName characters of [a-z0-9-]; not "ca"
	Address string // HOST:PORT, where others dial it
}

// ParseMembers reads the text form of a list of members, "a=HOST:PORT,b=…".
func ParseMembers(s string) ([]MemberSpec, error) {
	var all []MemberSpec
	for part := range strings.SplitSeq(s, ",") {
		name, address, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not a member: write NAME=HOST:PORT, with commas in between", part)
		}
		all = append(all, MemberSpec{Name: name, Address: address})
	}
	return all, checkMembers(all)
}

func checkMembers(members []MemberSpec) error {
	if len(members) == 0 || len(members) > quorum.MaxMembers {
		return fmt.Errorf("a cluster begins with 1 to %d members, not %d", quorum.MaxMembers, len(members))
	}
	names, addresses := map[string]bool{}, map[string]string{}
	for _, m := range members {
		if err := checkMemberName(m.Name); err != nil {
			return err
		}
		if names[m.Name] {
			return fmt.Errorf("two members have the name %q", m.Name)
		}
		names[m.Name] = true
		address, err := ParseEndpoint(m.Address)
		if err != nil {
			return fmt.Errorf("member %q: %w", m.Name, err)
		}
		if other, ok := addresses[address]; ok {
			return fmt.Errorf("members %q and %q have the same address, %s", other, m.Name, address)
		}
		addresses[address] = m.Name
	}
	return nil
}

// CreateCluster makes a cluster: its CA, a folder for each member, and
// context files for a client and an admin (see the package's page). It returns the cluster
// file.
//
// dir must not exist, or be empty. Everything is made in a folder beside it
// and appears under its name at once, synced, or not at all; a crash may leave
// the other folder, .NAME.init-*, which nobody will look at. What is wrong
// with the spec is a plain error, what is wrong with dir a *FolderError.
func CreateCluster(dir string, spec Spec) (ClusterFile, error) {
	b := builder{spec: spec}
	if b.spec.Now.IsZero() {
		b.spec.Now = time.Now()
	}
	if err := b.plan(); err != nil {
		return ClusterFile{}, err
	}
	if err := createFolder(dir, ".init-*", b.build, b.finish); err != nil {
		return ClusterFile{}, err
	}
	return b.cluster, nil
}

// createFolder makes a folder, which must not exist or be empty, in two steps: all
// or nothing. Both work on a folder beside it, whose name ends as temporary says.
// What goes wrong in build is the folder's fault, and a *FolderError; finish says
// itself whose it is.
func createFolder(dir, temporary string, build, finish func(temp string) error) error {
	target, err := vacant(dir)
	if err != nil {
		return err
	}
	parent, undo, err := makeParents(filepath.Dir(target))
	if err != nil {
		return refuseFolder(dir, err, "can't be made: "+reason(err), "give a place that can be written to")
	}
	temp, err := os.MkdirTemp(parent, "."+filepath.Base(target)+temporary)
	if err != nil {
		undo()
		return refuseFolder(dir, err, "can't be made: its parent folder can't be written to: "+reason(err), "give a place that can be written to")
	}
	if err = build(temp); err != nil {
		err = refuseFolder(dir, err, "can't be made: "+reason(err), "check the disk that it is to be on")
	}
	if err == nil {
		err = finish(temp)
	}
	if err == nil {
		if err = publish(temp, target); err != nil {
			err = refuseFolder(dir, err, "can't be put in place: "+reason(err), "give a folder that doesn't exist yet, and is not the root of a disk")
		}
	}
	if err != nil {
		_ = os.RemoveAll(temp)
		undo()
	}
	return err
}

func refuseFolder(dir string, err error, problem, wayOut string) error {
	return &FolderError{File: dir, Problem: problem, WayOut: wayOut, Class: Precondition, Err: err}
}

// vacant returns the absolute path of the place that the cluster is to have,
// without symbolic links, after checking that nothing is there.
func vacant(dir string) (string, error) {
	const other = "give another folder, or empty this one if nobody needs what is in it"
	target, err := filepath.Abs(dir)
	if err != nil || dir == "" {
		return "", refuseFolder(dir, err, "is not a path", "give the path of a folder")
	}
	entries, err := os.ReadDir(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(target); err == nil {
			return "", refuseFolder(dir, nil, "is a link to something that doesn't exist", "remove the link or make what it points to")
		}
		return target, nil
	case err != nil:
		if info, statErr := os.Stat(target); statErr == nil && !info.IsDir() {
			return "", refuseFolder(dir, err, "is not a folder", "give the path of a folder")
		}
		return "", refuseFolder(dir, err, "can't be read: "+reason(err), "run as the user that owns it")
	case len(entries) > 0:
		names := make([]string, len(entries))
		for i, e := range entries {
			names[i] = e.Name()
		}
		return "", refuseFolder(dir, nil, "is not empty (it holds "+list(names)+")", other)
	}
	if target, err = filepath.EvalSymlinks(target); err != nil {
		return "", refuseFolder(dir, err, "can't be resolved: "+reason(err), other)
	}
	return target, nil
}

// makeParents makes the folders down to dir that don't exist. undo removes
// those that it made.
func makeParents(dir string) (made string, undo func(), err error) {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			break
		}
		missing = append(missing, d)
	}
	undo = func() {
		for _, d := range missing {
			_ = os.Remove(d) // refuses a folder that somebody else put something in
		}
	}
	for _, d := range slices.Backward(missing) {
		if err == nil {
			err = os.Mkdir(d, folderMode)
		}
		if err == nil {
			err = syncFolder(filepath.Dir(d))
		}
	}
	if err != nil {
		undo()
	}
	return dir, undo, err
}

// publish gives the finished folder its name, or leaves that as it was.
func publish(temp, target string) error {
	// Where an empty folder is, it must go first. If somebody puts something
	// in before it does, this fails.
	removed := os.Remove(target)
	if removed != nil && !errors.Is(removed, fs.ErrNotExist) {
		return removed
	}
	if err := os.Rename(temp, target); err != nil {
		if removed == nil {
			err = errors.Join(err, os.Mkdir(target, folderMode))
		}
		return err
	}
	if err := syncFolder(filepath.Dir(target)); err != nil {
		return errors.Join(err, os.RemoveAll(target))
	}
	return nil
}

// builder makes the contents of a cluster's folder.
type builder struct {
	spec    Spec
	system  quorum.System
	ca      *CA
	cluster ClusterFile
	keys    map[string]ed25519.PrivateKey // by the member's name
}

// plan checks the spec and draws ids and keys. It touches no disk.
func (b *builder) plan() error {
	if err := checkMembers(b.spec.Members); err != nil {
		return err
	}
	if b.spec.MaxValue == 0 {
		b.spec.MaxValue = abd.DefaultMaxValue
	}
	if err := checkMaxValue(b.spec.MaxValue); err != nil {
		return err
	}
	if err := checkValidity(b.spec.Validity); err != nil {
		return err
	}
	if err := b.checkQuorum(); err != nil {
		return err
	}
	var err error
	if b.ca, err = NewCA(NewClusterID(), b.spec.Now); err != nil {
		return err
	}
	b.cluster = ClusterFile{Format: clusterFormat, Cluster: b.ca.cluster, MaxValue: b.spec.MaxValue}
	b.keys = map[string]ed25519.PrivateKey{}
	for _, m := range b.spec.Members {
		public, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return fmt.Errorf("making a key: %w", err)
		}
		address, err := ParseEndpoint(m.Address)
		if err != nil {
			return err
		}
		b.keys[m.Name] = key
		b.cluster.Members = append(b.cluster.Members, Member{ID: NodeIDOf(public), Name: m.Name, Addresses: []string{address}})
	}
	b.resolve()
	slices.SortFunc(b.cluster.Members, func(a, b Member) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return b.cluster.check()
}

// checkQuorum checks the quorum system with the members' names for ids, so
// that the error is in the words of who wrote it.
func (b *builder) checkQuorum() (err error) {
	if b.spec.Quorum == "" {
		return nil // majority
	}
	if b.system, err = quorum.ParseSystem(b.spec.Quorum); err != nil {
		return err
	}
	var names []quorum.NodeID
	for _, m := range b.spec.Members {
		names = append(names, quorum.NodeID(m.Name))
	}
	_, err = quorum.NewConfiguration(0, names, b.system)
	return err
}

// resolve puts node ids in the place of names in the quorum system's text.
func (b *builder) resolve() {
	ids := map[quorum.NodeID]quorum.NodeID{}
	for _, m := range b.cluster.Members {
		ids[quorum.NodeID(m.Name)] = m.ID
	}
	for i := range b.system.Weights {
		b.system.Weights[i].Node = ids[b.system.Weights[i].Node]
	}
	slices.SortFunc(b.system.Weights, func(a, b quorum.Weight) int { return strings.Compare(string(a.Node), string(b.Node)) })
	b.cluster.Quorum = b.system.String()
}

// build writes every file into dir, synced.
func (b *builder) build(dir string) error {
	ca := filepath.Join(dir, caPart)
	if err := os.Mkdir(ca, folderMode); err != nil {
		return err
	}
	if err := b.ca.Save(ca); err != nil {
		return err
	}
	for _, m := range b.cluster.Members {
		if err := b.buildMember(filepath.Join(dir, m.Name), m); err != nil {
			return fmt.Errorf("making the folder of member %q: %w", m.Name, err)
		}
	}
	if err := b.buildContext(filepath.Join(dir, FileContext), RoleClient, clientName); err != nil {
		return err
	}
	return b.buildContext(filepath.Join(dir, FileAdmin), RoleAdmin, adminName)
}

// finish has the members' stores made, and syncs the folders.
func (b *builder) finish(dir string) error {
	for _, m := range b.cluster.Members {
		memberDir := filepath.Join(dir, m.Name)
		if b.spec.Prepare != nil {
			if err := b.spec.Prepare(memberDir); err != nil {
				return fmt.Errorf("preparing the folder of member %q: %w", m.Name, err)
			}
		}
		if err := syncFolder(memberDir); err != nil {
			return err
		}
	}
	return syncFolder(dir)
}

func (b *builder) buildMember(dir string, m Member) error {
	cert, key, err := b.issue(RoleNode, m.Name, b.keys[m.Name])
	if err != nil {
		return err
	}
	who, err := encodeJSON(identityFile{Format: identityFormat, Cluster: b.cluster.Cluster, ID: m.ID, Name: m.Name})
	if err != nil {
		return err
	}
	cluster, err := encodeJSON(b.cluster)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, folderMode); err != nil {
		return err
	}
	if err := writeMember(dir, who, cluster, b.ca.Certificate(), cert, key); err != nil {
		return err
	}
	// For the operator on this host: a node's own certificate is no client's.
	return b.buildContext(filepath.Join(dir, FileContext), RoleClient, m.Name)
}

// writeMember writes the files that every member's folder holds.
func writeMember(dir string, who, cluster, ca, cert, key []byte) error {
	for _, f := range []struct {
		name string
		data []byte
		mode os.FileMode
	}{
		{FileIdentity, who, publicMode},
		{FileCluster, cluster, publicMode},
		{FileCA, ca, publicMode},
		{FileCertificate, cert, publicMode},
		{FileKey, key, secretMode},
	} {
		if err := writeNew(filepath.Join(dir, f.name), f.data, f.mode); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) buildContext(path string, role Role, name string) error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	cert, key, err := b.issue(role, name, private)
	if err != nil {
		return err
	}
	return SaveContext(path, Context{
		Cluster:     b.cluster.Cluster,
		Endpoints:   b.cluster.Endpoints(),
		CA:          string(b.ca.Certificate()),
		Certificate: string(cert),
		Key:         string(key),
	})
}

// issue makes a certificate for a key, and returns both in PEM.
func (b *builder) issue(role Role, name string, private ed25519.PrivateKey) (cert, key []byte, err error) {
	cert, err = b.ca.Issue(Request{Role: role, Name: name, Key: private.Public().(ed25519.PublicKey), Now: b.spec.Now, Validity: b.spec.Validity})
	if err != nil {
		return nil, nil, err
	}
	key, err = encodeKey(private)
	return cert, key, err
}
