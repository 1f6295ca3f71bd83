package rambo

import (
	"errors"
	"slices"
	"strings"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/repair"
)

// maxWaiting is how many drivers wait for a node to have merged.
const maxWaiting = 32

// Install merges into the node what the configuration before its own holds, if
// the node is new in that, or was asked to; and answers who waits for it.
func (t Tasks) Install(e env.Env) error {
	pace := t.Pace.withDefaults()
	var waiting []env.Envelope
	for {
		k, err := env.AskOne[*known](e, e.Self(), &know{})
		if err != nil {
			return err
		}
		var merging env.Task
		old, next, ok := k.step(t.Rules)
		if ok {
			waiting = answer(e, k, next, waiting)
			if !(k.merged.Done && k.merged.Index == next.Index()) && wanted(e.Self(), old, next, waiting) {
				m := merger{t, pace, old, next, k.merged}
				merging = e.Go("rambo.merger", func(e env.Env) error { return m.run(e) })
			}
		} else {
			waiting = answer(e, k, nil, waiting)
		}
		got, err := e.Receive(mailInstall)
		if merging != nil {
			merging.Cancel()
			_ = merging.Join() // it was canceled, and goes on from where it stood
		}
		if err != nil {
			return err
		}
		for _, envelope := range got {
			if _, asked := envelope.Message.(*Install); asked {
				waiting = append(waiting, envelope)
			}
		}
		waiting = waiting[max(0, len(waiting)-maxWaiting):]
	}
}

// answer tells those who wait that the node has merged, and returns those who
// still wait. Next is the configuration that is to be installed, nil if there
// is none.
func answer(e env.Env, k *known, next *quorum.Configuration, waiting []env.Envelope) []env.Envelope {
	return slices.DeleteFunc(waiting, func(w env.Envelope) bool {
		index := w.Message.(*Install).Index
		done := index <= k.News.Map.Installed().Index() || k.merged.Done && k.merged.Index == index
		if done {
			e.Send(w.From, &Installed{index})
		}
		return done || next == nil || index != next.Index()
	})
}

// wanted reports whether a node should merge: as a new member always, and as one
// that stays when the new ones alone don't suffice, or somebody asks for it.
func wanted(self quorum.NodeID, old, next *quorum.Configuration, waiting []env.Envelope) bool {
	if _, member := next.Place(self); !member {
		return false
	}
	if _, stays := old.Place(self); !stays {
		return true
	}
	return len(waiting) > 0 || !old.Carries(next, func(n quorum.NodeID) bool {
		_, stays := old.Place(n)
		return !stays
	})
}

// merger merges into a node what a read quorum of old holds.
type merger struct {
	Tasks
	pace      Pace
	old, next *quorum.Configuration
	from      merged // where an earlier run stood
}

// errForgotten: a node has taken back what a page of it may have rested on.
var errForgotten = errors.New("a page counts no more, its node is in a later life")

// run merges page by page, until all is merged or the scope ends. It goes on
// from where an earlier run stood: what was merged then came from members that
// durably knew of the next configuration, and they still do.
func (m merger) run(e env.Env) error {
	at := m.from
	if at.Index != m.next.Index() {
		at = merged{Index: m.next.Index()}
	}
	for !at.Done {
		took, err := m.page(e, at.After)
		if err == nil {
			at = merged{Index: at.Index, After: took.end, Done: !took.more}
			_, err = env.AskOne[*taken](e, e.Self(), &take{took.entries, at})
		}
		if _, ended := errors.AsType[*env.Unfinished](err); ended {
			return err
		}
		pause := m.pace.of(took.entries)
		if err != nil {
			// Too many refuse, for want of knowledge or because of damage; or
			// this node has no space, or damage of its own. All of it passes.
			at, pause = merged{Index: at.Index, After: took.begin}, m.pace.Again
		}
		if err := e.Sleep(pause); err != nil {
			return err
		}
	}
	return nil
}

// page is what a read quorum of the old configuration holds behind a key, and
// the node doesn't.
type page struct {
	begin, end abd.Key
	more       bool
	entries    []repair.Entry
}

// page asks one member for all that it has and the node hasn't, and the others
// for the hash of the same range. Where that differs, they are asked what they
// have beside. So each record comes once.
func (m merger) page(e env.Env, after abd.Key) (page, error) {
	p := page{begin: after}
	own, err := env.AskOne[*stock](e, e.Self(), &have{after})
	if err != nil {
		return p, err
	}
	g := gathering{merger: m, page: p, in: repair.Range{After: after}, items: own.Items}
	if own.More {
		g.in.To, g.page.more = own.Items[len(own.Items)-1].Key, true
	}
	g.counted.Begin(quorum.Configurations{m.old})
	g.refused.Begin(quorum.Configurations{m.old})
	g.counted.Add(e.Self()) // if it stays: what it holds is there
	if err := g.first(e); err != nil {
		return p, err
	}
	if !g.enough() {
		if err := g.rest(e); err != nil {
			return p, err
		}
	}
	g.page.end = g.in.To
	return g.page, nil
}

