package join

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
)

// Config is what NewReplica needs.
type Config struct {
	Self quorum.NodeID
	// Instance is that of the node's store. Without one the node takes no part:
	// it neither greets nor counts its starts.
	Instance Instance
	// Run is a number that the process drew at random.
	Run uint64
	// First: the node is in the first configuration, and needn't join.
	First bool
	// Grant is the node's own, if it is to join.
	Grant Grant
	// Admit returns an error if a node must not join, because the CA didn't give
	// its word or its ticket has expired. Nil: all may.
	Admit func(*Join) error
	// Probe returns why a node that greets can't be dialed where it says that it is;
	// "" if it can, or if that isn't known yet. It must not block. Nil: nobody tries.
	Probe func(quorum.Member) string
	// Pace is how often the node greets others. Default: DefaultPace.
	Pace  time.Duration
	Rules Rules
}

// Replica is the node's half: a deterministic step over its cells. It is not safe
// for concurrent use.
type Replica struct {
	cfg       Config
	cells     Cells
	directory Directory

	starts uint64
	flags  uint64
	mute   bool
	nodes  []entry
	at     env.Position // of the records that say so

	complaints []complaint // of others, by node
	unreached  string      // what they come to
}

// entry is what is known of another node.
type entry struct {
	node    quorum.NodeID
	greeted bool // it has joined: no other instance has, or will
	life    Life // the largest that was heard of
	saved   Life // what is on the disk of that
}

// NewReplica returns a replica over what an earlier process has noted in cells,
// and counts this start.
func NewReplica(cfg Config, cells Cells, directory Directory) (*Replica, error) {
	r := &Replica{cfg: cfg, cells: cells, directory: directory}
	if err := r.load(); err != nil {
		return nil, err
	}
	if !r.partakes() {
		return r, nil
	}
	err := r.saveSelf(r.starts+1, r.flags)
	if r.mute = errors.Is(err, abd.ErrFull); err != nil && !r.mute {
		return nil, err
	}
	return r, r.Stand(directory.Map().Has(cfg.Self))
}

func (r *Replica) partakes() bool { return r.cfg.Instance != Instance{} }

// Stand is told whether an active configuration names the node.
func (r *Replica) Stand(member bool) error {
	if !member || r.flags&flagMember != 0 || !r.partakes() {
		return nil
	}
	err := r.saveSelf(r.starts, r.flags|flagMember)
	if errors.Is(err, abd.ErrFull) {
		return nil // the next start sees it as well
	}
	return err
}

// WasMember reports whether a configuration has named the node, as far as it
// knows.
func (r *Replica) WasMember() bool { return r.flags&flagMember != 0 }

// Joined reports whether the cluster knows the node.
func (r *Replica) Joined() bool { return r.cfg.First || r.flags&flagJoined != 0 }

// Step acts on one message and appends the answer to out. appended is the
// position behind all that the node has appended. An error means that the node
// must stop; it is an *OutcastError if others say that.
func (r *Replica) Step(from env.Address, m env.Message, appended env.Position, out []env.Out) ([]env.Out, error) {
	answer, after, err := r.dispatch(from.Node, m, appended)
	if err != nil {
		refused := abd.Refusal(err)
		if refused == nil {
			return out, err
		}
		answer, after = refused, 0
	}
	if r.cfg.Rules.AnswerUnsaved {
		after = 0
	}
	return append(out, env.Out{To: from, Message: answer, After: after}), nil
}

func (r *Replica) dispatch(from quorum.NodeID, m env.Message, appended env.Position) (env.Message, env.Position, error) {
	switch m := m.(type) {
	case *Join:
		return r.join(from, m)
	case *Greet:
		return r.greet(from, m)
	case *know:
		return r.know(appended)
	case *hear:
		return &done{}, 0, r.hear(m, appended)
	case *enter:
		if err := r.saveSelf(r.starts, r.flags|flagJoined); err != nil {
			return nil, 0, err
		}
		return &done{}, r.at, r.learn(m.seen)
	}
	return nil, 0, fmt.Errorf("join: no step for %T", m)
}

