package server_test

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"atoll/abd"
	"atoll/client"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/porttest"
	"atoll/internal/server"
	"atoll/internal/store"
	"atoll/internal/transport"
	"atoll/internal/wire"
	"atoll/tags"
)

// patience is how long a test waits for what must come. It is no measure.
const patience = time.Minute

// segmentBytes is small: a new segment is written full, and tests make many.
const segmentBytes = 256 << 10

// node is a member of a cluster, most often the only one.
type node struct {
	t       testing.TB
	dir     string // of the cluster
	name    string
	address string
}

func newNode(t testing.TB, spec identity.Spec) node {
	t.Helper()
	return newNodes(t, spec, "a")[0]
}

// newNodes makes a cluster with members of these names.
func newNodes(t testing.TB, spec identity.Spec, names ...string) []node {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cluster")
	var nodes []node
	for _, name := range names {
		n := node{t: t, dir: dir, name: name, address: porttest.Address(t)}
		nodes = append(nodes, n)
		spec.Members = append(spec.Members, identity.MemberSpec{Name: name, Address: n.address})
	}
	if spec.Prepare == nil {
		spec.Prepare = func(dir string) error { return store.Create(store.Config{Dir: dir, SegmentBytes: segmentBytes}) }
	}
	if _, err := identity.CreateCluster(dir, spec); err != nil {
		t.Fatal(err)
	}
	return nodes
}

func (n node) folder() *identity.Folder {
	n.t.Helper()
	f, err := identity.OpenFolder(filepath.Join(n.dir, n.name))
	if err != nil {
		n.t.Fatal(err)
	}
	return f
}

// config is what the node starts with, unless a test changes it.
func (n node) config() server.Config {
	n.t.Helper()
	return server.Config{Folder: n.folder(), Version: "test", Store: store.Config{SegmentBytes: segmentBytes},
		Greeting: -1, // the other members mostly aren't up yet
	}
}

// start starts the node. The test need not close it.
func (n node) start(cfg server.Config) *server.Server {
	n.t.Helper()
	s, err := server.Start(cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, errDisk) {
			n.t.Error(err)
		}
	})
	return s
}

func (n node) stop(s *server.Server) {
	n.t.Helper()
	if err := s.Close(); err != nil {
		n.t.Fatal(err)
	}
}

// client opens a client of the node.
func (n node) client() *client.Client {
	n.t.Helper()
	cfg, err := client.LoadContext(filepath.Join(n.dir, identity.FileContext))
	if err != nil {
		n.t.Fatal(err)
	}
	cfg.Timeout = patience
	c, err := client.Open(context.Background(), cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			n.t.Error(err)
		}
	})
	return c
}

// credentials are those of the cluster's first client.
func (n node) credentials() *identity.Credentials {
	n.t.Helper()
	return n.contextCredentials(identity.FileContext)
}

func (n node) contextCredentials(file string) *identity.Credentials {
	n.t.Helper()
	f, err := identity.LoadContext(filepath.Join(n.dir, file))
	if err != nil {
		n.t.Fatal(err)
	}
	c, err := f.Credentials()
	if err != nil {
		n.t.Fatal(err)
	}
	return c
}

// peer is a client without a protocol: it sends any message, and shows what
// comes, in order.
type peer struct {
	t       testing.TB
	session *transport.Session
	last    uint64 // conversation
	in      chan transport.Incoming
	down    chan error
	hold    chan struct{} // nil, or what Messages waits for when a large value comes
}

func (p *peer) Up(*transport.Session) {}

func (p *peer) Down(_ *transport.Session, err error) { p.down <- err }

func (p *peer) Messages(_ *transport.Session, in []transport.Incoming) {
	if p.hold != nil && wire.ValueSize(in[0].Message) > transport.BulkAbove {
		<-p.hold
	}
	for _, m := range in {
		select {
		case p.in <- m:
		default: // nobody looks at so many
		}
	}
}

// issue makes credentials of a role for a new key.
func (n node) issue(role identity.Role) *identity.Credentials {
	n.t.Helper()
	ca, err := identity.LoadCA(filepath.Join(n.dir, "ca"))
	if err != nil {
		n.t.Fatal(err)
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		n.t.Fatal(err)
	}
	certificate, err := ca.Issue(identity.Request{Role: role, Name: "other", Key: public, Now: time.Now()})
	if err != nil {
		n.t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		n.t.Fatal(err)
	}
	c, err := identity.ParseCredentials(ca.Certificate(), certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		n.t.Fatal(err)
	}
	return c
}

