package identity

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// JoinSpec says where a node is to be that has a ticket.
type JoinSpec struct {
	Ticket Ticket
	// Listen are the addresses that it listens on, and Advertise those that
	// others dial; see Joined.
	Listen, Advertise []string
	// Prepare is as in Spec.
	Prepare func(memberDir string) error
}

// CreateMember writes the folder of a node that is to join: all or nothing, as
// CreateCluster does. dir must not exist, or be empty. What is wrong with the spec
// is a plain error, what is wrong with dir a *FolderError.
func CreateMember(dir string, spec JoinSpec) error {
	t := spec.Ticket
	cluster := t.cluster()
	cluster.Joined.Listen, cluster.Joined.Addresses = spec.Listen, spec.Advertise
	if err := cluster.check(); err != nil {
		return err
	}
	return createFolder(dir, ".join-*", func(temp string) error {
		if err := t.build(temp, cluster); err != nil {
			return err
		}
		return syncFolder(temp)
	}, func(temp string) error {
		if spec.Prepare == nil {
			return nil
		}
		return errors.Join(spec.Prepare(temp), syncFolder(temp))
	})
}

// Readdress writes into the folder of a node that joined where it listens and where
// others dial it, where these aren't nil and differ: the next start goes by that.
func Readdress(dir string, listen, advertise []string) error {
	m, err := readMember(dir)
	if err != nil {
		return err
	}
	cluster := m.cluster
	if cluster.Joined == nil {
		return nil
	}
	joined := *cluster.Joined
	if listen != nil {
		joined.Listen = listen
	}
	if advertise != nil {
		joined.Addresses = advertise
	}
	if slices.Equal(joined.Listen, cluster.Joined.Listen) && slices.Equal(joined.Addresses, cluster.Joined.Addresses) {
		return nil
	}
	cluster.Joined = &joined
	if err := cluster.check(); err != nil {
		return err
	}
	text, err := encodeJSON(cluster)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, FileCluster), text, publicMode)
}

// build writes the files of the node into dir.
func (t Ticket) build(dir string, cluster ClusterFile) error {
	who, err := encodeJSON(identityFile{Format: identityFormat, Cluster: t.Grant.Cluster, ID: t.Grant.Node, Name: t.Grant.Name})
	if err != nil {
		return err
	}
	about, err := encodeJSON(cluster)
	if err != nil {
		return err
	}
	key, err := encodeKey(t.key)
	if err != nil {
		return err
	}
	return writeMember(dir, who, about, encodeCertificate(t.ca.Raw), encodeCertificate(t.cert.Raw), key)
}

// FileInstance is the file in a member's folder that says which store the node's
// is. A store that isn't that one is no store of this node's.
const FileInstance = "instance.json"

// instanceFile is the file instance.json.
type instanceFile struct {
	Format int `json:"format"`
	// Instance is the store's id, in hexadecimal digits.
	Instance string `json:"instance"`
	// Outcast is why the folder must not be used any more, empty if it may.
	Outcast string `json:"outcast,omitempty"`
}

const instanceFormat = 1

// Instance is the id of a node's store: 128 random bits, drawn when that is made.
type Instance [16]byte

// String returns it in hexadecimal digits.
func (i Instance) String() string { return hex.EncodeToString(i[:]) }

// parseInstance reads the bytes of an instance file: the store's id, and why the
// folder must not be used any more.
func parseInstance(data []byte) (of Instance, outcast string, err error) {
	var f instanceFile
	if err := decodeJSON(data, instanceFormat, &f); err != nil {
		return Instance{}, "", err
	}
	b, err := hex.DecodeString(f.Instance)
	if err != nil || len(b) != len(Instance{}) {
		return Instance{}, "", errors.New("is not as expected: its instance isn't 32 hexadecimal digits")
	}
	return Instance(b), f.Outcast, nil
}

// writeInstance replaces the instance file of a folder.
func writeInstance(dir string, f instanceFile) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, FileInstance), append(text, '\n'), publicMode)
}

// Bind ties a member's folder to its store, once: from then on the identity can't
// be used with another store. It returns nil if they belong together, and a
// *FolderError if they don't.
func Bind(dir string, instance Instance) error {
	bound, err := Bound(dir, instance)
	if bound || err != nil {
		return err
	}
	return writeInstance(dir, instanceFile{Format: instanceFormat, Instance: instance.String()})
}

// CastOut notes durably that a member's folder must not be used any more, and why:
// others have found out that it has lost what it had acknowledged. They can't tell
// that twice, for each start makes a node look newer.
func CastOut(dir string, instance Instance, why string) error {
	return writeInstance(dir, instanceFile{Format: instanceFormat, Instance: instance.String(), Outcast: why})
}

// Bound reports whether a member's folder is tied to its store. One of an earlier
// version isn't. It returns a *FolderError if it is tied to another one, or must not
// be used any more.
func Bound(dir string, instance Instance) (bool, error) {
	r := folderReader{dir: dir, wayOut: "restore it from a backup of this folder"}
	if _, err := os.Lstat(r.path(FileInstance)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	data, err := r.read(FileInstance)
	if err != nil {
		return false, err
	}
	bound, outcast, err := parseInstance(data)
	switch {
	case err != nil:
		return false, r.damaged(FileInstance, err.Error())
	case outcast != "":
		return false, &FolderError{File: dir, Class: Damaged, WayOut: lostWayOut, Problem: "was refused by the cluster before, and stays so: " + outcast}
	case bound != instance:
		return false, &FolderError{File: dir, Class: Damaged, WayOut: lostWayOut,
			Problem: fmt.Sprintf("holds another store than the one that this node began with (%s, and not %s)", instance, bound)}
	}
	return true, nil
}

// Lost returns the *FolderError of a member's folder in which there is no store,
// because of cause. Whatever makes such a folder makes its store, so there was one.
func Lost(dir string, cause error) error {
	return &FolderError{File: dir, Class: Damaged, Err: cause, WayOut: lostWayOut,
		Problem: "holds no store any more, and what this node has acknowledged was in it"}
}

// lostWayOut says what becomes of an identity whose store is lost.
const lostWayOut = "the cluster goes on with the others; this identity can't be used again: make a ticket with client member ticket, start a new node with replica join, and let it take this one's place"

// IsTicketOf reports whether the folder dir is that of the node that a ticket is
// for. No folder, or an empty one, is none.
func (t Ticket) IsTicketOf(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return false, nil
	}
	m, err := readMember(dir)
	if err != nil {
		return false, err
	}
	if m.identity.ID != t.Grant.Node || !bytes.Equal(m.key, t.key) {
		return false, refuseFolder(dir, nil, fmt.Sprintf("is the folder of %s, node %s, and the ticket is for %s, node %s",
			m.identity.Name, m.identity.ID, t.Grant.Name, t.Grant.Node), "give another folder, or run the node that is there with replica run")
	}
	return true, nil
}
