package rambo

import (
	"errors"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
)

// merger merges into a node what a read quorum of old holds.
type merger struct {
	Tasks
	pace      Pace
	old, next *quorum.Configuration
	knows     Knowledge // of next, too
	from      merged    // where an earlier run stood
}

// run merges until all is merged or the scope ends. It goes on from where an
// earlier run stood: what was merged then came from members that durably knew of
// the next configuration, and they still do.
func (m merger) run(e env.Env) error {
	at := m.from
	if at.Index != m.next.Index() {
		at = merged{Index: m.next.Index()}
	}
	p := newPacer(m.pace)
	for !at.Done {
		err := m.stretch(e, p, &at)
		if _, ended := errors.AsType[*env.Unfinished](err); ended {
			return err
		}
		if err != nil {
			// Too many refuse, for want of knowledge or because of damage; or
			// this node has no space, or damage of its own. All of it passes.
			if err := e.Sleep(m.pace.Again); err != nil {
				return err
			}
		}
	}
	return nil
}

// stretch merges what comes behind at, and moves at, until all is merged or
// something fails.
//
// Several pages are under way: one is stored, and those behind it are fetched and
// held against what others have. They are stored one after another, so that all keys
// up to at are merged; the last two may not be durable yet. A page that was
// fetched early is as good as one that is fetched when it is its turn: it says what
// its members held when they gave it, and what they acknowledge afterwards reveals
// the next configuration, however long that is (R4.3).
func (m merger) stretch(e env.Env, p *pacer, at *merged) error {
	l := line{merger: m, pacer: p, at: at}
	for after, more := at.After, true; more || l.storing != nil || len(l.pages) > 0; {
		if more && !l.full() && (len(l.pages) == 0 || p.due(e)) {
			g, err := m.fetch(e, p, after)
			if err != nil {
				l.fail(err)
				more = false
				continue
			}
			p.begun(g)
			after, more = g.in.To, g.page.more
			l.pages = append(l.pages, &underway{gathering: g, until: after, Task: e.Go("rambo.fill", g.fill)})
			continue
		}
		took, ok := l.next(e)
		switch {
		case !ok:
			more = false
		case took.page.end != took.until && !m.Rules.LeaveGaps:
			// Somebody had so much beside that the page ends earlier, and what was
			// begun behind it doesn't follow it.
			l.drop()
			after, more = took.page.end, true
		}
	}
	return l.failed
}

// line is the pages of a stretch that are under way.
type line struct {
	merger
	pacer   *pacer
	at      *merged
	pages   []*underway // being fetched and compared, in order
	storing *underway   // the one before those
	failed  error       // the first time
}

// underway is a page of which something is done meanwhile.
type underway struct {
	env.Task
	*gathering         // while it is fetched and compared
	until      abd.Key // up to where it was begun
	at         merged  // while it is stored: where the node stands then
}

// The most pages that are fetched and compared at a time: one and the one behind it,
// or more when it was known beforehand where they end.
const (
	linePages  = 2
	aheadPages = 4
)

// full reports whether the first of the pages must be waited for.
func (l *line) full() bool {
	n := len(l.pages)
	return n >= aheadPages || n >= linePages && l.pages[n-1].located == nil
}

// next stores the next page, once the one before was. It reports false when there was
// none, or something has failed.
func (l *line) next(e env.Env) (took *underway, ok bool) {
	if l.storing != nil {
		err := l.storing.Join()
		if err == nil || l.Rules.SkipUnstored {
			*l.at = l.storing.at
		}
		l.storing = nil
		if err != nil {
			l.giveUp(err)
		}
	}
	if len(l.pages) == 0 {
		return nil, false
	}
	took, l.pages = l.pages[0], l.pages[1:]
	err := took.Join()
	l.pacer.took(took)
	if err != nil && !l.Rules.StoreUnfetched {
		l.giveUp(err)
		return nil, false
	}
	l.storing = l.store(e, took.page, l.at.Index)
	return took, true
}

// giveUp is for a page that isn't merged: what was begun behind it can't be either.
func (l *line) giveUp(err error) {
	l.fail(err)
	if !l.Rules.StoreBehind {
		l.drop()
	}
}

// drop gives up the pages that aren't stored yet.
func (l *line) drop() {
	for _, u := range l.pages {
		u.Cancel()
	}
	for _, u := range l.pages {
		_ = u.Join() // nobody waits for what it has
		l.pacer.pay(u)
	}
	l.pages = nil
}

// fail keeps the first error.
func (l *line) fail(err error) {
	if l.failed == nil {
		l.failed = err
	}
}

// fetch begins the page behind a key, when its time has come.
func (m merger) fetch(e env.Env, p *pacer, after abd.Key) (*gathering, error) {
	if err := p.wait(e); err != nil {
		return nil, err
	}
	return m.first(e, after, p)
}

// store stores a page, and that all up to its end is merged: durable together.
func (m merger) store(e env.Env, p page, index quorum.ConfigIndex) *underway {
	next := merged{Index: index, After: p.end, Done: !p.more}
	return &underway{at: next, Task: e.Go("rambo.store", func(e env.Env) error {
		_, err := env.AskOne[*taken](e, e.Self(), &take{p.entries, p.votes, next})
		return err
	})}
}
