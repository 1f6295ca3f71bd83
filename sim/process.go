package sim

import (
	"fmt"
	"runtime/debug"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
	"atoll/tags"
)

// Stepper is what a node does with a message. A replica.Node is one. Step
// appends to out and returns it; an error stops the node.
type Stepper interface {
	Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error)
}

// Tasked is a Stepper whose node does more than answer. The tasks are started
// in each life of the node, when it serves, and run as replica.Task says.
type Tasked interface {
	Tasks() []replica.Task
}

// Boot builds a node's stepper when its process starts, for the first time or
// again. p.Disk is the store that the node had before. If the stepper is
// Tasked, its tasks are started then.
type Boot func(p *Process) (Stepper, error)

// Process is a node, or a client: a process without a disk and a stepper. It
// has one life after another; nothing but the disk and the id lasts from one
// to the next.
type Process struct {
	w     *World
	id    quorum.NodeID
	index uint64
	hash  uint64
	boot  Boot // nil in a client
	links map[uint64]*link

	clock     *clock // nil: the world's
	connected bool
	// sessions counts the times on the network that are over, and the lives.
	sessions uint64
	// broken counts those that Break has ended beside, by the other process,
	// and redialing the Breaks that aren't over. Nil: none.
	broken    map[uint64]uint64
	redialing map[uint64]int
	gray      Delay // on top of all ways from and to the process
	driven    bool  // the driver says what it asks, see World.Ask

	// What belongs to the present life.
	up        bool
	life      uint64 // 1 in the first
	callers   []*caller
	started   uint64 // callers that were started
	drawn     uint64 // operation ids that were drawn
	idHigh    uint64
	idLow     uint16
	mailboxes map[env.Mailbox]*mailbox
	failure   error
	frozen    *freeze // nil: it runs
	pauses    uint64  // in all lives

	// What a node has beside.
	disk       *Disk
	sync       Delay
	slowSync   Delay // on top
	failSync   bool  // the next one
	stepper    Stepper
	outs       []env.Out // reused by step
	waiting    []env.Out // for the disk
	committing bool
	commits    uint64 // in all lives
	stalled    bool
	hung       bool   // stalled until it dies
	stepped    bool   // since state was taken
	state      uint64 // of disk and stepper, see World.State
}

type mailbox struct {
	name  env.Mailbox
	queue []env.Envelope
	owner *caller // the task that receives from it
}

// AddNode adds a node with an empty disk, and boots it.
func (w *World) AddNode(id quorum.NodeID, boot Boot) (*Process, error) {
	p := w.add(id)
	p.boot, p.disk, p.sync = boot, NewDisk(), w.cfg.Sync(id)
	p.disk.rules = w.cfg.Rules
	return p, p.Restart()
}

// AddClient adds a client.
func (w *World) AddClient(id quorum.NodeID) *Process {
	p := w.add(id)
	if err := p.Restart(); err != nil {
		panic(err) // a client has no boot that could fail
	}
	return p
}

func (w *World) add(id quorum.NodeID) *Process {
	if w.byID[id] != nil {
		panic(fmt.Sprintf("sim: there is a process %q already", id))
	}
	p := &Process{
		w:         w,
		id:        id,
		index:     uint64(len(w.processes)),
		hash:      foldString(0, string(id)),
		links:     make(map[uint64]*link),
		connected: true,
	}
	w.processes = append(w.processes, p)
	w.byID[id] = p
	return p
}

// ID returns the id of the process.
func (p *Process) ID() quorum.NodeID { return p.id }

// Disk returns the disk of a node, nil for a client.
func (p *Process) Disk() *Disk { return p.disk }

// Up reports whether the process lives.
func (p *Process) Up() bool { return p.up }

// Life counts the lives of the process, from 1.
func (p *Process) Life() int { return int(p.life) }

// Failure returns the error with which a step or an fsync stopped the node.
func (p *Process) Failure() error { return p.failure }

// Restart begins the next life of a process that is down.
func (p *Process) Restart() error {
	p.w.outside("Restart")
	if p.up {
		panic(fmt.Sprintf("sim: %s is up", p.id))
	}
	if p.disk != nil {
		if err := p.disk.bootable(); err != nil {
			return fmt.Errorf("sim: boot %s: %w", p.id, err)
		}
	}
	p.life++
	p.up, p.failure = true, nil
	p.started, p.drawn = 0, 0
	p.mailboxes = make(map[env.Mailbox]*mailbox)
	p.idHigh, p.idLow = p.identity(p.life)
	if p.boot == nil {
		return nil
	}
	stepper, err := p.boot(p)
	if err != nil {
		p.kill()
		return fmt.Errorf("sim: boot %s: %w", p.id, err)
	}
	p.stepper, p.stepped = stepper, true
	p.commit() // what it has noted for the first time
	p.w.back(p)
	if t, ok := stepper.(Tasked); ok {
		for _, task := range t.Tasks() {
			p.keep(task)
		}
	}
	return nil
}

