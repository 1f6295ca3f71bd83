package succession

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/tags"
)

// Config says what a Watch watches. All fields are needed.
type Config struct {
	// First is the configuration that the cluster begins with.
	First *quorum.Configuration
	// Nodes are all that may ever be members. A node is named by its place here.
	Nodes []quorum.NodeID
	// Registers is how many there are. One is named by its number.
	Registers int
	// Holds returns the tag that a node durably holds of a register.
	Holds func(node, register int) tags.Tag
	// Text puts a tag into words.
	Text func(tags.Tag) string
	// Broken is told of a rule that is broken, and of which register, None if of
	// none in particular. It may be told of several: the first counts.
	Broken func(rule string, register int, text string)
}

// None is the register of a rule that is broken for all of them.
const None = -1

// Watch is what was seen so far. It is not safe for concurrent use.
type Watch struct {
	cfg    Config
	places map[quorum.NodeID]int
	// durably is what each node durably knows, nil if nothing.
	durably []*quorum.Map
	// known is what somebody knows who knows all that nodes durably know.
	known *quorum.Map
	// decided are those that somebody has ever known, by index.
	decided []*quorum.Configuration
	// fenced are, for each index, the tags that a node held when it stored what it
	// durably learned of that configuration, by node and register: nil for a node
	// that hasn't.
	fenced [][][]tags.Tag
	// knows is the configuration that the asker of a page asks for.
	knows     map[Asked]quorum.ConfigIndex
	installed int
}

// New returns a Watch over a cluster whose first configuration is known.
func New(cfg Config) (*Watch, error) {
	m, err := quorum.NewMap(cfg.First)
	if err != nil {
		return nil, err
	}
	w := &Watch{cfg: cfg, places: make(map[quorum.NodeID]int), durably: make([]*quorum.Map, len(cfg.Nodes)), known: m,
		knows: make(map[Asked]quorum.ConfigIndex)}
	for place, id := range cfg.Nodes {
		w.places[id] = place
	}
	w.Decided(cfg.First, "everybody")
	return w, nil
}

// Clone returns a watch that has seen the same, and goes on with other functions.
func (w *Watch) Clone(holds func(node, register int) tags.Tag, broken func(rule string, register int, text string)) *Watch {
	c := *w
	c.cfg.Holds, c.cfg.Broken = holds, broken
	c.durably = slices.Clone(w.durably)
	c.decided = slices.Clone(w.decided)
	c.fenced = slices.Clone(w.fenced)
	for k := range c.fenced {
		c.fenced[k] = slices.Clone(c.fenced[k])
	}
	c.knows = maps.Clone(w.knows)
	return &c
}

// Known returns what somebody knows who knows all that nodes durably know.
func (w *Watch) Known() *quorum.Map { return w.known }

// KnownBy returns what a node durably knows, nil if nothing.
func (w *Watch) KnownBy(node int) *quorum.Map { return w.durably[node] }

// Installed returns how many configurations have taken over from another one.
func (w *Watch) Installed() int { return w.installed }

// Restarted is told that a node comes up, with what is on its disk, when Learns was
// told of all that is.
func (w *Watch) Restarted(node int, disk interface {
	Cell(name string) (value []byte, at env.Position)
}) {
	known := w.durably[node]
	switch m, err := rambo.MapOf(disk); {
	case err != nil:
		w.broken("config-map", None, "%s comes up with a config map that makes no sense: %v", w.cfg.Nodes[node], err)
	case m.Horizon().Behind(known.Horizon()):
		w.broken("config-map-falls", None, "%s durably knew %v, and after its restart %v", w.cfg.Nodes[node], known, m)
	}
}

// Learns is told that a node durably knows a config map. What it holds of registers
// that it had stored before, and no more, Holds must show by then (Journal).
func (w *Watch) Learns(node int, m *quorum.Map) {
	id, old := w.cfg.Nodes[node], w.durably[node]
	if m.Horizon().Behind(old.Horizon()) {
		w.broken("config-map-falls", None, "%s durably knew %v, and now %v", id, old, m)
		return
	}
	for _, k := range m.Active() {
		w.Decided(k, string(id))
	}
	for k := max(old.Horizon().Next, 1); k < m.Horizon().Next; k++ {
		w.fence(k, node)
	}
	w.durably[node] = m
	next, err := w.known.Merge(m)
	if err != nil {
		w.broken("one-configuration", None, "%s knows what others don't: %v", id, err)
		return
	}
	from := w.known.Horizon().Installed
	w.known = next
	for k := from + 1; k <= next.Horizon().Installed; k++ {
		if !w.retired(k, id) {
			return
		}
	}
}

// Decided is told of a configuration that somebody takes to be decided: there is
// one for each index.
func (w *Watch) Decided(k *quorum.Configuration, by string) {
	for int(k.Index()) >= len(w.decided) {
		w.decided = append(w.decided, nil)
	}
	switch other := w.decided[k.Index()]; {
	case other == nil:
		w.decided[k.Index()] = k
	case !other.Equal(k):
		w.broken("one-configuration", None, "%s knows %v; decided was %v", by, k, other)
	}
}

