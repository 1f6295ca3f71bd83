package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/store"
	"atoll/join"
	"atoll/quorum"
	"atoll/rambo"
)

// StoreOf returns the instance of the store in a node's folder, once it is shown to
// be the one that the node began with. It is an *identity.FolderError that the store
// is gone, or is another one; for others see store.ID.
func StoreOf(dir string) (join.Instance, error) {
	id, err := store.ID(dir)
	if errors.Is(err, store.ErrNoStore) {
		return join.Instance{}, identity.Lost(dir, err)
	}
	if err != nil {
		return join.Instance{}, err
	}
	_, err = identity.Bound(dir, id)
	return id, err
}

// joinConfig is how the node is known, and how it knows others.
func (s *Server) joinConfig(cfg Config, instance join.Instance) join.Config {
	f := cfg.Folder
	c := join.Config{Instance: instance, Run: rand.Uint64(), Probe: s.probe, Pace: cfg.GreetEvery}
	if g, ok := f.Grant(); ok {
		c.Grant = join.Grant{Name: g.Name, Expires: g.Expires.Unix(), Signature: g.Signature}
	}
	c.Admit = func(m *join.Join) error {
		g := identity.Grant{Cluster: f.Cluster.Cluster, Node: m.Member.ID, Name: m.Grant.Name,
			Expires: time.Unix(m.Grant.Expires, 0), Signature: m.Grant.Signature}
		if err := f.Credentials.VerifyGrant(g); err != nil {
			return err
		}
		return g.Expired(time.Now())
	}
	return c
}

// self is what the node says of itself. Where it listens is known by now, also
// when the port was anybody's.
func (s *Server) self(cfg Config) (quorum.Member, error) {
	m := quorum.Member{ID: cfg.Folder.ID, Name: cfg.Folder.Name, Addresses: cfg.Advertise}
	if len(m.Addresses) == 0 {
		m.Addresses = cfg.Folder.Advertise()
	}
	if len(m.Addresses) == 0 {
		for _, a := range s.transport.Addrs() {
			m.Addresses = append(m.Addresses, a.String())
		}
	}
	if len(m.Addresses) > identity.MaxAddresses {
		return m, &AdvertiseError{fmt.Sprintf("a node has up to %d addresses, not %d", identity.MaxAddresses, len(m.Addresses))}
	}
	for i, a := range m.Addresses {
		address, err := identity.ParseEndpoint(a)
		if err != nil {
			return m, &AdvertiseError{err.Error()}
		}
		m.Addresses[i] = address
	}
	signed := m
	signed.Proof = cfg.Folder.Sign(m)
	if !rambo.Fits(signed) {
		return m, &AdvertiseError{"its addresses are too long together: others wouldn't spread them"}
	}
	return m, nil
}

// AdvertiseError says why a node can't tell others to dial it.
type AdvertiseError struct{ Problem string }

// Error says what to do.
func (e *AdvertiseError) Error() string {
	return "this node has no address that others can dial: " + e.Problem + "; say where with --advertise HOST:PORT"
}

// offerEarly leaves an item to greet. What finds no room is lost, and whoever asked
// asks again.
func (s *Server) offerEarly(it item) error {
	select {
	case s.early <- it:
		return nil
	default:
		return errBusy
	}
}

// greet tells others of the node before it serves, and waits a little for the first
// of them to answer: one that knows that the node has lost what it had acknowledged
// ends the start, with a *join.OutcastError. Nobody else is served meanwhile, but
// others that greet are answered: all nodes may be starting.
func (s *Server) greet(limit time.Duration) error {
	defer s.open.Store(true)
	if limit == 0 {
		limit = greeting
	}
	s.serving.Store(true)
	if limit < 0 || !s.Joined() {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.tasks, limit)
	defer cancel()
	result := make(chan error, 1)
	s.workers.Go(func() { result <- join.Tasks{}.Hello(s.runtime.Scope(ctx)) })
	sender := newSender(s)
	defer func() { s.held.begin(s.store.Committed()) }()
	for {
		select {
		case it := <-s.early:
			outs, err := s.node.Step(it.from, it.message, nil)
			if err != nil {
				return err
			}
			if _, err := s.store.Commit(); err != nil {
				return err
			}
			sender.send(outs)
		case <-result:
			return nil // an answer that ends the node has ended the step that heard it
		}
	}
}

