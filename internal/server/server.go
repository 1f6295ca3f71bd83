package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/live"
	"atoll/internal/store"
	"atoll/internal/transport"
	"atoll/join"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/repair"
	"atoll/replica"
)

// Config says what a server runs.
type Config struct {
	// Folder is the node's folder, opened and verified. Its store is in the
	// same directory.
	Folder *identity.Folder
	// Listen are the addresses to listen on, "host:port". Default: those
	// that the cluster's file gives for this node.
	Listen []string
	// Advertise are the addresses that the node tells others to dial, "host:port".
	// Default: those that its folder names; without any, those on which it
	// listens, which must not be all interfaces then.
	Advertise []string
	// Greeting is how long the node waits, before it serves, for another one that
	// knows whether it has lost anything. Default one second; below zero it
	// doesn't wait, and when it is closed it doesn't tell others how far it came.
	Greeting time.Duration
	// GreetEvery is how often the node tells others how far it came. Default:
	// join.DefaultPace.
	GreetEvery time.Duration
	// Metrics is a loopback address, "host:port", for Prometheus metrics
	// (/metrics), checks of whether the node lives (/livez) and does all of
	// its work (/healthz), and profiles (/debug/pprof/). Empty: none.
	Metrics string
	// Memory is how many bytes all connections together may cost, as far as
	// peers decide about it (transport.Config). Default: the transport's.
	Memory int
	// Store sizes the node's store; the zero value takes the store's
	// defaults. Dir, Log and ObserveSync are the server's to set.
	Store store.Config
	// Pace is how much of the node's time repair takes. Default: package
	// repair's.
	Pace repair.Pace
	// Reconfiguration is how fast the node does its part when members change, and how
	// soon it forgets nodes. Default: package rambo's.
	Reconfiguration rambo.Pace
	// Version is what the node says of its build.
	Version string
	// Log takes what happens. Default: nothing is logged.
	Log *slog.Logger
	// StallAfter is how long a commit may last until the node isn't ready.
	// Default 1 s.
	StallAfter time.Duration
	// Rules breaks rules; only tests set it.
	Rules replica.Rules

	// Seams of this package's tests. senders is the table of who may send
	// what.
	openStore func(store.Config) (disk, error)
	senders   func(env.Message) roles
	wrapNode  func(*replica.Node) node
}

// disk is what the server needs of a store.
type disk interface {
	replica.Store
	// Committed is the position that the journal is durable up to.
	Committed() env.Position
	// Condition is what keeps it from taking writes.
	Condition() store.Condition
}

func openDisk(cfg store.Config) (disk, error) {
	s, err := store.Open(cfg)
	if err != nil {
		return nil, err // and no disk that holds a nil store
	}
	return s, nil
}

// Server is a running node.
type Server struct {
	log       *slog.Logger
	folder    *identity.Folder
	store     disk
	node      node
	transport *transport.Transport
	runtime   *live.Runtime // of the node's tasks
	inbox     *inbox
	held      *held
	commits   *stopwatch
	turns     *stopwatch
	metrics   *metrics
	senders   func(env.Message) roles
	denials   denials
	probes    probes
	unreached string // what was logged last of others that can't dial the node; the loop's
	admin     *admin
	started   time.Time

	// tasks is the context in which the node's tasks run. serving is set when
	// they are started: until then nobody asks anything, and the fields above
	// may not be there yet when the transport calls.
	tasks    context.Context
	endTasks context.CancelCauseFunc
	serving  atomic.Bool
	known    atomic.Pointer[quorum.News] // what the node knows of others
	early    chan item                   // what is stepped before the node serves
	open     atomic.Bool                 // all goes to the inbox
	joined   atomic.Bool                 // the cluster knows the node
	parts    bool                        // it says how far it came before it ends

	advertised []string // where others are told to dial it

	workers sync.WaitGroup
	stop    sync.Once
	stopped chan struct{} // closed when the server must end
	err     error         // why, before stopped is closed; nil if asked to
}

