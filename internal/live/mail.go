package live

import (
	"context"
	"sync"
	"sync/atomic"

	"atoll/env"
)

// postOffice holds the mailboxes.
type postOffice struct {
	dropped atomic.Uint64

	mu struct {
		sync.RWMutex
		boxes map[env.Mailbox]*mailbox
	}
}

// mailbox holds what waits for one task.
type mailbox struct {
	owner  *scope        // guarded by postOffice.mu; nil: nobody yet, or any more
	filled chan struct{} // holds a token after something came
	mu     struct {
		sync.Mutex
		waiting []env.Envelope
		full    bool // something was dropped since the last Receive
	}
}

// Mail puts a message into a mailbox, where it waits for the task that owns
// it. When there is no room, the message is dropped and counted; that a mailbox
// has become full is logged.
func (r *Runtime) Mail(m env.Mailbox, e env.Envelope) {
	ok, first := r.mail.put(m, e)
	if !ok {
		r.mail.dropped.Add(1)
	}
	if first {
		r.log.Warn("a mailbox is full; what comes is dropped until its task has caught up", "mailbox", m, "envelopes", MaxMail)
	}
}

// put reports whether there was room, and if there wasn't, whether the mailbox
// has become full just now. It keeps postOffice.mu while it puts, lest the
// mailbox is dropped meanwhile.
func (p *postOffice) put(m env.Mailbox, e env.Envelope) (ok, first bool) {
	p.mu.RLock()
	if box := p.mu.boxes[m]; box != nil {
		defer p.mu.RUnlock()
		return box.put(e)
	}
	p.mu.RUnlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	box := p.mu.boxes[m]
	if box == nil {
		if len(p.mu.boxes) >= MaxMailboxes {
			return false, false
		}
		box = p.open(m)
	}
	return box.put(e)
}

func (p *postOffice) len() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.mu.boxes)
}

// open makes a mailbox. Called with mu held.
func (p *postOffice) open(m env.Mailbox) *mailbox {
	box := &mailbox{filled: make(chan struct{}, 1)}
	p.mu.boxes[m] = box
	return box
}

// own returns a mailbox to the scope that receives from it, whose own it is
// until that ends.
func (p *postOffice) own(m env.Mailbox, s *scope) *mailbox {
	p.mu.RLock()
	box := p.mu.boxes[m]
	mine := box != nil && box.owner == s
	p.mu.RUnlock()
	if mine {
		return box
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if box = p.mu.boxes[m]; box == nil {
		box = p.open(m) // without a limit: our own tasks are what makes these
	}
	// An owner whose scope has ended may still be about to disown it.
	if box.owner != nil && box.owner != s && box.owner.err() == nil {
		panic("live: two tasks receive from the mailbox " + string(m))
	}
	box.owner = s
	if s.mailboxes == nil {
		context.AfterFunc(s.ctx, func() { p.disown(s) })
	}
	s.mailboxes = append(s.mailboxes, m)
	return box
}

// disown gives up the mailboxes of a scope that has ended. What waits in one is
// for the task that receives from it next.
func (p *postOffice) disown(s *scope) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range s.mailboxes {
		box := p.mu.boxes[m]
		if box == nil || box.owner != s {
			continue // it has another owner already
		}
		box.owner = nil
		if box.isEmpty() {
			delete(p.mu.boxes, m)
		}
	}
	s.mailboxes = nil
}

// put reports whether there was room, and if not, whether this is the first
// time since the last Receive.
func (b *mailbox) put(e env.Envelope) (ok, first bool) {
	b.mu.Lock()
	if len(b.mu.waiting) >= MaxMail {
		first, b.mu.full = !b.mu.full, true
		b.mu.Unlock()
		return false, first
	}
	b.mu.waiting = append(b.mu.waiting, e)
	b.mu.Unlock()
	b.signal()
	return true, false
}

func (b *mailbox) signal() {
	select {
	case b.filled <- struct{}{}:
	default:
	}
}

func (b *mailbox) isEmpty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.mu.waiting) == 0
}

// takeAll empties the mailbox. What it returns is the caller's.
func (b *mailbox) takeAll() []env.Envelope {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.mu.waiting
	b.mu.waiting, b.mu.full = nil, false
	return got
}
