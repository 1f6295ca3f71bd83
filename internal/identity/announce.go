package identity

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"

	"atoll/quorum"
)

// A proof shows that a node itself says what an announcement says of it:
//
//	0   format      1 byte
//	1   public key  32 bytes, whose digest is the node's id
//	33  signature   64 bytes, of Ed25519
//
// Signed is announceLabel, and then with its length before it each of the
// cluster's id, the node's id, its name; how many addresses, and each of those; and
// the version in 8 bytes. Lengths and counts are unsigned varints.
const (
	proofFormat    = 1
	proofKey       = 1
	proofSignature = proofKey + ed25519.PublicKeySize
	proofSize      = proofSignature + ed25519.SignatureSize

	announceLabel = "atoll announcement, version 1\n"
)

var errProof = errors.New("the proof makes no sense")

// Sign returns the proof that this node itself says m, under which others
// believe it: see VerifyMember.
func (f *Folder) Sign(m quorum.Member) []byte {
	proof := append([]byte{proofFormat}, f.key.Public().(ed25519.PublicKey)...)
	return append(proof, ed25519.Sign(f.key, announcement(f.Cluster.Cluster, m))...)
}

// VerifyMember returns an error if it isn't shown that a node of the cluster says
// itself what m says: its name and addresses under this version. Who would
// believe less could be sent to other addresses by any node.
func VerifyMember(cluster quorum.ClusterID, m quorum.Member) error {
	if len(m.Proof) != proofSize || m.Proof[0] != proofFormat {
		return fmt.Errorf("what is said of node %s: %w", m.ID, errProof)
	}
	key := ed25519.PublicKey(m.Proof[proofKey:proofSignature])
	if id := NodeIDOf(key); id != m.ID {
		return fmt.Errorf("what is said of node %s is signed with the key of node %s", m.ID, id)
	}
	if !ed25519.Verify(key, announcement(cluster, m), m.Proof[proofSignature:]) {
		return fmt.Errorf("what is said of node %s isn't what it has signed", m.ID)
	}
	return nil
}

// announcement is what a node signs.
func announcement(cluster quorum.ClusterID, m quorum.Member) []byte {
	b := []byte(announceLabel)
	b = appendText(b, string(cluster))
	b = appendText(b, string(m.ID))
	b = appendText(b, m.Name)
	b = binary.AppendUvarint(b, uint64(len(m.Addresses)))
	for _, a := range m.Addresses {
		b = appendText(b, a)
	}
	return binary.BigEndian.AppendUint64(b, m.Version)
}

func appendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
