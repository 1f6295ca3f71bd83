package explore

import (
	"fmt"
	"strings"

	"atoll/sim"
	"atoll/tags"
)

// kind is what a move does. The first letter of a move in a path says it.
type kind byte

const (
	// arrives: a held message arrives, and what is answered. At is its place
	// among those that are held.
	arrives kind = 'a'
	// unheard: the same, but what nodes answer is lost.
	unheard kind = 'u'
	// hangs: the same, and from now on no commit of a node ends, until it dies.
	// By is its index.
	hangs kind = 'h'
	// dies: a process dies, and with what its disk has not synced. At is its index.
	dies kind = 'd'
	// passes: time passes, until something comes of it.
	passes kind = 't'
)

// move is one thing that may happen next.
type move struct {
	kind kind
	at   uint16
	by   uint8
	// label is the same for moves that do the same: wherever they are found.
	label uint64
}

// String returns the move as it stands in a path.
func (m move) String() string {
	switch m.kind {
	case passes:
		return "t"
	case hangs:
		return fmt.Sprintf("h%d:%d", m.at, m.by)
	}
	return fmt.Sprintf("%c%d", m.kind, m.at)
}

// as returns the move as another kind.
func (m move) as(k kind, by int) move {
	return move{kind: k, at: m.at, by: uint8(by), label: m.label ^ uint64(k)*0x9e3779b97f4a7c15 ^ uint64(by)*0xd6e8feb86659fd93}
}

// path is a row of moves, from the beginning.
type path []move

// String returns the path as ParsePath reads it.
func (p path) String() string {
	var words []string
	for _, m := range p {
		words = append(words, m.String())
	}
	return strings.Join(words, ".")
}

// parsePath reads a path.
func parsePath(text string) (p path, err error) {
	for word := range strings.SplitSeq(text, ".") {
		m := move{}
		switch {
		case word == "":
			return nil, fmt.Errorf("explore: a path has no empty moves: %q", text)
		case word == "t":
		case strings.HasPrefix(word, "h"):
			_, err = fmt.Sscanf(word[1:], "%d:%d", &m.at, &m.by)
		default:
			_, err = fmt.Sscanf(word[1:], "%d", &m.at)
		}
		m.kind = kind(word[0])
		if err != nil || m.String() != word || !strings.ContainsRune("auhtd", rune(m.kind)) {
			return nil, fmt.Errorf("explore: a path has no move %q", word)
		}
		p = append(p, m)
	}
	return p, nil
}

// moves returns all that may happen next, but for what is known only once a
// message has arrived (variants).
func (x *world) moves() []move {
	var all []move
	if x.over() {
		return nil
	}
	for i, h := range x.w.Held() {
		m := move{kind: arrives, at: uint16(i), label: x.w.StateOf(h)}
		if !has(all, m.label) { // one of two copies will do
			all = append(all, m)
		}
	}
	if len(all) == 0 && x.hanging == nil && x.waits() {
		all = append(all, move{kind: passes, label: uint64(passes) << 8})
	}
	for _, p := range x.w.Processes() {
		if p == x.hanging || x.crashes > 0 && x.mortal(p) && x.busy(p) {
			all = append(all, move{kind: dies, at: uint16(p.Index()), label: uint64(dies)<<8 | uint64(p.Index())})
		}
	}
	return all
}

func has(moves []move, label uint64) bool {
	for i := range moves {
		if moves[i].label == label {
			return true
		}
	}
	return false
}

// waits reports whether something is to come: without end, nothing would.
func (x *world) waits() bool {
	for i := range x.operations {
		if o := &x.operations[i]; o.scope != nil && !o.scope.Done() {
			return true
		}
	}
	return false
}

func (x *world) mortal(p *sim.Process) bool {
	for _, id := range x.scope.Mortal {
		if id == p.ID() {
			return true
		}
	}
	return len(x.scope.Mortal) == 0
}

// busy reports whether a process has anything to lose: a node, or an operation
// under way.
func (x *world) busy(p *sim.Process) bool {
	if p.Disk() != nil {
		return true
	}
	for i := range x.operations {
		if o := &x.operations[i]; o.p == p {
			return o.scope != nil && !o.scope.Done()
		}
	}
	return false
}

// variants returns the other ways in which a message can arrive that has had an
// effect.
func (x *world) variants(m move, e effect) []move {
	if m.kind != arrives {
		return nil
	}
	var all []move
	if e.loud && x.lost > 0 {
		all = append(all, m.as(unheard, 0))
	}
	if x.crashes > 0 && x.hanging == nil {
		for _, n := range x.nodes {
			if e.wrote&bit(n.p) != 0 && x.mortal(n.p) {
				all = append(all, m.as(hangs, n.p.Index()))
			}
		}
	}
	return all
}

