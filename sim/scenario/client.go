package scenario

import (
	"errors"
	"strconv"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/sim"
	"atoll/sim/history"
	"atoll/tags"
)

// client is a client of a cluster: it does one operation after another.
//
// What it does next is a hash of the seed, of its name and of how many it has
// done, and of nothing else: another algorithm, or a fault less, gives it the
// same operations.
type client struct {
	c       *cluster
	number  int
	x       *process
	p       *sim.Process
	name    string
	base    uint64 // of its draws
	idle    bool
	next    int // the number of its next operation
	narrow  narrow
	self    Client // the algorithm's, of the present life
	asker   asker
	body    func(env.Env) error // perform, made once
	op      operation
	again   *abd.Operation // to be tried again, with what op says of it
	retried int
	talks   talks
}

// operation is what a client is doing.
type operation struct {
	active   bool
	kind     Kind
	register *register
	pause    time.Duration // before it
	began    time.Duration
	floor    tags.Tag // the largest completed when it began
	at       int      // in the history; of a list, the first of one for each key
	write    int      // its number among the writes
	rounds   int
	messages int
	bytes    int
	short    env.Message // a conversation with this request ended without a quorum
}

// What draws of a client are for.
const (
	forKind = iota
	forKey
	forPause
	forRetry
	forPlace
	forLimit
	purposes
)

func newClient(c *cluster, number int, p *sim.Process) *client {
	cl := &client{c: c, number: number, p: p, name: string(p.ID())}
	cl.base = stream(c.r.plan.Seed, cl.name)
	cl.body = cl.perform
	return cl
}

func (cl *client) draw(purpose uint64) uint64 {
	return mix(cl.base ^ mix(uint64(cl.next)*purposes+purpose))
}

// live begins a life of the client.
func (cl *client) live() {
	cl.self = cl.c.r.algorithm.Client(cl.c.told)
	cl.op.active, cl.again = false, nil
	cl.begin()
}

// begin starts the next operation, which begins after a pause.
func (cl *client) begin() {
	r := cl.c.r
	if r.over || cl.idle || r.s.Operations > 0 && cl.next >= r.s.Operations && cl.again == nil {
		return
	}
	cl.op.pause = 0
	if r.s.Think > 0 {
		cl.op.pause = time.Duration(below(cl.draw(forPause), 2*int(r.s.Think)+1))
	}
	limit := time.Duration(r.s.Timeout)
	if limit > 0 {
		limit += cl.op.pause
	}
	cl.p.Scope(limit).Start(cl.body)
}

// perform is one operation, from the pause before it to its end. It is what
// runs in the client's scope.
func (cl *client) perform(e env.Env) error {
	if cl.op.pause > 0 {
		if err := e.Sleep(cl.op.pause); err != nil {
			return err
		}
	}
	r := cl.c.r
	if r.over {
		return nil
	}
	cl.asker = asker{Env: e, cl: cl}
	cl.asker.hear = cl.asker.heard
	err := cl.operate(&cl.asker)
	cl.begin()
	return err
}

// operate draws an operation, or takes the one that is tried again, and runs
// it.
func (cl *client) operate(e env.Env) error {
	if cl.again != nil {
		op := *cl.again
		cl.again = nil
		cl.resume()
		return cl.write(e, op)
	}
	r := cl.c.r
	kind := r.s.Mix.kind(cl.draw(forKind))
	g := cl.c.registers[below(cl.draw(forKey), len(cl.c.registers))]
	cl.next++
	if r.skip != nil && r.skip.has(cl, g) {
		return e.Sleep(max(r.figures.DelayBound, time.Millisecond)) // the time that it might have taken
	}
	if kind == Write || kind == Delete {
		if r.s.SingleWriter && g.writer != cl {
			kind = Read
		}
	}
	if _, can := cl.self.(Lister); kind == List && (!can || !r.traits.Tags) {
		kind = Read
	}
	if r.o.begun != nil {
		r.o.begun(operationName(cl.name, cl.next))
	}
	switch kind {
	case Read:
		return cl.read(e, g)
	case List:
		return cl.list(e)
	}
	return cl.newWrite(e, g, kind == Delete)
}

// kind returns the kind of operation for a draw.
func (m Mix) kind(draw uint64) Kind {
	n := below(draw, m.total())
	for kind, weight := range [...]int{m.Read, m.Write, m.Delete} {
		if n -= weight; n < 0 {
			return Kind(kind)
		}
	}
	return List
}

func (cl *client) read(e env.Env, g *register) error {
	r := cl.c.r
	cl.start(Read, g)
	cl.op.at = r.recorder.Began(cl.op.began, history.Operation{Client: cl.name, Key: g.name, Kind: history.Read})
	rec, err := cl.self.Read(e, g.key)
	if err != nil {
		cl.ended(err, history.Failed)
		return err
	}
	cl.readFound(g, rec)
	cl.succeeded(g, rec.Tag)
	return nil
}