// dial connects a client, which reads nothing before hold is closed, if it
// isn't nil.
func (n node) dial(hold chan struct{}) *peer {
	n.t.Helper()
	return n.dialAs(n.credentials(), hold)
}

// dialAs connects whoever the credentials are of.
func (n node) dialAs(credentials *identity.Credentials, hold chan struct{}) *peer {
	n.t.Helper()
	p := &peer{t: n.t, in: make(chan transport.Incoming, 1000), down: make(chan error, 1), hold: hold}
	tr, err := transport.New(transport.Config{Credentials: credentials, Handler: p})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			n.t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if p.session, err = tr.DialAddress(ctx, n.address); err != nil {
		n.t.Fatal(err)
	}
	return p
}

// send sends a message and returns its conversation.
func (p *peer) send(m env.Message) uint64 {
	p.t.Helper()
	p.last++
	if err := p.session.Queue(p.last, m); err != nil {
		p.t.Fatal(err)
	}
	p.session.Flush()
	return p.last
}

// frame returns the bytes of a request.
func (p *peer) frame(m env.Message) []byte {
	p.t.Helper()
	var e wire.Encoder
	b, err := e.AppendFrame(nil, 1, m)
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

// receive returns the next message, which must be of this conversation.
func (p *peer) receive(conversation uint64) env.Message {
	p.t.Helper()
	m := receive(p.t, p.in)
	if m.Conversation != conversation {
		p.t.Fatalf("%T came for conversation %d, want one for %d", m.Message, m.Conversation, conversation)
	}
	return m.Message
}

func (p *peer) ask(m env.Message) env.Message {
	p.t.Helper()
	return p.receive(p.send(m))
}

// askAgain asks until an answer comes: one for which there is no memory at the
// moment is dropped, and so are requests when too many wait for the disk. Whoever
// waits for an answer asks again.
func (p *peer) askAgain(m env.Message) env.Message {
	p.t.Helper()
	deadline := time.After(patience)
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	first := p.send(m)
	for {
		select {
		case got := <-p.in:
			if got.Conversation >= first {
				return got.Message
			}
		case <-again.C:
			p.send(m)
		case err := <-p.down:
			p.t.Fatal(err)
		case <-deadline:
			p.t.Fatal("nothing came")
		}
	}
}

// nothing fails the test if a message has come that nobody received.
func (p *peer) nothing() {
	p.t.Helper()
	select {
	case m := <-p.in:
		p.t.Errorf("%T came for conversation %d", m.Message, m.Conversation)
	default:
	}
}

// await waits for what nobody tells.
func (n node) await(what string, ok func() bool) {
	n.t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if <-tick.C; time.Now().After(deadline) {
			n.t.Fatalf("in vain: %s", what)
		}
	}
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

// putOf is a put that a node stores.
func putOf(key, value string) *abd.Put {
	return &abd.Put{Key: abd.Key(key), Record: abd.Record{Tag: tags.Tag{Seq: 1}, Value: []byte(value)}}
}

// errDisk is what a test's disk fails with.
var errDisk = errors.New("the disk is broken")

// slowDisk is a disk whose commits write what has gathered, and then last until
// the test lets them end.
type slowDisk struct {
	first atomic.Bool  // commit has ended
	noted env.Position // with it
	server.Disk
	began  chan struct{} // has a token for each commit that has begun
	result chan error    // ends a commit, with this error
}

func newSlowDisk(d server.Disk) *slowDisk {
	return &slowDisk{Disk: d, began: make(chan struct{}, 1000), result: make(chan error, 1000)}
}

func (d *slowDisk) Commit() (env.Position, error) {
	durable, err := d.Disk.Commit()
	if d.first.CompareAndSwap(false, true) {
		d.noted = durable
		return durable, err // of what the node notes when it starts
	}
	d.began <- struct{}{}
	return durable, errors.Join(err, <-d.result)
}

// get fetches a page of the metrics listener.
func get(t testing.TB, s *server.Server, path string) (status int, body string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	r, err := client.Get("http://" + s.MetricsAddr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}
