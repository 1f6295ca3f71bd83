package explore

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"atoll/env"
	"atoll/rambo"
	"atoll/sim"
	"atoll/tags"
)

// cast is the processes of a scope, each by itself. What one does depends on
// what has happened to it alone: so it is run alone, on a stage on which the
// others are idle, once for each state in which it can be and each thing that can
// happen to it there. What was found out is kept; a search looks it up.
type cast struct {
	*beginning
	mu     sync.RWMutex
	roles  []role
	on     []uint8 // on which process each operation is
	mortal []bool  // by process
	// letters are all requests that were ever sent, and answers all answers, each
	// once. Judges are those who have seen what can be seen.
	letters   []letter
	letterAt  map[letterKey]uint32
	answers   []env.Message
	answerAt  map[uint64]uint32
	judges    []*judge
	judgeAt   map[uint64]uint32
	judgments map[judgment]uint32
	firsts    [][]event // what the judge is told when something comes of a process for the first time
}

// role is a process by itself.
type role struct {
	states []local
	at     map[uint64]uint32 // by hash
}

// local is a state in which a process can be.
type local struct {
	from uint32 // where it was first reached from, and by what
	by   input
	next map[input]*step

	stalled bool
}

// The number of a local state tells what its process's operation has done: in the
// lowest bits.
const (
	started   = 1 << iota // it has begun in this life
	over                  // it has ended, or died and doesn't begin again
	placeBits = iota
)

// input is something that can happen to a process.
type input struct {
	what inputKind
	// by is the process that asks or answers or has died, the operation that
	// begins, or which of the pauses.
	by uint8
	// letter is the one that comes, or that is answered, and answer that.
	letter, answer uint32
}

// inputKind is what an input is.
type inputKind uint8

const (
	takes  inputKind = iota // a letter comes
	hears                   // an answer
	starts                  // an operation
	misses                  // another process has died, and come back
	falls                   // the process itself has
	stalls                  // its disk hangs from now on
	waits                   // time passes
)

// step is what a process does with an input.
type step struct {
	to     uint32
	sent   []uint32 // letters
	said   []said
	silent []uint64 // its callers that don't wait any more for what they did
	events []event
	wrote  bool
}

// said is an answer.
type said struct {
	to    uint8
	asker uint64
	input input
	loud  bool
}

// letter is a request under way.
type letter struct {
	letterKey
	message env.Message
	asker   sim.Asker
	unasked uint32 // the same, when nobody waits for the answer: none if it is of no use then
	late    bool   // it may be answered later, by a task
}

type letterKey struct {
	from, to uint8
	hash     uint64
	asker    uint64
}

const none = ^uint32(0)

// newCast returns the cast of a scope, of which nothing is known yet.
func newCast(b *beginning) (*cast, error) {
	c := &cast{beginning: b, letterAt: make(map[letterKey]uint32), answerAt: make(map[uint64]uint32),
		judgeAt: make(map[uint64]uint32), judgments: make(map[judgment]uint32)}
	x := b.stage(everybody)
	defer x.w.Close()
	if err := x.enter(); err != nil {
		return nil, err
	}
	for _, p := range x.w.Processes() {
		var first []event
		for i := range x.operations {
			if o := &x.operations[i]; o.p == p && o.Do != Upgrade {
				first = append(first, event{what: begins, by: i})
			}
		}
		c.mortal = append(c.mortal, c.scope.mortal(p.ID()))
		c.roles, c.firsts = append(c.roles, role{at: make(map[uint64]uint32)}), append(c.firsts, first)
	}
	for i := range x.operations {
		c.on = append(c.on, uint8(x.operations[i].p.Index()))
	}
	return c, nil
}

// begin returns the state of the world in which nothing has happened yet: all
// processes have begun, and no operation.
func (c *cast) begin() (*state, error) {
	s := &state{crashes: uint8(c.scope.Crashes), lost: uint8(c.scope.Lost)}
	j, err := c.judge(func(t tags.Tag) string { return fmt.Sprint(t) })
	if err != nil {
		return nil, err
	}
	for who := range c.roles {
		x, err := c.enter(who, j.take)
		if err != nil {
			return nil, err
		}
		for _, h := range x.w.Held() {
			s.send(c.letterID(h, x.w.Asker(h)))
		}
		c.localID(x, uint8(who), none, input{})
		x.w.Close()
	}
	s.judge = c.judgeID(j)
	return s, nil
}

// enter returns a stage on which a process is alone, and has begun.
func (c *cast) enter(who int, happens func(event)) (*stage, error) {
	x := c.stage(who)
	x.happens, x.answer = happens, func(sim.Transit) {}
	if err := x.enter(); err != nil {
		x.w.Close()
		return nil, err
	}
	x.w.RunFor(instant)
	return x, nil
}

// alone returns a stage on which a process alone has come into a state.
func (c *cast) alone(who uint8, state uint32) (*stage, error) {
	x, err := c.enter(int(who), func(event) {})
	if err != nil {
		return nil, err
	}
	var inputs []input
	for s := state; c.roles[who].states[s>>placeBits].from != none; s = c.roles[who].states[s>>placeBits].from {
		inputs = append(inputs, c.roles[who].states[s>>placeBits].by)
	}
	for i := len(inputs) - 1; i >= 0; i-- {
		c.happen(x, inputs[i])
	}
	for len(x.w.Held()) > 0 {
		x.w.Discard(0) // what was sent on the way
	}
	return x, nil
}