// gathering is a page under way.
type gathering struct {
	merger
	page    page
	in      repair.Range
	items   []abd.Item // what the node has in the range, or will have
	counted quorum.Tally
	refused quorum.Tally
	lives   []abd.LifeOf // in which the members are, as far as is known
	gave    []abd.LifeOf // in which they have answered
	failure error
}

func (g *gathering) terms() repair.Terms { return repair.Terms{Knows: g.next.Index()} }

// enough: a read quorum of the old configuration has answered (R4.3).
func (g *gathering) enough() bool {
	switch {
	case g.Rules.MergeFromOne:
		return true
	case g.Rules.MergeWriteQuorum:
		return g.counted.HasWrite()
	}
	return g.counted.HasRead()
}

// first asks for all records behind the key that the node lacks, of whoever
// answers first.
func (g *gathering) first(e env.Env) error {
	order := slices.DeleteFunc(slices.Clone(e.Nearest(g.old.Members())), func(n quorum.NodeID) bool { return n == e.Self() })
	if len(order) == 0 {
		return nil
	}
	req := &repair.Offer{Range: g.in, Items: g.items, Terms: g.terms()}
	return g.ask(e, order[:1], order[1:], req, func(c env.Conversation, from quorum.NodeID, answer env.Message) bool {
		missing, ok := answer.(*repair.Missing)
		if !ok || !g.take(from, missing) {
			c.Add(order...)
			return false
		}
		return true
	})
}

// rest asks the others whether they have the same by now.
func (g *gathering) rest(e env.Env) error {
	var others []quorum.NodeID
	for _, n := range g.old.Members() {
		if !g.counted.Has(n) {
			others = append(others, n)
		}
	}
	want := repair.HashOf(g.items)
	offer := &repair.Offer{Range: g.in, Items: g.items, Terms: g.terms()}
	req := &repair.Summarize{Range: g.in, Keys: len(g.items), Terms: g.terms()}
	return g.ask(e, others, nil, req, func(c env.Conversation, from quorum.NodeID, answer env.Message) bool {
		switch answer := answer.(type) {
		case *repair.Summary:
			if answer.Keys != len(g.items) || answer.Hash != want {
				c.Redirect(from, offer)
				return false
			}
			g.count(from, &answer.Standing)
		case *repair.Missing:
			g.take(from, answer)
		}
		return g.failure != nil || g.enough()
	})
}

// ask is AskSome that ends when those who don't refuse have no read quorum.
func (g *gathering) ask(e env.Env, first, spare []quorum.NodeID, req env.Message,
	each func(env.Conversation, quorum.NodeID, env.Message) bool) error {

	few := false
	err := e.AskSome(first, spare, req, func(c env.Conversation, from quorum.NodeID, answer env.Message) bool {
		if _, refused := answer.(*env.Refused); refused {
			g.refused.Add(from)
			few = !g.refused.LeavesRead()
			c.Add(spare...)
			return few
		}
		return each(c, from, answer)
	})
	switch {
	case err != nil:
		return err
	case few:
		return errFew
	}
	return g.failure
}

// take takes over what a member has that the node lacks, up to where its answer
// ends. It reports whether the answer makes sense.
func (g *gathering) take(from quorum.NodeID, missing *repair.Missing) bool {
	if missing.More && missing.Last <= g.in.After || g.counted.Has(from) {
		return false
	}
	if missing.More && (g.in.To == "" || missing.Last < g.in.To) {
		g.in.To, g.page.more = missing.Last, true
	}
	for _, entry := range missing.Entries {
		g.items = with(g.items, entry)
	}
	g.items = slices.DeleteFunc(g.items, func(i abd.Item) bool { return !g.in.Has(i.Key) })
	g.page.entries = append(g.page.entries, missing.Entries...)
	g.count(from, &missing.Standing)
	return true
}

// with returns items with what an entry says in its place.
func with(items []abd.Item, entry repair.Entry) []abd.Item {
	item := abd.Item{Key: entry.Key, Tag: entry.Record.Tag, Deleted: entry.Record.Deleted}
	i, found := slices.BinarySearchFunc(items, entry.Key, func(i abd.Item, k abd.Key) int { return strings.Compare(string(i.Key), string(k)) })
	switch {
	case !found:
		return slices.Insert(items, i, item)
	case items[i].Tag.Less(item.Tag):
		items[i] = item
	}
	return items
}

// count counts a member's answer. Like one to a get it counts as long as nobody
// who is counted beside it knows of a later life of its node (H3).
func (g *gathering) count(from quorum.NodeID, s *abd.Standing) {
	g.counted.Add(from)
	known := abd.Standing{Others: g.lives}
	for _, l := range s.With(from, s.Life).Others {
		known = known.With(l.Node, l.Life)
	}
	g.lives = known.Others
	g.gave = append(g.gave, abd.LifeOf{Node: from, Life: s.Life})
	for _, l := range g.gave {
		if l.Life < known.Of(l.Node) {
			g.failure = errForgotten
		}
	}
}