// readFound writes down and checks what a read returned.
func (cl *client) readFound(g *register, rec abd.Record) {
	r := cl.c.r
	now := r.w.Now()
	switch {
	case rec.Deleted || len(rec.Value) == 0:
		r.recorder.Ended(now, cl.op.at, history.OK)
		return
	}
	number := writeNumber(rec.Value)
	if number < 0 || number >= len(r.writes) {
		r.recorder.Found(now, cl.op.at, string(rec.Value))
		r.violate("value-from-nowhere", g, "%s read %.40q, which nobody wrote", cl.name, rec.Value)
		return
	}
	w := &r.writes[number]
	r.recorder.Found(now, cl.op.at, w.value)
	if w.failed {
		r.violate("failed-write-seen", g, "%s read %s, whose write was reported as failed", cl.name, w.value)
	}
	if r.traits.Tags && w.tag != rec.Tag {
		r.violate("tag-binds-one-value", g, "%s read %s under tag %s; it was stored under %s",
			cl.name, w.value, r.w.TagText(rec.Tag), r.w.TagText(w.tag))
	}
}

func (cl *client) newWrite(e env.Env, g *register, del bool) error {
	r := cl.c.r
	op := abd.Operation{Key: g.key, Delete: del}
	what := history.Operation{Client: cl.name, Key: g.name, Kind: history.Delete}
	kind := Delete
	number := len(r.writes)
	w := write{register: g}
	if !del {
		kind = Write
		op.Value = writeValue(number, r.s.ValueSize)
		w.value = string(op.Value)
		what.Kind, what.Value = history.Write, w.value
	}
	r.writes = append(r.writes, w)
	cl.start(kind, g)
	cl.op.write = number
	cl.op.at = r.recorder.Began(cl.op.began, what)
	cl.retried = 0
	return cl.write(e, op)
}

// write runs op, which is new or tried again.
func (cl *client) write(e env.Env, op abd.Operation) error {
	r := cl.c.r
	g, w := cl.op.register, cl.op.write
	if r.traits.Tags && op.Delete && op.ID.IsZero() {
		// A tombstone has no value that says which write it is of.
		op.ID = e.ID()
		r.deletes[op.ID] = w
	}
	op, err := cl.self.Write(e, op)
	if err == nil {
		r.bind(g, w, op.Tag)
		if r.writes[w].failed {
			panic("scenario: a write that had failed was tried again")
		}
		r.recorder.Ended(r.w.Now(), cl.op.at, history.OK)
		cl.succeeded(g, op.Tag)
		return nil
	}
	outcome := history.Unknown
	if q, ok := errors.AsType[*abd.QuorumError](err); ok && q.Effect == abd.NotApplied {
		outcome = history.Failed
		if r.writes[w].stored {
			r.violate("failed-write-seen", g, "a write of %s was reported as failed, and a node has stored it", cl.name)
		}
		r.writes[w].failed = true
	}
	cl.ended(err, outcome)
	if outcome == history.Unknown && cl.retried < maxRetries && below(cl.draw(forRetry), million) < int(r.s.Retry) {
		cl.retried++
		cl.again = &op
	}
	return err
}

// maxRetries is how often a client tries one write again.
const maxRetries = 8

// list asks for one page of keys, from a drawn place on. To the history it is a
// read of each key that the page is about.
func (cl *client) list(e env.Env) error {
	r := cl.c.r
	cl.start(List, nil)
	cl.op.at = len(r.recorder.History())
	after := abd.Key("")
	if d := cl.draw(forPlace); d%2 == 0 {
		after = cl.c.registers[below(mix(d), len(cl.c.registers))].key
	}
	limit := 1 + below(cl.draw(forLimit), len(cl.c.registers))
	floors := make([]tags.Tag, len(cl.c.registers))
	for i, g := range cl.c.registers {
		floors[i] = g.completed
		r.recorder.Began(cl.op.began, history.Operation{Client: cl.name, Key: g.name, Kind: history.Read})
	}
	first := cl.op.at
	keys, next, more, err := cl.self.(Lister).List(e, "", after, limit)
	if err != nil {
		for i := range cl.c.registers {
			r.recorder.Ended(r.w.Now(), first+i, history.Failed)
		}
		cl.op.at = -1
		cl.ended(err, history.Failed)
		return err
	}
	for i, g := range cl.c.registers {
		if g.key > after && (!more || g.key <= next) {
			cl.op.at, cl.op.floor = first+i, floors[i]
			cl.listed(g, keys)
		}
	}
	cl.completed()
	return nil
}

