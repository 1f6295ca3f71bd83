package identity

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"atoll/quorum"
)

// Files are the paths of credentials in PEM.
type Files struct {
	CA          string // one CA certificate, or several while one replaces another
	Certificate string // one certificate
	Key         string // its Ed25519 key, PKCS #8
}

// Credentials are what a process is known by, and what it knows others by: the
// cluster's CA, its own certificate and its key. They are safe for concurrent
// use.
type Credentials struct {
	origin  origin
	clock   func() time.Time
	log     atomic.Pointer[slog.Logger]
	current atomic.Pointer[secrets]

	mu struct {
		sync.Mutex
		checked time.Time // when the files were last looked at
		loaded  stamps    // what they were when they were last taken over
		refused stamps    // what they were when a complaint was last logged since; nil: not at all
	}
}

// origin is where credentials come from; zero: from memory, and never again.
type origin struct {
	paths []string // what is looked at, to see whether anything has changed
	shown string   // what a log calls all of it
	read  func() (ca, certificate, key []byte, err error)
}

// secrets are credentials at one moment. They are immutable.
type secrets struct {
	self Peer
	cas  []*x509.Certificate
	pool *x509.CertPool
	tls  tls.Certificate
}

// ParseCredentials makes credentials of PEM. It checks that they are whole and
// belong together, not their dates; for these there is Check. Its errors are
// *CredentialError.
func ParseCredentials(ca, certificate, key []byte) (*Credentials, error) {
	s, err := parseSecrets(ca, certificate, key)
	if err != nil {
		return nil, err
	}
	c := &Credentials{clock: time.Now}
	c.current.Store(s)
	return c, nil
}

// LoadCredentials reads credentials from files, and looks at the files again
// while they are used: what was replaced there is taken over as soon as it is
// whole and of the same holder. Its errors are *CredentialError.
func LoadCredentials(files Files) (*Credentials, error) {
	return follow(origin{
		paths: []string{files.CA, files.Certificate, files.Key},
		shown: files.Certificate,
		read:  files.read,
	})
}

// LoadContextCredentials does the same with those of a context file. Its
// errors are *ContextError.
func LoadContextCredentials(path string) (*Credentials, error) {
	return follow(origin{
		paths: []string{path},
		shown: path,
		read: func() (ca, certificate, key []byte, err error) {
			c, err := LoadContext(path)
			return []byte(c.CA), []byte(c.Certificate), []byte(c.Key), err
		},
	})
}

func follow(o origin) (*Credentials, error) {
	c := &Credentials{origin: o, clock: time.Now}
	s, stamps, err := c.read()
	if err != nil {
		return nil, err
	}
	c.current.Store(s)
	c.mu.loaded, c.mu.checked = stamps, c.clock()
	return c, nil
}

// LogTo says where replacements of the files are reported. Without it, that is
// slog.Default().
func (c *Credentials) LogTo(log *slog.Logger) { c.log.Store(log) }

func (c *Credentials) logger() *slog.Logger {
	if log := c.log.Load(); log != nil {
		return log
	}
	return slog.Default()
}

// Self returns who the holder is.
func (c *Credentials) Self() Peer { return c.current.Load().self }

// Cluster returns the cluster that the credentials are of.
func (c *Credentials) Cluster() quorum.ClusterID { return c.current.Load().self.Cluster }

// Expiry returns when the certificate, or the CA's if that is earlier, ends.
// It looks at the files again first, as a handshake does.
func (c *Credentials) Expiry() time.Time {
	s := c.secrets()
	end := s.tls.Leaf.NotAfter
	if ca := s.issuer(s.tls.Leaf); ca != nil && ca.NotAfter.Before(end) {
		end = ca.NotAfter
	}
	return end
}

// EndsSoon reports whether the certificate's end has come, or is nearer than
// ExpiryWarning, and how long it is until then.
func (c *Credentials) EndsSoon(now time.Time) (left time.Duration, soon bool) {
	left = c.Expiry().Sub(now)
	return left, left < ExpiryWarning
}

// Check reports, as a *CredentialError, that the certificate or the CA's isn't
// valid at the given time, so that nobody would accept it.
func (c *Credentials) Check(now time.Time) error { return c.secrets().check(now) }

func (s *secrets) check(now time.Time) error {
	part, cert := PartCertificate, s.tls.Leaf
	which, detail := dates(cert, now)
	if which == "" {
		part, cert = PartCA, s.issuer(cert)
		which, detail = dates(cert, now)
	}
	if which == "" {
		return nil
	}
	return &CredentialError{Part: part, Which: which, Detail: detail}
}

// succeeds reports why t may not take the place of s, or nil if it may.
func (s *secrets) succeeds(t *secrets, now time.Time) error {
	if t.self == s.self {
		return t.check(now)
	}
	which := WrongKey
	if t.self.Cluster != s.self.Cluster {
		which = OtherCluster
	}
	return &CredentialError{Part: PartCertificate, Which: which,
		Detail: fmt.Sprintf("it is of %v of cluster %s, and this process is %v of cluster %s", t.self, t.self.Cluster, s.self, s.self.Cluster)}
}

