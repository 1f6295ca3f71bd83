package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/live"
	"atoll/internal/transport"
	"atoll/quorum"
	"atoll/replica"
)

// maxLargeBytes is how many bytes of large values a client puts at a time. Those
// beyond take turns, in the order in which they came. Without turns all of them
// are sent at once, those that a full queue turns away try again at random, and
// the unlucky run out of time though the cluster takes one after the other.
// It is enough to keep the sessions busy.
const maxLargeBytes = 8 << 20

const (
	// refreshFirst is how long after a member was lost a client asks others where
	// it is now, and refreshMost the longest pause between two such questions,
	// which double. A member that was only restarted is found by itself, and while
	// it is away ten thousand clients ask the others. refreshCutOff is the longest
	// pause of a client that has lost too many members to read and write.
	refreshFirst  = 250 * time.Millisecond
	refreshMost   = 30 * time.Second
	refreshCutOff = 5 * time.Second
	// restfulness is how many times as long all of these pauses are for who needs nothing
	// of the members that are lost.
	restfulness = 32
	// refreshPatience is how long it waits for the answers.
	refreshPatience = time.Second
	// partAfter is how long a session with a node that is no member any more stays.
	partAfter = 10 * time.Second
	// farewell is how long Close waits for nodes to have taken what they were told.
	farewell = 250 * time.Millisecond
	// maxSearched is at how many addresses it looks for the cluster at a time, and
	// maxRemembered how many nodes it remembers that aren't members.
	maxSearched   = 256
	maxRemembered = 128
)

// DefaultTimeout is how long an operation may take whose context has no
// deadline.
const DefaultTimeout = 5 * time.Second

// Config says how to reach a cluster. LoadContext makes one from a file.
type Config struct {
	// Endpoints are addresses, "host:port", of members: as many as are
	// known, at least one that lives.
	Endpoints []string
	// CA, Certificate and Key are PEM: the cluster's CA, and what this
	// client shows.
	CA, Certificate, Key []byte
	// Timeout bounds an operation whose context has no deadline. Default:
	// DefaultTimeout.
	Timeout time.Duration
	// Log takes what isn't worth an error. Default: nothing is logged.
	Log *slog.Logger

	context contextFile
	resolve func(context.Context, string) ([]netip.Addr, error) // a seam of tests
}

// contextFile is what a Config was made of, if that was a file.
type contextFile struct {
	path                 string
	ca, certificate, key string
}

// LoadContext reads a context file, as `replica init` and `replica dev` write
// it: endpoints, CA, certificate and key. Unless the last three are changed
// afterwards, a client that is opened with the result looks at the file again
// when it connects: what was renewed there is taken over while it runs.
func LoadContext(path string) (Config, error) {
	if path == "" {
		return Config{}, errNoPath
	}
	f, err := identity.LoadContext(path)
	if err != nil {
		return Config{}, err
	}
	return Config{Endpoints: f.Endpoints, CA: []byte(f.CA), Certificate: []byte(f.Certificate), Key: []byte(f.Key),
		context: contextFile{path: path, ca: f.CA, certificate: f.Certificate, key: f.Key}}, nil
}

// credentials are what the client shows.
func (cfg *Config) credentials() (*identity.Credentials, error) {
	f := cfg.context
	if f.path != "" && string(cfg.CA) == f.ca && string(cfg.Certificate) == f.certificate && string(cfg.Key) == f.key {
		if c, err := identity.LoadContextCredentials(f.path); err == nil {
			return c, nil
		} // it is gone by now, or half-written: what was loaded will do
	}
	return identity.ParseCredentials(cfg.CA, cfg.Certificate, cfg.Key)
}

// Client is a connection to a cluster. It is safe for concurrent use.
type Client struct {
	cfg       Config
	runtime   *live.Runtime
	transport *transport.Transport
	shows     *identity.Credentials // to the members
	closed    atomic.Bool
	told      atomic.Bool         // something was sent that nobody answers
	large     *semaphore.Weighted // of maxLargeBytes
	asking    sync.WaitGroup      // for descriptions of the cluster
	cluster   atomic.Pointer[replica.Description]
	known     atomic.Pointer[quorum.Map]
	lost      chan struct{}           // holds a token when a member is out of reach
	needed    chan struct{}           // holds one when something can't be sent
	refreshes context.Context         // of the goroutine that looks where it is now
	ended     context.CancelCauseFunc // ends it

	mu struct {
		sync.Mutex
		// members are what is known of each: where it is said to be. Those are among
		// them that aren't members any more, since they may tell who is.
		members map[quorum.NodeID]quorum.Member
		// current are those that the cluster spoke of last.
		current map[quorum.NodeID]bool
	}
}