func refuse(reason env.Reason, format string, args ...any) error {
	return &env.Refused{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// join notes with which instance a node has come first, and refuses another one
// (J1).
func (r *Replica) join(from quorum.NodeID, m *Join) (env.Message, env.Position, error) {
	own := r.directory.Map().Horizon()
	switch {
	case m.Member.ID != from || m.Instance == Instance{}:
		return nil, 0, refuse(env.ReasonBadRequest, "node %s asks for node %s", from, m.Member.ID)
	case m.Horizon.Behind(own):
		return &Joined{Horizon: own}, r.known(), nil // it must ask the members of a newer configuration
	case !r.directory.Map().Has(r.cfg.Self):
		return nil, 0, refuse(env.ReasonNotMember, "this node is in no active configuration")
	}
	i, there := r.find(from)
	switch {
	case there && r.nodes[i].life.Instance == m.Instance:
		// It asks again: also after the ticket's end it is the one that came.
	case there && !r.cfg.Rules.AnyInstance:
		return nil, 0, refuse(env.ReasonDenied, "this ticket was used already, for another folder (store %s): one ticket makes one node; make a new one with: client member ticket",
			r.nodes[i].life.Instance)
	default:
		if r.cfg.Admit != nil {
			if err := r.cfg.Admit(m); err != nil {
				return nil, 0, refuse(env.ReasonDenied, "%v", err)
			}
		}
		if err := r.put(i, there, entry{node: from, life: Life{Instance: m.Instance}}); err != nil {
			return nil, 0, err
		}
	}
	known, at, err := r.directory.Hear(m.Member)
	switch {
	case err != nil:
		return nil, 0, err
	case !known:
		return nil, 0, refuse(env.ReasonFull, "this node knows so many others that there is no room for another one, or doesn't believe what it says of itself")
	}
	return &Joined{Horizon: own, Seen: r.seen()}, max(r.known(), at), nil
}

// greet keeps the largest life of a node, and tells one that is below it (J3).
func (r *Replica) greet(from quorum.NodeID, m *Greet) (env.Message, env.Position, error) {
	if m.Member.ID != from || m.Life.Instance == (Instance{}) {
		return nil, 0, refuse(env.ReasonBadRequest, "node %s greets as node %s", from, m.Member.ID)
	}
	i, there := r.find(from)
	if there {
		if v := r.judge(&r.nodes[i], m.Life); v != Welcome {
			return &Greeted{Verdict: v, Life: r.nodes[i].life}, r.known(), nil
		}
	}
	if err := r.note(i, there, from, m.Life); err != nil {
		return nil, 0, err
	}
	_, at, err := r.directory.Hear(m.Member)
	if err != nil {
		return nil, 0, err
	}
	greeted := &Greeted{Life: m.Life, Seen: r.seen()}
	if r.cfg.Probe != nil {
		greeted.Unreached = r.cfg.Probe(m.Member)
	}
	return greeted, max(r.known(), at), nil
}

// judge says whether a life can follow what is known of the node.
func (r *Replica) judge(e *entry, l Life) Verdict {
	switch {
	case r.cfg.Rules.AnyPosition:
		return Welcome
	case l.Instance != e.life.Instance:
		if e.greeted {
			return OtherStore
		}
		return Welcome // somebody else has come first here, and elsewhere hasn't got in
	case l.Starts < e.life.Starts:
		return OlderCopy
	case l.Starts == e.life.Starts && l.Run != e.life.Run:
		return SecondCopy
	case l.Starts > e.life.Starts && l.Position < e.life.Position+env.Position(l.Starts-e.life.Starts):
		return OlderCopy // each start has counted itself, which is a record
	}
	return Welcome // within one process an older message may come later
}

// note keeps a life. On the disk it comes when it says more than a position that is
// little larger.
func (r *Replica) note(i int, there bool, node quorum.NodeID, l Life) error {
	if there && r.nodes[i].greeted {
		e := &r.nodes[i]
		if l.Starts == e.life.Starts {
			l.Position = max(l.Position, e.life.Position)
		}
		same := l
		same.Position = e.saved.Position
		if same == e.saved && l.Position < e.saved.Position+positionStep {
			e.life = l
			return nil
		}
	}
	return r.put(i, there, entry{node: node, greeted: true, life: l})
}

// put puts an entry at its place, on disk first.
func (r *Replica) put(i int, there bool, e entry) error {
	nodes := slices.Clone(r.nodes)
	switch {
	case there:
		nodes[i] = e
	case len(nodes) < MaxNodes:
		nodes = slices.Insert(nodes, i, e)
	default:
		forgotten := slices.IndexFunc(nodes, r.isForgotten)
		if forgotten < 0 {
			return refuse(env.ReasonFull, "this node remembers %d others, and no more", MaxNodes)
		}
		if nodes = slices.Delete(nodes, forgotten, forgotten+1); forgotten < i {
			i--
		}
		nodes = slices.Insert(nodes, i, e)
	}
	return r.saveNodes(nodes)
}

// isForgotten reports whether nobody speaks of a node any more: no active
// configuration names it, and it isn't among those whose addresses are known.
func (r *Replica) isForgotten(e entry) bool {
	news, _ := r.directory.News()
	return !r.directory.Map().Has(e.node) &&
		(news == nil || !slices.ContainsFunc(news.Members, func(m quorum.Member) bool { return m.ID == e.node }))
}

func (r *Replica) find(id quorum.NodeID) (int, bool) {
	return slices.BinarySearchFunc(r.nodes, id, func(e entry, id quorum.NodeID) int {
		switch {
		case e.node < id:
			return -1
		case e.node > id:
			return 1
		}
		return 0
	})
}

// seen are the nodes that are known to be in, and the node itself.
func (r *Replica) seen() []Seen {
	var seen []Seen
	if r.Joined() && r.partakes() {
		seen = append(seen, Seen{r.cfg.Self, r.cfg.Instance})
	}
	for _, e := range r.nodes {
		if e.greeted && len(seen) < MaxNodes {
			seen = append(seen, Seen{e.node, e.life.Instance})
		}
	}
	return seen
}

// learn takes in what others know of instances: so the memory of a cluster
// outlives its members.
func (r *Replica) learn(seen []Seen) error {
	for _, s := range seen {
		i, there := r.find(s.Node)
		if s.Node == r.cfg.Self || there && (r.nodes[i].greeted || r.nodes[i].life.Instance == s.Instance) {
			continue
		}
		err := r.put(i, there, entry{node: s.Node, greeted: true, life: Life{Instance: s.Instance}})
		if err != nil && abd.Refusal(err) == nil {
			return err
		}
	}
	return nil
}

// known is the position of all that the node has noted here.
func (r *Replica) known() env.Position { return r.at }

func (r *Replica) know(appended env.Position) (env.Message, env.Position, error) {
	news, at := r.directory.News()
	k := &known{news: news, joined: r.Joined(), mute: r.mute || !r.partakes(), grant: r.cfg.Grant,
		Greet: Greet{Life: Life{Instance: r.cfg.Instance, Starts: r.starts, Run: r.cfg.Run, Position: appended}, Member: r.directory.Own()}}
	if news != nil {
		k.others = slices.Clone(news.Map.Active().Members())
		for _, m := range news.Members {
			k.others = append(k.others, m.ID)
		}
		slices.Sort(k.others)
		k.others = slices.DeleteFunc(slices.Compact(k.others), func(n quorum.NodeID) bool { return n == r.cfg.Self })
	}
	return k, max(appended, at, r.known()), nil
}

// hear: an answer that isn't Welcome ends the node.
func (r *Replica) hear(m *hear, appended env.Position) error {
	switch m.greeted.Verdict {
	case OtherStore, OlderCopy, SecondCopy:
		own := Life{Instance: r.cfg.Instance, Starts: r.starts, Run: r.cfg.Run, Position: appended}
		return &OutcastError{From: m.from, Verdict: m.greeted.Verdict, Known: m.greeted.Life, Own: own}
	}
	r.complain(m.from, m.greeted.Unreached)
	return r.learn(m.greeted.Seen)
}