// Start listens, opens the node's store, and serves. What arrives while the
// store recovers waits. On an error nothing is left running, and as long as
// the addresses are at fault the store was not touched.
func Start(cfg Config) (_ *Server, err error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.openStore == nil {
		cfg.openStore = openDisk
	}
	if cfg.senders == nil {
		cfg.senders = senders
	}
	if cfg.wrapNode == nil {
		cfg.wrapNode = func(n *replica.Node) node { return n }
	}
	cfg.Folder.Credentials.LogTo(cfg.Log)
	s := &Server{senders: cfg.senders, log: cfg.Log, folder: cfg.Folder, started: time.Now(), stopped: make(chan struct{}), inbox: newInbox(), held: newHeld(), early: make(chan item, maxEarly)}
	s.probes.mu.of = make(map[quorum.NodeID]*probe)
	s.metrics = newMetrics(s)
	s.watchDisk(cfg.StallAfter)
	s.tasks, s.endTasks = context.WithCancelCause(context.Background())
	s.runtime = live.New(live.Config{Self: cfg.Folder.ID, Network: (*network)(s), Log: cfg.Log, Panicked: s.panicked})
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	// Before the addresses, which the other process has taken as well: that
	// the folder is in use says more than that a port is.
	if err := store.InUse(cfg.Folder.Dir); err != nil {
		return nil, err
	}
	instance, err := StoreOf(cfg.Folder.Dir)
	if err != nil {
		return nil, err
	}
	if cfg.Metrics != "" {
		if s.admin, err = listenAdmin(cfg.Metrics); err != nil {
			return nil, err
		}
	}
	if err := s.listen(cfg); err != nil {
		return nil, err
	}
	if err := s.openStore(cfg); err != nil {
		return nil, err
	}
	if err := identity.Bind(cfg.Folder.Dir, identity.Instance(instance)); err != nil {
		return nil, err // the folder of an earlier version, of which it isn't known yet
	}
	if err := s.newNode(cfg, instance); err != nil {
		return nil, err
	}
	if err := s.greet(cfg.Greeting); err != nil {
		return nil, s.castOut(err)
	}
	if s.admin != nil {
		s.workers.Go(func() { s.admin.serve(s.metrics, s.health, s.ready, s.log) })
	}
	s.workers.Go(s.loop)
	s.workers.Go(s.commit)
	s.workers.Go(s.watchCertificate)
	if s.Joined() {
		s.runTasks()
	}
	s.parts = cfg.Greeting >= 0
	s.log.Info("serving", "id", s.folder.ID, "cluster", s.folder.Cluster.Cluster, "addresses", s.Addrs(), "metrics", cmp.Or(cfg.Metrics, "none"),
		"version", cfg.Version, "took", time.Since(s.started).Round(time.Millisecond))
	return s, nil
}

func (s *Server) listen(cfg Config) (err error) {
	listen := cfg.Listen
	if len(listen) == 0 {
		listen = cfg.Folder.Listen()
	}
	s.transport, err = transport.New(transport.Config{
		Self:              cfg.Folder.ID,
		Cluster:           cfg.Folder.Cluster.Cluster,
		Credentials:       cfg.Folder.Credentials,
		Listen:            listen,
		Addresses:         s.addresses,
		StatelessResetKey: cfg.Folder.StatelessResetKey(),
		Memory:            cfg.Memory,
		Handler:           (*handler)(s),
		Log:               cfg.Log,
	})
	return err
}

func (s *Server) openStore(cfg Config) (err error) {
	cfg.Store.Dir, cfg.Store.Log, cfg.Store.ObserveSync = cfg.Folder.Dir, cfg.Log, s.metrics.observeSync
	s.store, err = cfg.openStore(cfg.Store)
	if err != nil {
		return err
	}
	// What Open has recovered it has synced: an earlier life may have written
	// it and not come to the sync.
	s.held.begin(s.store.Committed())
	return nil
}

func (s *Server) newNode(cfg Config, instance join.Instance) error {
	cluster := cfg.Folder.Cluster
	own, err := s.self(cfg)
	if err != nil {
		return err
	}
	s.advertised = own.Addresses
	nc := replica.Config{
		Cluster:  cluster.Cluster,
		Self:     cfg.Folder.ID,
		Own:      own,
		Sign:     cfg.Folder.Sign,
		Verify:   func(m quorum.Member) error { return identity.VerifyMember(cluster.Cluster, m) },
		Join:     s.joinConfig(cfg, instance),
		MaxValue: cluster.MaxValue,
		Pace:     cfg.Pace,

		Reconfiguration: cfg.Reconfiguration,
		Learned:         s.learned,
		Facts: func() replica.Facts {
			return replica.Facts{Version: cfg.Version, Process: os.Getpid(), Uptime: time.Since(s.started), Durable: s.held.durable(),
				CertificateEnd: s.folder.Credentials.Expiry().Unix(), Trouble: s.trouble()}
		},
		Rules: cfg.Rules,
	}
	if cfg.Folder.Configuration != nil {
		nc.Configurations = quorum.Configurations{cfg.Folder.Configuration}
	}
	for _, m := range cluster.Members {
		nc.Members = append(nc.Members, quorum.Member{ID: m.ID, Name: m.Name, Addresses: m.Addresses})
	}
	n, err := replica.New(nc, s.store)
	if err != nil {
		return err
	}
	s.node = cfg.wrapNode(n)
	// What the node has noted at its first start, all that it says hangs on.
	at, err := s.store.Commit()
	if err != nil {
		return err
	}
	s.held.begin(at)
	s.joined.Store(n.Joined())
	if n.Role() == replica.RoleRemoved {
		s.log.Warn(removedText)
	}
	return nil
}

// Addrs are the addresses that the server listens on.
func (s *Server) Addrs() []netip.AddrPort { return s.transport.Addrs() }

// Advertised are the addresses that the node tells others to dial.
func (s *Server) Advertised() []string { return slices.Clone(s.advertised) }

// MetricsAddr is the address of the metrics listener, invalid if there is none.
func (s *Server) MetricsAddr() netip.AddrPort {
	if s.admin == nil {
		return netip.AddrPort{}
	}
	return s.admin.addr
}

