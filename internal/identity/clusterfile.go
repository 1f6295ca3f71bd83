package identity

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/abd"
	"atoll/quorum"
)

// Formats of the JSON files. A version of atoll reads the formats up to its
// own.
const (
	clusterFormat  = 1 // of a member of the first configuration
	joinedFormat   = 2 // of a node that has joined since
	identityFormat = 1
	contextFormat  = 1
)

// ClusterFile is the file cluster.json in a member's folder: the cluster as it
// was made, with its first configuration. Later configurations are in the
// store.
type ClusterFile struct {
	Format  int              `json:"format"`
	Cluster quorum.ClusterID `json:"cluster"`
	// Quorum is the quorum system's text. Weights name node ids.
	Quorum string `json:"quorum,omitempty"`
	// MaxValue is the largest value in bytes that the cluster stores.
	MaxValue int `json:"max_value"`
	// Members are sorted by id.
	Members []Member `json:"members,omitempty"`
	// Joined is there in place of Quorum and Members in the folder of a node
	// that isn't in the first configuration. The format is 2 then.
	Joined *Joined `json:"joined,omitempty"`
}

// Joined says how a node finds the cluster that it joins, and what allows it to.
type Joined struct {
	// Listen are the addresses that it listens on unless told otherwise.
	Listen []string `json:"listen,omitempty"`
	// Addresses are where others dial it. None: where it listens.
	Addresses []string `json:"addresses,omitempty"`
	// Contacts are nodes that were known when its ticket was made, and
	// Endpoints further addresses.
	Contacts  []Member `json:"contacts"`
	Endpoints []string `json:"endpoints,omitempty"`
	// Expires and Signature are those of the ticket's Grant.
	Expires   time.Time `json:"expires"`
	Signature []byte    `json:"signature"`
}

// Member is a member of the first configuration.
type Member struct {
	ID quorum.NodeID `json:"id"`
	// Name is what people call it, and its folder: unique in the cluster.
	Name string `json:"name"`
	// Addresses are where others dial it, at least one.
	Addresses []string `json:"addresses"`
}

// Configuration returns the cluster's first configuration, number 0; nil if the
// file is that of a node that joined and doesn't tell.
func (f ClusterFile) Configuration() (*quorum.Configuration, error) {
	if f.Joined != nil {
		return nil, nil
	}
	system, err := quorum.ParseSystem(f.Quorum)
	if err != nil {
		return nil, err
	}
	ids := make([]quorum.NodeID, len(f.Members))
	for i, m := range f.Members {
		ids[i] = m.ID
	}
	return quorum.NewConfiguration(0, ids, system)
}

// Known are the nodes that the file names: the first members, or the contacts of
// a node that joins.
func (f ClusterFile) Known() []Member {
	if f.Joined != nil {
		return f.Joined.Contacts
	}
	return f.Members
}

// Member returns what the file says of the node with the given id.
func (f ClusterFile) Member(id quorum.NodeID) (Member, bool) {
	for _, m := range f.Known() {
		if m.ID == id {
			return m, true
		}
	}
	return Member{}, false
}

// Endpoints returns the addresses of all nodes that the file names, in the order
// of their names.
func (f ClusterFile) Endpoints() []string {
	members := slices.Clone(f.Known())
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	var all []string
	for _, m := range members {
		all = append(all, m.Addresses...)
	}
	return all
}

// ParseClusterFile reads and checks the bytes of a cluster file. Its errors
// are worded to follow the file's name.
func ParseClusterFile(data []byte) (ClusterFile, error) {
	var f ClusterFile
	if err := decodeJSON(data, joinedFormat, &f); err != nil {
		return ClusterFile{}, err
	}
	if err := f.check(); err != nil {
		return ClusterFile{}, fmt.Errorf("is not as expected: %w", err)
	}
	return f, nil
}

