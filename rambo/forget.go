package rambo

import (
	"errors"
	"slices"

	"atoll/abd"
	"atoll/quorum"
)

// A node is known to others as long as an active configuration names it or it is
// heard of. Otherwise it is forgotten: it would be greeted, dialed and shown as
// silent for ever.
//
// What is forgotten is where a node is and what it is called. No rule hangs on
// that: who is a member, configurations say; what a node that was removed knows,
// fences it still; and its instance is remembered (package join). A node that
// speaks again is known again.
//
// Gossip brings nobody back. Only who has been spoken to by a node itself, a short
// while ago, speaks of it to others, and what these hear they keep to themselves. So
// when a node has ended, nobody speaks of it soon, and then all forget it. That needs
// neither clocks that agree nor a record of who was forgotten.
//
// Time goes in rounds, of which there are forgetAfter in Pace.Silence: while a
// process is stopped, none pass.
const (
	// freshFor is for how many rounds a node that has spoken itself is spoken of to
	// others.
	freshFor = 6
	// forgetAfter is after how many rounds of silence it is forgotten.
	forgetAfter = 30
)

// age begins another round, and forgets who has been silent for too many.
func (r *Replica) age() error {
	if r.news == nil {
		return nil
	}
	silent := make(map[quorum.NodeID]int)
	left := slices.DeleteFunc(slices.Clone(r.news.Members), func(m quorum.Member) bool {
		if r.stays(m.ID) {
			return false
		}
		silent[m.ID] = r.silence(m.ID) + 1
		return silent[m.ID] >= forgetAfter
	})
	r.silent = silent
	if len(left) == len(r.news.Members) {
		return nil
	}
	switch err := r.setCell(cellMembers, appendMembers(nil, left)); {
	case errors.Is(err, abd.ErrFull):
		return nil // another time
	case err != nil:
		return err
	}
	r.news = &quorum.News{Map: r.news.Map, Members: left}
	return nil
}

// stays reports whether a node isn't forgotten however silent it is.
func (r *Replica) stays(id quorum.NodeID) bool { return id == r.cfg.Self || r.Map().Has(id) }

// silence is for how many rounds a node has been silent. What is known of one from
// an earlier life, or from others, isn't fresh.
func (r *Replica) silence(id quorum.NodeID) int {
	if n, ok := r.silent[id]; ok {
		return n
	}
	return freshFor
}

// hear notes that a node has spoken, of others and perhaps of itself.
func (r *Replica) hear(from quorum.NodeID, said []quorum.Member) {
	if r.news == nil {
		return
	}
	for _, m := range said {
		switch _, known := find(r.news.Members, m.ID); {
		case !known || r.stays(m.ID):
		case m.ID == from:
			r.silent[m.ID] = 0
		default:
			r.silent[m.ID] = min(r.silence(m.ID), freshFor)
		}
	}
}

// heard is what the node knows, but for those of whom it doesn't speak.
func (r *Replica) heard() *quorum.News {
	if r.news == nil {
		return nil
	}
	stale := func(m quorum.Member) bool { return !r.stays(m.ID) && r.silence(m.ID) >= freshFor }
	if !slices.ContainsFunc(r.news.Members, stale) {
		return r.news
	}
	return &quorum.News{Map: r.news.Map, Members: slices.DeleteFunc(slices.Clone(r.news.Members), stale)}
}

// others are all nodes that are known, but for the node itself, sorted: those of a
// configuration that is out, too, which may not know that.
func (r *Replica) others() []quorum.NodeID {
	if r.news == nil {
		return nil
	}
	others := slices.Clone(r.news.Map.Active().Members())
	for _, m := range r.news.Members {
		others = append(others, m.ID)
	}
	slices.Sort(others)
	return slices.DeleteFunc(slices.Compact(others), func(n quorum.NodeID) bool { return n == r.cfg.Self })
}
