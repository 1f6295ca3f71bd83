package transport_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/transport"
	"atoll/quorum"
	"atoll/tags"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come. It is no measure.
const patience = time.Minute

// cluster makes credentials.
type cluster struct {
	t  testing.TB
	ca *identity.CA
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	ca, err := identity.NewCA(identity.NewClusterID(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, ca: ca}
}

// sameName makes a cluster of the same id with another CA.
func (c *cluster) sameName() *cluster {
	ca, err := identity.NewCA(c.ca.Cluster(), time.Now())
	if err != nil {
		c.t.Fatal(err)
	}
	return &cluster{t: c.t, ca: ca}
}

// issue makes credentials that are valid for an hour from some time on.
func (c *cluster) issue(role identity.Role, from time.Time) *identity.Credentials {
	c.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	certificate, err := c.ca.Issue(identity.Request{Role: role, Name: "someone", Key: public, Now: from, Validity: time.Hour})
	if err != nil {
		c.t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		c.t.Fatal(err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	credentials, err := identity.ParseCredentials(c.ca.Certificate(), certificate, key)
	if err != nil {
		c.t.Fatal(err)
	}
	return credentials
}

func (c *cluster) node() *identity.Credentials   { return c.issue(identity.RoleNode, time.Now()) }
func (c *cluster) client() *identity.Credentials { return c.issue(identity.RoleClient, time.Now()) }

// handler checks the order of the calls and passes them on.
type handler struct {
	t        testing.TB
	messages func(s *transport.Session, in []transport.Incoming)
	up       chan *transport.Session
	down     chan error

	mu    sync.Mutex
	state map[uint64]string
}

func newHandler(t testing.TB, messages func(*transport.Session, []transport.Incoming)) *handler {
	return &handler{
		t: t, messages: messages,
		up: make(chan *transport.Session, 1000), down: make(chan error, 1000),
		state: make(map[uint64]string),
	}
}

func (h *handler) step(s *transport.Session, from, to string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state[s.ID()] != from {
		h.t.Errorf("session %d: %q comes after %q", s.ID(), to, h.state[s.ID()])
	}
	h.state[s.ID()] = to
}

func (h *handler) Up(s *transport.Session) {
	h.step(s, "", "up")
	h.up <- s
}

func (h *handler) Messages(s *transport.Session, in []transport.Incoming) {
	h.step(s, "up", "up")
	if h.messages != nil {
		h.messages(s, in)
	}
}

func (h *handler) Down(s *transport.Session, err error) {
	h.step(s, "up", "down")
	if err == nil {
		h.t.Errorf("session %d went down without a reason", s.ID())
	}
	h.down <- err
}

// echo answers each Put with a GetAck that holds the same record.
func echo(s *transport.Session, in []transport.Incoming) {
	for _, m := range in {
		if put, ok := m.Message.(*abd.Put); ok {
			if err := s.Queue(m.Conversation, &abd.GetAck{Record: put.Record}); err != nil {
				return // the session is over
			}
		}
	}
	s.Flush()
}

// put is a message with a value of some bytes.
func put(size int) *abd.Put {
	value := bytes.Repeat([]byte("0123456789abc"), size/13+1)[:size]
	return &abd.Put{Key: "key", Record: abd.Record{Tag: tags.Tag{Seq: 1}, Value: value}}
}

// open makes a transport and closes it with the test.
func open(t testing.TB, c transport.Config) *transport.Transport {
	t.Helper()
	tr, err := transport.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeIt(t, tr) })
	return tr
}

func closeIt(t testing.TB, tr *transport.Transport) {
	t.Helper()
	if err := tr.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// server is an echoing node on a free port of loopback.
func server(t testing.TB, c *cluster) (tr *transport.Transport, address string, h *handler) {
	t.Helper()
	h = newHandler(t, echo)
	tr = open(t, transport.Config{Credentials: c.node(), Listen: []string{"127.0.0.1:0"}, Handler: h})
	return tr, tr.Addrs()[0].String(), h
}

func dial(t testing.TB, tr *transport.Transport, address string) *transport.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := tr.DialAddress(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func send(t testing.TB, s *transport.Session, conversation uint64, m env.Message) {
	t.Helper()
	if err := s.Queue(conversation, m); err != nil {
		t.Fatal(err)
	}
	s.Flush()
}

func receive[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("not reached")
	}
}

// until waits for what no callback tells.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("in vain: %s", what)
		}
	}
}

// addresses is a Config.Addresses that a test may change.
type addresses struct {
	mu sync.Mutex
	of map[quorum.NodeID][]string
}

func (a *addresses) set(node quorum.NodeID, to ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = make(map[quorum.NodeID][]string)
	}
	a.of[node] = to
}

func (a *addresses) get(node quorum.NodeID) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[node]
}
