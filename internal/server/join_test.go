package server_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/abd"
	"atoll/client"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/logtest"
	"atoll/internal/porttest"
	"atoll/internal/server"
	"atoll/internal/store"
	"atoll/join"
	"atoll/quorum"
	"atoll/replica"
)

// ticket makes a ticket for one more node of n's cluster.
func (n node) ticket(name string, contacts ...node) identity.Ticket {
	n.t.Helper()
	ca, err := identity.LoadCA(filepath.Join(n.dir, "ca"))
	if err != nil {
		n.t.Fatal(err)
	}
	r := identity.TicketRequest{Name: name, MaxValue: 1 << 20, Now: time.Now()}
	for _, c := range contacts {
		f := c.folder()
		r.Contacts = append(r.Contacts, identity.Member{ID: f.ID, Name: f.Name, Addresses: []string{c.address}})
	}
	t, err := ca.Ticket(r)
	if err != nil {
		n.t.Fatal(err)
	}
	return t
}

// accept makes the folder of a ticket's node.
func (n node) accept(ticket identity.Ticket) node {
	n.t.Helper()
	dir := n.t.TempDir()
	err := identity.CreateMember(filepath.Join(dir, ticket.Grant.Name), identity.JoinSpec{Ticket: ticket, Listen: []string{"127.0.0.1:0"},
		Prepare: func(dir string) error { return store.Create(store.Config{Dir: dir, SegmentBytes: segmentBytes}) }})
	if err != nil {
		n.t.Fatal(err)
	}
	return node{t: n.t, dir: dir, name: ticket.Grant.Name}
}

func (n node) join(s *server.Server) error {
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	return s.Join(ctx)
}

// knows reports whether a client hears of a node.
func knows(t *testing.T, c *client.Client, ok func(client.Status) bool) func() bool {
	return func() bool {
		s, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return ok(s)
	}
}

// TestJoin: a ticket makes one node, on standby, that is known from then on; again
// with the same folder it is the same node, with another folder it isn't let in.
func TestJoin(t *testing.T) {
	t.Parallel()
	nodes := newNodes(t, identity.Spec{}, "a", "b", "c")
	for _, n := range nodes {
		n.start(n.config())
	}
	ticket := nodes[0].ticket("d", nodes[0], nodes[2])
	d := nodes[0].accept(ticket)
	s := d.start(d.config())
	if s.Joined() {
		t.Error("the cluster knows it before it has joined")
	}
	if err := d.join(s); err != nil {
		t.Fatal(err)
	}
	c := nodes[1].client()
	nodes[0].await("d on standby", knows(t, c, func(s client.Status) bool {
		return len(s.Members) == 3 && len(s.Standby) == 1 && s.Standby[0].ID == ticket.Grant.Node && s.Standby[0].Status != nil &&
			s.Standby[0].Status.Role == replica.RoleStandby && len(s.Disagreements) == 0
	}))

	// The second use.
	second := nodes[0].accept(ticket)
	err := second.join(second.start(second.config()))
	if refused, ok := errors.AsType[*join.RefusedError](err); !ok || !strings.Contains(refused.Error(), "used already") || !strings.Contains(err.Error(), "client member ticket") {
		t.Errorf("the second use: %v", err)
	}

	// The same folder again: it is known, and serves at once.
	d.stop(s)
	if s = d.start(d.config()); !s.Joined() {
		t.Error("after a restart it isn't known")
	}
}

// TestAJoinThatIsDoneSaysNothingElse: the search at the ticket's other addresses ends
// with the join, and that isn't a failure that the log tells of.
func TestAJoinThatIsDoneSaysNothingElse(t *testing.T) {
	t.Parallel()
	a := newNode(t, identity.Spec{})
	a.start(a.config())
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ticket := a.ticket("b", a)
	ticket.Endpoints = []string{a.address, silent.LocalAddr().String()}
	b := a.accept(ticket)
	var book logtest.Book
	cfg := b.config()
	cfg.Log = book.Log(slog.LevelInfo)
	s := b.start(cfg)
	if err := b.join(s); err != nil {
		t.Fatal(err)
	}
	b.stop(s)
	if book.Contains("isn't found") || !book.Contains("joined") {
		t.Errorf("the log:\n%s", book.String())
	}
}

