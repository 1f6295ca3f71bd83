package scenario

import (
	"slices"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/repair"
	"atoll/sim"
	"atoll/tags"
)

// The checks about configurations, where members change. They go by what nodes
// have on their disks.

// configurations are what is known of those of a cluster.
type configurations struct {
	// known is what somebody knows who knows all that nodes durably know.
	known *quorum.Map
	// decided are those that somebody has ever known, by index.
	decided []*quorum.Configuration
	// fenced are, for each index, the tags of each register that a node held
	// when it durably learned of that configuration: by place, nil for those
	// that haven't.
	fenced [][][]tags.Tag
	// knows is the configuration that the asker of a page asks for, by
	// conversation.
	knows map[asked]quorum.ConfigIndex
}

// begin begins with the first configuration of a cluster.
func (c *cluster) begin() error {
	m, err := quorum.NewMap(c.configuration)
	if err != nil {
		return err
	}
	c.told.Map = m
	for i := range c.r.s.pool() {
		c.told.Nodes = append(c.told.Nodes, c.r.s.node(c.number, i))
	}
	c.configurations = configurations{known: m, knows: make(map[asked]quorum.ConfigIndex)}
	c.decided(c.configuration, "everybody")
	return nil
}

// asked names a conversation of a node.
type asked struct {
	by           int // sim.Process.Index
	conversation uint64
}

// learning is a config map that a node has stored.
type learning struct {
	at env.Position
	m  *quorum.Map
}

// one shows a single cell.
type one struct {
	name  string
	value []byte
}

func (o one) Cell(name string) ([]byte, env.Position) {
	if name == o.name {
		return o.value, 0
	}
	return nil, 0
}

// SetCell implements replica.Store.
func (s *watched) SetCell(name string, value []byte) (env.Position, error) {
	at, err := s.disk.SetCell(name, value)
	if n := s.n; err == nil && n.c.changing {
		m, bad := rambo.MapOf(one{name, value})
		switch {
		case bad != nil:
			n.c.r.violate("config-map", nil, "%s stores a config map that makes no sense: %v", n.p.ID(), bad)
		case m != nil:
			n.maps = append(n.maps, learning{at, m})
		}
	}
	return at, err
}

// mapsDurable is called when all up to a position is durable, when the same has
// been done for the records.
func (n *node) mapsDurable(durable env.Position) {
	i := 0
	for ; i < len(n.maps) && n.maps[i].at <= durable; i++ {
		n.learned(n.maps[i].m)
	}
	n.maps = append(n.maps[:0], n.maps[i:]...)
}

// mapSurvived is called when the node comes up.
func (n *node) mapSurvived() {
	n.maps = n.maps[:0]
	m, err := rambo.MapOf(n.p.Disk())
	switch {
	case err != nil:
		n.c.r.violate("config-map", nil, "%s comes up with a config map that makes no sense: %v", n.p.ID(), err)
	case m.Horizon().Behind(n.known.Horizon()):
		n.c.r.violate("config-map-falls", nil, "%s durably knew %v, and after its restart %v", n.p.ID(), n.known, m)
	}
}

// learned is called when a node durably knows a config map.
func (n *node) learned(m *quorum.Map) {
	c, r := n.c, n.c.r
	old := n.known
	if m.Horizon().Behind(old.Horizon()) {
		r.violate("config-map-falls", nil, "%s durably knew %v, and now %v", n.p.ID(), old, m)
		return
	}
	for _, k := range m.Active() {
		c.decided(k, string(n.p.ID()))
	}
	for k := max(old.Horizon().Next, 1); k < m.Horizon().Next; k++ {
		c.fence(k, n)
	}
	n.known = m
	next, err := c.configurations.known.Merge(m)
	if err != nil {
		r.violate("one-configuration", nil, "%s knows what others don't: %v", n.p.ID(), err)
		return
	}
	from := c.configurations.known.Horizon().Installed
	c.configurations.known = next
	for k := from + 1; k <= next.Horizon().Installed && !r.failed; k++ {
		c.retired(k, n)
	}
}

// decided notes a configuration that somebody takes to be decided: there is one
// for each index.
func (c *cluster) decided(k *quorum.Configuration, by string) {
	all := &c.configurations.decided
	for int(k.Index()) >= len(*all) {
		*all = append(*all, nil)
	}
	switch other := (*all)[k.Index()]; {
	case other == nil:
		(*all)[k.Index()] = k
	case !other.Equal(k):
		c.r.violate("one-configuration", nil, "%s knows %v; decided was %v", by, k, other)
	}
}

// fence notes what a node holds when it durably learns of configuration k: a
// page that it gives from now on has that, and whoever puts to it from now on
// is told of k.
func (c *cluster) fence(k quorum.ConfigIndex, n *node) {
	for int(k) >= len(c.configurations.fenced) {
		c.configurations.fenced = append(c.configurations.fenced, make([][]tags.Tag, len(c.nodes)))
	}
	held := make([]tags.Tag, len(c.registers))
	for i, g := range c.registers {
		held[i] = g.durable[n.place]
	}
	c.configurations.fenced[k][n.place] = held
}

