package rambo

import (
	"fmt"
	"slices"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/repair"
)

// Config is what NewReplica needs.
type Config struct {
	Self quorum.NodeID
	// Genesis is what the node knows if it has never heard of anything: the
	// first configuration, at its members. Nil at a node that is to join.
	Genesis *quorum.News
	// Own is what the node tells others of itself: its name and its addresses.
	// Its version grows when these are others than in an earlier life. Without
	// an ID the node says nothing.
	Own quorum.Member
	// Sign returns the proof that the node itself says so. Nil: none.
	Sign func(quorum.Member) []byte
	// Verify returns an error if a member doesn't say itself where it is. Nil:
	// all are believed.
	Verify func(quorum.Member) error
	// Watchers are the mailboxes in which a message is left when the config map
	// has changed, beside those of this package's tasks.
	Watchers []env.Mailbox
	Rules    Rules
}

// The mailboxes of the tasks.
const (
	mailDrive   env.Mailbox = "rambo.drive"
	mailInstall env.Mailbox = "rambo.install"
	mailTell    env.Mailbox = "rambo.tell"
)

// Replica is the node's half: a deterministic step over a View. It is not safe
// for concurrent use.
type Replica struct {
	cfg      Config
	view     repair.View
	repair   *repair.Replica
	watchers []env.Mailbox

	news     *quorum.News
	at       env.Position // of the records that say so
	merged   merged
	mergedAt env.Position
	// silent says for how many rounds the nodes have been silent that are known and
	// are no members; those that aren't in it have been since this process began.
	silent map[quorum.NodeID]int
}

// NewReplica returns a replica over view, which remembers what an earlier
// process has noted there. r is the same node's.
func NewReplica(cfg Config, view repair.View, r *repair.Replica) (*Replica, error) {
	n := &Replica{cfg: cfg, view: view, repair: r, silent: make(map[quorum.NodeID]int),
		watchers: append([]env.Mailbox{mailDrive, mailInstall}, cfg.Watchers...)}
	if err := n.load(); err != nil {
		return nil, err
	}
	if n.Map() == nil && cfg.Genesis != nil {
		if err := n.note(cfg.Genesis.Map, cfg.Genesis.Members); err != nil {
			return nil, err
		}
	}
	if err := n.introduce(0); err != nil {
		return nil, err
	}
	return n, nil
}

// introduce notes where the node is, under a version above that of what it said
// before, and above least, unless it says the same still.
func (r *Replica) introduce(least uint64) error {
	own := r.cfg.Own
	if own.ID == "" {
		return nil
	}
	said := r.Own()
	if said.Version > least && said.Name == own.Name && slices.Equal(said.Addresses, own.Addresses) {
		return nil
	}
	own.Version = max(least, said.Version)
	own.Version++
	if r.cfg.Sign != nil {
		own.Proof = r.cfg.Sign(own)
	}
	return r.note(r.Map(), []quorum.Member{own})
}

// News returns what the node knows, nil if it is nothing, and the position of
// the records that say so. A step can change it.
func (r *Replica) News() (*quorum.News, env.Position) { return r.news, r.at }

// Map returns the config map, nil if the node knows nothing.
func (r *Replica) Map() *quorum.Map {
	if r.news == nil {
		return nil
	}
	return r.news.Map
}

// Progress says how far a node has come with merging what the configuration
// before a new one held.
type Progress struct {
	Index quorum.ConfigIndex // of the new configuration; 0: it never had to
	Keys  int64              // records that were stored on the way
	Bytes int64              // of their keys and values
	After abd.Key            // all keys up to this one are merged
	Done  bool
}

// Progress returns how far the last merge has come.
func (r *Replica) Progress() Progress {
	m := r.merged
	over := m.Done || m.Index <= r.Map().Horizon().Installed // others may have sufficed
	return Progress{m.Index, m.Keys, m.Bytes, m.After, over}
}