// listed writes down and checks what a list says of one key.
func (cl *client) listed(g *register, keys []abd.Listed) {
	r := cl.c.r
	for _, k := range keys {
		if k.Key != g.key {
			continue
		}
		number, ok := g.bound[k.Tag]
		if !ok || r.writes[number].value == "" {
			r.violate("value-from-nowhere", g, "%s listed tag %s, under which nobody wrote a value", cl.name, r.w.TagText(k.Tag))
			return
		}
		r.recorder.Found(r.w.Now(), cl.op.at, r.writes[number].value)
		cl.checkTag(g, k.Tag)
		return
	}
	r.recorder.Ended(r.w.Now(), cl.op.at, history.OK)
}

// start begins an operation.
func (cl *client) start(kind Kind, g *register) {
	cl.op = operation{kind: kind, register: g}
	if g != nil {
		cl.op.floor = g.completed
	}
	cl.resume()
}

// resume begins a try of the operation.
func (cl *client) resume() {
	r := cl.c.r
	cl.op.active, cl.op.began = true, r.w.Now()
	cl.op.rounds, cl.op.messages, cl.op.bytes, cl.op.short = 0, 0, 0, nil
	r.pending++
	cl.c.pending++
	if cl.c.pending == 1 {
		cl.c.progress = cl.op.began
	}
}

// succeeded is the end of an operation on one register.
func (cl *client) succeeded(g *register, tag tags.Tag) {
	cl.checkTag(g, tag)
	cl.completed()
}

// completed counts an operation that has ended well.
func (cl *client) completed() {
	r := cl.c.r
	op := &cl.op
	if op.short != nil {
		r.violate("quorum", op.register, "a %s of %s ended, and those who had really answered its %T contain no quorum", op.kind, cl.name, op.short)
	}
	if most := r.bounds[op.kind]; most > 0 && op.rounds > most {
		r.violate("rounds", op.register, "a %s of %s took %d rounds; %d are the most", op.kind, cl.name, op.rounds, most)
	}
	if most := r.s.Bounds.Messages; most > 0 && op.messages > most {
		r.violate("messages", op.register, "a %s of %s took %d messages; %d are the most", op.kind, cl.name, op.messages, most)
	}
	f := &r.figures.ByKind[op.kind]
	f.Latencies = append(f.Latencies, r.w.Now()-op.began)
	f.Rounds += uint64(op.rounds)
	if op.rounds == 1 {
		f.OneRound++
	}
	cl.over(history.OK)
}

// ended counts an operation that has failed, or whose outcome is unknown.
func (cl *client) ended(err error, outcome history.Outcome) {
	r := cl.c.r
	if cl.c.changing && !errors.Is(err, env.ErrDeadline) {
		r.violate("operation-failed", cl.op.register, "a %s of %s failed while members change: %v", cl.op.kind, cl.name, err)
	}
	if outcome == history.Failed {
		r.figures.ByKind[cl.op.kind].Failed++
		if cl.op.at >= 0 {
			r.recorder.Ended(r.w.Now(), cl.op.at, history.Failed)
		}
	} else {
		r.figures.ByKind[cl.op.kind].Unknown++
	}
	cl.over(outcome)
}

// died is what becomes of the operation of a client that has died.
func (cl *client) died() {
	if cl.op.active {
		cl.c.r.figures.ByKind[cl.op.kind].Unknown++
		cl.over(history.Unknown)
	}
}

// over is the end of a try, whatever came of it.
func (cl *client) over(outcome history.Outcome) {
	r := cl.c.r
	now := r.w.Now()
	cl.op.active = false
	r.pending--
	cl.c.pending--
	gap := now - cl.c.progress
	cl.c.progress = now
	r.figures.LongestStall = max(r.figures.LongestStall, gap)
	if gap > time.Duration(r.s.Bounds.Stall) {
		r.figures.Stalls++
	}
	if r.o.Ended != nil && !cl.idle { // the last reads are the harness's
		op := &cl.op
		done := Ended{Client: cl.name, Kind: op.kind, Outcome: outcome, Began: op.began, Ended: now,
			Rounds: op.rounds, Messages: op.messages, Bytes: op.bytes}
		if op.register != nil {
			done.Key = op.register.name
		}
		r.o.Ended(done)
	}
}

// writeValue returns the value of the n-th write of a run: a "w", the number,
// and dots up to the size.
func writeValue(n, size int) []byte {
	b := make([]byte, 0, max(size, 12))
	b = append(b, 'w')
	b = strconv.AppendInt(b, int64(n), 10)
	for len(b) < size {
		b = append(b, '.')
	}
	return b
}

// writeNumber returns the number in a value that writeValue made, -1 for any
// other.
func writeNumber(value []byte) int {
	if len(value) < 2 || value[0] != 'w' {
		return -1
	}
	n := 0
	for i, b := range value[1:] {
		switch {
		case b >= '0' && b <= '9':
			n = n*10 + int(b-'0')
		case b == '.' && i > 0:
			return n
		default:
			return -1
		}
	}
	return n
}
