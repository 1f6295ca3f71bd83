// Package identity holds keys, the cluster's CA, tickets and context files: who is
// who, and how both ends of a connection know it.
//
// # Nouns
//
// A node is its Ed25519 key. Its id is a digest of the public key
// ([NodeIDOf]), so an id can't be claimed without the key, and neither a new
// address nor a new certificate changes it. A node that lost its key is
// another node.
//
// A cluster has a random id and a [CA] of its own. A certificate says in one
// URI, in the subject alternative names, which cluster its holder belongs to,
// in which [Role], and as whom:
//
//	atoll://CLUSTER/node/NODE-ID
//	atoll://CLUSTER/client/NAME
//	atoll://CLUSTER/admin/NAME
//	atoll://CLUSTER/ca              (the CA itself)
//
// [Credentials] are what a process needs to speak: the CA's certificates, its
// own certificate and its key. They make the TLS configurations of both ends.
// A [Peer] is what a finished handshake proved about the other end.
//
// Where a node is it says itself, in an announcement with a proof that it does
// ([Folder.Sign], [VerifyMember]).
//
// A [Ticket] makes a host one new node of a cluster: it is the node's key and
// certificate, where the cluster is, and a [Grant], the CA's word with its end.
// [CreateMember] makes the node's folder of it.
//
// # On disk
//
// [CreateCluster] writes, all or nothing,
//
//	D/ca/        ca.crt ca.key                     stays with whoever runs the cluster
//	D/NAME/      identity.json cluster.json        one folder for each member, to carry to
//	             ca.crt node.crt node.key          its host; its store is put in there, too
//	             client.json                       a context file for the operator on that host
//	             instance.json                     which store is the node's: see Bind
//	D/client.json                                  a context file: endpoints and credentials
//	D/admin.json                                   the same, of whoever changes the cluster
//
// and [OpenFolder] opens D/NAME if everything in it is whole and belongs
// together, or says in one line which file is wrong and what to do about it.
// The folder of a node that joined has no client.json, and another cluster.json: who
// its contacts are, and its grant, in place of the first configuration.
//
// Every JSON file carries a format number; fields that this version doesn't
// know are errors, because dropping what somebody wrote there would be a
// guess.
//
// # The handshake
//
// TLS 1.3, certificates on both ends, no resumption. Names and addresses are
// not compared with the certificate: a node is its key, and a client learns
// from [PeerOf] which node it has reached. What is verified instead, on each
// end and for every connection: the chain to the cluster's CA, the dates, the
// cluster, the role, and that a node's id is the digest of its key.
//
// The end that finds a fault gets a [*PeerError]. The other end sees an alert,
// one number; each fault has one of its own, and [ExplainHandshake] turns it
// back into a sentence, a [*RefusedError]. (crypto/tls over TCP sends "bad
// certificate" for all of them; QUIC carries the one that we choose.)
//
// Certificates are replaced while the process runs: the files are looked at
// again when a handshake needs them, at most once in [ReloadInterval].
// Connections that stand keep what they were made with.
//
// # Errors
//
// [ClassOf] sorts every error of this package into what a program's exit code
// tells: a local precondition, damage or a mismatch, a certificate. Their texts
// are one line for a person, name the file or the other side, and carry no
// package's name in front, because many of them stand inside another one.
package identity