// Open finds the cluster through any endpoint that answers, and starts
// connecting to all members. It returns when one member has described the
// cluster, or with an error that says of each endpoint why not.
func Open(ctx context.Context, cfg Config) (*Client, error) {
	if len(cfg.Endpoints) == 0 {
		return nil, errors.New("client: no endpoints")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	credentials, err := cfg.credentials()
	if err == nil {
		credentials.LogTo(cfg.Log)
		// Members would refuse it as well, but each only by an alert that
		// can't tell expired from not yet valid.
		err = credentials.Check(time.Now())
	}
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if left, soon := credentials.EndsSoon(time.Now()); soon {
		cfg.Log.Warn("this client's certificate ends soon", "left", left.Round(time.Minute), "file", cfg.context.path,
			"renew", "replica renew --ca-dir CLUSTER/ca FILE")
	}
	c := &Client{cfg: cfg, shows: credentials, large: semaphore.NewWeighted(maxLargeBytes), lost: make(chan struct{}, 1), needed: make(chan struct{}, 1)}
	c.refreshes, c.ended = context.WithCancelCause(context.Background())
	c.mu.members = make(map[quorum.NodeID]quorum.Member)
	c.runtime = live.New(live.Config{Network: (*network)(c), Log: cfg.Log})
	c.transport, err = transport.New(transport.Config{
		Credentials: credentials,
		Addresses:   c.addressesOf,
		Resolve:     cfg.resolve,
		Handler:     (*handler)(c),
		Log:         cfg.Log,
	})
	if err != nil {
		c.runtime.Stop()
		return nil, fmt.Errorf("client: %w", err)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Timeout)
		defer cancel()
	}
	if err := c.discover(ctx); err != nil {
		c.Close()
		return nil, err
	}
	c.asking.Go(c.refresh)
	return c, nil
}

// Close ends all operations, with ErrClosed, and all connections. If it has told
// nodes something that they don't answer, which is that a write has ended, it waits
// until that has come, a quarter of a second at most.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		return ErrClosed
	}
	c.ended(ErrClosed)
	c.takeLeave()
	c.runtime.Stop()
	err := c.transport.Close()
	c.asking.Wait()
	return err
}

// takeLeave waits until all nodes have taken what they were told, by a question
// behind it: with the connection would go what is still on its way, and what waits
// in the node. A later read of what was written may hang on it: where a write needs
// more members than a read, it can't be written back once one of them is dead.
func (c *Client) takeLeave() {
	if !c.told.Load() {
		return
	}
	nodes := slices.DeleteFunc(c.nodes(), func(id quorum.NodeID) bool { return !c.transport.Connected(id) })
	if len(nodes) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	answered := make(map[quorum.NodeID]bool)
	err := c.runtime.Scope(ctx).Ask(nodes, &replica.Describe{}, func(_ env.Conversation, from quorum.NodeID, _ env.Message) bool {
		answered[from] = true
		return len(answered) == len(nodes)
	})
	if err != nil {
		c.cfg.Log.Debug("some nodes may not have heard that writes have ended", "err", err)
	}
}

// MaxValue is the size of the largest value that the cluster takes, in bytes.
func (c *Client) MaxValue() int { return c.cluster.Load().MaxValue }

// Endpoints are the addresses that the client was given to find the cluster by.
func (c *Client) Endpoints() []string { return slices.Clone(c.cfg.Endpoints) }

// discover asks all endpoints at once to describe the cluster, and takes the
// first answer.
func (c *Client) discover(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		endpoint    int
		description *replica.Description
		err         error
	}
	results := make(chan result, len(c.cfg.Endpoints))
	for i, address := range c.cfg.Endpoints {
		c.asking.Go(func() {
			d, err := c.describe(ctx, address)
			results <- result{i, d, err}
		})
	}
	failures := make([]error, len(c.cfg.Endpoints)) // in the order in which they were given
	for range failures {
		r := <-results
		if r.err != nil {
			failures[r.endpoint] = r.err
			continue
		}
		return c.learn(r.description)
	}
	return &UnreachableError{Endpoints: failures}
}

// describe asks whoever is at address. Its errors name the address.
func (c *Client) describe(ctx context.Context, address string) (*replica.Description, error) {
	session, err := c.transport.DialAddress(ctx, address)
	if err != nil {
		return nil, err
	}
	d, err := c.describeBy(ctx, session.Peer())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return d, nil
}

