package live_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"atoll/env"
	"atoll/env/envtest"
	"atoll/internal/live"
	"atoll/quorum"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEnv(t *testing.T) {
	for _, c := range envtest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if err := c.Run(newCluster(t)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// cluster is a world of processes in memory, each with a Runtime and a loop
// that takes one message at a time.
type cluster struct {
	t  *testing.T
	mu struct {
		sync.Mutex
		processes map[quorum.NodeID]*process
		sessions  uint64 // handed out
		cut       map[quorum.NodeID]bool
		late      map[pair][]delivery
		faults    func(from, to quorum.NodeID, m env.Message) envtest.Fate
	}
}

type pair struct{ from, to quorum.NodeID }

// delivery is a message under way to a process.
type delivery struct {
	from         env.Address
	conversation uint64 // for answers
	isAnswer     bool
	m            env.Message

	// Instead of a message: the connection with from has ended or come up.
	down error
	up   bool
}

type process struct {
	cluster *cluster
	name    quorum.NodeID
	session uint64          // of its life, and its time on the network; cluster.mu
	stepper envtest.Stepper // nil in a client
	runtime *live.Runtime
	inbox   inbox
	loop    sync.WaitGroup
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t}
	c.mu.processes = make(map[quorum.NodeID]*process)
	c.mu.cut = make(map[quorum.NodeID]bool)
	c.mu.late = make(map[pair][]delivery)
	t.Cleanup(func() {
		for _, p := range c.all() {
			p.stop()
		}
	})
	return c
}

func (c *cluster) all() []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*process
	for _, p := range c.mu.processes {
		all = append(all, p)
	}
	return all
}

func (c *cluster) process(name quorum.NodeID, s envtest.Stepper) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.mu.processes[name]; p != nil {
		return p
	}
	p := &process{cluster: c, name: name, stepper: s}
	c.renew(p)
	config := live.Config{Network: p}
	if s != nil {
		config.Self = name
	}
	p.runtime = live.New(config)
	p.inbox.wake = make(chan struct{}, 1)
	p.loop.Go(p.run)
	c.mu.processes[name] = p
	return p
}

// renew ends the connections of a process. Called with mu held.
func (c *cluster) renew(p *process) {
	c.mu.sessions++
	p.session = c.mu.sessions
	for between := range c.mu.late {
		if between.from == p.name || between.to == p.name {
			delete(c.mu.late, between)
		}
	}
}

// connection is the session of an address that one process has of another. It
// grows whenever their connection is another one. Called with mu held.
func (p *process) connection(q *process) uint64 { return p.session + q.session }

// tell tells both ends of each connection of a process that it has ended or
// come up, behind what came over it. Called with mu held.
func (c *cluster) tell(p *process, d delivery) {
	for _, other := range c.mu.processes {
		if other != p {
			d.from.Node = p.name
			other.inbox.put(d)
			d.from.Node = other.name
			p.inbox.put(d)
		}
	}
}

func (c *cluster) Node(id quorum.NodeID, s envtest.Stepper) { c.process(id, s) }

func (c *cluster) Stop(name quorum.NodeID) {
	c.mu.Lock()
	p := c.mu.processes[name]
	delete(c.mu.processes, name)
	c.tell(p, delivery{down: errStopped})
	c.mu.Unlock()
	p.stop()
}

func (c *cluster) Restart(node quorum.NodeID, s envtest.Stepper) {
	c.Stop(node)
	p := c.process(node, s)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tell(p, delivery{up: true})
}

func (c *cluster) Cut(name quorum.NodeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.cut[name] = true
	p := c.mu.processes[name]
	c.renew(p)
	c.tell(p, delivery{down: errCut})
}

func (c *cluster) Heal(name quorum.NodeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.cut, name)
	c.tell(c.mu.processes[name], delivery{up: true})
}

func (c *cluster) Faults(f func(from, to quorum.NodeID, m env.Message) envtest.Fate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.faults = f
}

var (
	errCut     = errors.New("cut off the network")
	errStopped = errors.New("stopped")
)

