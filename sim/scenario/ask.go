package scenario

import (
	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
)

// asker is the Env that an algorithm's operation gets: the simulated one, with
// an eye on its conversations.
type asker struct {
	env.Env
	cl   *client
	each func(c env.Conversation, from quorum.NodeID, answer env.Message) bool
	hear func(c env.Conversation, from quorum.NodeID, answer env.Message) bool // heard, made once
	// Who has really answered the conversation, and who has refused it.
	answered, refused quorum.Set
}

// Ask implements env.Env.
func (a *asker) Ask(to []quorum.NodeID, req env.Message, each func(c env.Conversation, from quorum.NodeID, answer env.Message) bool) error {
	return a.AskSome(to, nil, req, each)
}

// AskSome implements env.Env.
func (a *asker) AskSome(first, spare []quorum.NodeID, req env.Message, each func(c env.Conversation, from quorum.NodeID, answer env.Message) bool) error {
	a.each = each
	a.answered, a.refused = quorum.Set{}, quorum.Set{}
	a.cl.op.rounds++
	err := a.Env.AskSome(first, spare, req, a.hear)
	if err == nil {
		a.check(req)
	}
	return err
}

// heard is called with each answer. Whether it was meant for this conversation
// isn't left to the kernel, whose rules may be broken.
func (a *asker) heard(c env.Conversation, from quorum.NodeID, answer env.Message) bool {
	if last := &a.cl.c.r.arrived; last.from != nil && sim.Belongs(c, last.conversation) {
		if _, refused := answer.(*env.Refused); refused {
			a.refused = a.refused.Add(last.from.place)
		} else {
			a.answered = a.answered.Add(last.from.place)
		}
	}
	return a.each(c, from, answer)
}

// check notes a conversation that has ended without its quorum, unless
// refusals are why: then it ended because no quorum is left.
func (a *asker) check(req env.Message) {
	r := a.cl.c.r
	if r.traits.Needs == nil || a.cl.c.changing { // then it counts on what its own answers reveal
		return
	}
	c := a.cl.c.configuration
	left := a.cl.c.all.Minus(a.refused)
	var short bool
	switch r.traits.Needs(req) {
	case sim.NeedRead:
		short = !c.IsRead(a.answered) && c.IsRead(left)
	case sim.NeedWrite:
		short = !c.IsWrite(a.answered) && c.IsWrite(left)
	}
	if short {
		a.cl.op.short = req
	}
}

// Go implements env.Env: a task has conversations of its own, one at a time.
func (a *asker) Go(name string, f func(env.Env) error) env.Task {
	return a.Env.Go(name, func(e env.Env) error {
		task := &asker{Env: e, cl: a.cl}
		task.hear = task.heard
		return f(task)
	})
}

// talks are the last conversations of a client: an answer that is sent when
// its operation has ended still counts for it.
type talks struct {
	last [16]talk
	n    int
}

type talk struct {
	number uint64
	kind   Kind
}

// began notes a conversation of the present operation.
func (t *talks) began(number uint64, kind Kind) {
	if t.last[t.n%len(t.last)].number != number {
		t.n++
		t.last[t.n%len(t.last)] = talk{number, kind}
	}
}

// kindOf returns the kind of operation whose conversation it is, or was.
func (t *talks) kindOf(number uint64) Kind {
	for i := range t.last {
		at := &t.last[(t.n-i+len(t.last))%len(t.last)]
		if at.number == number {
			return at.kind
		}
	}
	return t.last[(t.n+1)%len(t.last)].kind
}
