package live

import (
	"sync"
	"sync/atomic"

	"atoll/env"
)

// postOffice holds the mailboxes.
type postOffice struct {
	dropped atomic.Uint64

	mu    sync.RWMutex
	boxes map[env.Mailbox]*mailbox // guarded by mu
}

// mailbox holds what waits for one task.
type mailbox struct {
	filled chan struct{} // holds a token after something came
	mu     struct {
		sync.Mutex
		waiting []env.Envelope
		owned   bool // a Receive is under way
		full    bool // something was dropped since the last Receive
	}
}

// Mail puts a message into a mailbox, where it waits for the task that owns
// it. When there is no room, the message is dropped and counted; that a mailbox
// has become full is logged.
func (r *Runtime) Mail(m env.Mailbox, e env.Envelope) {
	ok, first := false, false
	if box := r.mail.box(m, MaxMailboxes); box != nil {
		ok, first = box.put(e)
	}
	if !ok {
		r.mail.dropped.Add(1)
	}
	if first {
		r.log.Warn("a mailbox is full; what comes is dropped until its task has caught up", "mailbox", m, "envelopes", MaxMail)
	}
}

// box returns a mailbox. It makes one that doesn't exist, unless there are
// limit already; then it returns nil.
func (p *postOffice) box(m env.Mailbox, limit int) *mailbox {
	p.mu.RLock()
	box := p.boxes[m]
	p.mu.RUnlock()
	if box != nil {
		return box
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if box = p.boxes[m]; box == nil && len(p.boxes) < limit {
		box = &mailbox{filled: make(chan struct{}, 1)}
		p.boxes[m] = box
	}
	return box
}

// own returns a mailbox to the task that receives from it.
func (p *postOffice) own(m env.Mailbox) *mailbox {
	// No limit: tasks of our own are what makes these.
	box := p.box(m, int(^uint(0)>>1))
	box.mu.Lock()
	defer box.mu.Unlock()
	if box.mu.owned {
		panic("live: two tasks receive from the mailbox " + string(m))
	}
	box.mu.owned = true
	return box
}

func (b *mailbox) disown() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.owned = false
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
	select {
	case b.filled <- struct{}{}:
	default:
	}
	return true, false
}

// takeAll empties the mailbox. What it returns is the caller's.
func (b *mailbox) takeAll() []env.Envelope {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.mu.waiting
	b.mu.waiting, b.mu.full = nil, false
	return got
}