// Step acts on one message and appends what to send to out. An error means
// that the node's store is broken and the node must stop.
func (r *Replica) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	before, merged := r.Map(), r.merged
	answer, after, err := r.dispatch(from.Node, m)
	if err != nil {
		refused := abd.Refusal(err)
		if refused == nil {
			return out, err
		}
		answer, after = refused, 0
	}
	switch {
	case answer == m:
		out = append(out, env.Out{To: from, Mailbox: mailInstall, Message: m, After: after})
	case answer != nil:
		out = append(out, env.Out{To: from, Message: answer, After: after})
	}
	if _, own := m.(*retire); own && r.Map() != before {
		out = append(out, env.Out{Mailbox: mailTell, Message: &changed{}, After: r.at})
	}
	if r.Map() == before && r.merged.Done && r.merged != merged {
		return append(out, env.Out{Mailbox: mailInstall, Message: &changed{}, After: r.hasMerged()}), nil
	}
	return r.Notify(before, out), nil
}

// Notify appends what tells the tasks that the config map has changed, if it has
// since before.
func (r *Replica) Notify(before *quorum.Map, out []env.Out) []env.Out {
	if r.Map() != before {
		for _, box := range r.watchers {
			out = append(out, env.Out{Mailbox: box, Message: &changed{}, After: r.at})
		}
	}
	return out
}

// dispatch returns the answer, or m itself if a task will answer.
func (r *Replica) dispatch(from quorum.NodeID, m env.Message) (env.Message, env.Position, error) {
	switch m := m.(type) {
	case *Gossip:
		err := r.learn(from, m.Knowledge)
		return &Gossiped{r.knowledge()}, r.known(), err
	case *Announce:
		err := r.Learn(m.News)
		return &Announced{r.Map().Horizon()}, r.known(), err
	case *Fence:
		return r.fence(from, m)
	case *Install:
		return r.install(from, m)
	case *HowFar:
		return &SoFar{r.Progress()}, max(r.known(), r.hasMerged()), nil
	case *age:
		return &aged{}, 0, r.age()
	case *know:
		return &known{r.knowledge(), r.merged, r.others()}, max(r.known(), r.hasMerged()), nil
	case *have:
		items, more, err := r.repair.Stock(m.After, m.Most)
		return &stock{items, more}, 0, err
	case *take:
		return r.take(m)
	case *retire:
		return r.retire(m)
	}
	return nil, 0, fmt.Errorf("rambo: no step for %T", m)
}

// IsOwn reports whether m is a request that a node's own tasks make, and that
// nobody else may.
func IsOwn(m env.Message) bool {
	switch m.(type) {
	case *know, *have, *take, *retire, *age:
		return true
	}
	return false
}

// known is the position of all that the node knows.
func (r *Replica) known() env.Position {
	_, at := r.repair.Standing()
	return max(r.at, at)
}

// knowledge is what the node tells others.
func (r *Replica) knowledge() Knowledge {
	standing, _ := r.repair.Standing()
	return Knowledge{News: r.heard(), Lives: standing.With(r.cfg.Self, standing.Life).Others}
}

// learn takes in what another node knows. Lives and the map are one group of
// records: whoever knows that a configuration is installed knows the lives that
// came with it (H5). None is ever forgotten (H6).
func (r *Replica) learn(from quorum.NodeID, k Knowledge) error {
	if err := r.repair.Learn(k.Lives); err != nil {
		return err
	}
	if k.News == nil {
		return nil
	}
	said, _ := find(k.News.Members, r.cfg.Own.ID) // of this node, in another life maybe
	others := slices.DeleteFunc(slices.Clone(k.News.Members), func(m quorum.Member) bool { return m.ID == r.cfg.Own.ID })
	if err := r.noteFrom(from, k.News.Map, others); err != nil {
		return err
	}
	if r.cfg.Own.ID != "" && said.Version > r.Own().Version {
		return r.introduce(said.Version) // it has forgotten, and is believed only above that
	}
	return nil
}

// Own is what the node says of itself.
func (r *Replica) Own() quorum.Member {
	if r.news == nil {
		return quorum.Member{}
	}
	m, _ := find(r.news.Members, r.cfg.Self)
	return m
}

func find(members []quorum.Member, id quorum.NodeID) (quorum.Member, bool) {
	i := slices.IndexFunc(members, func(m quorum.Member) bool { return m.ID == id })
	if i < 0 {
		return quorum.Member{}, false
	}
	return members[i], true
}

// Hear notes where another node says that it is. known is false if there was no
// room for it, or it wasn't believed.
func (r *Replica) Hear(m quorum.Member) (known bool, at env.Position, err error) {
	if m.ID == r.cfg.Self {
		return true, r.at, nil
	}
	if err := r.noteFrom(m.ID, r.Map(), []quorum.Member{m}); err != nil {
		return false, 0, err
	}
	if r.news != nil {
		_, known = find(r.news.Members, m.ID)
	}
	return known, r.at, nil
}