// parseSecrets reads credentials and checks that they belong together.
func parseSecrets(ca, certificate, key []byte) (*secrets, error) {
	bad := func(part Part, which Which, detail string) error {
		return &CredentialError{Part: part, Which: which, Detail: detail}
	}
	cas, cluster, err := parseCAs(ca)
	if err != nil {
		return nil, bad(PartCA, Malformed, "it "+err.Error())
	}
	cert, self, err := parseCertificate(certificate)
	if err != nil {
		return nil, bad(PartCertificate, Malformed, "it "+err.Error())
	}
	private, err := parseKey(key)
	if err != nil {
		return nil, bad(PartKey, Malformed, "it "+err.Error())
	}
	if !private.Public().(ed25519.PublicKey).Equal(cert.PublicKey) {
		return nil, bad(PartKey, WrongKey, fmt.Sprintf("it is not the key of the certificate of %v", self))
	}
	if self.Cluster != cluster {
		return nil, bad(PartCertificate, OtherCluster, fmt.Sprintf("it is of cluster %s, the CA is of cluster %s", self.Cluster, cluster))
	}
	s := &secrets{self: self, cas: cas, pool: x509.NewCertPool()}
	for _, ca := range cas {
		s.pool.AddCert(ca)
	}
	if s.issuer(cert) == nil {
		return nil, bad(PartCertificate, WrongCA, "it was not signed by the CA that is given with it")
	}
	s.tls = tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: private, Leaf: cert}
	return s, nil
}

// issuer returns the CA that signed cert, or nil.
func (s *secrets) issuer(cert *x509.Certificate) *x509.Certificate {
	for _, ca := range s.cas {
		if cert.CheckSignatureFrom(ca) == nil {
			return ca
		}
	}
	return nil
}

// stamps tell whether files may have changed since they were read. A file that
// was renamed over another one is a different file whatever its time and size.
type stamps []os.FileInfo

func (s stamps) same(t stamps) bool {
	if len(s) != len(t) {
		return false
	}
	for i := range s {
		if s[i] == nil && t[i] == nil {
			continue // not there, then and now
		}
		if s[i] == nil || t[i] == nil || !os.SameFile(s[i], t[i]) || s[i].Size() != t[i].Size() || !s[i].ModTime().Equal(t[i].ModTime()) {
			return false
		}
	}
	return true
}

// read reads the files. The stamps are those from before: if a file changes
// while it is read, the next look sees it.
func (c *Credentials) read() (*secrets, stamps, error) {
	seen := c.stat()
	ca, certificate, key, err := c.origin.read()
	if err != nil {
		return nil, seen, err
	}
	s, err := parseSecrets(ca, certificate, key)
	return s, seen, err
}

func (f Files) read() (ca, certificate, key []byte, err error) {
	for _, p := range [...]struct {
		part Part
		path string
		to   *[]byte
	}{{PartCA, f.CA, &ca}, {PartCertificate, f.Certificate, &certificate}, {PartKey, f.Key, &key}} {
		if *p.to, err = readFile(p.path); err != nil {
			return nil, nil, nil, &CredentialError{Part: p.part, Which: Missing, Detail: err.Error()}
		}
	}
	return ca, certificate, key, nil
}

func (c *Credentials) stat() stamps {
	s := make(stamps, len(c.origin.paths))
	for i, path := range c.origin.paths {
		// An error leaves nil; what it was, the reading will tell.
		if info, err := os.Stat(path); err == nil {
			s[i] = info
		}
	}
	return s
}

// secrets returns the newest credentials that are fit for use. A handshake
// never waits for another one that is reading the files.
func (c *Credentials) secrets() *secrets {
	if c.origin.read != nil && c.mu.TryLock() {
		c.reload()
		c.mu.Unlock()
	}
	return c.current.Load()
}

// reload takes over files that changed, if they are whole, valid and of the
// same holder; otherwise what was loaded stays in use. The caller holds mu.
func (c *Credentials) reload() {
	now := c.clock()
	if since := now.Sub(c.mu.checked); since >= 0 && since < ReloadInterval {
		return
	}
	c.mu.checked = now
	if c.stat().same(c.mu.loaded) {
		return
	}
	s, seen, err := c.read()
	old := c.current.Load()
	if err == nil {
		err = old.succeeds(s, now)
	}
	if err != nil {
		if !c.mu.refused.same(seen) {
			c.mu.refused = seen
			c.logger().Warn("new credentials are not fit for use, the old ones stay", "certificate", c.origin.shown, "error", err)
		}
		return
	}
	c.mu.loaded, c.mu.refused = seen, nil
	c.current.Store(s)
	c.logger().Info("new credentials in use", "certificate", c.origin.shown, "expires", s.tls.Leaf.NotAfter)
}
