package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"atoll/quorum"
)

// Ticket is all that a host needs to become one new node of a cluster. It holds
// the node's private key, and is as secret as that until it has been used.
type Ticket struct {
	// MaxValue is the largest value in bytes that the cluster stores.
	MaxValue int
	// Contacts are nodes that were known when the ticket was made, by id.
	Contacts []Member
	// Endpoints are further addresses to find the cluster by.
	Endpoints []string
	Grant     Grant

	ca   *x509.Certificate
	cert *x509.Certificate
	key  ed25519.PrivateKey
}

// Grant is the CA's word that a node may join.
type Grant struct {
	Cluster quorum.ClusterID
	Node    quorum.NodeID
	Name    string
	// Expires is when it can't be used any more, in whole seconds.
	Expires time.Time
	// Signature is the CA's, over the fields above.
	Signature []byte
}

// A ticket is one line of text: ticketPrefix, and base64url of a body and its
// CRC-32 (IEEE) in 4 bytes. The body has, each with its length before it, the
// CA's certificate, the node's, and its key's seed; the largest value; how many
// contacts, and of each its id, its name, how many addresses, and those; how many
// endpoints, and those; the name; the expiry in seconds of Unix time; the
// signature. Lengths, counts and numbers are unsigned varints. The cluster and the
// node's id stand in the certificates.
const (
	ticketPrefix   = "atoll-ticket-1."
	ticketFamily   = "atoll-ticket-" // of all versions
	ticketChecksum = 4

	grantLabel = "atoll ticket, version 1\n"
)

var ticketText = base64.RawURLEncoding.Strict()

// TicketRequest says for whom a ticket is.
type TicketRequest struct {
	// Name is what people will call the node; "" means the first characters of
	// its id.
	Name      string
	MaxValue  int
	Contacts  []Member
	Endpoints []string
	// Now is when it is made; TTL is how long it can be used from then, from
	// MinTicketTTL to MaxTicketTTL; 0 means DefaultTicketTTL.
	Now time.Time
	TTL time.Duration
}

// Ticket makes a ticket for one new node, whose key and certificate it draws and
// issues.
func (ca *CA) Ticket(r TicketRequest) (Ticket, error) {
	if r.TTL == 0 {
		r.TTL = DefaultTicketTTL
	}
	if r.TTL < MinTicketTTL || r.TTL > MaxTicketTTL {
		return Ticket{}, fmt.Errorf("a ticket can be used for %v to %v, not %v", MinTicketTTL, MaxTicketTTL, r.TTL)
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Ticket{}, fmt.Errorf("making a key: %w", err)
	}
	id := NodeIDOf(public)
	if r.Name == "" {
		r.Name = string(id[:ticketNameChars])
	}
	pem, err := ca.Issue(Request{Role: RoleNode, Name: r.Name, Key: public, Now: r.Now})
	if err != nil {
		return Ticket{}, err
	}
	cert, _, err := parseCertificate(pem)
	if err != nil {
		return Ticket{}, err
	}
	g := Grant{Cluster: ca.cluster, Node: id, Name: r.Name, Expires: r.Now.Add(r.TTL).Truncate(time.Second).UTC()}
	g.Signature = ed25519.Sign(ca.key, g.signed())
	t := Ticket{MaxValue: r.MaxValue, Contacts: r.Contacts, Endpoints: r.Endpoints, Grant: g, ca: ca.cert, cert: cert, key: key}
	return t, t.check()
}

// signed is what the CA signs.
func (g Grant) signed() []byte {
	b := appendText([]byte(grantLabel), string(g.Cluster))
	b = appendText(b, string(g.Node))
	b = appendText(b, g.Name)
	return binary.BigEndian.AppendUint64(b, uint64(g.Expires.Unix()))
}

// VerifyGrant returns an error if no CA of this cluster gave its word. Whether it
// has expired is the caller's to ask: Grant.Expired.
func (c *Credentials) VerifyGrant(g Grant) error {
	s := c.secrets()
	if g.Cluster != s.self.Cluster {
		return fmt.Errorf("the ticket is of cluster %s, and this is cluster %s", g.Cluster, s.self.Cluster)
	}
	for _, ca := range s.cas {
		if key, ok := ca.PublicKey.(ed25519.PublicKey); ok && ed25519.Verify(key, g.signed(), g.Signature) {
			return nil
		}
	}
	return errors.New("the ticket isn't signed by the CA of this cluster")
}

// Expired returns a *TicketError if the ticket can't be used any more.
func (g Grant) Expired(now time.Time) error {
	if now.Before(g.Expires) {
		return nil
	}
	return &TicketError{Problem: fmt.Sprintf("has expired at %s, by this host's clock it is %s", g.Expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339)),
		WayOut: newTicket}
}

const newTicket = "make a new one with: client member ticket"

// TicketError says why a ticket can't be used.
type TicketError struct {
	Problem string
	WayOut  string
}

func (e *TicketError) Error() string { return "the ticket " + e.Problem + "; " + e.WayOut }

// IsTicket reports whether a text is meant to be a ticket, whole or not.
func IsTicket(s string) bool { return strings.HasPrefix(strings.TrimSpace(s), ticketFamily) }