// Fits reports whether what is said of a node isn't too long to be spread.
func Fits(m quorum.Member) bool { return memberBytes(m) <= MaxMemberBytes }

// Learn takes in what somebody says was decided who says nothing of lives:
// the configurations that follow those that the node knows, no more.
func (r *Replica) Learn(news *quorum.News) error {
	m := r.Map()
	if news == nil || m == nil {
		return &env.Refused{Reason: env.ReasonBadRequest, Text: "an announcement says which configuration was decided, to a node that knows those before it"}
	}
	for {
		c, ok := news.Map.Find(m.Horizon().Next)
		if !ok {
			return r.note(m, news.Members)
		}
		var err error
		if m, err = m.Decide(c); err != nil {
			return &env.Refused{Reason: env.ReasonBadRequest, Text: err.Error()}
		}
	}
}

// fence: the node durably learns of the configuration that follows the one that
// is fenced, before it answers (R4.2). Only one that is installed is fenced
// (R4.1, S7): what those before it held is in it by then.
func (r *Replica) fence(from quorum.NodeID, m *Fence) (env.Message, env.Position, error) {
	if err := r.learn(from, m.Knowledge); err != nil {
		return nil, 0, err
	}
	h := r.Map().Horizon()
	switch {
	case h.Installed < m.Index && !r.cfg.Rules.FenceTooEarly:
		return nil, 0, &env.Refused{Reason: env.ReasonBadRequest, Text: fmt.Sprintf("configuration %d isn't installed", m.Index)}
	case h.Next <= m.Index+1:
		return nil, 0, &env.Refused{Reason: env.ReasonBadRequest, Text: fmt.Sprintf("no configuration follows %d", m.Index)}
	}
	at := r.known()
	if r.cfg.Rules.FenceUnsaved {
		at = 0
	}
	return &Fenced{m.Index, r.knowledge()}, at, nil
}

// install: the answer comes when the node has merged what the configuration
// before holds, from the task that does it (R4.3).
func (r *Replica) install(from quorum.NodeID, m *Install) (env.Message, env.Position, error) {
	if err := r.learn(from, m.Knowledge); err != nil {
		return nil, 0, err
	}
	h := r.Map().Horizon()
	c, active := r.Map().Find(m.Index)
	switch {
	case h.Installed >= m.Index || r.has(m.Index):
		return &Installed{m.Index}, max(r.known(), r.hasMerged()), nil
	case !active || h.Installed+1 != m.Index && !r.cfg.Rules.FenceTooEarly:
		return nil, 0, &env.Refused{Reason: env.ReasonBadRequest, Text: fmt.Sprintf("configuration %d isn't the one to be installed next", m.Index)}
	}
	if _, member := c.Place(r.cfg.Self); !member {
		return nil, 0, &env.Refused{Reason: env.ReasonNotMember, Text: fmt.Sprintf("this node is no member of configuration %d", m.Index)}
	}
	return m, r.known(), nil
}

// hasMerged is the position of the record that says how far the node has merged,
// and behind what it merged: who relies on that must not see it forgotten.
func (r *Replica) hasMerged() env.Position {
	if r.cfg.Rules.MergedUnsaved {
		return 0
	}
	return r.mergedAt
}

// has reports whether the node has merged all for a configuration.
func (r *Replica) has(k quorum.ConfigIndex) bool { return r.merged.Index == k && r.merged.Done }

// take stores what others hold, and how far that is. A record of the node's own
// that is damaged is an error: what is put in its place is repair's business.
//
// Its answer waits for the page before, and not for this one, so that the next one
// can come meanwhile: what follows in the journal isn't durable unless this is, and
// nobody is told how far the node has merged before that is (hasMerged).
func (r *Replica) take(m *take) (env.Message, env.Position, error) {
	if m.merged.Index <= r.Map().Horizon().Installed {
		return &taken{}, 0, nil // others have done it meanwhile
	}
	stored, bytes, err := r.repair.Take(m.Entries)
	if err != nil {
		return nil, 0, err
	}
	if !r.cfg.Rules.DropVotes {
		if err := r.repair.TakeVotes(m.Votes); err != nil {
			return nil, 0, err
		}
	}
	before, next := r.hasMerged(), m.merged
	if r.merged.Index == next.Index {
		next.Keys, next.Bytes = r.merged.Keys, r.merged.Bytes
	}
	next.Keys += stored
	next.Bytes += bytes
	if stored == 0 && !next.Done {
		r.merged = next // who forgets it asks for the page again, and for its votes
		return &taken{}, 0, nil
	}
	if err := r.noteMerged(next); err != nil {
		return nil, 0, err
	}
	return &taken{}, before, nil
}

