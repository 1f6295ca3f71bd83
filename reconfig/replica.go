package reconfig

import (
	"fmt"
	"slices"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/synod"
)

// Config is what NewReplica needs.
type Config struct {
	Cluster quorum.ClusterID
	Self    quorum.NodeID
	// Facts returns what the node says of itself. Its Node is set to Self.
	Facts func() Facts
	// Learn, when set, takes what a Ready tells of configurations that the node
	// doesn't know yet. What it then knows is set by Stand, at once or after the
	// step: then who asks is told that the node lags, and asks again. A Ready tells
	// nothing of lives: so it may teach a node what was decided, not what is
	// installed (H5).
	Learn func(*quorum.News) error
	Rules Rules
	Synod synod.Rules
}

// Replica is the node's half: a deterministic step over cells. It is not safe
// for concurrent use.
type Replica struct {
	cfg      Config
	cells    Cells
	acceptor *synod.Acceptor

	news    *quorum.News // nil: the node knows of no configuration
	newsAt  env.Position // of the record that says so
	emptied quorum.ConfigIndex

	notes   []*quorum.Configuration // that stand at notesAt
	notesAt env.Position
	read    bool // they were, in this life
}

// NewReplica returns a replica over the cells of a node's store.
func NewReplica(cfg Config, cells Cells) *Replica {
	r := &Replica{cfg: cfg, cells: cells}
	r.acceptor = synod.NewAcceptor(ring{cells}, guard{r}, cfg.Synod)
	return r
}

// Stand sets what the node durably knows of the configurations, nil if nothing,
// and the position in the journal of the record that says so.
func (r *Replica) Stand(news *quorum.News, at env.Position) { r.news, r.newsAt = news, at }

// Takes reports whether m is a request for Step: one of this package's, or one
// of package synod's about a configuration.
func Takes(m env.Message) bool {
	switch m := m.(type) {
	case *Ready, *Inquire:
		return true
	case *synod.Prepare:
		_, ok := IndexOf(m.Instance)
		return ok
	case *synod.Accept:
		_, ok := IndexOf(m.Instance)
		return ok
	}
	return false
}

// Step acts on one message and appends the answer to out. An error means that
// the node's store is broken and the node must stop.
func (r *Replica) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	if _, asks := m.(*Inquire); !asks { // what may be written anyway is written with it
		if err := r.forget(); err != nil {
			return out, err
		}
	}
	var (
		answer env.Message
		after  env.Position
		err    error
	)
	switch m := m.(type) {
	case *Ready:
		answer, after, err = r.ready(m)
	case *Inquire:
		answer, after, err = r.pending(m)
	case *synod.Accept:
		if err = r.sensible(m); err == nil {
			return r.acceptor.Step(from, m, out)
		}
	default:
		return r.acceptor.Step(from, m, out)
	}
	if err != nil {
		if answer = abd.Refusal(err); answer == nil {
			return out, err
		}
		after = 0
	}
	return append(out, env.Out{To: from, Message: answer, After: after}), nil
}

// forget empties the cells of all indices but the one that is to be decided next:
// nobody votes on the others any more.
func (r *Replica) forget() error {
	if r.news == nil {
		return nil
	}
	installed := r.news.Map.Horizon().Installed
	if installed == r.emptied {
		return nil
	}
	for k := installed; k > r.emptied && k+slots-1 > installed; k-- {
		if err := r.acceptor.Forget(Instance(k)); err != nil {
			if abd.Refusal(err) != nil {
				return nil // another time
			}
			return err
		}
	}
	r.emptied = installed
	return nil
}

// ready notes that a configuration names the node, and says so once that is
// durable.
func (r *Replica) ready(m *Ready) (env.Message, env.Position, error) {
	switch _, named := m.Configuration.Place(r.cfg.Self); {
	case m.Cluster != r.cfg.Cluster:
		return nil, 0, &env.Refused{Reason: env.ReasonBadRequest, Text: fmt.Sprintf("this node belongs to the cluster %q", string(r.cfg.Cluster))}
	case !named:
		return nil, 0, &env.Refused{Reason: env.ReasonNotMember, Text: "the configuration doesn't name this node"}
	}
	if r.cfg.Learn != nil && m.News != nil && r.horizon().Behind(m.News.Map.Horizon()) {
		if err := r.cfg.Learn(m.News); err != nil {
			return nil, 0, err
		}
	}
	told, at := guard{r}.Tell(m.Horizon)
	if text := r.unready(m.Configuration); text != "" {
		return &Unready{text, told}, at, nil
	}
	noted, err := r.note(m.Configuration)
	if err != nil {
		return nil, 0, err
	}
	if r.cfg.Rules.ReadyUnsynced {
		noted = 0
	}
	facts := r.cfg.Facts()
	facts.Node = r.cfg.Self
	return &Readied{facts, told}, max(at, noted), nil
}