// Wait returns when the server has failed, with the reason, or when ctx ends,
// with nil. The caller still has to Close the server.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case <-s.stopped:
		return s.err
	case <-ctx.Done():
		return nil
	}
}

// health returns why the server doesn't serve any more, nil while it does.
func (s *Server) health() error {
	select {
	case <-s.stopped:
		if s.err == nil {
			return errors.New("shutting down")
		}
		return s.err
	default:
		return nil
	}
}

// ready returns why the node doesn't do all of its work, nil while it does.
func (s *Server) ready() error {
	if err := s.health(); err != nil {
		return err
	}
	if trouble := s.trouble(); trouble != "" {
		return errors.New(trouble)
	}
	return nil
}

// fail ends the server because of err.
func (s *Server) fail(err error) {
	s.stop.Do(func() {
		s.log.Error("stopping", "reason", err)
		s.err = s.castOut(err)
		close(s.stopped)
	})
	s.endTasks(env.ErrStopped)
	s.inbox.close()
	s.held.close()
}

// Close ends the node's tasks, stops serving and closes the store, and returns why the server had
// failed before, if it had. What was acked is durable, what wasn't may be lost.
func (s *Server) Close() error {
	s.part()
	s.stop.Do(func() { close(s.stopped) })
	s.endTasks(env.ErrStopped)
	s.runtime.Stop()
	s.inbox.close()
	s.held.close()
	return errors.Join(s.err, s.release())
}

// release gives back what was acquired, in reverse order.
func (s *Server) release() error {
	var errs []error
	if s.admin != nil {
		errs = append(errs, s.admin.close())
	}
	if s.transport != nil {
		errs = append(errs, s.transport.Close())
	}
	s.workers.Wait()
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	return errors.Join(errs...)
}

// renewHint is the command that makes a new certificate.
const renewHint = "replica renew --ca-dir CLUSTER/ca FOLDER"

// watchCertificate warns early that the node's certificate will end. And it has
// the files looked at when nobody connects: who has renewed a certificate sees in
// the log that it was taken, and whether.
func (s *Server) watchCertificate() {
	tick, look := time.NewTicker(certificateCheck), time.NewTicker(identity.ReloadInterval)
	defer tick.Stop()
	defer look.Stop()
	for {
		file, end := filepath.Join(s.folder.Dir, identity.FileCertificate), s.folder.Credentials.Expiry()
		switch left, soon := s.folder.Credentials.EndsSoon(time.Now()); {
		case left <= 0:
			s.log.Error("the node's certificate has ended, nobody accepts it", "file", file, "since", -left.Round(time.Minute), "renew", renewHint)
		case soon:
			s.log.Warn("the node's certificate ends soon", "file", file, "left", left.Round(time.Minute), "renew", renewHint)
		}
		for due := false; !due; {
			select {
			case <-tick.C:
				due = true
			case <-look.C:
				due = !s.folder.Credentials.Expiry().Equal(end) // it was renewed, perhaps for an hour
			case <-s.stopped:
				return
			}
		}
	}
}

// handler takes what the transport brings.
type handler Server

// Messages leaves requests for the loop, and gives answers of other nodes to
// those who wait for them: what the sender's role allows. It waits while the
// inbox is full. What waits is charged to the session.
func (h *handler) Messages(session *transport.Session, in []transport.Incoming) {
	role := session.Peer().Role
	var from source = session
	if isNode(session) {
		from = otherNode{session}
	}
	items, charged := make([]item, 0, len(in)), 0
	for _, m := range in {
		if !h.senders(m.Message).has(role) {
			(*Server)(h).deny(session, m)
			continue
		}
		if isNode(session) && replica.IsAnswer(m.Message) {
			h.runtime.Deliver(session.Node(), m.Conversation, m.Message)
			continue
		}
		cost := itemCost + m.Size
		charged += cost
		it := item{
			source:  from,
			from:    env.Address{Node: session.Node(), Session: session.ID(), Conversation: m.Conversation},
			message: m.Message,
			charged: cost,
		}
		if _, greets := m.Message.(*join.Greet); greets && !h.open.Load() {
			charged -= cost
			(*Server)(h).offerEarly(it)
			continue
		}
		items = append(items, it)
	}
	if len(items) == 0 || session.Charge(charged) != nil {
		return // where there was no memory left for them, the session is over
	}
	h.inbox.put(from, items)
}

func (h *handler) Up(session *transport.Session) {
	h.log.Debug("session up", "peer", session.Node(), "session", session.ID())
	if isNode(session) && h.serving.Load() {
		h.runtime.PeerUp(session.Node())
	}
}

// Down tells the tasks, too, which ask again what they had asked over this
// session: at once, if there is another one.
func (h *handler) Down(session *transport.Session, err error) {
	h.log.Debug("session down", "peer", session.Node(), "session", session.ID(), "reason", err)
	h.inbox.forget(session)
	if isNode(session) && h.serving.Load() {
		h.runtime.PeerDown(session.Node(), err)
		if h.transport.Connected(session.Node()) {
			h.runtime.PeerUp(session.Node())
		}
	}
}

// Drained implements transport.Drainer.
func (h *handler) Drained(*transport.Session) { h.inbox.wake() }