// retire marks a configuration as installed: those before it are out of all
// quorums (R4.4). It can't be taken back.
func (r *Replica) retire(m *retire) (env.Message, env.Position, error) {
	if r.cfg.Rules.ForgetLives {
		m = &retire{Index: m.Index}
	}
	if err := r.repair.Learn(m.Lives); err != nil {
		return nil, 0, err
	}
	if r.Map().Horizon().Installed < m.Index {
		installed, err := r.Map().Install(m.Index)
		if err != nil {
			return nil, 0, &env.Refused{Reason: env.ReasonBadRequest, Text: err.Error()}
		}
		if err := r.note(installed, nil); err != nil {
			return nil, 0, err
		}
	}
	return &retired{}, r.known(), nil
}

// note merges a map and what is known of members into the node's own, on disk
// first.
func (r *Replica) note(m *quorum.Map, members []quorum.Member) error {
	return r.noteFrom(r.cfg.Self, m, members)
}

func (r *Replica) noteFrom(from quorum.NodeID, m *quorum.Map, members []quorum.Member) error {
	old := r.news
	if old == nil {
		old = &quorum.News{}
	}
	next, err := old.Map.Merge(m)
	if err != nil {
		return &env.Refused{Reason: env.ReasonBadRequest, Text: err.Error()}
	}
	all := r.mergeMembers(next, from, old.Members, members)
	if next != old.Map {
		if err := r.setCell(cellMap, next.Append(nil)); err != nil {
			return err
		}
		if r.cfg.Rules.DropLives {
			if err := r.repair.Drop(next.Has); err != nil {
				return err
			}
		}
	}
	if all != nil {
		if err := r.setCell(cellMembers, appendMembers(nil, all)); err != nil {
			return err
		}
	}
	if next != old.Map || all != nil {
		if all == nil {
			all = old.Members
		}
		r.news = &quorum.News{Map: next, Members: all}
	}
	r.hear(from, members)
	return nil
}

// setCell sets a cell of what the node knows. If that fails, because the disk is full
// for one, what it had said before may still not be durable.
func (r *Replica) setCell(name string, value []byte) error {
	at, err := r.view.SetCell(name, value)
	if err == nil || r.cfg.Rules.ForgetPosition {
		r.at = at
	}
	return err
}

// mergeMembers returns old with what is newer in the others, nil if nothing is.
// When there are too many, members of an active configuration and who speaks for
// itself take the places of nodes that are neither.
func (r *Replica) mergeMembers(active *quorum.Map, from quorum.NodeID, old, others []quorum.Member) []quorum.Member {
	var all []quorum.Member
	for _, m := range others {
		known := all
		if known == nil {
			known = old
		}
		i := slices.IndexFunc(known, func(o quorum.Member) bool { return o.ID == m.ID })
		if i >= 0 && known[i].Version >= m.Version {
			continue
		}
		if i < 0 && len(known) == MaxKnown && (active.Has(m.ID) || m.ID == from) {
			i = slices.IndexFunc(known, func(o quorum.Member) bool { return o.ID != r.cfg.Self && !active.Has(o.ID) })
		}
		if i < 0 && len(known) == MaxKnown {
			continue
		}
		// What stands in the cluster's file has no version, and no proof.
		if m.Version > 0 && r.cfg.Verify != nil && r.cfg.Verify(m) != nil || memberBytes(m) > MaxMemberBytes {
			continue
		}
		if all == nil {
			all = slices.Clone(old)
		}
		if i >= 0 {
			all[i] = m
		} else {
			all = append(all, m)
		}
	}
	return all
}

func memberBytes(m quorum.Member) int {
	n := len(m.Name) + len(m.Proof)
	for _, a := range m.Addresses {
		n += len(a)
	}
	return n
}
