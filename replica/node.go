package replica

import (
	"errors"
	"fmt"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/join"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/reconfig"
	"atoll/repair"
	"atoll/synod"
)

// Config says what a node is. All fields but Rules and Facts are needed.
type Config struct {
	Cluster quorum.ClusterID
	Self    quorum.NodeID
	// Configurations are the active ones for a node that has never heard of
	// others: the first one. A node that is to join has none.
	Configurations quorum.Configurations
	// Members are all members of those, and where they are.
	Members []quorum.Member
	// Own is what the node tells others of itself; see rambo.Config.
	Own quorum.Member
	// Sign returns the proof that the node itself says so. Nil: none.
	Sign func(quorum.Member) []byte
	// Learned, if set, is told what the node knows of configurations and members
	// when it begins and whenever that has changed. It must not block.
	Learned func(*quorum.News)
	// Verify returns an error if a member doesn't say itself where it is. Nil:
	// all are believed.
	Verify func(quorum.Member) error
	// Join is how the node is known to others, and how it knows them; its Self and
	// First are the node's to set.
	Join join.Config
	// MaxValue is the largest value in bytes that the node stores, up to
	// abd.LargestMaxValue.
	MaxValue int
	// Pace is how much of the node's time repair takes.
	Pace repair.Pace
	// Reconfiguration is how fast it does its part when members change.
	Reconfiguration rambo.Pace
	// Updates: the node votes on instances that travel, whoever asks. Nobody does,
	// as long as there are no updates: only tests set it.
	Updates bool
	// Facts returns what only the node's driver knows, for its status. Nil
	// leaves them zero.
	Facts func() Facts
	Rules Rules
}

// Facts are what a node's driver knows about it.
type Facts struct {
	Version string
	Process int           // id of the operating system's process
	Uptime  time.Duration // since the node started
	Durable env.Position  // what the journal is durable up to
	// Trouble is what keeps the node from taking writes.
	Trouble string
	// CertificateEnd is when the node's certificate ends, in seconds of Unix
	// time.
	CertificateEnd int64
}

// Rules breaks rules; see abd.Rules.
type Rules struct {
	// AckBeforeSync: no message waits for the journal.
	AckBeforeSync bool
	ABD           abd.Rules
	Repair        repair.Rules
	Rambo         rambo.Rules
	Reconfig      reconfig.Rules
	Synod         synod.Rules
}

// Node is one node. It is not safe for concurrent use.
type Node struct {
	cfg       Config
	store     Store
	registers *abd.Replica
	repair    *repair.Replica
	rambo     *rambo.Replica
	reconfig  *reconfig.Replica
	join      *join.Replica
	votes     *synod.Acceptor // on instances that travel
	told      *quorum.News    // the last that Learned was told
	member    bool            // of an active configuration
	appended  env.Position
}

// New returns a node over store, which must be the store that the same node
// used before, or an empty one if there was no before.
func New(cfg Config, store Store) (*Node, error) {
	if cfg.MaxValue < 1 || cfg.MaxValue > abd.LargestMaxValue {
		return nil, fmt.Errorf("replica: the largest value must be 1 to %d bytes, not %d", abd.LargestMaxValue, cfg.MaxValue)
	}
	n := &Node{store: store}
	n.votes = synod.NewAcceptor(ballotBox{store}, n, cfg.Rules.Synod)
	r, err := repair.NewReplica(repair.Config{Self: cfg.Self, MaxValue: cfg.MaxValue, Votes: n.votes, Rules: cfg.Rules.Repair}, store)
	if err != nil {
		return nil, fmt.Errorf("replica %s: %w", cfg.Self, err)
	}
	reconfiguration := rambo.Config{Self: cfg.Self, Own: cfg.Own, Sign: cfg.Sign, Verify: cfg.Verify, Watchers: watchers(), Rules: cfg.Rules.Rambo}
	reconfiguration.Genesis = &quorum.News{Members: cfg.Members}
	if len(cfg.Configurations) > 0 {
		if reconfiguration.Genesis.Map, err = quorum.NewMap(cfg.Configurations...); err != nil {
			return nil, fmt.Errorf("replica %s: %w", cfg.Self, err)
		}
	}
	c, err := rambo.NewReplica(reconfiguration, store, r)
	if err != nil {
		return nil, fmt.Errorf("replica %s: %w", cfg.Self, err)
	}
	cfg.Join.Self, cfg.Join.First = cfg.Self, len(cfg.Configurations) > 0
	j, err := join.NewReplica(cfg.Join, store, c)
	if err != nil {
		return nil, fmt.Errorf("replica %s: %w", cfg.Self, err)
	}
	n.cfg, n.repair, n.rambo, n.join = cfg, r, c, j
	n.registers = abd.NewReplica(r.Watched(), cfg.MaxValue, cfg.Rules.ABD)
	n.reconfig = reconfig.NewReplica(reconfig.Config{
		Cluster: cfg.Cluster, Self: cfg.Self, Learn: c.Learn, Rules: cfg.Rules.Reconfig, Synod: cfg.Rules.Synod,
		Facts: func() reconfig.Facts {
			return reconfig.Facts{Build: facts(cfg).Version, Keys: store.Usage().Keys}
		},
	}, store)
	n.appended = store.Cut() // cuts what is new in the config map, and tells where an earlier life ended
	n.stand()
	return n, nil
}