// TestAJoinWithoutACluster: it says where nobody is, and in the log, too, but not at
// each attempt; when the cluster is there the same folder joins.
func TestAJoinWithoutACluster(t *testing.T) {
	t.Parallel()
	a, stranger := newNode(t, identity.Spec{}), newNode(t, identity.Spec{})
	cfg := stranger.config()
	cfg.Metrics = "127.0.0.1:0"
	refusing := stranger.start(cfg)
	ticket := a.ticket("b", a)
	ticket.Endpoints = []string{a.address, stranger.address}
	b := a.accept(ticket)
	var book logtest.Book
	cfg = b.config()
	cfg.Log = book.Log(slog.LevelInfo)
	s := b.start(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	joined := make(chan error, 1)
	go func() { joined <- s.Join(ctx) }()
	a.await("the fourth attempt", func() bool { return metric(t, refusing, "atoll_connections_incoming_total") >= 4 })
	cancel()
	if err := receive(t, joined); !errors.Is(err, env.ErrCanceled) {
		t.Errorf("canceled, it ends with %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	err := s.Join(ctx)
	if alone, ok := errors.AsType[*join.UnreachableError](err); !ok || len(alone.Endpoints) != 2 || !strings.Contains(err.Error(), a.address) {
		t.Errorf("it ends with %v", err)
	}
	b.stop(s)
	if n := book.Count(`trying on" address=` + stranger.address); n == 0 || n > 3 {
		t.Errorf("the log says it %d times, want once for each join:\n%s", n, book.String())
	}
	a.start(a.config())
	if err := b.join(b.start(b.config())); err != nil {
		t.Errorf("with a cluster: %v", err)
	}
}

// TestJoinThatIsLate: an expired ticket isn't taken by the members either, whatever
// clock the new node has; and of a cluster without a quorum nobody joins.
func TestJoinThatIsRefused(t *testing.T) {
	t.Parallel()
	nodes := newNodes(t, identity.Spec{}, "a", "b", "c")
	for _, n := range nodes[:2] {
		n.start(n.config())
	}
	ticket := nodes[0].ticket("d", nodes[0])
	late := ticket
	late.Grant.Expires = late.Grant.Expires.Add(-24 * time.Hour)
	d := nodes[0].accept(ticket)
	forged := filepath.Join(d.dir, d.name, identity.FileCluster)
	b, err := os.ReadFile(forged)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), ticket.Grant.Expires.Format(time.RFC3339), late.Grant.Expires.Format(time.RFC3339), 1)
	if text == string(b) {
		t.Fatal("nothing was changed")
	}
	if err := os.WriteFile(forged, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := d.join(d.start(d.config())); err == nil || !strings.Contains(err.Error(), "isn't signed by the CA") {
		t.Errorf("another end than the CA gave: %v", err)
	}
}

// copyFolder copies a member's folder.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(to, identity.FileKey), 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

// TestAnOlderCopyIsOutcast: a member that is started on an older copy of its folder
// ends, as long as another one lives that knows better. All at once start as ever.
func TestAnOlderCopyIsOutcast(t *testing.T) {
	t.Parallel()
	nodes := newNodes(t, identity.Spec{}, "a", "b")
	a, b := nodes[0], nodes[1]
	greet := func(n node) server.Config {
		cfg := n.config()
		cfg.Greeting = patience
		if n.name == a.name {
			cfg.Greeting = -1 // the first one
		}
		return cfg
	}
	sa, sb := a.start(greet(a)), b.start(greet(b))
	b.stop(sb)
	folder, backup := filepath.Join(b.dir, "b"), filepath.Join(t.TempDir(), "b")
	copyFolder(t, folder, backup)
	sb = b.start(greet(b)) // the second start: a has heard of it when this returns
	b.stop(sb)
	copyFolder(t, backup, folder)
	// It believes to be in its second start again, and is another process.
	_, err := server.Start(greet(b))
	outcast, ok := errors.AsType[*join.OutcastError](err)
	if !ok || outcast.Verdict != join.SecondCopy || outcast.From != a.folder().ID {
		t.Fatalf("on a copy of its folder: %v", err)
	}
	if text := err.Error(); !strings.HasPrefix(text, "node a knows ") {
		t.Errorf("it is told: %s", text)
	}
	// Nobody is there who knows: the folder does, and another copy starts.
	a.stop(sa)
	cfg := greet(b)
	cfg.Greeting = time.Millisecond
	if _, err := server.Start(cfg); identity.ClassOf(err) != identity.Damaged || !strings.Contains(err.Error(), outcast.Reason()) {
		t.Fatalf("on a copy that was found out: %v", err)
	}
	copyFolder(t, backup, folder)
	b.start(cfg)
}

// TestALastGreeting: a member that ends in order has told how far it came. So a copy
// of its folder that was made while it ran is found out, however young.
func TestALastGreeting(t *testing.T) {
	t.Parallel()
	nodes := newNodes(t, identity.Spec{}, "a", "b")
	a, b := nodes[0], nodes[1]
	a.start(a.config())
	cfg := b.config()
	cfg.Greeting = patience
	sb := b.start(cfg)
	folder, backup := filepath.Join(b.dir, "b"), filepath.Join(t.TempDir(), "b")
	copyFolder(t, folder, backup)
	p := b.dial(nil)
	for i := range 100 {
		if _, ok := p.ask(putOf(fmt.Sprint(i), "v")).(*abd.PutAck); !ok {
			t.Fatal("a put isn't acknowledged")
		}
	}
	b.stop(sb)
	copyFolder(t, backup, folder)
	_, err := server.Start(cfg)
	if outcast, ok := errors.AsType[*join.OutcastError](err); !ok || outcast.Verdict != join.OlderCopy {
		t.Errorf("on a copy that is a moment old: %v", err)
	}
}

// TestAnotherStoreIsRefused: an identity isn't used with a store that isn't its own:
// as its folder tells, and, where that is lost, as others do.
func TestAnotherStoreIsRefused(t *testing.T) {
	t.Parallel()
	nodes := newNodes(t, identity.Spec{}, "a", "b")
	a, b := nodes[0], nodes[1]
	a.start(a.config())
	cfg := b.config()
	cfg.Greeting = patience
	b.stop(b.start(cfg))
	dir := filepath.Join(b.dir, "b")
	for _, name := range []string{"store.json", "state.db", "journal", "lock"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	wantDamaged := func(what, words string) {
		t.Helper()
		_, err := server.Start(cfg)
		if identity.ClassOf(err) != identity.Damaged || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), "replica join") {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantDamaged("without a store", "holds no store any more")
	if err := store.Create(store.Config{Dir: dir, SegmentBytes: segmentBytes}); err != nil {
		t.Fatal(err)
	}
	wantDamaged("with a new store", "holds another store")
	if err := os.Remove(filepath.Join(dir, identity.FileInstance)); err != nil {
		t.Fatal(err)
	}
	_, err := server.Start(cfg)
	if outcast, ok := errors.AsType[*join.OutcastError](err); !ok || outcast.Verdict != join.OtherStore {
		t.Errorf("with a new store and nothing that tells: %v", err)
	}
}

// TestANodeMoves: a member comes back on another address; the others, and clients
// that run, find it, and it needs no command.
func TestANodeMoves(t *testing.T) {
	t.Parallel()
	nodes := newNodes(t, identity.Spec{Quorum: "get=1,put=3"}, "a", "b", "c")
	servers := map[string]*server.Server{}
	for _, n := range nodes {
		servers[n.name] = n.start(n.config())
	}
	c := nodes[0].client()
	if _, err := c.Put(t.Context(), "k", []byte("1")); err != nil {
		t.Fatal(err)
	}
	nodes[1].stop(servers["b"])
	elsewhere := porttest.Address(t)
	cfg := nodes[1].config()
	cfg.Listen, cfg.Advertise = []string{elsewhere}, []string{elsewhere}
	moved := nodes[1].start(cfg)
	// Each put needs all members.
	if _, err := c.Put(t.Context(), "k", []byte("2")); err != nil {
		t.Fatalf("a client that runs doesn't find it: %v", err)
	}
	late := nodes[0].client() // whose context file names the old address
	if _, err := late.Put(t.Context(), "k", []byte("3")); err != nil {
		t.Fatalf("a new client doesn't find it: %v", err)
	}
	nodes[0].await("its new address", knows(t, late, func(s client.Status) bool {
		return slices.ContainsFunc(s.Members, func(m client.MemberStatus) bool {
			return m.Name == "b" && slices.Equal(m.Addresses, []string{elsewhere}) && m.Version > 1 && identity.VerifyMember(s.Cluster, m.Member) == nil
		})
	}))
	// The others find it when it doesn't dial them: they were told.
	nodes[1].stop(moved)
	nodes[1].start(cfg)
	if _, err := c.Put(t.Context(), "k", []byte("4")); err != nil {
		t.Fatal(err)
	}
}

// TestANodeThatNobodyDials: a node that says a wrong address works over the connections
// that it has made. It is told by the others, in its log and its status, until it is
// started with the right one.
func TestANodeThatNobodyDials(t *testing.T) {
	t.Parallel()
	nodes := newNodes(t, identity.Spec{}, "a", "b")
	a, b := nodes[0], nodes[1]
	config := func(n node, book *logtest.Book) server.Config {
		cfg := n.config()
		cfg.GreetEvery, cfg.Log = 20*time.Millisecond, book.Log(slog.LevelInfo)
		return cfg
	}
	var ofA, wrong logtest.Book
	a.start(config(a, &ofA))
	cfg := config(b, &wrong)
	cfg.Advertise = []string{a.address}
	b.start(cfg)
	const text = "other nodes can't dial this one where it says that it is"
	eventually(t, "its log says so", func() bool { return wrong.Contains(text) })
	p := b.dial(nil)
	if s, ok := p.ask(&replica.StatusQuery{}).(*replica.Status); !ok || !strings.Contains(s.Unreached, text) || !strings.Contains(s.Unreached, "(a: "+a.address+": ") {
		t.Errorf("its status: %+v", s)
	}
	if ofA.Contains(text) {
		t.Errorf("b has greeted a as often, and says what a's address isn't: %s", &ofA)
	}
}

// TestARemovedNodeSaysSo at its start, and in its status.
func TestARemovedNodeSaysSo(t *testing.T) {
	t.Parallel()
	nodes := newNodes(t, identity.Spec{}, "a", "b")
	for _, n := range nodes {
		n.stop(n.start(n.config()))
	}
	remove(t, nodes[1])
	var book logtest.Book
	cfg := nodes[1].config()
	cfg.Log = book.Log(slog.LevelInfo)
	nodes[1].start(cfg)
	if !book.Contains("this node was removed") {
		t.Errorf("its log: %s", &book)
	}
	p := nodes[1].dial(nil)
	if s, ok := p.ask(&replica.StatusQuery{}).(*replica.Status); !ok || s.Role != replica.RoleRemoved {
		t.Errorf("its status: %+v", s)
	}
	// The other one hears of it, and says that, too.
	var others logtest.Book
	cfg = nodes[0].config()
	cfg.Log = others.Log(slog.LevelInfo)
	nodes[0].start(cfg)
	eventually(t, "the other one tells of the change", func() bool {
		return others.Contains("new members were agreed on") && others.Contains("has taken over") && others.Contains("members=a ")
	})
	if others.Contains("removed") || others.Contains("is a member now") {
		t.Errorf("the other one's log: %s", &others)
	}
}

// remove has a node that is stopped know that the configuration that follows is
// installed, and doesn't name it.
func remove(t *testing.T, n node) {
	t.Helper()
	f := n.folder()
	st, err := store.Open(store.Config{Dir: f.Dir, SegmentBytes: segmentBytes})
	if err != nil {
		t.Fatal(err)
	}
	var others []quorum.NodeID
	for _, m := range f.Cluster.Members {
		if m.ID != f.ID {
			others = append(others, m.ID)
		}
	}
	c, err := quorum.NewConfiguration(1, others, quorum.System{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := quorum.NewMap(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.SetCell("rambo.map", m.Append(nil)); err != nil {
		t.Fatal(err)
	}
	st.Cut()
	if _, err := st.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}