// unready returns why the node can't be asked to be ready for a configuration:
// only for the index that follows the installed one is there anything to agree
// on (R4.1).
func (r *Replica) unready(c *quorum.Configuration) string {
	h := r.horizon()
	switch {
	case r.cfg.Rules.ReadyForAny:
		return ""
	case c.Index() != h.Next:
		return fmt.Sprintf("the next configuration here is %d, not %d", h.Next, c.Index())
	case h.Next != h.Installed+1:
		return fmt.Sprintf("configuration %d isn't installed here yet", h.Next-1)
	}
	return ""
}

// note adds a configuration to the node's notes, and returns the position that
// they stand at.
func (r *Replica) note(c *quorum.Configuration) (env.Position, error) {
	notes, at := r.noted(c.Index())
	switch {
	case slices.ContainsFunc(notes, c.Equal):
		return at, nil
	case r.cfg.Rules.ReadyUnsaved:
		return at, nil
	}
	notes = append(notes, c)
	for {
		value := encodeNotes(notes)
		if len(notes) <= MaxNotes && len(value) <= maxNotesBytes || len(notes) == 1 {
			return r.cells.SetCell(cellNotes, value)
		}
		notes = notes[1:]
	}
}

// noted returns the notes of an index, and the position that they stand at. The
// caller may change the result.
func (r *Replica) noted(k quorum.ConfigIndex) ([]*quorum.Configuration, env.Position) {
	value, at := r.cells.Cell(cellNotes)
	if !r.read || at != r.notesAt {
		r.notes, r.notesAt, r.read = decodeNotes(value), at, true
	}
	var notes []*quorum.Configuration
	for _, c := range r.notes {
		if c.Index() == k {
			notes = append(notes, c)
		}
	}
	return notes, at
}

// Named reports whether the node has noted that a configuration of the next index
// names it. Who has learned that this one is decided may ask it, before the
// node itself has heard so.
func (r *Replica) Named() bool {
	notes, _ := r.noted(r.horizon().Next)
	return len(notes) > 0
}

// pending says what the node knows of proposals.
func (r *Replica) pending(m *Inquire) (env.Message, env.Position, error) {
	told, at := guard{r}.Tell(m.Horizon)
	answer := &Pending{Index: told.Horizon.Next, Told: told}
	notes, noted := r.noted(answer.Index)
	answer.Ready = notes
	if answer.Index == 0 {
		return answer, max(at, noted), nil
	}
	record, voted, err := r.acceptor.Record(Instance(answer.Index))
	if err != nil {
		return nil, 0, err
	}
	answer.Promised = record.Promised
	if !record.Accepted.IsZero() {
		if answer.Accepted, err = quorum.ParseConfiguration(record.Accepted.Value); err != nil {
			return nil, 0, &synod.DamagedError{Instance: Instance(answer.Index), Detail: err.Error()}
		}
		answer.Ballot = record.Accepted.Ballot
	}
	return answer, max(at, noted, voted), nil
}

// sensible returns the refusal of a value that isn't a configuration of the
// index: accepted, it would be there for good.
func (r *Replica) sensible(m *synod.Accept) error {
	k, ok := IndexOf(m.Instance)
	c, err := quorum.ParseConfiguration(m.Value)
	switch {
	case r.cfg.Rules.AcceptAnything:
		return nil
	case !ok || err != nil || c.Index() != k:
		return &env.Refused{Reason: env.ReasonBadRequest, Text: fmt.Sprintf("the value is no configuration %d", k)}
	}
	return nil
}

func (r *Replica) horizon() quorum.Horizon {
	if r.news == nil {
		return quorum.Horizon{}
	}
	return r.news.Map.Horizon()
}

// guard says when the node votes: on configuration k+1, as a member of k, while
// k is what is installed and nothing is known of what follows it (R3, R4).
type guard struct{ *Replica }

// Votes implements synod.Guard.
func (g guard) Votes(i synod.Instance, k quorum.ConfigIndex) bool {
	if g.news == nil {
		return false
	}
	next, ok := IndexOf(i)
	present := g.news.Map.Installed()
	_, member := present.Place(g.cfg.Self)
	fits := next == k+1 || g.cfg.Rules.VoteOnAny
	return ok && member && fits && present.Index()+1 == next && g.news.Map.Horizon().Next == next
}

// Tell implements synod.Guard.
func (g guard) Tell(asker quorum.Horizon) (synod.Told, env.Position) {
	told := synod.Told{Horizon: g.horizon()}
	if g.news != nil && asker.Behind(told.Horizon) {
		told.News = g.news
	}
	return told, g.newsAt
}
