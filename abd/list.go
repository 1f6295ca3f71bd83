package abd

import (
	"slices"
	"strings"

	"atoll/env"
	"atoll/quorum"
	"atoll/tags"
)

// Listed is a key that has a value.
type Listed struct {
	Key Key
	Tag tags.Tag
}

// List returns, in order, keys that begin with prefix and come after the key
// after, and have a value; at most limit of them (1 to MaxPage). More is true
// when the keys behind next must be asked for. A page may be empty and yet
// have more behind it, since deleted keys take up room.
//
// It is atomic for each key, as a read is, and no snapshot across keys.
func (r *Registers) List(e env.Env, prefix, after Key, limit int) (keys []Listed, next Key, more bool, err error) {
	if len(prefix) > MaxKey {
		return nil, "", false, prefix.Check()
	}
	pages, in, err := r.pages(e, &List{Prefix: prefix, After: after, Limit: min(max(limit, 1), MaxPage)})
	if err != nil {
		return nil, "", false, err
	}
	merged, next, more := r.merge(pages, in)
	if err := r.settle(e, merged); err != nil {
		return nil, "", false, err
	}
	for _, m := range merged {
		// Tombstones go last: dropped before merging, they would let an older
		// value of another member show through.
		if !m.absent {
			keys = append(keys, Listed{m.key, m.tag})
		}
	}
	return keys, next, more, nil
}

// listReaders is how many keys of a page are read at a time.
const listReaders = 32

// settle reads the keys whose put phases aren't known to have ended, which
// writes them back. Behind a member that has missed many writes that can be
// all of them.
func (r *Registers) settle(e env.Env, all []merged) error {
	var open []*merged
	for i := range all {
		if !all[i].settled && !r.Rules.TrustPages {
			open = append(open, &all[i])
		}
	}
	readers := make([]env.Task, min(listReaders, len(open)))
	for i := range readers {
		readers[i] = e.Go("abd.list", func(e env.Env) error {
			for n := i; n < len(open); n += len(readers) {
				rec, err := r.Read(e, open[n].key)
				if err != nil {
					return err
				}
				open[n].tag, open[n].absent = rec.Tag, rec.Absent()
			}
			return nil
		})
	}
	var first error
	for _, t := range readers {
		if err := t.Join(); first == nil {
			first = err
		}
	}
	return first
}

// pageOf is the page that a node returned.
type pageOf struct {
	node quorum.NodeID
	page *Page
}

// pages asks for pages until a read quorum of every active configuration has
// answered, and returns those configurations too.
func (r *Registers) pages(e env.Env, req *List) ([]pageOf, quorum.Configurations, error) {
	for {
		if pages, in, err := r.pagesOnce(e, *req); err != errOut {
			return pages, in, err
		}
	}
}

func (r *Registers) pagesOnce(e env.Env, req List) ([]pageOf, quorum.Configurations, error) {
	p := r.begin("list")
	req.Horizon = p.config.Horizon()
	var pages []pageOf
	accept := func(from quorum.NodeID, answer env.Message) bool {
		page, ok := answer.(*Page)
		if !ok || !page.follows(&req) {
			return false
		}
		for _, known := range pages {
			if known.node == from {
				return true
			}
		}
		pages = append(pages, pageOf{from, page})
		return true
	}
	p.prefer(e)
	void := func(node quorum.NodeID) {
		pages = slices.DeleteFunc(pages, func(p pageOf) bool { return p.node == node })
	}
	err := p.run(e, &req, accept, void, p.answered.HasRead, p.refused.LeavesRead)
	return pages, p.config.Active(), err
}

// follows reports whether a page can be an answer to req: sorted, within what
// was asked, and not claiming that there is more behind nothing.
func (p *Page) follows(req *List) bool {
	last := req.After
	for _, item := range p.Items {
		if item.Key <= last || !strings.HasPrefix(string(item.Key), string(req.Prefix)) {
			return false
		}
		last = item.Key
	}
	return len(p.Items) > 0 || !p.More
}

// merged is one key of a list, as a read quorum knows it.
type merged struct {
	key     Key
	tag     tags.Tag
	absent  bool
	settled bool
}

// merge takes the largest tag of each key up to the smallest end of the
// pages: behind that, some member hasn't spoken yet. A key that a page lacks
// was never written at that member.
func (r *Registers) merge(pages []pageOf, in quorum.Configurations) (keys []merged, end Key, more bool) {
	for _, p := range pages {
		if !p.page.More {
			continue
		}
		last := p.page.Items[len(p.page.Items)-1].Key
		if !more || (last < end) != r.Rules.MergeWholePages {
			end = last
		}
		more = true
	}
	type held struct {
		Item
		node quorum.NodeID
	}
	var all []held
	for _, p := range pages {
		for _, item := range p.page.Items {
			if !more || item.Key <= end {
				all = append(all, held{item, p.node})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b held) int { return strings.Compare(string(a.Key), string(b.Key)) })
	var holders quorum.Tally
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Key == all[0].Key {
			n++
		}
		holders.Begin(in)
		m := merged{key: all[0].Key}
		for _, h := range all[:n] {
			switch h.Tag.Compare(m.tag) {
			case +1:
				m.tag, m.absent, m.settled = h.Tag, h.Deleted, h.Confirmed
				holders.Clear()
				holders.Add(h.node)
			case 0:
				m.settled = m.settled || h.Confirmed
				holders.Add(h.node)
			}
		}
		m.settled = m.settled || holders.HasWrite()
		keys = append(keys, m)
		all = all[n:]
	}
	return keys, end, more
}