// fence notes what a node holds when it durably learns of configuration k, or rather
// held when it stored that, before it was durable: a page that it gives from then on
// has that, and whoever puts to it from then on is told of k.
func (w *Watch) fence(k quorum.ConfigIndex, node int) {
	for int(k) >= len(w.fenced) {
		w.fenced = append(w.fenced, make([][]tags.Tag, len(w.durably)))
	}
	held := make([]tags.Tag, w.cfg.Registers)
	for register := range held {
		held[register] = w.cfg.Holds(node, register)
	}
	w.fenced[k][node] = held
}

// retired is called when the first node durably marks configuration k as
// installed, so that the one before it is out. By then members of that must be
// fenced who contain a read and a write quorum of it (R4.2). And every read
// quorum of k must hold what every read quorum of the one before would have
// returned of what its members held when they were fenced (R4.5). It reports
// whether that is so.
func (w *Watch) retired(k quorum.ConfigIndex, by quorum.NodeID) bool {
	if int(k) >= len(w.decided) || w.decided[k] == nil || w.decided[k-1] == nil {
		w.broken("config-map", None, "%s has marked configuration %d as installed, and nobody has ever known it or the one before", by, k)
		return false
	}
	w.installed++
	prev, next := w.decided[k-1], w.decided[k]
	fenced := w.fenced[k]
	knows := w.members(prev, func(node int) bool { return fenced[node] != nil })
	if !prev.IsRead(knows) || !prev.IsWrite(knows) {
		w.broken("fenced", None, "%s has marked %v as installed; of %v only %s durably know of it: no read and write quorum",
			by, next, prev, List(prev, knows))
		return false
	}
	for register := range w.cfg.Registers {
		held := func(node int) tags.Tag {
			if fenced[node] != nil {
				return fenced[node][register]
			}
			return w.cfg.Holds(node, register)
		}
		tag := w.settled(prev, held)
		here := w.members(next, func(node int) bool { return !w.cfg.Holds(node, register).Less(tag) })
		if !meetsReads(next, here) {
			w.broken("lost-at-retirement", register, "%s has marked %v as installed; every read quorum of %v had tag %s or a larger one, and now it is on %s",
				by, next, prev, w.cfg.Text(tag), List(next, here))
			return false
		}
	}
	return true
}

// settled returns the largest tag that every read quorum of a configuration has
// a member for who held it or a larger one.
func (w *Watch) settled(k *quorum.Configuration, held func(node int) tags.Tag) tags.Tag {
	var all []tags.Tag
	for _, id := range k.Members() {
		all = append(all, held(w.places[id]))
	}
	slices.SortFunc(all, func(a, b tags.Tag) int { return b.Compare(a) })
	for _, tag := range all {
		if meetsReads(k, w.members(k, func(node int) bool { return !held(node).Less(tag) })) {
			return tag
		}
	}
	return tags.Tag{}
}

// Ended is told of an operation that has ended with a tag: every read quorum of
// the newest configuration that anybody knows to be installed finds it. A write
// quorum of that needn't hold it, if the operation counted on those before (R4.5).
// The operation is named for people: "a read of p1".
func (w *Watch) Ended(operation string, register int, tag tags.Tag) {
	k := w.known.Installed()
	here := w.members(k, func(node int) bool { return !w.cfg.Holds(node, register).Less(tag) })
	if !meetsReads(k, here) {
		w.broken("durable-on-quorum", register, "%s ended with tag %s, which is durable on %s only; %v is installed, and a read quorum of it may miss them",
			operation, w.cfg.Text(tag), List(k, here), k)
	}
}

// meetsReads reports whether some members have one in every read quorum.
func meetsReads(k *quorum.Configuration, some quorum.Set) bool {
	var rest quorum.Set
	for place := range k.Members() {
		if !some.Has(place) {
			rest = rest.Add(place)
		}
	}
	return !k.IsRead(rest)
}

// members returns the members of a configuration for which is holds.
func (w *Watch) members(k *quorum.Configuration, is func(node int) bool) (s quorum.Set) {
	for place, id := range k.Members() {
		if is(w.places[id]) {
			s = s.Add(place)
		}
	}
	return s
}

// List returns the names of some members of a configuration.
func List(k *quorum.Configuration, s quorum.Set) string {
	var names []string
	for place := range s.All() {
		names = append(names, string(k.Members()[place]))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (w *Watch) broken(rule string, register int, format string, args ...any) {
	w.cfg.Broken(rule, register, fmt.Sprintf(format, args...))
}

// Fenced returns the tags that a node held, by register, when it durably learned
// of configuration k, and whether it has.
func (w *Watch) Fenced(k, node int) (held []tags.Tag, fenced bool) {
	if k >= len(w.fenced) {
		return nil, false
	}
	return w.fenced[k][node], w.fenced[k][node] != nil
}
