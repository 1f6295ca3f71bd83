package sim

import (
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/tags"
)

var (
	_ env.Env          = (*caller)(nil)
	_ env.Conversation = (*conversation)(nil)
	_ env.Task         = (*caller)(nil)
)

// alive panics when the caller's process has died: a deferred function of a
// caller that unwinds is trying to wait for something.
func (c *caller) alive() {
	if c.inert {
		panic(unwinding{})
	}
	if c.w.running != c {
		panic("sim: a method of an Env was called by other code than the caller's own")
	}
	c.w.more(c.p) // in a scope that has ended, what would wait returns at once
}

// Tell implements env.Env.
func (c *caller) Tell(to []quorum.NodeID, m env.Message) {
	if c.inert {
		return
	}
	for _, id := range to {
		_ = c.p.request(c.w.byID[id], 0, m, false) // nobody learns of it
	}
}

// Sleep implements env.Env.
func (c *caller) Sleep(d time.Duration) error {
	c.alive()
	c.alarm = c.p.Clock() + max(d, 0)
	if c.ended == nil {
		c.arm(c.alarm)
		c.park(aTime)
	}
	c.learns(0, c.ended)
	return c.ended
}

// Go implements env.Env.
func (c *caller) Go(name string, f func(env.Env) error) env.Task {
	if c.inert {
		return deadTask{}
	}
	t := c.p.call(f)
	t.name, t.parent = name, c
	c.tasks = append(c.tasks, t)
	if c.ended != nil {
		t.end(c.ended)
	}
	return t
}

// Join implements env.Task. The task's parent calls it.
func (c *caller) Join() error {
	p := c.parent
	p.alive()
	for c.state != finished {
		c.joiner = p
		p.park(aTask)
	}
	if !c.joined {
		c.joined = true
		p.learns(c.memory.past+c.memory.sum(), c.err)
		for i, t := range p.tasks {
			if t == c {
				p.tasks = append(p.tasks[:i], p.tasks[i+1:]...)
				break
			}
		}
	}
	return c.err
}

// Cancel implements env.Task. The task's parent calls it, or another task.
func (c *caller) Cancel() {
	if c.inert {
		panic(unwinding{}) // and so is whoever calls
	}
	c.end(env.ErrCanceled)
}

// deadTask is what Go returns to a caller whose process has died.
type deadTask struct{}

// Join implements env.Task.
func (deadTask) Join() error { panic(unwinding{}) }

// Cancel implements env.Task.
func (deadTask) Cancel() {}

// Receive implements env.Env.
func (c *caller) Receive(name env.Mailbox) ([]env.Envelope, error) {
	c.alive()
	if c.ended != nil {
		return nil, c.ended
	}
	m := c.own(name)
	c.box = m
	for c.ended == nil && len(m.queue) == 0 {
		c.park(mail)
	}
	c.box = nil
	if c.ended != nil {
		return nil, c.ended
	}
	got := m.queue
	m.queue = nil
	for _, e := range got {
		c.receives(e)
	}
	return got, nil
}

// own makes a mailbox the caller's until its scope ends.
func (c *caller) own(name env.Mailbox) *mailbox {
	m := c.p.mailboxes[name]
	if m == nil {
		m = c.p.mailbox(name) // without a limit: our own tasks are what makes these
	}
	if m.owner == c {
		return m
	}
	if m.owner != nil {
		panic("sim: two tasks receive from the mailbox " + string(name))
	}
	m.owner = c
	c.owned = append(c.owned, m)
	return m
}

// disown gives up the caller's mailboxes. What waits in one is for the task
// that receives from it next.
func (c *caller) disown() {
	for _, m := range c.owned {
		m.owner = nil
		if len(m.queue) == 0 {
			delete(c.p.mailboxes, m.name)
		}
	}
	c.owned = nil
}

// Send implements env.Env.
func (c *caller) Send(to env.Address, answer env.Message) {
	if !c.inert {
		c.answers(to)
		c.p.answer(to, answer)
	}
}

// ID implements env.Env.
func (c *caller) ID() tags.PID { return c.p.drawID() }

// Now implements env.Env.
func (c *caller) Now() time.Duration { return c.p.Clock() }

// Rand implements env.Env. It draws, unless Config.Rand says what.
func (c *caller) Rand() uint64 {
	if f := c.w.cfg.Rand; f != nil {
		return f(c.p)
	}
	c.draws++
	return draw(c.base(), c.draws, forCaller)
}

// Nearest implements env.Env. The order is drawn anew for each call, unless
// Config.Nearest says it.
func (c *caller) Nearest(nodes []quorum.NodeID) []quorum.NodeID {
	if f := c.w.cfg.Nearest; f != nil {
		return f(c.p, nodes)
	}
	c.asked++
	base := fold(c.base(), c.asked)
	order := make([]quorum.NodeID, len(nodes))
	for i, id := range nodes {
		j := int(draw(base, uint64(i), forNearest) % uint64(i+1))
		order[i] = order[j]
		order[j] = id
	}
	return order
}

// base is what the draws of a caller begin with.
func (c *caller) base() uint64 {
	return fold(fold(mix(c.w.cfg.Seed), c.p.hash), c.life<<32|c.number)
}

// Self implements env.Env.
func (c *caller) Self() quorum.NodeID {
	if c.p.boot == nil {
		return ""
	}
	return c.p.id
}

// Trace implements env.Env.
func (c *caller) Trace(e env.Event) {
	if !c.inert && c.w.cfg.Trace != nil {
		c.w.cfg.Trace(c.p, e)
	}
}
