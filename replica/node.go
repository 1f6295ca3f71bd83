package replica

import (
	"fmt"
	"slices"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/repair"
)

// Config says what a node is. All fields but Rules and Facts are needed.
type Config struct {
	Cluster quorum.ClusterID
	Self    quorum.NodeID
	// Configurations are the active ones.
	Configurations quorum.Configurations
	// Members are all members of those, and where they are.
	Members []quorum.Member
	// MaxValue is the largest value in bytes that the node stores, up to
	// abd.LargestMaxValue.
	MaxValue int
	// Pace is how much of the node's time repair takes.
	Pace repair.Pace
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
}

// Node is one node. It is not safe for concurrent use.
type Node struct {
	cfg       Config
	store     Store
	registers *abd.Replica
	repair    *repair.Replica
	known     *quorum.News
	member    bool // of an active configuration
	appended  env.Position
}

// New returns a node over store, which must be the store that the same node
// used before, or an empty one if there was no before.
func New(cfg Config, store Store) (*Node, error) {
	if cfg.MaxValue < 1 || cfg.MaxValue > abd.LargestMaxValue {
		return nil, fmt.Errorf("replica: the largest value must be 1 to %d bytes, not %d", abd.LargestMaxValue, cfg.MaxValue)
	}
	if len(cfg.Configurations) == 0 {
		return nil, fmt.Errorf("replica: node %s knows no configuration", cfg.Self)
	}
	known, err := quorum.NewMap(cfg.Configurations...)
	if err != nil {
		return nil, fmt.Errorf("replica %s: %w", cfg.Self, err)
	}
	r, err := repair.NewReplica(repair.Config{Self: cfg.Self, MaxValue: cfg.MaxValue, Rules: cfg.Rules.Repair}, store)
	if err != nil {
		return nil, fmt.Errorf("replica %s: %w", cfg.Self, err)
	}
	n := &Node{
		cfg:       cfg,
		store:     store,
		registers: abd.NewReplica(r.Watched(), cfg.MaxValue, cfg.Rules.ABD),
		repair:    r,
		known:     &quorum.News{Map: known, Members: cfg.Members},
		member:    slices.Contains(cfg.Configurations.Members(), cfg.Self),
		appended:  store.Cut(), // cuts nothing, and tells where an earlier life ended
	}
	n.stand()
	return n, nil
}

// stand has the answers of the registers say what the node knows of lives and
// configurations.
func (n *Node) stand() {
	standing, at := n.repair.Standing()
	n.registers.Stand(standing, n.known, n.member, at)
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
	case *env.Refused:
		return out, nil // whatever it refuses: to answer it would never end
	case *Describe:
		return append(out, env.Out{To: from, Message: n.describe()}), nil
	case *StatusQuery:
		return append(out, env.Out{To: from, Message: n.status()}), nil
	}
	if from.Node == n.cfg.Self && repair.IsOwn(m) {
		return n.stepRepair(from, m, out)
	}
	return append(out, refuse(from, env.ReasonBadRequest, fmt.Sprintf("a node takes no %T", m))), nil
}

// stepRepair has what the node has learned of lives told by every answer that
// follows.
func (n *Node) stepRepair(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	if !n.member {
		return append(out, refuse(from, env.ReasonNotMember, "this node is in no active configuration")), nil
	}
	out, err := n.repair.Step(from, m, out)
	n.stand()
	return out, err
}

// Tasks returns what the node does besides answering, the same in every call.
func (n *Node) Tasks() []Task {
	if !n.member || len(n.cfg.Configurations.Members()) == 1 {
		return nil
	}
	t := repair.Tasks{Configurations: n.cfg.Configurations, Pace: n.cfg.Pace, Rules: n.cfg.Rules.Repair}
	tasks := []Task{{"repair.heal", t.Heal}, {"repair.examine", t.Examine}}
	for _, peer := range n.cfg.Configurations.Members() {
		if peer != n.cfg.Self {
			tasks = append(tasks, Task{"repair.pull", func(e env.Env) error { return t.Pull(e, peer) }})
		}
	}
	return tasks
}

func refuse(to env.Address, reason env.Reason, text string) env.Out {
	return env.Out{To: to, Message: &env.Refused{Reason: reason, Text: text}}
}

func (n *Node) describe() *Description {
	return &Description{
		Cluster:        n.cfg.Cluster,
		Node:           n.cfg.Self,
		Configurations: n.cfg.Configurations,
		Members:        n.cfg.Members,
		MaxValue:       n.cfg.MaxValue,
	}
}

// Progress returns what the node has done about missed and damaged records.
func (n *Node) Progress() repair.Progress { return n.repair.Progress() }

func (n *Node) status() *Status {
	s := &Status{
		Node:          n.cfg.Self,
		Configuration: n.cfg.Configurations[len(n.cfg.Configurations)-1].Index(),
		Usage:         n.store.Usage(),
		Appended:      n.appended,
		Repair:        n.repair.Progress(),
	}
	if n.cfg.Facts != nil {
		f := n.cfg.Facts()
		s.Version, s.Process, s.Uptime, s.Durable = f.Version, f.Process, f.Uptime, f.Durable
		s.CertificateEnd, s.Trouble = f.CertificateEnd, f.Trouble
	}
	return s
}
