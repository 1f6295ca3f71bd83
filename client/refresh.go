package client

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
)

// miss says that a member can't be reached.
func (c *Client) miss() { leave(c.lost) }

// need says that something can't be sent, since there is no session with who should get it.
func (c *Client) need() { leave(c.needed) }

// leave puts a token into a channel that has place for one, unless there is one.
func leave(tokens chan<- struct{}) {
	select {
	case tokens <- struct{}{}:
	default:
	}
}

// refresh looks where members are now, whenever one was lost, until all can be
// reached again: a node that comes back elsewhere tells other nodes, and clients
// learn it from those. Who has lost too many searches at all addresses that it
// knows.
func (c *Client) refresh() {
	pause := refreshFirst
	parting := make(map[quorum.NodeID]time.Time)
	// At first, too: the connections are only being made, and what has described
	// the cluster may know less than others.
	for {
		var goesOn bool
		if pause, goesOn = c.rest(pause, c.waits); !goesOn {
			return
		}
		c.letGo(parting)
		if c.complete() {
			pause = refreshFirst
			var part <-chan time.Time
			if len(parting) > 0 {
				part = time.After(partAfter)
			}
			select {
			case <-c.lost:
			case <-part:
			case <-c.refreshes.Done():
				return
			}
			continue
		}
		ctx, cancel := context.WithTimeout(c.refreshes, refreshPatience)
		enough := c.survey(ctx)
		cancel()
		// What waits for nodes that are gone asks others again, as long as it does: when
		// it was woken, those that it asked may not have heard yet.
		c.runtime.Wake()
		most := refreshMost
		if !enough {
			most = refreshCutOff
		}
		pause = min(2*pause, most)
	}
}

// rest waits for about pause, and reports whether the client goes on. Unless something
// waits for a member that is lost it waits restfulness times as long, until something
// does: what ten thousand idle clients ask when a member dies costs the others, and the
// member when it is back, more than it tells anybody.
//
// When another one is lost meanwhile, it begins anew with the shortest pause, and
// returns that: who is left may be the last that know more, and too few for what waits.
func (c *Client) rest(pause time.Duration, waits func() bool) (_ time.Duration, goesOn bool) {
	soon, late := after(pause), after(restfulness*pause)
	for needed := waits(); ; {
		end := late
		if needed {
			end = soon
		}
		select {
		case <-c.needed:
			needed = true
		case <-c.lost:
			needed = needed || waits()
			if pause > refreshFirst {
				pause = refreshFirst
				soon, late = after(pause), after(restfulness*pause)
			}
		case <-end:
			return pause, true
		case <-c.refreshes.Done():
			return pause, false
		}
	}
}

// after is time.After of between a half and the whole of a time: or all clients would ask
// at the same moment.
func after(d time.Duration) <-chan time.Time { return time.After(d/2 + rand.N(d/2)) }

// waits reports whether something waits for a member that there is no session with.
func (c *Client) waits() bool {
	return slices.ContainsFunc(c.known.Load().Active().Members(), func(id quorum.NodeID) bool {
		return !c.transport.Connected(id) && c.runtime.Asks(id)
	})
}

// complete reports whether there is a session with each member.
func (c *Client) complete() bool {
	return !slices.ContainsFunc(c.known.Load().Active().Members(), func(id quorum.NodeID) bool { return !c.transport.Connected(id) })
}

// letGo ends the sessions with nodes that are members no more: they may be switched
// off, and would be dialed for ever. Where they are stays known, see search. With one
// that is there, which may be a member again soon, it stays for a while: parting has
// since when it is none. And with one that is being asked, as long as it is: what is
// dialed again and again from the beginning is never reached, and looks silent.
func (c *Client) letGo(parting map[quorum.NodeID]time.Time) {
	active, now := c.known.Load(), time.Now()
	for _, id := range c.nodes() {
		since, known := parting[id]
		if !known {
			since = now
		}
		switch {
		case active.Has(id):
			delete(parting, id)
		case c.runtime.Asks(id) || c.transport.Connected(id) && now.Sub(since) < partAfter:
			parting[id] = since
		default:
			delete(parting, id)
			c.transport.Forget(id)
		}
	}
}

// survey asks all nodes that there is a session with what they know, and takes it
// in, and reports whether those are enough for every operation. When they are too
// few to know all that has been decided, it searches, too. It ends when all have
// answered, or ctx does.
func (c *Client) survey(ctx context.Context) (enough bool) {
	var there []quorum.NodeID
	var heard quorum.Tally
	heard.Begin(c.known.Load().Active())
	for _, id := range c.nodes() {
		if c.transport.Connected(id) {
			there = append(there, id)
			heard.Add(id)
		}
	}
	var searching sync.WaitGroup
	if !heard.HasRead() {
		searching.Go(func() { c.search(ctx) })
	}
	c.askAll(ctx, there)
	searching.Wait()
	return heard.HasRead() && heard.HasWrite()
}

// askAll asks nodes to describe the cluster.
func (c *Client) askAll(ctx context.Context, nodes []quorum.NodeID) {
	e, err := c.scope(ctx)
	if err != nil || len(nodes) == 0 {
		return
	}
	defer e.end()
	answered := make(map[quorum.NodeID]*replica.Description)
	_ = e.Ask(nodes, &replica.Describe{}, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		if d, ok := answer.(*replica.Description); ok {
			answered[from] = d
		}
		return len(answered) == len(nodes)
	})
	c.takeIn(slices.Collect(maps.Values(answered))...)
}

// search asks whoever is at an address that the client knows: those that it was
// given, whose names may stand for other nodes by now, and those of all nodes that
// it has heard of. Any node that lives knows more, also one that was removed.
func (c *Client) search(ctx context.Context) {
	var asking sync.WaitGroup
	for _, address := range c.addressBook() {
		asking.Go(func() {
			d, err := c.describe(ctx, address)
			if err != nil {
				c.cfg.Log.Debug("nobody is found", "address", address, "error", err)
				return
			}
			c.takeIn(d)
		})
	}
	asking.Wait()
}

// addressBook is where the cluster may be found: maxSearched addresses at most,
// those first that the client was given.
func (c *Client) addressBook() []string {
	book := slices.Clone(c.cfg.Endpoints)
	for _, id := range c.nodes() {
		for _, a := range c.member(id).Addresses {
			if !slices.Contains(book, a) {
				book = append(book, a)
			}
		}
	}
	return book[:min(len(book), maxSearched)]
}

// nodes are all nodes that are known: members of active configurations, and others.
func (c *Client) nodes() []quorum.NodeID {
	ids := c.known.Load().Active().Members()
	in := make(map[quorum.NodeID]bool)
	for _, id := range ids {
		in[id] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all := append([]quorum.NodeID{}, ids...)
	for id := range c.mu.members {
		if !in[id] {
			all = append(all, id)
		}
	}
	slices.Sort(all[len(ids):])
	return all
}
