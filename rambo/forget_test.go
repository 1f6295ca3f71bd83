package rambo_test

import (
	"slices"
	"testing"

	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/sim"
)

// couple are nodes that know a configuration of which a and b are the members.
type couple struct {
	t     *testing.T
	m     *quorum.Map
	disks map[quorum.NodeID]*sim.Disk
	nodes map[quorum.NodeID]*rambo.Replica
}

func newCouple(t *testing.T, ids ...quorum.NodeID) *couple {
	c := &couple{t: t, m: configMap(t, "a", "b"), disks: make(map[quorum.NodeID]*sim.Disk), nodes: make(map[quorum.NodeID]*rambo.Replica)}
	for _, id := range ids {
		c.disks[id] = sim.NewDisk()
		c.start(id)
	}
	return c
}

func (c *couple) start(id quorum.NodeID) {
	c.t.Helper()
	c.nodes[id] = newReplica(c.t, rambo.Config{Self: id, Genesis: &quorum.News{Map: c.m}, Own: quorum.Member{ID: id, Name: string(id), Addresses: []string{"h:1"}}},
		c.disks[id])
}

func (c *couple) step(on, from quorum.NodeID, m env.Message) env.Message {
	c.t.Helper()
	return step(c.t, c.nodes[on], from, m)
}

// gossip has one node tell another what it knows, and hear what that knows.
func (c *couple) gossip(from, to quorum.NodeID) {
	c.t.Helper()
	said, _ := rambo.Told(c.step(from, from, rambo.Know))
	answer := c.step(to, from, &rambo.Gossip{Knowledge: said}).(*rambo.Gossiped)
	c.step(from, from, &rambo.Gossip{Knowledge: answer.Knowledge})
}

// rounds lets rounds pass on nodes, in each of which all of them gossip.
func (c *couple) rounds(n int, among ...quorum.NodeID) {
	c.t.Helper()
	for range n {
		for _, from := range among {
			for _, to := range among {
				if from != to {
					c.gossip(from, to)
				}
			}
		}
		for _, id := range among {
			c.step(id, id, rambo.Age)
		}
	}
}

// knows fails the test unless nodes know x or don't.
func (c *couple) knows(want bool, of quorum.NodeID, nodes ...quorum.NodeID) {
	c.t.Helper()
	for _, id := range nodes {
		_, others := rambo.Told(c.step(id, id, rambo.Know))
		if got := knows(c.nodes[id], of); got != want || slices.Contains(others, of) != want {
			c.t.Errorf("%s knows %s: %v, want %v; it gossips with %v", id, of, got, want, others)
		}
	}
}

// TestSilentNodesAreForgotten: who is no member and says nothing is forgotten by all,
// however they gossip; who says something is known, and is known again.
func TestSilentNodesAreForgotten(t *testing.T) {
	c := newCouple(t, "a", "b", "x")
	c.rounds(3*rambo.ForgetAfter, "a", "b", "x")
	c.knows(true, "x", "a", "b")
	// x ends. A member is silent as long, and isn't forgotten.
	c.rounds(rambo.ForgetAfter-2, "a", "b")
	c.knows(true, "x", "a", "b")
	c.rounds(1, "a", "b")
	c.knows(false, "x", "a", "b")
	c.rounds(3*rambo.ForgetAfter, "a")
	c.knows(true, "b", "a")
	c.start("a") // it is forgotten for good
	c.knows(false, "x", "a")
	// x is back, and tells one of them.
	c.gossip("x", "a")
	c.rounds(1, "a", "b")
	c.knows(true, "x", "a", "b")
}

// TestWhoSlept: a node that was down while others forgot doesn't bring back what it
// knew, and forgets it, too.
func TestWhoSlept(t *testing.T) {
	c := newCouple(t, "a", "b", "x")
	c.rounds(1, "a", "b", "x")
	c.rounds(2*rambo.ForgetAfter, "a") // b and x are down
	c.knows(false, "x", "a")
	c.start("b")
	c.knows(true, "x", "b")
	c.rounds(1, "a", "b")
	c.knows(false, "x", "a")
	c.rounds(rambo.ForgetAfter, "a", "b")
	c.knows(false, "x", "a", "b")
}

// TestOneHop: a node that only others can hear is known as long as they hear it.
func TestOneHop(t *testing.T) {
	c := newCouple(t, "a", "b", "x")
	for range 3 * rambo.ForgetAfter {
		c.gossip("x", "b")
		c.rounds(1, "a", "b")
	}
	c.knows(true, "x", "a", "b")
}