// happen lets something happen to the one who is alone.
func (c *cast) happen(x *stage, in input) {
	processes := x.w.Processes()
	switch in.what {
	case takes:
		l := &c.letters[in.letter]
		x.w.Ask(processes[in.by], x.alone, l.asker.Word(), l.message)
	case hears:
		x.w.Answer(processes[in.by], x.alone, c.letters[in.letter].asker, c.answers[in.answer])
	case starts:
		x.begin(int(in.by))
	case misses:
		p := processes[in.by]
		p.PowerLoss(0)
		if err := p.Restart(); err != nil {
			panic(err) // it is idle
		}
	case falls:
		x.die(x.alone)
	case stalls:
		x.hang(x.alone)
	case waits:
		x.w.RunFor(pauses[in.by])
	}
	x.w.RunFor(instant)
}

// step returns what a process in a state does with an input.
func (c *cast) step(who uint8, state uint32, in input) (*step, error) {
	c.mu.RLock()
	s, ok := c.roles[who].states[state>>placeBits].next[in]
	c.mu.RUnlock()
	if ok {
		return s, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.roles[who].states[state>>placeBits].next[in]; ok {
		return s, nil
	}
	x, err := c.alone(who, state)
	if err != nil {
		return nil, err
	}
	defer x.w.Close()
	s = c.watch(x, who, state, in)
	c.roles[who].states[state>>placeBits].next[in] = s
	return s, nil
}

// watch lets something happen to a process that is alone, and takes down what it
// does.
func (c *cast) watch(x *stage, who uint8, state uint32, in input) *step {
	s := &step{}
	x.happens = func(e event) { s.events = append(s.events, e) }
	x.answer = func(t sim.Transit) {
		a := said{to: uint8(t.To.Index()), asker: t.Conversation, loud: acted(t.Message)}
		a.input = input{what: hears, by: who, answer: c.answerID(t.Message)}
		s.said = append(s.said, a)
	}
	x.wrote = 0
	before := x.alone.Conversations()
	c.happen(x, in)
	after := x.alone.Conversations()
	for _, caller := range slices.Sorted(maps.Keys(before)) {
		if now, ok := after[caller]; !ok || now != before[caller] {
			s.silent = append(s.silent, caller)
		}
	}
	s.wrote = x.wrote != 0
	for _, h := range x.w.Held() {
		if id := c.letterID(h, x.w.Asker(h)); id != none {
			s.sent = append(s.sent, id)
		}
	}
	s.to = c.localID(x, who, state, in)
	return s
}

// localID returns the number of the state in which a process is now.
func (c *cast) localID(x *stage, who uint8, from uint32, by input) uint32 {
	p := &c.roles[who]
	l := local{from: from, by: by, next: make(map[input]*step)}
	if from != none {
		l.stalled = by.what == stalls || by.what != falls && p.states[from>>placeBits].stalled
	}
	var flags uint32
	for i := range x.operations {
		o := &x.operations[i]
		if o.p == x.alone && o.scope != nil {
			flags |= started
		}
		if o.p == x.alone && o.over() {
			flags |= over
		}
	}
	h := hash(x.alone.State()).add(uint64(flags))
	if l.stalled {
		h = h.add(1)
	}
	id, ok := p.at[uint64(h)]
	if !ok {
		id = uint32(len(p.states))<<placeBits | flags
		p.states, p.at[uint64(h)] = append(p.states, l), id
	}
	return id
}

func (c *cast) answerID(m env.Message) uint32 {
	h := c.memory.Message(m)
	id, ok := c.answerAt[h]
	if !ok {
		id = uint32(len(c.answers))
		c.answers, c.answerAt[h] = append(c.answers, m), id
	}
	return id
}

// letterID returns the number of a letter, none if nobody would notice it.
func (c *cast) letterID(h sim.Held, asker sim.Asker) uint32 {
	waited := asker != sim.Asker{}
	if onlyReads(h.Message) && !waited {
		return none
	}
	key := letterKey{uint8(h.From.Index()), uint8(h.To.Index()), c.memory.Message(h.Message), asker.Word()}
	if id, ok := c.letterAt[key]; ok {
		return id
	}
	l := letter{letterKey: key, message: h.Message, asker: asker, unasked: none}
	_, l.late = h.Message.(*rambo.Install)
	if waited {
		l.unasked = c.letterID(h, sim.Asker{})
	}
	id := uint32(len(c.letters))
	c.letters, c.letterAt[key] = append(c.letters, l), id
	return id
}

// judgment is what a judge is told: of a step, or that operations begin of whoever
// has sent something for the first time.
type judgment struct {
	judge uint32
	step  *step
	first uint8
}

// judgeAfter returns the judge who has seen what another one has, and that.
func (c *cast) judgeAfter(key judgment, events []event) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, ok := c.judgments[key]
	if ok {
		return id
	}
	j := c.judges[key.judge>>1].clone()
	for _, e := range events {
		j.take(e)
	}
	id = c.judgeID(j)
	c.judgments[key] = id
	return id
}

// violated is the bit of a judge's number that says that he has found something.
const violated = 1

// judgeID returns the number of a judge.
func (c *cast) judgeID(j *judge) uint32 {
	h, found := j.state(), uint32(0)
	if j.violation != nil {
		h, found = ^h, violated
	}
	id, ok := c.judgeAt[h]
	if !ok {
		id = uint32(len(c.judges))<<1 | found
		c.judges, c.judgeAt[h] = append(c.judges, j), id
	}
	return id
}