// describeBy asks a peer that there is a session with.
func (c *Client) describeBy(ctx context.Context, peer identity.Peer) (*replica.Description, error) {
	var d *replica.Description
	var refused *env.Refused
	err := c.runtime.Scope(ctx).Ask([]quorum.NodeID{peer.Node}, &replica.Describe{},
		func(_ env.Conversation, _ quorum.NodeID, answer env.Message) bool {
			switch answer := answer.(type) {
			case *replica.Description:
				d = answer
			case *env.Refused:
				refused = answer
			}
			return d != nil || refused != nil
		})
	unfinished, silent := errors.AsType[*env.Unfinished](err)
	switch {
	case silent:
		return nil, &unanswered{cause(unfinished.Cause)}
	case err != nil:
		return nil, err
	case refused != nil:
		return nil, refused
	case d.Cluster != peer.Cluster:
		return nil, fmt.Errorf("it describes cluster %s, and its certificate is of %s", d.Cluster, peer.Cluster)
	case len(d.Configurations) == 0:
		return nil, errors.New("it knows of no configuration")
	}
	return d, nil
}

// learn takes a description of the cluster and connects to its members.
func (c *Client) learn(d *replica.Description) error {
	m, err := quorum.NewMap(d.Configurations...)
	if err != nil {
		return err
	}
	c.cluster.Store(d)
	(*known)(c).Learn(&quorum.News{Map: m, Members: d.Members})
	c.takeIn(d)
	return nil
}

func (c *Client) addressesOf(id quorum.NodeID) []string {
	return c.member(id).Addresses
}

// known is the client's config map, which its operations share: abd.Known.
type known Client

// Map implements abd.Known.
func (k *known) Map() *quorum.Map { return k.known.Load() }

// Learn implements abd.Known.
func (k *known) Learn(news *quorum.News) *quorum.Map {
	k.mu.Lock()
	defer k.mu.Unlock()
	var moved []quorum.NodeID
	for _, m := range news.Members {
		old, ok := k.mu.members[m.ID]
		switch {
		case ok && old.Version >= m.Version:
		case m.Version > 0 && identity.VerifyMember(k.cluster.Load().Cluster, m) != nil:
			// One node that lies must not send clients anywhere. What has no version
			// is of the cluster's file, and gives way to what is signed.
		default:
			if !ok {
				(*Client)(k).makeRoom()
			}
			k.mu.members[m.ID] = m
			if ok && !slices.Equal(old.Addresses, m.Addresses) {
				moved = append(moved, m.ID)
			}
		}
	}
	k.transport.Moved(moved...)
	old := k.known.Load()
	m, err := old.Merge(news.Map)
	if err != nil {
		k.cfg.Log.Error("a member says what can't be true", "error", err)
		return old
	}
	if m != old {
		k.known.Store(m)
		k.transport.Connect(m.Active().Members()...)
		(*Client)(k).miss() // they may be elsewhere than was said
	}
	if m.Installed() != old.Installed() {
		k.runtime.Wake()
	}
	return m
}

// makeRoom forgets a node that is no member if there are too many. Called with mu
// held.
func (c *Client) makeRoom() {
	active := c.known.Load()
	for id := range c.mu.members {
		if len(c.mu.members) < maxRemembered+len(active.Active().Members()) {
			return
		}
		if !active.Has(id) && !c.mu.current[id] {
			delete(c.mu.members, id)
		}
	}
}

func (c *Client) registers() *abd.Registers {
	return &abd.Registers{Known: (*known)(c), MaxValue: c.cluster.Load().MaxValue}
}

// member returns what is known of a node.
func (c *Client) member(id quorum.NodeID) quorum.Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.mu.members[id]
	m.ID = id
	return m
}

// name returns what the operator called a member, empty if unknown.
func (c *Client) name(id quorum.NodeID) string { return c.member(id).Name }

// network is how the client's operations send.
type network Client

func (n *network) Send(to quorum.NodeID, conversation uint64, m env.Message) error {
	if conversation == 0 && !n.told.Load() {
		n.told.Store(true)
	}
	err := n.transport.Send(to, conversation, m)
	if _, lost := errors.AsType[*transport.UnreachableError](err); lost {
		(*Client)(n).need()
	}
	return err
}

// Answer drops m: nobody asks a client anything.
func (n *network) Answer(env.Address, env.Message) error {
	return errors.New("a client answers nobody")
}

// handler takes what arrives.
type handler Client

func (h *handler) Messages(s *transport.Session, in []transport.Incoming) {
	for _, m := range in {
		h.runtime.Deliver(s.Node(), m.Conversation, m.Message)
	}
}

func (h *handler) Up(s *transport.Session) { h.runtime.PeerUp(s.Node()) }

// Down tells the operations, which ask again what they had asked over this
// session: the far end has forgotten it. Another session with the node may
// live, when both sides of a lost connection have dialed: then at once.
func (h *handler) Down(s *transport.Session, err error) {
	h.runtime.PeerDown(s.Node(), err)
	if h.transport.Connected(s.Node()) {
		h.runtime.PeerUp(s.Node())
		return
	}
	(*Client)(h).miss()
}