// do lets a move happen, and all that follows from it at once.
func (x *world) do(m move) error {
	x.effect = effect{}
	switch held := x.w.Held(); m.kind {
	case arrives, unheard, hangs:
		if int(m.at) >= len(held) || m.kind == hangs && int(m.by) >= len(x.nodes) {
			return fmt.Errorf("explore: move %v: no such message is held, or there is no such node", m)
		}
		x.deliver(m)
	case dies:
		if int(m.at) >= len(x.w.Processes()) {
			return fmt.Errorf("explore: move %v: no such process", m)
		}
		p := x.w.Processes()[m.at]
		x.sayf("%s dies, and comes back", p.ID())
		x.die(p)
	case passes:
		x.sayf("time passes")
		for range maxSteps {
			before := len(x.w.Held())
			if !x.w.Step() || len(x.w.Held()) != before {
				break
			}
		}
	}
	x.settle()
	x.start()
	x.settle()
	return nil
}

// deliver lets a held message arrive.
func (x *world) deliver(m move) {
	switch m.kind {
	case unheard:
		x.losing = true
		x.lost--
	case hangs:
		// It must die: a disk that only takes its time is like a network that does.
		x.crashes--
		x.hanging = x.w.Processes()[m.by]
		x.hanging.Stall()
		x.sayf("from now on the disk of %s hangs", x.hanging.ID())
	}
	x.begun(x.w.Held()[m.at].From)
	x.w.Release(int(m.at))
	x.w.RunFor(instant)
	x.losing = false
}

// die ends a life of a process, with what isn't on its disk, and begins the
// next.
func (x *world) die(p *sim.Process) {
	if p == x.hanging {
		x.hanging = nil
	} else {
		x.crashes--
	}
	p.PowerLoss(0)
	if p.Disk() != nil {
		p.Unstall()
	}
	for i := range x.operations {
		if o := &x.operations[i]; o.p == p && o.Do == Upgrade && !o.ended {
			o.scope = nil // it does that again
		}
	}
	if err := p.Restart(); err != nil {
		x.violate("boot", err.Error())
	}
}

// settle lets everything happen that is due, and throws away the messages that
// nobody would notice: those that come too late, and requests that change
// nothing and whose answer nobody awaits.
func (x *world) settle() {
	x.w.RunFor(instant)
	for i := 0; i < len(x.w.Held()); {
		h := x.w.Held()[i]
		if x.w.Arrives(h) && (h.Answer || !onlyReads(h.Message) || x.w.Awaited(h)) {
			i++
			continue
		}
		tell := x.tell
		x.tell = nil
		x.w.Discard(i)
		x.tell = tell
	}
}

// state returns a hash of all that what follows, and what is found wrong with
// it, depends on.
func (x *world) state() uint64 {
	beside := []uint64{uint64(x.crashes), uint64(x.lost), 0}
	if x.hanging != nil {
		beside[2] = bit(x.hanging)
	}
	for i := range x.operations {
		o := &x.operations[i]
		s := o.before<<8 | o.result<<16
		if o.scope != nil {
			s |= 1
		}
		if o.ended {
			s |= 2
		}
		if o.begun {
			s |= 4
		}
		beside = append(beside, s)
	}
	for k := range x.parts.configurations {
		for place := range x.nodes {
			held, fenced := x.watch.Fenced(k, place)
			beside = append(beside, word(held, fenced))
		}
	}
	return x.w.State(beside...)
}

// word: a scope has few tags, each of them with another number or id.
func word(held []tags.Tag, fenced bool) uint64 {
	if !fenced {
		return 0
	}
	x := uint64(1)
	for _, t := range held {
		id := t.PID.Bytes()
		for _, b := range id {
			x = (x ^ uint64(b)) * 0x100000001b3
		}
		x = (x ^ uint64(t.Seq)) * 0x100000001b3
	}
	return x
}

func (x *world) sayf(format string, args ...any) {
	if x.tell != nil {
		x.tell(fmt.Sprintf(format, args...))
	}
}

// say tells of a message.
func (x *world) say(o *sim.Observation) {
	if x.tell == nil || o.From == o.To {
		return
	}
	what := "arrives"
	switch {
	case o.What == sim.Lost:
		what = "is lost"
	case o.What == sim.ArrivedTooLate:
		what = "comes too late"
	}
	indent := ""
	if o.Answer {
		indent = "    "
	}
	x.tell(fmt.Sprintf("%s%s->%s %s: %s", indent, o.From.ID(), o.To.ID(), what, x.w.Describe(o.Message)))
}
