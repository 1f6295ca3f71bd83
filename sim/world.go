package sim

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"atoll/env"
	"atoll/quorum"
)

// Limits of what a world holds.
const (
	// maxMailbox is how many envelopes wait in one mailbox. What comes when
	// it is full is lost, and asked again.
	maxMailbox = 4096
	// maxMailboxes is how many mailboxes of a node arriving messages may make.
	// What is for a further one is lost, until a task receives from it.
	maxMailboxes = 4096
	// checkpointEvery is the number of events between two checkpoints of the
	// trace hash.
	checkpointEvery = 1000
	// maxInstant is how much happens at one instant, before it counts as a loop
	// that lets no time pass: events, turns of callers, and what these ask of
	// their Env. maxInstantEach comes on top for each process.
	maxInstant     = 1_000_000
	maxInstantEach = 10_000
)

// Defaults of a Config.
const (
	DefaultDelay       = time.Millisecond
	DefaultSync        = time.Millisecond
	DefaultResendFirst = 50 * time.Millisecond
	DefaultResendMost  = time.Second
	DefaultHedge       = 10 * time.Millisecond
)

// Config says what a world is like. The zero Config is a network and disks
// that take a millisecond for everything and lose nothing.
type Config struct {
	// Seed decides every draw.
	Seed uint64

	// Link returns what the way from one process to another is like. It is
	// asked once for each pair. Nil: always Constant(DefaultDelay).
	Link func(from, to quorum.NodeID) Link

	// Sync returns how long commits take on a node. It is asked when the node
	// boots. Nil: Constant(DefaultSync).
	Sync func(node quorum.NodeID) Delay

	// ResendFirst is the time after which a request that wasn't answered is
	// sent again; it doubles up to ResendMost. Zero: the defaults.
	ResendFirst, ResendMost time.Duration

	// Hedge is the time after which those whom an AskSome asked first are
	// late, and the spares are asked. Zero: DefaultHedge.
	Hedge time.Duration

	// Nearest, when set, orders nodes for the Nearest of an Env: it must be a
	// function of its arguments, and not change them. Nil: an order is drawn
	// for each call.
	Nearest func(asker *Process, nodes []quorum.NodeID) []quorum.NodeID

	// Rand, when set, is what the Rand of an Env returns: it must be a function of
	// its argument. Nil: each call draws.
	Rand func(caller *Process) uint64

	// Intercept, when set, decides what becomes of each message that is sent
	// from one process to another, before the link's own faults.
	Intercept func(Transit) Fate

	// Observe, when set, is told what happens to messages and processes.
	Observe func(Observation)

	// Trace, when set, is told what protocols trace.
	Trace func(on *Process, e env.Event)

	// Memory, when set, makes World.State possible.
	Memory *Memory

	Rules Rules
}

// Rules breaks rules of the kernel, one a field; the zero value breaks none.
// Only tests set them: a protocol that survives a kernel with such a mutant
// isn't tested by the schedule that is about the rule.
type Rules struct {
	// MatchAnyConversation: an answer to an earlier conversation with the same
	// node is passed to the one that is under way.
	MatchAnyConversation bool
	// ReuseIDs: a process that has restarted draws the operation ids of its
	// first life again.
	ReuseIDs bool
	// RetrySync: an fsync that failed is tried again, and believed.
	RetrySync bool
	// TrustTorn: what is left of a torn group of records is kept.
	TrustTorn bool
	// TrustDamaged: a disk shows records whose checksum is wrong, and takes such
	// a cell for one that was never set.
	TrustDamaged bool
	// TrustMisplaced: a disk shows a record that was written in the place of
	// another as that other.
	TrustMisplaced bool
	// BootEmpty: a node whose disk was lost boots over an empty one.
	BootEmpty bool
	// NeverResend: what was lost isn't sent again.
	NeverResend bool
	// NeverHedge: spares aren't asked when those before them are late.
	NeverHedge bool
}

// World is a set of processes, the network between them, and the schedule of
// what happens to them. Nothing of it is safe for concurrent use: one
// goroutine creates it, runs it and closes it.
type World struct {
	cfg Config
	now time.Duration

	schedule  schedule
	processes []*Process
	byID      map[quorum.NodeID]*Process

	ready   []*caller // in the order in which they became so
	running *caller   // who runs right now, nil in the scheduler
	idle    []*routine
	asking  []*caller // by the place of their conversations
	vacant  []uint32  // places of asking that are free

	held   []Held
	narrow Narrow

	instant int // what has happened at this instant, see maxInstant

	hash        uint64
	events      uint64
	messages    uint64
	checkpoints []uint64
	types       map[reflect.Type]uint64
}

// New returns an empty world.
func New(cfg Config) *World {
	if cfg.Link == nil {
		cfg.Link = func(quorum.NodeID, quorum.NodeID) Link { return Link{Delay: Constant(DefaultDelay)} }
	}
	if cfg.Sync == nil {
		cfg.Sync = func(quorum.NodeID) Delay { return Constant(DefaultSync) }
	}
	if cfg.ResendFirst == 0 {
		cfg.ResendFirst = DefaultResendFirst
	}
	if cfg.ResendMost == 0 {
		cfg.ResendMost = max(DefaultResendMost, cfg.ResendFirst)
	}
	if cfg.Hedge == 0 {
		cfg.Hedge = DefaultHedge
	}
	w := &World{
		cfg:   cfg,
		byID:  make(map[quorum.NodeID]*Process),
		hash:  mix(cfg.Seed),
		types: make(map[reflect.Type]uint64),
	}
	if cfg.Memory != nil {
		cfg.Memory.begin()
	}
	return w
}