// keep runs a task for as long as the present life lasts.
func (p *Process) keep(t replica.Task) {
	p.Scope(0).Start(func(e env.Env) error {
		return t.Keep(e, func(ended error) {
			if p.w.cfg.Observe != nil {
				p.w.cfg.Observe(Observation{What: TaskAgain, Process: p, Task: t.Name, Err: ended})
			}
		})
	})
}

// identity returns the random part of the operation ids of a life.
func (p *Process) identity(life uint64) (high uint64, low uint16) {
	if p.w.cfg.Rules.ReuseIDs {
		life = 1
	}
	base := fold(mix(p.w.cfg.Seed), p.hash)
	high = draw(base, life, forIdentity)
	return high, uint16(draw(high, life, forIdentity))
}

// Crash kills the process, as kill -9 does: its coroutines unwind without
// being able to do anything, and of what its node wrote only that is kept
// which was handed to the operating system.
func (p *Process) Crash() {
	p.kill()
	if p.disk != nil {
		p.disk.LoseUnwritten()
	}
}

// PowerLoss kills the process and loses what its disk hadn't synced, all but
// the first keep groups of records of that, which happened to be on the
// medium.
func (p *Process) PowerLoss(keep int) {
	p.kill()
	if p.disk != nil {
		p.disk.LoseUnsynced(keep)
	}
}

// kill ends the present life. It is idempotent.
func (p *Process) kill() {
	p.w.outside("a crash")
	if p.up {
		p.up = false
		p.w.over(p)
	}
	callers := p.callers
	p.callers = nil
	for _, c := range callers {
		c.inert = true // all of them, before the first one unwinds
	}
	for _, c := range callers {
		c.unwind()
	}
	p.mailboxes = nil
	p.stepper = nil
	clear(p.waiting) // keep nothing alive
	p.waiting = p.waiting[:0]
	p.committing = false
	p.frozen = nil
	if p.hung {
		p.hung, p.stalled = false, false
	}
}

// Stop ends the process in good order: every scope on it ends with
// env.ErrStopped, and then the process is down.
func (p *Process) Stop() {
	p.w.outside("Stop")
	for _, c := range p.callers {
		c.end(env.ErrStopped)
	}
	p.w.resumeAll()
	p.kill()
}

// Stall makes the node's disk slow without end: no commit ends before Unstall
// is called. A commit that has begun already is caught too.
func (p *Process) Stall() { p.stalled = true }

// Hang is Stall until the process dies, and nothing undoes it before: so what
// waits for the disk from now on is as good as gone.
func (p *Process) Hang() { p.stalled, p.hung = true, true }

// Unstall undoes Stall: a commit that is under way ends now.
func (p *Process) Unstall() {
	p.stalled = false
	if p.committing {
		p.w.schedule.add(p.w.now, event{kind: syncEvent, process: p, commit: p.commits})
	}
}

// step lets the node act on a message that has arrived: the server's loop.
// What needn't wait for the disk leaves at once; a commit runs in the
// background, one at a time, and takes along all that was stepped meanwhile.
func (p *Process) step(from env.Address, m env.Message) {
	if p.stepper == nil {
		return // a client, which takes no requests
	}
	outs, err := p.guarded(from, m)
	if err != nil {
		p.fail(err)
		return
	}
	p.stepped = true
	p.disk.Cut()
	for _, out := range outs {
		switch {
		case out.After <= p.disk.durable:
			p.leave(out)
		case !p.hung:
			p.waiting = append(p.waiting, out)
		}
	}
	clear(outs)
	p.outs = outs
	p.commit()
}

// guarded is the node's step. A panic in it goes on with the name of the node
// and the stack, which whoever recovers from it no longer sees.
func (p *Process) guarded(from env.Address, m env.Message) ([]env.Out, error) {
	defer func() {
		if v := recover(); v != nil {
			panic(fmt.Sprintf("%v\n\nin a step of the simulation, on %s, with a %T:\n%s", v, p.id, m, debug.Stack()))
		}
	}()
	return p.stepper.Step(from, m, p.outs[:0])
}

