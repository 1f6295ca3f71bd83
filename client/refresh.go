package client

import (
	"context"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
)

// miss says that a member can't be reached.
func (c *Client) miss() {
	select {
	case c.lost <- struct{}{}:
	default:
	}
}

// refresh looks where members are now, whenever one was lost, until all can be
// reached again: a node that comes back elsewhere tells other nodes, and clients
// learn it from those. Who has lost all members tries the endpoints that it was
// given, whose names may stand for others by now.
func (c *Client) refresh() {
	pause := refreshFirst
	// At first, too: the connections are only being made, and what has described
	// the cluster may know less than others.
	for {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-c.refreshes.Done():
			timer.Stop()
			return
		}
		if c.complete() {
			pause = refreshFirst
			select {
			case <-c.lost:
			case <-c.refreshes.Done():
				return
			}
			continue
		}
		ctx, cancel := context.WithTimeout(c.refreshes, refreshPatience)
		c.survey(ctx)
		cancel()
		pause = min(2*pause, refreshMost)
	}
}

// complete reports whether there is a session with each member.
func (c *Client) complete() bool {
	for _, id := range c.known.Load().Active().Members() {
		if !c.transport.Connected(id) {
			return false
		}
	}
	return true
}

// survey asks all nodes that there is a session with what they know, and takes it
// in; without any, whoever is at the endpoints. It ends when all have answered, or
// ctx does.
func (c *Client) survey(ctx context.Context) {
	var there []quorum.NodeID
	for _, id := range c.nodes() {
		if c.transport.Connected(id) {
			there = append(there, id)
		}
	}
	if len(there) == 0 {
		if err := c.discover(ctx); err != nil && ctx.Err() == nil {
			c.cfg.Log.Debug("no member is found", "error", err)
		}
		return
	}
	e, err := c.scope(ctx)
	if err != nil {
		return
	}
	defer e.end()
	answered := make(map[quorum.NodeID]*replica.Description)
	_ = e.Ask(there, &replica.Describe{}, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		if d, ok := answer.(*replica.Description); ok {
			answered[from] = d
		}
		return len(answered) == len(there)
	})
	for _, d := range answered {
		c.takeIn(d)
	}
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
	return all
}