// String returns the ticket's text, which is secret.
func (t Ticket) String() string {
	var b []byte
	b = appendText(b, t.ca.Raw)
	b = appendText(b, t.cert.Raw)
	b = appendText(b, t.key.Seed())
	b = binary.AppendUvarint(b, uint64(t.MaxValue))
	b = binary.AppendUvarint(b, uint64(len(t.Contacts)))
	for _, m := range t.Contacts {
		b = appendText(appendText(b, string(m.ID)), m.Name)
		b = appendTexts(b, m.Addresses)
	}
	b = appendTexts(b, t.Endpoints)
	b = appendText(b, t.Grant.Name)
	b = binary.AppendUvarint(b, uint64(t.Grant.Expires.Unix()))
	b = appendText(b, t.Grant.Signature)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return ticketPrefix + ticketText.EncodeToString(b)
}

func appendTexts(b []byte, all []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	for _, s := range all {
		b = appendText(b, s)
	}
	return b
}

// ParseTicket reads a ticket's text, with or without spaces around it, and checks
// that it is whole and belongs together; not its dates. Its errors are
// *TicketError.
func ParseTicket(text string) (Ticket, error) {
	bad := func(problem string) (Ticket, error) {
		return Ticket{}, &TicketError{Problem: problem, WayOut: "copy the whole line that client member ticket -o raw has printed"}
	}
	text = strings.TrimSpace(text)
	body, ok := strings.CutPrefix(text, ticketPrefix)
	switch {
	case text == "":
		return Ticket{}, &TicketError{Problem: "is empty", WayOut: "client member ticket -o raw prints one, or says why not"}
	case !ok && IsTicket(text):
		return Ticket{}, &TicketError{Problem: "is of a newer version of atoll", WayOut: "use that version here, too"}
	case !ok:
		return bad("doesn't begin with " + ticketPrefix)
	case len(text) > MaxTicket:
		return bad(fmt.Sprintf("has %d characters, at most %d are possible", len(text), MaxTicket))
	}
	b, err := ticketText.DecodeString(body)
	n := len(b) - ticketChecksum
	if err != nil || n < 0 || crc32.ChecksumIEEE(b[:n]) != binary.BigEndian.Uint32(b[n:]) {
		return bad("is cut off or mistyped: its checksum doesn't match")
	}
	t, err := readTicket(b[:n])
	if err == nil {
		err = t.check()
	}
	if err != nil {
		return bad("makes no sense: " + err.Error())
	}
	return t, nil
}

// readTicket reads a body.
func readTicket(b []byte) (t Ticket, err error) {
	p := ticketReader{b: b}
	ca, cert, seed := p.text(), p.text(), p.text()
	t.MaxValue = int(p.number(1 << 31))
	t.Contacts = make([]Member, p.number(MaxContacts))
	for i := range t.Contacts {
		t.Contacts[i] = Member{ID: quorum.NodeID(p.text()), Name: string(p.text()), Addresses: p.texts(MaxAddresses)}
	}
	t.Endpoints = p.texts(MaxEndpoints)
	t.Grant.Name = string(p.text())
	t.Grant.Expires = time.Unix(int64(p.number(latestExpiry)), 0).UTC()
	t.Grant.Signature = p.text()
	if p.bad || len(p.b) > 0 || len(seed) != ed25519.SeedSize {
		return Ticket{}, errors.New("its fields don't fit")
	}
	if t.ca, err = x509.ParseCertificate(ca); err != nil {
		return Ticket{}, err
	}
	if t.cert, err = x509.ParseCertificate(cert); err != nil {
		return Ticket{}, err
	}
	t.key = ed25519.NewKeyFromSeed(seed)
	if t.Grant.Cluster, err = holderOfCA(t.ca); err != nil {
		return Ticket{}, err
	}
	t.Grant.Node = NodeIDOf(t.key.Public().(ed25519.PublicKey))
	return t, nil
}

// check checks that all belongs together.
func (t Ticket) check() error {
	key, err := encodeKey(t.key)
	if err != nil {
		return err
	}
	credentials, err := ParseCredentials(encodeCertificate(t.ca.Raw), encodeCertificate(t.cert.Raw), key)
	if err != nil {
		return err
	}
	if self := credentials.Self(); self.Role != RoleNode || self.Node != t.Grant.Node {
		return fmt.Errorf("its certificate is that of %v", self)
	}
	if err := credentials.VerifyGrant(t.Grant); err != nil {
		return err
	}
	if err := checkMemberName(t.Grant.Name); err != nil {
		return err
	}
	f := t.cluster()
	return f.check()
}

// cluster is the cluster file of the node.
func (t Ticket) cluster() ClusterFile {
	return ClusterFile{Format: joinedFormat, Cluster: t.Grant.Cluster, MaxValue: t.MaxValue,
		Joined: &Joined{Contacts: t.Contacts, Endpoints: t.Endpoints, Expires: t.Grant.Expires, Signature: t.Grant.Signature}}
}

// ticketReader reads a body. After the first thing that doesn't fit all is
// nothing.
type ticketReader struct {
	b   []byte
	bad bool
}

func (p *ticketReader) number(most uint64) uint64 {
	n, size := binary.Uvarint(p.b)
	if size <= 0 || n > most {
		p.b, p.bad = nil, true
		return 0
	}
	p.b = p.b[size:]
	return n
}

func (p *ticketReader) text() []byte {
	n := p.number(MaxTicket)
	if n > uint64(len(p.b)) {
		p.b, p.bad = nil, true
		return nil
	}
	s := p.b[:n:n]
	p.b = p.b[n:]
	return s
}

func (p *ticketReader) texts(most uint64) []string {
	var all []string
	for n := p.number(most); n > 0 && !p.bad; n-- {
		all = append(all, string(p.text()))
	}
	return all
}
