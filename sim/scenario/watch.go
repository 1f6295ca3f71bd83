package scenario

import (
	"fmt"
	"strings"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/wire"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim"
	"atoll/tags"
)

// The checks at each event. Each costs a few machine words and no search, so
// that they are always on.

// write is a write or delete of some client.
type write struct {
	register *register
	value    string // empty for a delete
	tag      tags.Tag
	stored   bool // by some node
	failed   bool // it was reported as certainly not applied
}

// bind notes the tag of a write. One write has one tag, whatever became of its
// first try, and one tag belongs to one write.
func (r *run) bind(g *register, number int, tag tags.Tag) {
	if !r.traits.Tags {
		return
	}
	w := &r.writes[number]
	if w.tag == tag {
		return
	}
	if !w.tag.IsZero() {
		r.violate("write-has-one-tag", g, "the write of %s has tag %s and tag %s", w, r.w.TagText(w.tag), r.w.TagText(tag))
		return
	}
	w.tag = tag
	if other, taken := g.bound[tag]; taken {
		r.violate("tag-binds-one-value", g, "tag %s is that of %s and of %s", r.w.TagText(tag), &r.writes[other], w)
		return
	}
	g.bound[tag] = number
}

// String names a write.
func (w *write) String() string {
	if w.value == "" {
		return "a delete"
	}
	return w.value
}

// watched is a node's store, seen by the checks.
type watched struct {
	disk
	n *node
}

type disk interface{ replica.Store }

// Store implements abd.View.
func (s *watched) Store(key abd.Key, rec abd.Record) (env.Position, error) {
	at, err := s.disk.Store(key, rec)
	if err == nil {
		s.n.stored(key, rec, at)
	}
	return at, err
}

// Heal implements repair.View. A node that heals may go back to an older record,
// once its acknowledgements of the newer one count no more: what has ended is
// checked by checkTag and by reading back.
func (s *watched) Heal(key abd.Key, rec abd.Record) (env.Position, error) {
	at, err := s.disk.Heal(key, rec)
	if g := s.n.c.register(key); err == nil && g != nil && s.n.c.r.traits.Tags {
		s.n.journal.Record(at, stored{g, rec.Tag, true})
	}
	return at, err
}

// boot begins a life of the node. What an earlier life has made durable must
// be there.
func (n *node) boot(p *sim.Process) (sim.Stepper, error) {
	n.p = p
	told := n.c.told
	told.Run = uint64(p.Life())
	if n.restored {
		// What it held is lost, and what it holds isn't watched.
		told.Greeting = 0
		return n.c.r.algorithm.Node(told, p.ID(), p.Disk())
	}
	n.survived()
	return n.c.r.algorithm.Node(told, p.ID(), &watched{p.Disk(), n})
}

// register returns the register of a key, nil for a key of the algorithm's
// own.
func (c *cluster) register(key abd.Key) *register {
	if k := keyNumber(key); k >= 0 && k < len(c.registers) {
		return c.registers[k]
	}
	return nil
}

// stored is called when the node has stored a record.
func (n *node) stored(key abd.Key, rec abd.Record, at env.Position) {
	r := n.c.r
	g := n.c.register(key)
	if g == nil {
		return
	}
	if r.traits.Tags {
		n.journal.Record(at, stored{g, rec.Tag, false})
	}
	number := r.numberOf(g, rec)
	if number < 0 {
		return
	}
	w := &r.writes[number]
	w.stored = true
	if w.failed {
		r.violate("failed-write-seen", g, "%s stored %s, which was reported as failed", n.p.ID(), w)
	}
	if w.tag != rec.Tag {
		r.bind(g, number, rec.Tag)
	}
}

// numberOf returns the number of the write that a record is of, -1 if that
// can't be told.
func (r *run) numberOf(g *register, rec abd.Record) int {
	if !rec.Deleted {
		if n := writeNumber(rec.Value); n < len(r.writes) {
			return n
		}
		return -1
	}
	if n, ok := g.bound[rec.Tag]; ok {
		return n
	}
	if n, ok := r.deletes[rec.Tag.PID]; ok {
		return n
	}
	return -1
}

// synced is called when a commit of the node has ended.
func (n *node) synced() {
	if n.restored {
		return
	}
	_, durable := n.p.Disk().Positions()
	n.journal.Durable(durable, n.nowDurable, func(m *quorum.Map) { n.c.succession.Learns(n.place, m) })
}

func (n *node) nowDurable(s stored) {
	durable := &s.register.durable[n.place]
	if s.tag.Less(*durable) && !s.healed {
		r := n.c.r
		r.violate("durable-tag-falls", s.register, "%s durably held %s, and now %s", n.p.ID(), r.w.TagText(*durable), r.w.TagText(s.tag))
	}
	*durable = s.tag
}

