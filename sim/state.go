package sim

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
)

// State returns a hash of everything that the future of the world depends on:
// two worlds with the same State go on in the same way, whatever brought them
// there. It needs Config.Memory.
//
// It covers what nodes have on disk and in memory, what waits in mailboxes, the
// messages that are held, and callers. Code can't be looked into while it waits:
// a caller is what it runs and what it has been told since it began, or since
// it last asked what Memory says, and what it has received and not answered. Of
// the answers in a conversation the order doesn't count, nor how often one came, as
// quorums are sets; nor how many copies of a request were sent; nor those that have
// only turned the caller to another request, as Memory says. A message whose asker
// waits no more is one without an asker.
//
// It doesn't cover time: clocks, timers and what protocols read from Env.Now;
// links, and faults that go on. Where journals stand counts only beyond what is
// durable. Functions, and structs named Config or Rules, are taken to be what
// they were when they were made.
//
// The world must be settled: nothing is due now, and no caller is ready. What a
// driver knows beside goes into the hash with it.
func (w *World) State(beside ...uint64) uint64 {
	var all uint64
	for _, p := range w.processes {
		all += mix(fold(p.hash, w.cfg.Memory.process(p)))
	}
	for i := range w.held {
		all += w.StateOf(w.held[i])
	}
	for _, x := range beside {
		all = fold(all, x)
	}
	return all
}

// StateOf is the part of State that a held message is: two messages with the
// same do the same when they arrive.
func (w *World) StateOf(h Held) uint64 {
	x := fold(fold(h.From.hash, h.To.hash), w.cfg.Memory.message(h.Message))
	return mix(fold(x, w.interest(h.asker(), h.e.asker)))
}

// asker is who waits for the answer to a request, or has asked for an answer.
func (h *Held) asker() *Process {
	if h.Answer {
		return h.To
	}
	return h.From
}

// Awaited reports whether somebody is interested in a held message: in a
// conversation that goes on, in an answer, or in that to a request. Nobody is in
// what was told.
func (w *World) Awaited(h Held) bool { return w.interest(h.asker(), h.e.asker) != 0 }

// interest is the Asker of a conversation, as a number.
func (w *World) interest(p *Process, asker env.Address) uint64 { return w.askerOf(p, asker).Word() }

// Arrives reports whether a held message would be acted upon: its receiver
// lives, over the connection on which it was sent, and an answer is awaited.
func (w *World) Arrives(h Held) bool {
	return h.To.up && h.To.connected && h.e.session == h.To.sessionsWith(h.From) && (!h.Answer || w.Awaited(h))
}

// label names a caller within its process: what it runs, not which run.
func (c *caller) label() uint64 {
	if c.parent == nil {
		return mix(c.number)
	}
	return foldString(c.parent.label(), c.name)
}

// memory is what a caller has been told. It is only kept where Config.Memory is
// set.
type memory struct {
	past  uint64   // what came before the present conversation
	heard []uint64 // the answers in it, in any order, each once
	owed  []owed   // what it has found in a mailbox, and not answered
}

// owed is a request that came by a mailbox: from whom, and its hash.
type owed struct {
	from env.Address
	hash uint64
}

// sum is a hash of the answers.
func (m *memory) sum() (x uint64) {
	for _, y := range m.heard {
		x += y
	}
	return x
}

// asks takes down that the caller asks req.
func (c *caller) asks(req env.Message) {
	m := c.w.cfg.Memory
	if m == nil {
		return
	}
	if c.memory.past = fold(c.memory.past, c.memory.sum()); m.forgets(req) {
		c.memory.past = 0
	}
	c.memory.past = fold(c.memory.past, m.message(req))
	c.memory.heard = c.memory.heard[:0]
}

// told takes down an answer.
func (c *caller) told(from quorum.NodeID, answer env.Message) {
	if m := c.w.cfg.Memory; m != nil {
		x := m.said(from, answer)
		if !slices.Contains(c.memory.heard, x) {
			c.memory.heard = append(c.memory.heard, x)
		}
	}
}

// turned takes down that the caller has redirected its request to who has given an
// answer, because of that.
func (c *caller) turned(from quorum.NodeID, answer env.Message) {
	if m := c.w.cfg.Memory; m != nil && m.turns(answer) {
		x := m.said(from, answer)
		c.memory.heard = slices.DeleteFunc(c.memory.heard, func(y uint64) bool { return x == y })
	}
}

// receives takes down what was in a mailbox.
func (c *caller) receives(e env.Envelope) {
	m := c.w.cfg.Memory
	if m == nil {
		return
	}
	x := m.envelope(c.w, e)
	c.learns(x, nil)
	if c.w.awaited(e) != 0 {
		c.memory.owed = append(c.memory.owed, owed{e.From, x})
	}
}