// fail stops a node whose step returned an error.
func (p *Process) fail(err error) {
	p.Crash()
	p.stopped(err)
}

// stopped notes why a node has stopped.
func (p *Process) stopped(err error) {
	p.failure = err
	if p.w.cfg.Observe != nil {
		p.w.cfg.Observe(Observation{What: Failed, Process: p})
	}
}

// commit begins a commit if there is something to commit and none under way.
func (p *Process) commit() {
	if p.committing || !p.disk.begin() {
		return
	}
	p.committing = true
	p.commits++
	if !p.stalled {
		p.w.schedule.add(p.w.now+p.commitTime(), event{kind: syncEvent, process: p, commit: p.commits})
	}
}

// synced is the end of a commit, as the disk sees it.
func (p *Process) synced(commit uint64) {
	if commit != p.commits || !p.committing || p.stalled {
		return
	}
	if p.failSync {
		if !p.w.cfg.Rules.RetrySync {
			p.syncFailed()
			return
		}
		// The second fsync succeeds: the operating system has marked the pages
		// clean that it failed to write.
		p.failSync, p.disk.lying = false, true
	}
	p.disk.end()
	p.stepped = true
	if p.w.cfg.Observe != nil {
		p.w.cfg.Observe(Observation{What: Synced, Process: p})
	}
	if p.frozen != nil {
		p.frozen.synced = true
		return
	}
	p.release()
}

// release is the end of a commit, as the node sees it: what waited for it
// leaves.
func (p *Process) release() {
	p.committing = false
	keep := p.waiting[:0]
	for _, out := range p.waiting {
		if out.After > p.disk.durable {
			keep = append(keep, out)
		} else {
			p.leave(out)
		}
	}
	clear(p.waiting[len(keep):])
	p.waiting = keep
	p.commit()
}

// leave lets an effect of a step happen.
func (p *Process) leave(out env.Out) {
	if out.Mailbox != "" {
		p.mail(out.Mailbox, env.Envelope{From: out.To, Message: out.Message})
		return
	}
	p.answer(out.To, out.Message)
}

// mail puts an envelope into a mailbox and wakes who waits for it.
func (p *Process) mail(name env.Mailbox, e env.Envelope) {
	m := p.mailboxes[name]
	if m == nil {
		if len(p.mailboxes) >= maxMailboxes {
			return
		}
		m = p.mailbox(name)
	}
	if len(m.queue) == maxMailbox {
		return
	}
	m.queue = append(m.queue, e)
	if m.owner != nil && m.owner.box == m {
		m.owner.wake()
	}
}

// mailbox makes a mailbox.
func (p *Process) mailbox(name env.Mailbox) *mailbox {
	m := &mailbox{name: name}
	p.mailboxes[name] = m
	return m
}

// answer sends an answer to whoever asked, unless the connection has ended
// over which that was. Nobody waits for the answer to something told.
func (p *Process) answer(to env.Address, m env.Message) {
	dst := p.w.processes[uint32(to.Session)]
	if to.Conversation == 0 || to.Session>>sessionShift != p.connection(dst) {
		return
	}
	e := event{answer: true, asker: to, message: m}
	if dst == p {
		p.w.loopback(p, e)
		return
	}
	_ = p.w.send(p.linkTo(dst), e, false) // who asked asks again
}

// sessionShift: in the Session of an env.Address, the number of the connection
// stands above the index of the process.
const sessionShift = 32

// request sends a request of the conversation conv, zero for a Tell. It can be
// lost on purpose.
func (p *Process) request(to *Process, conv uint64, m env.Message, lost bool) error {
	if to == nil {
		return errNoProcess
	}
	asker := env.Address{Node: p.id, Session: p.connection(to)<<sessionShift | p.index, Conversation: conv}
	e := event{asker: asker, message: m}
	if to == p {
		p.w.loopback(p, e)
		return nil
	}
	return p.w.send(p.linkTo(to), e, lost)
}

// drawID returns a fresh operation id.
func (p *Process) drawID() tags.PID {
	p.drawn++
	return tags.NewPID(p.idHigh, p.idLow, p.drawn)
}

// Scope returns a new scope on the process, in its present life. A limit above
// zero is the time from Start after which the scope ends with
// env.ErrDeadline.
func (p *Process) Scope(limit time.Duration) *Scope {
	return &Scope{p: p, life: p.life, limit: limit}
}