// stand has the answers of the registers say what the node knows of lives and
// configurations.
func (n *Node) stand() {
	standing, at := n.repair.Standing()
	news, known := n.rambo.News()
	n.reconfig.Stand(news, known)
	n.member = n.rambo.Map().Has(n.cfg.Self)
	if news != n.told && n.cfg.Learned != nil {
		n.cfg.Learned(news)
	}
	n.told = news
	n.registers.Stand(standing, news, n.member || n.reconfig.Named(), max(at, known))
}

// Step acts on one message and appends what follows from it to out. It ends
// with the group of records that the message made cut: durable together.
func (n *Node) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	first := len(out)
	out, err := n.dispatch(from, m, out)
	if err != nil {
		return out, fmt.Errorf("replica %s: step %T: %w", n.cfg.Self, m, err)
	}
	n.appended = n.store.Cut()
	if n.cfg.Rules.AckBeforeSync {
		for i := range out[first:] {
			out[first+i].After = 0
		}
	}
	return out, nil
}

// dispatch hands m to the protocol whose message it is.
func (n *Node) dispatch(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	switch m.(type) {
	case *abd.Get, *abd.Put, *abd.List, *abd.Confirm:
		return n.registers.Step(from, m, out)
	case *repair.Summarize, *repair.Offer, *repair.Attest:
		return n.stepRepair(from, m, out)
	case *rambo.Gossip, *rambo.Announce, *rambo.Fence, *rambo.Install, *rambo.HowFar:
		return n.stepRambo(from, m, out)
	case *synod.Prepare, *synod.Accept, *reconfig.Ready, *reconfig.Inquire:
		switch {
		case reconfig.Takes(m):
			return n.stepReconfig(from, m, out)
		case n.cfg.Updates && travels(m):
			return n.votes.Step(from, m, out)
		}
	case *join.Join, *join.Greet:
		return n.stepJoin(from, m, out)
	case *env.Refused:
		return out, nil // whatever it refuses: to answer it would never end
	case *Describe, *StatusQuery:
		// What it says of configurations, somebody may act on: as to switch off
		// members that are out.
		_, known := n.rambo.News()
		var answer env.Message = n.describe()
		if _, status := m.(*StatusQuery); status {
			answer = n.status()
		}
		return append(out, env.Out{To: from, Message: answer, After: known}), nil
	}
	if from.Node == n.cfg.Self {
		if own, ok := m.(*nudge); ok {
			return append(out, env.Out{Mailbox: own.box, Message: own}), nil
		}
		switch {
		case repair.IsOwn(m):
			return n.stepRepair(from, m, out)
		case rambo.IsOwn(m):
			return n.stepRambo(from, m, out)
		case join.IsOwn(m):
			return n.stepJoin(from, m, out)
		}
	}
	return append(out, refuse(from, env.ReasonBadRequest, fmt.Sprintf("a node takes no %T", m))), nil
}