// answers takes down that what was received is answered.
func (c *caller) answers(to env.Address) {
	c.memory.owed = slices.DeleteFunc(c.memory.owed, func(o owed) bool { return o.from == to })
}

// learns takes down anything else, and how it has ended.
func (c *caller) learns(what uint64, err error) {
	if c.w.cfg.Memory == nil {
		return
	}
	if err != nil {
		what = foldString(what, err.Error())
	}
	c.memory.past = fold(c.memory.past, what)
}

// Memory makes hashes of what there is in a world, by looking at all that it
// contains. It serves one world after another, and is faster for it.
type Memory struct {
	forgets func(req env.Message) bool
	turns   func(answer env.Message) bool

	// known are the hashes of values that never change, by pointer.
	known map[uintptr]known
	// messages are those of messages.
	messages map[env.Message]uint64
	// types says of types what is to be done with their values.
	types map[reflect.Type]typeKind
	// durable is the position up to which the journal is durable whose node is
	// looked at. All before it are the same: nothing waits for them.
	durable env.Position
	// hung: nothing more becomes durable there, so all behind is the same as well.
	hung bool
	// path are the pointers that lead to the value that is looked at.
	path []uintptr
}

// NewMemory returns a Memory. Forgets reports of a request whether whoever asks it
// has forgotten all that it learned before, but for what the request says. Turns
// reports of an answer whether who redirects its request to the node that gave it
// goes by that request from then on, and knows nothing else from the answer.
func NewMemory(forgets func(req env.Message) bool, turns func(answer env.Message) bool) *Memory {
	return &Memory{forgets: forgets, turns: turns, types: make(map[reflect.Type]typeKind)}
}

// begin is called for each world.
func (h *Memory) begin() {
	h.known, h.messages = make(map[uintptr]known), make(map[env.Message]uint64)
}

// typeKind is what is to be done with the values of a type.
type typeKind uint8

const (
	unknownType typeKind = iota
	ordinary
	constant  // it is what it was when it was made
	lasting   // by pointer: made once, shared, and never changed
	elsewhere // looked at by itself
	place     // in a journal
)

func (h *Memory) kindOf(t reflect.Type) typeKind {
	k := h.types[t]
	if k == unknownType {
		k = ordinary
		switch {
		case t == reflect.TypeFor[*quorum.Map](), t == reflect.TypeFor[*quorum.Configuration](), t == reflect.TypeFor[*quorum.News]():
			k = lasting
		case t == reflect.TypeFor[env.Position]():
			k = place
		case t.Implements(reflect.TypeFor[replica.Store]()):
			k = elsewhere
		case t.Kind() == reflect.Struct && (t.Name() == "Config" || t.Name() == "Rules"):
			k = constant
		}
		h.types[t] = k
	}
	return k
}

// known is the hash of a value. It keeps that where it is, so that no other comes
// to stand there.
type known struct {
	hash uint64
	of   reflect.Value
}

// process returns the hash of a process.
func (h *Memory) process(p *Process) uint64 {
	if !p.up {
		return fold(h.disk(p), 0)
	}
	if p.stepped {
		p.state, p.stepped = fold(h.disk(p), h.value(0, reflect.ValueOf(p.stepper))), false
	}
	x := fold(p.state, p.drawn)
	for _, out := range p.waiting {
		x = fold(fold(x, h.message(out.Message)), uint64(out.After-p.disk.durable))
	}
	for _, name := range slices.Sorted(maps.Keys(p.mailboxes)) {
		m := p.mailboxes[name]
		x = foldString(x, string(name))
		for _, e := range m.queue {
			x = fold(x, h.envelope(p.w, e))
		}
	}
	var callers uint64
	for _, c := range p.callers {
		callers += mix(h.caller(c))
	}
	return fold(x, callers)
}

func (h *Memory) envelope(w *World, e env.Envelope) uint64 {
	return fold(fold(w.processes[uint32(e.From.Session)].hash, h.message(e.Message)), w.awaited(e))
}

// awaited names who awaits the answer to an envelope, as Asker.Word does. Zero:
// nobody.
func (w *World) awaited(e env.Envelope) uint64 {
	if asker := w.processes[uint32(e.From.Session)]; !asker.driven {
		return w.interest(asker, e.From)
	}
	return e.From.Conversation // which is the driver's
}