// retired is called when the first node durably marks configuration k as
// installed, so that the one before it is out. By then members of that must be
// fenced who contain a read and a write quorum of it (R4.2). And every read
// quorum of k must hold what every read quorum of the one before would have
// returned of what its members held when they were fenced (R4.5). What came to
// them afterwards came from callers who know of k.
func (c *cluster) retired(k quorum.ConfigIndex, by *node) {
	r := c.r
	if int(k) >= len(c.configurations.decided) || c.configurations.decided[k] == nil || c.configurations.decided[k-1] == nil {
		r.violate("config-map", nil, "%s has marked configuration %d as installed, and nobody has ever known it or the one before", by.p.ID(), k)
		return
	}
	r.figures.Installed++
	prev, next := c.configurations.decided[k-1], c.configurations.decided[k]
	fenced := c.configurations.fenced[k]
	knows := c.members(prev, func(n *node) bool { return fenced[n.place] != nil })
	if !prev.IsRead(knows) || !prev.IsWrite(knows) {
		r.violate("fenced", nil, "%s has marked %v as installed; of %v only %s durably know of it: no read and write quorum",
			by.p.ID(), next, prev, c.list(prev, knows))
		return
	}
	for i, g := range c.registers {
		held := func(n *node) tags.Tag {
			if fenced[n.place] != nil {
				return fenced[n.place][i]
			}
			return g.durable[n.place]
		}
		tag := c.settled(prev, held)
		here := c.members(next, func(n *node) bool { return !g.durable[n.place].Less(tag) })
		if !meetsReads(next, here) {
			r.violate("lost-at-retirement", g, "%s has marked %v as installed; every read quorum of %v had tag %s or a larger one, and now it is on %s",
				by.p.ID(), next, prev, r.w.TagText(tag), c.list(next, here))
			return
		}
	}
}

// settled returns the largest tag that every read quorum of a configuration has
// a member for who held it or a larger one.
func (c *cluster) settled(k *quorum.Configuration, held func(*node) tags.Tag) tags.Tag {
	var all []tags.Tag
	for _, id := range k.Members() {
		all = append(all, held(c.byID[id]))
	}
	slices.SortFunc(all, func(a, b tags.Tag) int { return b.Compare(a) })
	for _, tag := range all {
		if meetsReads(k, c.members(k, func(n *node) bool { return !held(n).Less(tag) })) {
			return tag
		}
	}
	return tags.Tag{}
}

// meetsReads reports whether some members have one in every read quorum.
func meetsReads(k *quorum.Configuration, some quorum.Set) bool {
	return !k.IsRead(everybody(k).Minus(some))
}

// members returns the members of a configuration for which is holds.
func (c *cluster) members(k *quorum.Configuration, is func(*node) bool) (s quorum.Set) {
	for place, id := range k.Members() {
		if is(c.byID[id]) {
			s = s.Add(place)
		}
	}
	return s
}

// list returns the names of some members of a configuration.
func (c *cluster) list(k *quorum.Configuration, s quorum.Set) string {
	text := ""
	for place := range s.All() {
		if text != "" {
			text += ", "
		}
		text += string(k.Members()[place])
	}
	if text == "" {
		return "none"
	}
	return text
}

// checkSettled: every read quorum of the newest configuration that anybody
// knows to be installed finds the tag with which an operation has ended. A
// write quorum of it needn't hold it, if the operation counted on those before
// (R4.5).
func (c *cluster) checkSettled(cl *client, g *register, tag tags.Tag) {
	k := c.configurations.known.Installed()
	here := c.members(k, func(n *node) bool { return !g.durable[n.place].Less(tag) })
	if !meetsReads(k, here) {
		c.r.violate("durable-on-quorum", g, "a %s of %s ended with tag %s, which is durable on %s only; %v is installed, and a read quorum of it may miss them",
			cl.op.kind, cl.name, c.r.w.TagText(tag), c.list(k, here), k)
	}
}

// page holds each page for a configuration against what its node durably knows
// (R4.3): a put that came to it later is told of the configuration.
func (c *cluster) page(o *sim.Observation) {
	if !o.Answer {
		var terms repair.Terms
		switch m := o.Message.(type) {
		case *repair.Offer:
			terms = m.Terms
		case *repair.Summarize:
			terms = m.Terms
		}
		if at := (asked{o.From.Index(), o.Conversation}); terms.Knows > 0 {
			c.configurations.knows[at] = terms.Knows
		} else {
			delete(c.configurations.knows, at)
		}
		return
	}
	switch o.Message.(type) {
	case *repair.Missing, *repair.Summary:
	default:
		return
	}
	n := c.r.byIndex[o.From.Index()].node
	if k, ok := c.configurations.knows[asked{o.To.Index(), o.Conversation}]; ok && n != nil && n.known.Horizon().Next <= k {
		c.r.violate("fence-before-merge", nil, "%s gives a page for configuration %d, and durably knows %v", n.p.ID(), k, n.known)
	}
}

// agree waits, after the healing, until all nodes that are healed durably know
// the newest configuration as the only one.
func (r *run) agree() {
	if !r.s.changes() {
		return
	}
	late := false
	r.w.At(time.Duration(r.s.Bounds.Ends), func() { late = true })
	r.until(func() bool { return late || r.clusters[0].behind() == nil })
	if n := r.clusters[0].behind(); n != nil && !r.failed {
		r.violate("liveness", nil, "%s knows %v %v after all operations have ended; known is %v", n.p.ID(), n.known, r.s.Bounds.Ends, r.clusters[0].configurations.known)
	}
}

// behind returns a healed member of the newest configuration that doesn't know
// it as the only one.
func (c *cluster) behind() *node {
	rest := c.r.plan.notHealed()
	newest := c.configurations.known.Newest()
	for _, id := range newest.Members() {
		if n := c.byID[id]; !slices.Contains(rest, string(id)) && n.known.Horizon().Installed != newest.Index() {
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
	k := c.configurations.known.Installed()
	m, err := quorum.NewMap(k)
	if err != nil {
		panic(err) // it is one configuration
	}
	told := c.told
	told.Map = m
	return k, told
}

// follows reports whether a node durably knows k to be installed.
func (n *node) follows(k *quorum.Configuration) bool {
	return !n.c.changing || n.known.Horizon().Installed >= k.Index()
}
