package rambo

import (
	"slices"
	"strings"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/repair"
	"atoll/synod"
)

// page is what a read quorum of the old configuration holds behind a key, and
// the node doesn't.
type page struct {
	begin, end abd.Key
	more       bool
	entries    []repair.Entry
	votes      []synod.Carried // on its keys; of each instance that of the highest ballot
}

// bytes is how many bytes the keys and values have.
func (p *page) bytes() (n int64) {
	for i := range p.entries {
		n += int64(len(p.entries[i].Key) + len(p.entries[i].Record.Value))
	}
	return n
}

// first begins the page behind a key, so far that it is known where it ends. One
// member is asked for all that it has and the node hasn't; the others for what they
// have beside, or for the hash of the same range if there is likely to be nothing. So
// each record comes once.
//
// Where the page ends is known when the one member has answered (most). While many
// pages follow one another another member is asked first for the hash of so many
// records, and says where they end (locate): that is soon done, and the next page can
// be begun.
func (m merger) first(e env.Env, after abd.Key, p *pacer) (*gathering, error) {
	own, err := env.AskOne[*stock](e, e.Self(), &have{after, p.stock})
	if err != nil {
		return nil, err
	}
	g := &gathering{merger: m, expect: int(p.last), page: page{begin: after}, in: repair.Range{After: after}, items: own.Items}
	if own.More {
		g.end(own.Items[len(own.Items)-1].Key)
	}
	g.counted.Begin(quorum.Configurations{m.old})
	g.refused.Begin(quorum.Configurations{m.old})
	g.counted.Add(e.Self()) // if it stays: what it holds is there
	if p.ahead > 0 && !g.enough() {
		if err := g.locate(e, p.ahead); err != nil {
			return nil, err
		}
	}
	if g.located == nil {
		return g, g.most(e)
	}
	return g, nil
}

// gathering is a page under way.
type gathering struct {
	merger
	page    page
	expect  int   // about how many bytes that will be
	charged int64 // of them, to the pacer
	in      repair.Range
	items   []abd.Item // what the node has in the range
	located *located   // nil: nobody was asked for the end
	counted quorum.Tally
	refused quorum.Tally
	short   bool // an answer ended before the node's own page
}

// located is what a member has said of a page before it was fetched.
type located struct {
	by      quorum.NodeID
	summary *repair.Summary
	to      abd.Key // where the page ends by it
}

// end has the page end at a key.
func (g *gathering) end(to abd.Key) {
	g.in.To, g.page.more = to, true
	for len(g.items) > 0 && !g.in.Has(g.items[len(g.items)-1].Key) {
		g.items = g.items[:len(g.items)-1]
	}
}

// locate asks one member for the hash of its next records, so many, and where they
// end. One of an older version doesn't say that; then the page isn't located.
func (g *gathering) locate(e env.Env, records int) error {
	first, spare := g.others(e)
	req := &repair.Summarize{Range: g.in, Keys: records, Cut: true, Terms: g.terms()}
	return g.ask(e, first[:1], append(first[1:], spare...), req, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		summary, ok := answer.(*repair.Summary)
		if !ok || summary.Keys > records || summary.Last != "" && !g.in.Has(summary.Last) {
			return ok
		}
		if summary.Last != "" {
			g.end(summary.Last)
		}
		g.located = &located{from, summary, g.in.To}
		return true
	})
}

// fill brings a page to its end that was begun.
func (g *gathering) fill(e env.Env) error {
	if g.located != nil {
		if err := g.most(e); err != nil {
			return err
		}
	}
	return g.rest(e)
}

func (g *gathering) terms() repair.Terms { return repair.Terms{Knows: g.next.Index()} }

// enough: a read quorum of the old configuration has answered (R4.3).
func (g *gathering) enough() bool { return g.suffices(&g.counted) }

func (g *gathering) suffices(answered *quorum.Tally) bool {
	switch {
	case g.Rules.MergeFromOne:
		return true
	case g.Rules.MergeWriteQuorum:
		return answered.HasWrite()
	}
	return answered.HasRead()
}

// most asks for all records behind the key that the node lacks, of whoever answers
// first.
func (g *gathering) most(e env.Env) error {
	order := slices.DeleteFunc(slices.Clone(e.Nearest(g.old.Members())), func(n quorum.NodeID) bool { return n == e.Self() || g.hasLocated(n) })
	if g.located != nil {
		order = append(order, g.located.by) // somebody else is needed anyway
	}
	if len(order) == 0 {
		return nil
	}
	req := g.offer(e)
	return g.ask(e, order[:1], order[1:], req, func(c env.Conversation, from quorum.NodeID, answer env.Message) bool {
		missing, ok := answer.(*repair.Missing)
		if !ok || !g.take(from, missing) {
			c.Add(order...)
			return false
		}
		return true
	})
}

// offer asks for what the node lacks in the range.
func (g *gathering) offer(e env.Env) *repair.Offer {
	return &repair.Offer{Range: g.in, Sketch: repair.SketchOf(e.Rand(), g.items, g.page.entries), Terms: g.terms(), Limit: g.pace.Page, Expect: g.expect}
}