// Now returns the time of the world.
func (w *World) Now() time.Duration { return w.now }

// Events returns how many events have happened, and how many of them were
// messages that arrived.
func (w *World) Events() (all, messages uint64) { return w.events, w.messages }

// Hash returns the trace hash: it covers, in order, every event that has
// happened, with its time, its kind and its parties, and how each operation
// ended. Two runs of one seed have the same.
func (w *World) Hash() uint64 { return w.hash }

// Checkpoints returns the trace hash after every thousandth event. Where those
// of two runs part, there the runs parted.
func (w *World) Checkpoints() []uint64 { return w.checkpoints }

// Process returns the process of that id, nil if there is none.
func (w *World) Process(id quorum.NodeID) *Process { return w.byID[id] }

// Processes returns all processes in the order in which they were added. The
// caller must not change the result.
func (w *World) Processes() []*Process { return w.processes }

// At schedules f, which may do whatever a driver may do between events, at d
// from now.
func (w *World) At(d time.Duration, f func()) {
	w.schedule.add(w.now+max(d, 0), event{kind: callEvent, call: f})
}

// ErrLimit is returned by Wait when the time is over.
var ErrLimit = errors.New("sim: not done within the time")

// ErrQuiet is returned by Wait when nothing will ever happen again. In a world
// in which a node has a task that comes back to something now and then, that
// is never.
var ErrQuiet = errors.New("sim: not done, and nothing is left to happen")

// NoProgress is what a world panics with when a million things and more have
// happened at one instant: somebody loops, and lets no time pass.
type NoProgress struct {
	Process quorum.NodeID // whose turn it was; empty for the driver
	At      time.Duration
}

// Error says so.
func (e *NoProgress) Error() string {
	return fmt.Sprintf("sim: no progress: without end something happens at %v, and no time passes; it was the turn of %q", e.At, e.Process)
}

// more counts one more thing that happens at this instant, to p.
func (w *World) more(p *Process) {
	w.instant++
	if w.instant <= maxInstant || w.instant <= maxInstant+maxInstantEach*len(w.processes) {
		return
	}
	e := &NoProgress{At: w.now}
	if p != nil {
		e.Process = p.id
	}
	panic(e)
}

// Step lets the next event happen, and all that callers do in consequence. It
// reports whether there was any. It panics with a *NoProgress when time stands
// still.
func (w *World) Step() bool {
	w.outside("Step")
	w.resumeAll()
	if _, ok := w.schedule.next(); !ok {
		return false
	}
	k, e := w.schedule.pop()
	if k.at < w.now {
		panic("sim: an event was scheduled in the past")
	}
	if k.at > w.now {
		w.now, w.instant = k.at, 0
	}
	w.more(e.party())
	w.events++
	w.hash = fold(w.hash, uint64(k.at)<<3|uint64(e.kind))
	switch e.kind {
	case callEvent:
		e.call()
	case syncEvent:
		w.hash = fold(w.hash, e.process.hash)
		e.process.synced(e.commit)
	case messageEvent:
		w.arrive(&e)
	case timerEvent:
		w.hash = fold(w.hash, e.caller.p.hash^e.caller.number)
		e.caller.timeout()
	}
	w.resumeAll()
	if w.events%checkpointEvery == 0 {
		w.checkpoints = append(w.checkpoints, w.hash)
	}
	return true
}

// RunFor lets everything happen that is due within d from now, and d pass.
func (w *World) RunFor(d time.Duration) {
	w.resumeAll()
	end := w.now + d
	for {
		at, ok := w.schedule.next()
		if !ok || at > end {
			break
		}
		w.Step()
	}
	if end > w.now {
		w.now, w.instant = end, 0
	}
}

// Settle lets everything happen that is due now.
func (w *World) Settle() { w.RunFor(0) }

// Wait runs the world until all scopes are done. It returns ErrLimit when that
// isn't so within limit from now, and ErrQuiet when it never will.
func (w *World) Wait(limit time.Duration, scopes ...*Scope) error {
	end := w.now + limit
	w.resumeAll()
	for _, s := range scopes {
		for !s.Done() {
			at, ok := w.schedule.next()
			if !ok {
				return ErrQuiet
			}
			if at > end {
				return ErrLimit
			}
			w.Step()
		}
	}
	return nil
}

// Close ends the world: every process dies, so that no coroutine is left.
func (w *World) Close() {
	w.running = nil // it is not, if a panic brought us here
	for _, p := range w.processes {
		p.kill()
	}
	for _, r := range w.idle {
		r.stop()
	}
	w.idle = nil
}

// outside panics when a caller calls what only a driver may.
func (w *World) outside(what string) {
	if w.running != nil {
		panic(fmt.Sprintf("sim: %s was called by a caller; schedule it with World.At", what))
	}
}

// typeHash returns a hash of the type of a message, the same in every run.
func (w *World) typeHash(m env.Message) uint64 {
	t := reflect.TypeOf(m)
	h, ok := w.types[t]
	if !ok {
		h = foldString(0, t.String())
		w.types[t] = h
	}
	return h
}
