package rambo

import (
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/repair"
)

// pacer spreads the records that are merged over time, and says how large the pages
// are.
type pacer struct {
	rate  int64         // bytes a second, below zero without limit
	page  int           // the most records of a page
	free  time.Duration // when the next may be fetched
	last  int64         // how many bytes the last page had
	stock int           // how many of its own tags the node compares in the next one
	most  int           // of those
	// ahead is how many records a page has of which it is found out beforehand where
	// it ends; 0 if that isn't worth it.
	ahead int
	blind int // for how many more pages it isn't
}

// stockPages is how many times as many of its own tags a node compares as it asks for
// records.
const stockPages = repair.LargestStock / repair.LargestPage

func newPacer(pace Pace) *pacer {
	most := stockPages * pace.Page
	return &pacer{rate: pace.Rate, page: pace.Page, stock: most, most: most}
}

// shortest is what isn't waited for: as long as the limit isn't reached, pages are
// begun ahead of their time by less.
const shortest = 5 * time.Millisecond

// due reports whether it is time for the next page.
func (p *pacer) due(e env.Env) bool { return p.rate < 0 || p.free <= e.Now()+shortest }

// wait waits until it is.
func (p *pacer) wait(e env.Env) error {
	now := e.Now()
	if p.due(e) {
		p.free = max(p.free, now) // what was late isn't made up for
		return nil
	}
	return e.Sleep(p.free - now)
}

// begun takes the time for a page as far as it has come, or as much as it is likely to be.
func (p *pacer) begun(g *gathering) {
	if g.located != nil {
		g.charged = p.last
	} else {
		g.charged = g.page.bytes()
	}
	p.charge(g.charged)
}

// took takes in what a page has brought.
func (p *pacer) took(u *underway) {
	p.last = p.pay(u)
	p.adapt(u)
	p.look(u)
}

// pay takes the time for what has come of a page, whatever becomes of it, and returns
// how many bytes that is.
func (p *pacer) pay(u *underway) int64 {
	bytes := u.page.bytes()
	p.charge(bytes - u.charged)
	return bytes
}

// charge takes the time for so many bytes, or gives it back.
func (p *pacer) charge(bytes int64) {
	if p.rate > 0 {
		p.free += time.Duration(bytes * int64(time.Second) / p.rate)
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
	p.stock = min(p.stock, p.most)
}

// Pages whose end is found out beforehand have a fourth fewer records than an answer
// may, so that it seldom ends before they do: what was begun behind one that does was
// in vain. After one that did so many pages aren't found out.
const (
	aheadShare = 4
	aheadBlind = 16
)

// look decides whether it is found out beforehand where the next pages end: if the
// last was one of many, and nearly all in it was missing here. Where others have
// more than that beside, more is asked of them in vain.
func (p *pacer) look(took *underway) {
	n := len(took.page.entries)
	switch {
	case p.blind > 0:
		p.blind--
	case took.located != nil && took.short:
		p.blind = aheadBlind
	}
	p.ahead = 0
	if p.blind > 0 || !took.page.more || n == 0 || len(took.items) > n/8 {
		return
	}
	fit := max(1, int(repair.MaxEntryBytes/max(1, p.last/int64(n))))
	most := min(p.page, fit)
	p.ahead = most - most/aheadShare
}