// pass lets a message through, or not. The address of an answer is that of the
// connection over which it was asked; a request is given the present one.
func (c *cluster) pass(from *process, to quorum.NodeID, d delivery) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.mu.processes[to]
	switch {
	case p == nil:
		return errors.New("no such process")
	case p == from:
		d.from.Session = from.connection(p)
		p.inbox.put(d)
		return nil
	case c.mu.cut[to]:
		return errCut
	case c.mu.cut[from.name]:
		return nil
	case c.mu.processes[from.name] != from:
		return errStopped
	case d.isAnswer && d.from.Session != from.connection(p):
		return errors.New("that connection has ended")
	}
	d.from.Session = from.connection(p)
	fate := envtest.Deliver
	if c.mu.faults != nil {
		fate = c.mu.faults(from.name, to, d.m)
	}
	between := pair{from.name, to}
	switch fate {
	case envtest.Lose:
		return nil
	case envtest.Late:
		c.mu.late[between] = append(c.mu.late[between], d)
		return nil
	case envtest.Twice:
		c.mu.late[between] = append(c.mu.late[between], d)
	}
	for _, late := range c.mu.late[between] {
		p.inbox.put(late)
	}
	delete(c.mu.late, between)
	p.inbox.put(d)
	return nil
}

// Send implements live.Network.
func (p *process) Send(to quorum.NodeID, conversation uint64, m env.Message) error {
	return p.cluster.pass(p, to, delivery{from: env.Address{Node: p.name, Conversation: conversation}, m: m})
}

// Answer implements live.Network.
func (p *process) Answer(to env.Address, m env.Message) error {
	return p.cluster.pass(p, to.Node,
		delivery{from: env.Address{Node: p.name, Session: to.Session}, conversation: to.Conversation, isAnswer: true, m: m})
}

// run is the process's loop.
func (p *process) run() {
	var out []env.Out
	for {
		all, open := p.inbox.take()
		if !open {
			return
		}
		for _, d := range all {
			switch {
			case d.down != nil:
				p.runtime.PeerDown(d.from.Node, d.down)
				continue
			case d.up:
				p.runtime.PeerUp(d.from.Node)
				continue
			case d.isAnswer:
				p.runtime.Deliver(d.from.Node, d.conversation, d.m)
				continue
			case p.stepper == nil:
				continue
			}
			var err error
			if out, err = p.stepper.Step(d.from, d.m, out[:0]); err != nil {
				p.cluster.t.Errorf("%s: %v", p.name, err)
			}
			for _, o := range out {
				if o.Mailbox != "" {
					p.runtime.Mail(o.Mailbox, env.Envelope{From: o.To, Message: o.Message})
				} else {
					p.Answer(o.To, o.Message) // whoever asked asks again
				}
			}
		}
	}
}

func (p *process) stop() {
	p.runtime.Stop()
	p.inbox.close()
	p.loop.Wait()
}

// inbox is a queue without bounds.
type inbox struct {
	wake chan struct{}
	mu   struct {
		sync.Mutex
		waiting []delivery
		closed  bool
	}
}

func (i *inbox) put(d delivery) {
	i.mu.Lock()
	i.mu.waiting = append(i.mu.waiting, d)
	i.mu.Unlock()
	i.signal()
}

func (i *inbox) close() {
	i.mu.Lock()
	i.mu.closed = true
	i.mu.Unlock()
	i.signal()
}

func (i *inbox) signal() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

func (i *inbox) take() (all []delivery, open bool) {
	<-i.wake
	i.mu.Lock()
	defer i.mu.Unlock()
	all, i.mu.waiting = i.mu.waiting, nil
	return all, !i.mu.closed
}

// operation implements envtest.Scope.
type operation struct {
	process *process
	limit   time.Duration
	ctx     context.Context
	cancel  context.CancelFunc
	done    chan struct{}
	err     error
}

func (c *cluster) Scope(name quorum.NodeID, limit time.Duration) envtest.Scope {
	o := &operation{process: c.process(name, nil), limit: limit, done: make(chan struct{})}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

func (o *operation) Start(f func(env.Env) error) {
	go func() {
		defer close(o.done)
		defer o.cancel()
		ctx := o.ctx
		if o.limit > 0 {
			limited, cancel := context.WithTimeout(ctx, o.limit)
			defer cancel()
			ctx = limited
		}
		o.err = f(o.process.runtime.Scope(ctx))
	}()
}

func (o *operation) Cancel() { o.cancel() }

func (o *operation) Wait() error {
	<-o.done
	return o.err
}
