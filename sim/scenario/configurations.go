package scenario

import (
	"fmt"
	"slices"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
	"atoll/sim/succession"
	"atoll/tags"
)

// begin begins with the first configuration of a cluster whose members change.
func (c *cluster) begin() error {
	m, err := quorum.NewMap(c.configuration)
	if err != nil {
		return err
	}
	c.told.Map = m
	for i := range c.r.s.pool() {
		c.told.Nodes = append(c.told.Nodes, c.r.s.node(c.number, i))
	}
	c.succession, err = succession.New(succession.Config{
		First:     c.configuration,
		Nodes:     c.told.Nodes,
		Registers: c.r.s.Keys,
		Holds:     func(node, register int) tags.Tag { return c.registers[register].durable[node] },
		Text:      c.r.w.TagText,
		Broken: func(rule string, number int, text string) {
			var g *register
			if number != succession.None {
				g = c.registers[number]
			}
			c.r.violate(rule, g, "%s", text)
		},
	})
	return err
}

// SetCell implements replica.Store.
func (s *watched) SetCell(name string, value []byte) (env.Position, error) {
	at, err := s.disk.SetCell(name, value)
	if err == nil && s.n.c.changing {
		if err := s.n.journal.Cell(at, name, value); err != nil {
			s.n.c.r.violate("config-map", nil, "%s: %v", s.n.p.ID(), err)
		}
	}
	return at, err
}

// checkSettled holds the tag with which an operation has ended against what the
// newest configuration durably holds.
func (c *cluster) checkSettled(cl *client, g *register, tag tags.Tag) {
	c.succession.Ended(fmt.Sprintf("a %s of %s", cl.op.kind, cl.name), slices.Index(c.registers, g), tag)
}

// page holds each page of a merge against what its node durably knows.
func (c *cluster) page(o *sim.Observation) {
	if !o.Answer {
		c.succession.Asks(succession.Asked{By: o.From.Index(), Conversation: o.Conversation}, o.Message)
	} else if n := c.r.byIndex[o.From.Index()].node; n != nil {
		c.succession.Answers(succession.Asked{By: o.To.Index(), Conversation: o.Conversation}, n.place, o.Message)
	}
}

// agree waits, after the healing, until all nodes that are healed durably know
// the newest configuration as the only one.
func (r *run) agree() {
	if !r.s.changes() {
		return
	}
	c, late := r.clusters[0], false
	r.w.At(time.Duration(r.s.Bounds.Ends), func() { late = true })
	r.until(func() bool { return late || c.behind() == nil })
	if n := c.behind(); n != nil && !r.failed {
		r.violate("liveness", nil, "%s knows %v %v after all operations have ended; known is %v",
			n.p.ID(), c.succession.KnownBy(n.place), r.s.Bounds.Ends, c.succession.Known())
	}
}

// behind returns a healed member of the newest configuration that doesn't know
// it as the only one.
func (c *cluster) behind() *node {
	rest := c.r.plan.notHealed()
	newest := c.succession.Known().Newest()
	for _, id := range newest.Members() {
		if n := c.byID[id]; !slices.Contains(rest, string(id)) && c.succession.KnownBy(n.place).Horizon().Installed != newest.Index() {
			return n
		}
	}
	return nil
}

// notHealed are the names of all nodes that aren't healed.
func (p Plan) notHealed() (names []string) {
	for _, h := range p.Healing {
		names = append(names, h.rest()...)
	}
	return names
}

// now returns the configuration through which what is there is read back, and
// what a client of it knows.
func (c *cluster) now() (*quorum.Configuration, Cluster) {
	if !c.changing {
		return c.configuration, c.told
	}
	k := c.succession.Known().Installed()
	m, err := quorum.NewMap(k)
	if err != nil {
		panic(err) // it is one configuration
	}
	told := c.told
	told.Map = m
	return k, told
}

// able returns the members of a configuration through which what is there can be
// read back: those that have their disks, and durably know it to be installed.
func (c *cluster) able(k *quorum.Configuration) (s quorum.Set) {
	for place, id := range k.Members() {
		n := c.byID[id]
		if !n.gone() && (!c.changing || c.succession.KnownBy(n.place).Horizon().Installed >= k.Index()) {
			s = s.Add(place)
		}
	}
	return s
}