// rest asks others whether they have the same by now: as many as are needed, and
// more when one of those is late or refuses.
func (g *gathering) rest(e env.Env) error {
	g.countLocated()
	if !g.enough() {
		first, spare := g.others(e)
		req, want := g.second(e)
		err := g.ask(e, first, spare, req, func(c env.Conversation, from quorum.NodeID, answer env.Message) bool {
			switch answer := answer.(type) {
			case *repair.Summary:
				switch {
				case want == nil:
					return false // it was asked for what it has
				case answer.Keys != want.Keys || answer.Hash != want.Hash:
					c.Redirect(from, g.offer(e))
					return false
				}
				g.counted.Add(from)
			case *repair.Missing:
				g.take(from, answer)
			}
			return g.enough()
		})
		if err != nil {
			return err
		}
	}
	g.page.end = g.in.To
	return nil
}

// hasLocated reports whether a member has said where the page ends.
func (g *gathering) hasLocated(n quorum.NodeID) bool { return g.located != nil && g.located.by == n }

// countLocated counts the member that has said where the page ends if the node has
// now what that has: it has answered for the range, with a hash. If it hasn't, the
// member is asked like the others.
func (g *gathering) countLocated() {
	l := g.located
	if l == nil || g.in.To != l.to || g.counted.Has(l.by) {
		return
	}
	want := g.summary()
	same := l.summary.Keys == want.Keys && (l.summary.Hash == want.Hash || g.Rules.CountByKeys)
	if same || g.Rules.CountLocated {
		g.counted.Add(l.by)
	}
}

// summary is what a member answers that has what the node has with the page.
func (g *gathering) summary() *repair.Summary {
	return repair.SummaryOf(g.items, g.page.entries, g.page.votes)
}

// second is what those are asked that aren't asked first: for the summary by which they
// show that the node has all that they have, want. If the first has given a few records
// to a node that had more, or the one that has located the page has something beside,
// writes go on, so others will have something, too: they are asked for that at once,
// and want is nil.
func (g *gathering) second(e env.Env) (req env.Message, want *repair.Summary) {
	n := len(g.page.entries)
	differs := g.located != nil && g.located.to == g.in.To // from what it has, or it would be counted
	if differs || n > 0 && n < len(g.items)/2 {
		return g.offer(e), nil
	}
	want = g.summary()
	return &repair.Summarize{Range: g.in, Keys: want.Keys, Terms: g.terms()}, want
}

// others are the members that haven't answered yet: so many as make up a read
// quorum with those that have, and the rest.
func (g *gathering) others(e env.Env) (first, spare []quorum.NodeID) {
	var asked quorum.Tally
	asked.Begin(quorum.Configurations{g.old})
	var left []quorum.NodeID
	for _, n := range e.Nearest(g.old.Members()) {
		if g.counted.Has(n) {
			asked.Add(n)
		} else {
			left = append(left, n)
		}
	}
	for i, n := range left {
		if asked.Add(n); g.suffices(&asked) {
			return left[:i+1], left[i+1:]
		}
	}
	return left, nil
}

// ask is AskSome that ends when those who don't refuse have no read quorum. Who
// refuses because it hasn't heard of the new configuration yet is told of it,
// and asked once more when it knows (R4.3): nobody else would ask it again, and
// those who are asked instead may be dead.
func (g *gathering) ask(e env.Env, first, spare []quorum.NodeID, req env.Message,
	each func(env.Conversation, quorum.NodeID, env.Message) bool) error {

	few := false
	var told quorum.Tally
	told.Begin(quorum.Configurations{g.old})
	err := e.AskSome(first, spare, req, func(c env.Conversation, from quorum.NodeID, answer env.Message) bool {
		switch answer := answer.(type) {
		case *env.Refused:
			if answer.Reason == env.ReasonBehind && !told.Has(from) && !g.Rules.LeaveBehind {
				told.Add(from)
				c.Redirect(from, &Gossip{g.knows})
				return false
			}
			c.Add(spare...)
			g.refused.Add(from)
			few = !g.refused.LeavesRead()
			return few
		case *Gossiped:
			c.Redirect(from, req)
			return false
		}
		return each(c, from, answer)
	})
	switch {
	case err != nil:
		return err
	case few:
		return errFew
	}
	return nil
}

// take takes over what a member has that the node lacks, up to where its answer
// ends. It reports whether the answer makes sense.
func (g *gathering) take(from quorum.NodeID, missing *repair.Missing) bool {
	if missing.More && missing.Last <= g.in.After || g.counted.Has(from) {
		return false
	}
	if missing.More && (g.in.To == "" || missing.Last < g.in.To) {
		g.end(missing.Last)
		g.short = true
	}
	if len(g.page.entries) == 0 {
		g.page.entries = slices.Clip(missing.Entries)
	} else {
		g.page.entries = append(g.page.entries, missing.Entries...)
	}
	for _, c := range missing.Votes {
		g.page.votes = withVote(g.page.votes, c)
	}
	g.page.votes = slices.DeleteFunc(g.page.votes, func(c synod.Carried) bool { return !g.in.Has(repair.KeyOf(c.Instance)) })
	g.counted.Add(from)
	return true
}

// withVote returns votes with one more, or in the place of one with a smaller
// ballot.
func withVote(votes []synod.Carried, c synod.Carried) []synod.Carried {
	i, found := slices.BinarySearchFunc(votes, c.Instance, func(v synod.Carried, i synod.Instance) int { return strings.Compare(string(v.Instance), string(i)) })
	switch {
	case !found:
		return slices.Insert(votes, i, c)
	case votes[i].Vote.Ballot.Less(c.Vote.Ballot):
		votes[i] = c
	}
	return votes
}