// part greets others once more, before the node ends in order: those who hear it
// know how far it came, and find a copy out that is older by less than the time
// between two greetings. It waits a moment for the first to answer.
func (s *Server) part() {
	if !s.parts || s.health() != nil || !s.Joined() {
		return
	}
	ctx, cancel := context.WithTimeout(s.tasks, parting)
	defer cancel()
	_ = join.Tasks{}.Hello(s.runtime.Scope(ctx)) // nobody may be there
}

// castOut makes an *join.OutcastError durable: it is what the folder's next starts
// end with, and nobody has to find it out again. It returns that error, with the name
// of the node that says so and without the way that it has come, and what went wrong;
// another error as it is.
func (s *Server) castOut(err error) error {
	outcast, ok := errors.AsType[*join.OutcastError](err)
	if !ok {
		return err
	}
	if news := s.known.Load(); news != nil {
		for _, m := range news.Members {
			if m.ID == outcast.From {
				outcast.Name = m.Name
			}
		}
	}
	return errors.Join(outcast, identity.CastOut(s.folder.Dir, identity.Instance(outcast.Own.Instance), outcast.Reason()))
}

// Joined reports whether the cluster knows the node. One that doesn't know it yet
// answers, and does nothing else.
func (s *Server) Joined() bool { return s.joined.Load() }

// Join makes the node known to its cluster, if it isn't yet, and returns when that
// is so. The error is a *join.RefusedError if the cluster doesn't want it, a
// *join.UnreachableError if nobody has decided by ctx's deadline, and wraps ctx's if
// it is canceled.
func (s *Server) Join(ctx context.Context) error {
	if s.Joined() {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.tasks, cancel)()
	var contacts []quorum.NodeID
	for _, m := range s.folder.Cluster.Known() {
		contacts = append(contacts, m.ID)
	}
	endpoints := s.folder.Cluster.Joined.Endpoints
	vain := make([]atomic.Pointer[error], len(endpoints))
	for i, endpoint := range endpoints {
		s.workers.Go(func() { s.find(ctx, endpoint, &vain[i]) })
	}
	err := join.Tasks{}.Join(s.runtime.Scope(ctx), contacts)
	if failed := s.health(); failed != nil {
		return failed
	}
	if refused, ok := errors.AsType[*join.RefusedError](err); ok {
		return refused
	}
	if errors.Is(err, env.ErrDeadline) {
		return s.unreachable(vain)
	}
	if err != nil {
		return fmt.Errorf("joining cluster %s: %w", s.folder.Cluster.Cluster, err)
	}
	s.joined.Store(true)
	s.log.Info("joined", "cluster", s.folder.Cluster.Cluster)
	s.runTasks()
	return nil
}

// unreachable says why a join has come to nothing, by what find knows of each address.
// One at which somebody was found is enough for the addresses not to be the reason.
func (s *Server) unreachable(vain []atomic.Pointer[error]) error {
	e := &join.UnreachableError{Cluster: s.folder.Cluster.Cluster}
	for i, endpoint := range s.folder.Cluster.Joined.Endpoints {
		err := vain[i].Load()
		switch {
		case err == nil:
			e.Endpoints = append(e.Endpoints, fmt.Errorf("%s: no answer", endpoint))
		case *err == nil:
			e.Endpoints = nil
			return e
		default:
			e.Endpoints = append(e.Endpoints, *err)
		}
	}
	return e
}

// find looks for the cluster at an address, again and again until ctx ends: whoever
// is there may know where the others are by now, and the members that the node
// has heard of may be switched off before they let it in. How the last attempt ended
// is in vain.
func (s *Server) find(ctx context.Context, endpoint string, vain *atomic.Pointer[error]) {
	var logged time.Time
	for ctx.Err() == nil {
		session, err := s.transport.DialAddress(ctx, endpoint)
		if err == nil {
			e := s.runtime.Scope(ctx)
			var g *rambo.Gossiped
			if g, err = env.AskOne[*rambo.Gossiped](e, session.Node(), &rambo.Gossip{}); err == nil && g.News != nil {
				_, err = env.AskOne[*rambo.Gossiped](e, s.folder.ID, &rambo.Gossip{Knowledge: g.Knowledge})
			}
		}
		if ctx.Err() == nil {
			vain.Store(&err)
		}
		// Who has found it elsewhere looks no further.
		if err != nil && ctx.Err() == nil && time.Since(logged) >= joinLogEvery {
			logged = time.Now()
			s.log.Info("the cluster isn't found at an address of the ticket, trying on", "address", endpoint, "err", err)
		}
		pause := time.NewTimer(joinRedial)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}