// survived is called when the node comes up: of what it had stored a part may
// have become durable by its death.
func (n *node) survived() {
	n.synced()
	n.journal.Lose()
	r := n.c.r
	if n.c.changing {
		n.c.succession.Restarted(n.place, n.p.Disk())
	}
	if !r.traits.Tags {
		return
	}
	for _, g := range n.c.registers {
		if tag := n.p.Disk().Durable(g.key).Tag; tag.Less(g.durable[n.place]) {
			r.violate("durable-tag-falls", g, "%s durably held %s, and after its restart %s", n.p.ID(), r.w.TagText(g.durable[n.place]), r.w.TagText(tag))
		}
	}
}

// checkTag holds the tag with which an operation on g has ended against what
// had ended before it began, and against what is durable.
func (cl *client) checkTag(g *register, tag tags.Tag) {
	r := cl.c.r
	if !r.traits.Tags {
		return
	}
	op := &cl.op
	c := tag.Compare(op.floor)
	if c < 0 || c == 0 && (op.kind == Write || op.kind == Delete) {
		r.violate("tag-order", g, "a %s of %s ended with tag %s; before it began, one had ended with %s",
			op.kind, cl.name, r.w.TagText(tag), r.w.TagText(op.floor))
		return
	}
	if g.completed.Less(tag) {
		g.completed = tag
	}
	if !r.traits.Settles || tag.IsZero() {
		return
	}
	if cl.c.changing {
		cl.c.checkSettled(cl, g, tag)
		return
	}
	var holders quorum.Set
	for place := range g.durable {
		if !g.durable[place].Less(tag) {
			holders = holders.Add(place)
		}
	}
	if !cl.c.configuration.IsWrite(holders) {
		r.violate("durable-on-quorum", g, "a %s of %s ended with tag %s, which is durable on %s only: no write quorum",
			op.kind, cl.name, r.w.TagText(tag), cl.c.names(holders))
	}
}

// names returns the names of some nodes.
func (c *cluster) names(s quorum.Set) string {
	var names []string
	for place := range s.All() {
		names = append(names, string(c.nodes[place].p.ID()))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// observe is told what happens in the world.
func (r *run) observe(o sim.Observation) {
	switch o.What {
	case sim.Sent:
		r.sent(&o)
		if r.s.changes() {
			r.clusters[0].page(&o)
			r.clusters[0].welcomes(&o)
		}
	case sim.Arrived:
		if o.Answer {
			r.arrived = arrival{r.byIndex[o.From.Index()].node, o.Conversation}
		}
	case sim.Synced:
		if n := r.byIndex[o.Process.Index()].node; n != nil {
			n.synced()
		}
	case sim.Failed:
		r.stopped(r.byIndex[o.Process.Index()])
	}
}

// sent counts a message for the operation that it belongs to.
func (r *run) sent(o *sim.Observation) {
	size := 0
	if r.sizer != nil {
		size = r.sizer.size(o.Message)
	}
	if o.Answer {
		cl := r.byIndex[o.To.Index()].client
		if cl == nil {
			return
		}
		f := &r.figures.ByKind[cl.talks.kindOf(o.Conversation)]
		f.Messages++
		f.Bytes += uint64(size)
		if cl.op.active {
			cl.op.messages++
			cl.op.bytes += size
		}
		return
	}
	cl := r.byIndex[o.From.Index()].client
	if cl == nil {
		return
	}
	cl.talks.began(o.Conversation, cl.op.kind)
	f := &r.figures.ByKind[cl.op.kind]
	f.Messages++
	f.Bytes += uint64(size)
	cl.op.messages++
	cl.op.bytes += size
}

// sizer measures messages as they would be encoded.
type sizer struct {
	other func(env.Message) int // for what package wire doesn't know
	enc   wire.Encoder
	buf   []byte
	last  env.Message
	size_ int
}

// aConversation is the number that stands for those of conversations, whose
// encoding grows with them: five bytes.
const aConversation = 1 << 20

func (s *sizer) size(m env.Message) int {
	if m == s.last {
		return s.size_ // the same request to another node
	}
	b, err := s.enc.AppendFrame(s.buf[:0], aConversation, m)
	if err == nil {
		s.buf = b
	}
	s.last, s.size_ = m, len(b)
	if err != nil && s.other != nil {
		s.size_ = s.other(m)
	}
	return s.size_
}

// maxShown is how many operations on a key a violation shows.
const maxShown = 40

// operationsOf returns the last operations on a key, one a line.
func (r *run) operationsOf(g *register) string {
	var lines []string
	h := r.recorder.History()
	for i := len(h) - 1; i >= 0 && len(lines) < maxShown; i-- {
		if op := &h[i]; op.Key == g.name {
			lines = append(lines, fmt.Sprintf("  %-8s %12v to %12v  %v", op.Client, op.Call, op.Return, op))
		}
	}
	var b strings.Builder
	b.WriteString("the last operations on it, newest first:\n")
	for _, line := range lines {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String()
}