// stepRepair has what the node has learned of lives told by every answer that
// follows.
func (n *Node) stepRepair(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	if !n.member {
		return append(out, refuse(from, env.ReasonNotMember, "this node is in no active configuration")), nil
	}
	terms := termsOf(m)
	if terms.Knows >= n.rambo.Map().Horizon().Next && !n.cfg.Rules.Rambo.ServeUnfenced {
		// What it gave now could be older than a put that it acks later without
		// a word of that configuration (R4.3, schedule 7b).
		return append(out, refuse(from, env.ReasonBehind, fmt.Sprintf("this node doesn't know configuration %d yet", terms.Knows))), nil
	}
	if a, ok := m.(*repair.Attest); ok && n.outdated(a.Horizon) {
		return append(out, refuse(from, env.ReasonOutdated, "the members have changed")), nil
	}
	first := len(out)
	out, err := n.repair.Step(from, m, out)
	if terms.Knows > 0 && !n.cfg.Rules.Rambo.PageUnsaved {
		_, known := n.rambo.News()
		for i := range out[first:] {
			out[first+i].After = max(out[first+i].After, known)
		}
	}
	n.stand()
	return out, err
}

// outdated reports whether somebody who knows of so many configurations would
// count too few: a life that is told to a read quorum of the old ones alone
// isn't known to those who take over (H4).
func (n *Node) outdated(h quorum.Horizon) bool {
	own := n.rambo.Map().Horizon()
	first := h.Next == 0 && own.Next <= 1 // an older version, in a cluster that hasn't changed
	return h.Behind(own) && !first && !n.cfg.Rules.Rambo.AttestForTheOutdated
}

func termsOf(m env.Message) repair.Terms {
	switch m := m.(type) {
	case *repair.Summarize:
		return m.Terms
	case *repair.Offer:
		return m.Terms
	}
	return repair.Terms{}
}

// stepRambo has what the node has learned of configurations told by every
// answer that follows.
func (n *Node) stepRambo(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	out, err := n.rambo.Step(from, m, out)
	return out, errors.Join(err, n.moved())
}

// moved is called when the node may have learned of configurations.
func (n *Node) moved() error {
	n.stand()
	return n.join.Stand(n.member)
}

// stepReconfig has what the node has learned of configurations, and for which it
// is ready, told and kept to by every answer that follows.
func (n *Node) stepReconfig(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	before := n.rambo.Map()
	out, err := n.reconfig.Step(from, m, out)
	err = errors.Join(err, n.moved())
	return n.rambo.Notify(before, out), err
}

func facts(cfg Config) (f Facts) {
	if cfg.Facts != nil {
		f = cfg.Facts()
	}
	return f
}

// stepJoin has what the node has learned of others' addresses told, too.
func (n *Node) stepJoin(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	out, err := n.join.Step(from, m, n.appended, out)
	n.stand()
	return out, err
}

// Role is what the node is to the cluster, as far as it knows.
func (n *Node) Role() Role {
	switch {
	case n.member:
		return RoleMember
	case n.join.WasMember():
		return RoleRemoved
	}
	return RoleStandby
}

// Joined reports whether the cluster knows the node: it is in the first
// configuration, or was let in since.
func (n *Node) Joined() bool { return n.join.Joined() }

// Unreached says which others can't dial the node where it says that it is; ""
// if none has said so.
func (n *Node) Unreached() string { return n.join.Unreached() }

func refuse(to env.Address, reason env.Reason, text string) env.Out {
	return env.Out{To: to, Message: &env.Refused{Reason: reason, Text: text}}
}

func (n *Node) describe() *Description {
	d := &Description{Cluster: n.cfg.Cluster, Node: n.cfg.Self, Configurations: n.rambo.Map().Active(), MaxValue: n.cfg.MaxValue}
	if news, _ := n.rambo.News(); news != nil {
		d.Members = news.Members
	}
	return d
}

// Progress returns what the node has done about missed and damaged records.
func (n *Node) Progress() repair.Progress { return n.repair.Progress() }

// Damaged returns the first key whose record is known to be damaged, if there is one.
func (n *Node) Damaged() (first abd.Key, found bool) { return n.repair.Damaged() }

func (n *Node) status() *Status {
	s := &Status{
		Node:     n.cfg.Self,
		Usage:    n.store.Usage(),
		Appended: n.appended,
		Repair:   n.repair.Progress(),
		Merge:    n.rambo.Progress(),
		Horizon:  n.rambo.Map().Horizon(),
		Role:     n.Role(),

		Unreached: n.Unreached(),
	}
	if newest := n.rambo.Map().Newest(); newest != nil {
		s.Configuration = newest.Index()
	}
	f := facts(n.cfg)
	s.Version, s.Process, s.Uptime, s.Durable = f.Version, f.Process, f.Uptime, f.Durable
	s.CertificateEnd, s.Trouble = f.CertificateEnd, f.Trouble
	return s
}
