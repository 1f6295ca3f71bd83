package rambo

import (
	"errors"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/repair"
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
	p := pacer{rate: m.pace.Rate, stock: repair.LargestStock}
	for !at.Done {
		err := m.stretch(e, &p, &at)
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
// Three pages are under way: one is stored, of the next it is asked whether
// others have the same, and the one behind that is fetched. They are stored one
// after another, each once the one before is durable, so that all keys up to at
// are merged. A page that was fetched early is as good as one that is fetched
// when it is its turn: it says what its members held when they gave it, and what
// they acknowledge afterwards reveals the next configuration, however long that
// is (R4.3).
func (m merger) stretch(e env.Env, p *pacer, at *merged) (failed error) {
	fail := func(err error) bool {
		if failed == nil {
			failed = err
		}
		return err != nil
	}
	var comparing, storing *underway
	for after, more := at.After, true; more || comparing != nil || storing != nil; {
		var fetched *underway
		if more {
			g, err := m.fetch(e, p, after)
			if !fail(err) {
				fetched = &underway{gathering: g, until: g.in.To}
				after, more = g.in.To, g.page.more
			}
		}
		if storing != nil && !fail(storing.Join()) {
			*at = storing.at
		}
		storing = nil
		if comparing != nil {
			fail(comparing.Join())
			p.charge(comparing.page) // what came is paid for, whatever becomes of it
			p.adapt(comparing)
		}
		if comparing != nil && failed == nil {
			took := comparing.page
			storing = m.store(e, took, at.Index)
			if took.end != comparing.until && !m.Rules.LeaveGaps {
				// Somebody had so much beside that the page ends earlier, and
				// what was fetched meanwhile doesn't follow it.
				fetched, after, more = nil, took.end, true
			}
		}
		if failed != nil {
			fetched, more = nil, false
		}
		if comparing = fetched; comparing != nil {
			comparing.Task = e.Go("rambo.compare", comparing.rest)
		}
	}
	return failed
}

// underway is a page of which something is done meanwhile.
type underway struct {
	env.Task
	*gathering         // while it is compared
	until      abd.Key // up to where it was fetched
	at         merged  // while it is stored: where the node stands then
}

// fetch begins the page behind a key, when its time has come.
func (m merger) fetch(e env.Env, p *pacer, after abd.Key) (*gathering, error) {
	if err := p.wait(e); err != nil {
		return nil, err
	}
	return m.first(e, after, p)
}

// store makes a page durable, and that all up to its end is merged.
func (m merger) store(e env.Env, p page, index quorum.ConfigIndex) *underway {
	next := merged{Index: index, After: p.end, Done: !p.more}
	return &underway{at: next, Task: e.Go("rambo.store", func(e env.Env) error {
		_, err := env.AskOne[*taken](e, e.Self(), &take{p.entries, p.votes, next})
		return err
	})}
}

// pacer spreads the records that are merged over time, and says how large the pages
// are.
type pacer struct {
	rate  int64         // bytes a second, below zero without limit
	free  time.Duration // when the next may be fetched
	last  int64         // how many bytes the last page had
	stock int           // how many of its own tags the node compares in the next one
}

// wait waits until it is time for the next page.
func (p *pacer) wait(e env.Env) error {
	now := e.Now()
	if p.rate < 0 || p.free <= now {
		p.free = now // what was late isn't made up for
		return nil
	}
	return e.Sleep(p.free - now)
}

// charge takes the time for a page.
func (p *pacer) charge(took page) {
	p.last = 0
	for _, e := range took.entries {
		p.last += int64(len(e.Key) + len(e.Record.Value))
	}
	if p.rate > 0 {
		p.free += time.Duration(p.last * int64(time.Second) / p.rate)
	}
}

// adapt has the next pages compare as many keys as are likely to fit: when the
// answers end before the node's own tags do, the rest was told for nothing.
func (p *pacer) adapt(took *underway) {
	if took.short {
		p.stock = max(abd.MaxPage, 2*len(took.items))
	} else {
		p.stock *= 2
	}
	p.stock = min(p.stock, repair.LargestStock)
}