func (f ClusterFile) check() error {
	if _, err := ParseClusterID(string(f.Cluster)); err != nil {
		return err
	}
	if err := checkMaxValue(f.MaxValue); err != nil {
		return err
	}
	joined := f.Joined != nil
	if joined != (f.Format == joinedFormat) || joined && (f.Quorum != "" || len(f.Members) > 0) {
		return fmt.Errorf("format %d is that of a node of the first configuration, %d that of one that joined, and it is neither", clusterFormat, joinedFormat)
	}
	if joined {
		if err := f.Joined.check(); err != nil {
			return err
		}
	}
	names := map[string]bool{}
	for _, m := range f.Known() {
		if err := m.check(); err != nil {
			return err
		}
		if names[m.Name] && !joined { // of nodes that join nobody asks for it
			return fmt.Errorf("two members have the name %q", m.Name)
		}
		names[m.Name] = true
	}
	_, err := f.Configuration() // checks the ids, too
	return err
}

func (j *Joined) check() error {
	if len(j.Contacts) == 0 && len(j.Endpoints) == 0 {
		return errors.New("it names nobody to find the cluster by")
	}
	if len(j.Contacts) > MaxContacts || len(j.Endpoints) > MaxEndpoints || len(j.Listen) > MaxAddresses || len(j.Addresses) > MaxAddresses {
		return fmt.Errorf("it has more than %d contacts, %d endpoints or %d addresses", MaxContacts, MaxEndpoints, MaxAddresses)
	}
	if len(j.Signature) != ed25519.SignatureSize {
		return errors.New("the signature of its ticket makes no sense")
	}
	for _, m := range j.Contacts {
		if _, err := quorum.ParseNodeID(string(m.ID)); err != nil {
			return err
		}
	}
	for _, a := range j.Listen {
		if _, err := ParseAddress(a); err != nil {
			return err
		}
	}
	for _, a := range j.Endpoints {
		if _, err := ParseEndpoint(a); err != nil {
			return err
		}
	}
	return checkEndpoints(j.Addresses)
}

func (m Member) check() error {
	if err := checkMemberName(m.Name); err != nil {
		return err
	}
	if len(m.Addresses) == 0 || len(m.Addresses) > MaxAddresses {
		return fmt.Errorf("a member has 1 to %d addresses, %q has %d", MaxAddresses, m.Name, len(m.Addresses))
	}
	return checkEndpoints(m.Addresses)
}

// checkMemberName refuses, besides what isn't a name, the name of the CA's
// folder, which stands beside those of the members.
func checkMemberName(name string) error {
	if name == caPart {
		return fmt.Errorf("a member can't have the name %q: the CA's folder has it", name)
	}
	_, err := ParseName(name)
	return err
}

func checkMaxValue(n int) error {
	if n < 1 || n > abd.LargestMaxValue {
		return fmt.Errorf("the largest value must be from 1 to %d bytes, not %d", abd.LargestMaxValue, n)
	}
	return nil
}

// checkEndpoints refuses, in a file that we wrote, any other spelling of an
// address than ours.
func checkEndpoints(addresses []string) error {
	for _, a := range addresses {
		normal, err := ParseEndpoint(a)
		if err != nil {
			return err
		}
		if normal != a {
			return fmt.Errorf("the address %q is written %q", a, normal)
		}
	}
	return nil
}

// identityFile is the file identity.json in a member's folder: whose folder it
// is.
type identityFile struct {
	Format  int              `json:"format"`
	Cluster quorum.ClusterID `json:"cluster"`
	ID      quorum.NodeID    `json:"id"`
	Name    string           `json:"name"`
}

func parseIdentityFile(data []byte) (identityFile, error) {
	var f identityFile
	if err := decodeJSON(data, identityFormat, &f); err != nil {
		return identityFile{}, err
	}
	_, err := ParseClusterID(string(f.Cluster))
	if err == nil {
		_, err = quorum.ParseNodeID(string(f.ID))
	}
	if err == nil {
		err = checkMemberName(f.Name)
	}
	if err != nil {
		return identityFile{}, fmt.Errorf("is not as expected: %w", err)
	}
	return f, nil
}