// caller returns the hash of a caller.
func (h *Memory) caller(c *caller) uint64 {
	x := fold(fold(c.label(), uint64(c.wait)<<8|uint64(c.state)), c.draws)
	x = fold(fold(x, c.memory.past), c.memory.sum())
	for _, o := range c.memory.owed {
		x += mix(o.hash)
	}
	if c.ended != nil {
		x = foldString(x, c.ended.Error())
	}
	if !c.open {
		return x
	}
	var all uint64
	for i := range c.targets {
		t := &c.targets[i]
		y := fold(fold(foldString(0, string(t.id)), t.redirects), h.message(t.req))
		all += mix(h.flags(y, t.spare, t.answered, t.heard, t.err != nil, t.copies > 0))
	}
	return fold(x, all)
}

func (h *Memory) flags(x uint64, flags ...bool) uint64 {
	bits := uint64(0)
	for _, f := range flags {
		if bits <<= 1; f {
			bits |= 1
		}
	}
	return fold(x, bits)
}

// disk returns the hash of what is on a node's disk.
func (h *Memory) disk(p *Process) uint64 {
	d := p.disk
	if d == nil {
		return 0
	}
	h.durable, h.hung = d.durable, p.hung
	var all uint64
	for _, key := range d.keys {
		r := d.records[key]
		x := foldString(foldTag(0, r.Tag), string(r.Value))
		x = h.flags(fold(x, h.position(r.at)), r.Deleted, d.damaged[key], d.rotten[key])
		if r.Tag.IsZero() && !d.damaged[key] {
			continue // as if it had never been there
		}
		all += mix(foldString(x, string(key)))
	}
	for _, name := range slices.Sorted(maps.Keys(d.cells)) {
		c := d.cells[name]
		all += mix(foldString(foldString(h.position(c.at), string(c.value)), name))
	}
	return all
}

func (h *Memory) position(at env.Position) uint64 {
	beyond := uint64(max(at, h.durable) - h.durable)
	if h.hung {
		return min(beyond, 1)
	}
	return beyond
}

// said is the hash of an answer in a conversation.
func (h *Memory) said(from quorum.NodeID, answer env.Message) uint64 {
	return mix(fold(foldString(0, string(from)), h.message(answer)))
}

// message returns the hash of a message, which never changes.
func (h *Memory) message(m env.Message) uint64 {
	if x, ok := h.messages[m]; ok {
		return x
	}
	h.durable, h.hung = 0, false
	x := h.value(0, reflect.ValueOf(m))
	h.messages[m] = x
	return x
}

// value takes a value into a hash.
func (h *Memory) value(x uint64, v reflect.Value) uint64 {
	switch v.Kind() {
	case reflect.Bool:
		return h.flags(x, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fold(x, uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if h.kindOf(v.Type()) == place {
			return fold(x, h.position(env.Position(v.Uint())))
		}
		return fold(x, v.Uint())
	case reflect.String:
		return foldString(x, v.String())
	case reflect.Slice, reflect.Array:
		x = fold(x, uint64(v.Len()))
		for i := range v.Len() {
			x = h.value(x, v.Index(i))
		}
		return x
	case reflect.Struct:
		return h.fields(x, v)
	case reflect.Map:
		return foldString(x, fmt.Sprint(v)) // which is in the order of its keys
	case reflect.Interface:
		if v.IsNil() || h.kindOf(v.Elem().Type()) == elsewhere {
			return fold(x, 0)
		}
		return h.value(foldString(x, v.Elem().Type().String()), v.Elem())
	case reflect.Pointer:
		return fold(x, h.pointer(v))
	case reflect.Func:
		return h.flags(x, v.IsNil())
	}
	panic("sim: the state of a world has a " + v.Type().String() + ", which can't be compared")
}

// fields takes a struct into a hash.
func (h *Memory) fields(x uint64, v reflect.Value) uint64 {
	if h.kindOf(v.Type()) == constant {
		return x
	}
	for i := range v.NumField() {
		x = h.value(x, v.Field(i))
	}
	return x
}

// pointer returns the hash of what a pointer points to.
func (h *Memory) pointer(v reflect.Value) uint64 {
	switch {
	case v.IsNil():
		return 0
	case slices.Contains(h.path, v.Pointer()):
		return uint64(len(h.path)) // a cycle
	}
	lasts := h.kindOf(v.Type()) == lasting
	if k, ok := h.known[v.Pointer()]; lasts && ok && k.of.Type() == v.Type() {
		return k.hash
	}
	h.path = append(h.path, v.Pointer())
	x := h.value(1, v.Elem())
	h.path = h.path[:len(h.path)-1]
	if lasts {
		h.known[v.Pointer()] = known{x, v}
	}
	return x
}
