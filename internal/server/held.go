package server

import (
	"sync"

	"atoll/env"
)

// held keeps the answers that wait for the disk, and knows what is durable.
type held struct {
	mu struct {
		sync.Mutex
		outs []env.Out
		// bytes is about what the steps have appended since the last commit
		// began, committing the same for the commit under way.
		bytes, committing int
		appended, durable env.Position
		closed            bool
	}
	work sync.Cond // something to commit, or closed
	room sync.Cond // outs were released, or closed
}

func newHeld() *held {
	h := &held{}
	h.work.L, h.room.L = &h.mu, &h.mu
	return h
}

// admit waits while more is held than the limits allow. It reports false once
// closed.
func (h *held) admit() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.mu.closed && (len(h.mu.outs) >= maxHeld || h.mu.bytes+h.mu.committing >= maxHeldBytes) {
		h.room.Wait()
	}
	return !h.mu.closed
}

// sift keeps those of outs that must wait and returns the others, in outs'
// own array. The two are told apart under the lock that durable changes
// under, so that whatever is kept is released by a commit still to come.
// appended is the end of what the steps behind outs have written, and bytes
// about how much that is: it doesn't count if they wrote nothing, since no
// commit would come to take it off again.
func (h *held) sift(outs []env.Out, appended env.Position, bytes int) (ready []env.Out) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ready = outs[:0]
	for _, o := range outs {
		if o.After <= h.mu.durable {
			ready = append(ready, o)
		} else {
			h.mu.outs = append(h.mu.outs, o)
		}
	}
	if appended > h.mu.appended {
		h.mu.bytes += bytes
		h.mu.appended = appended
		h.work.Signal()
	}
	return ready
}

// await waits until something was appended that isn't durable. It reports
// false once closed.
func (h *held) await() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.mu.closed && h.mu.appended <= h.mu.durable {
		h.work.Wait()
	}
	h.mu.committing, h.mu.bytes = h.mu.bytes, 0
	return !h.mu.closed
}

// release notes what is durable now and appends to free what may leave.
func (h *held) release(durable env.Position, free []env.Out) []env.Out {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.durable, h.mu.committing = durable, 0
	stay := h.mu.outs[:0]
	for _, o := range h.mu.outs {
		if o.After <= durable {
			free = append(free, o)
		} else {
			stay = append(stay, o)
		}
	}
	clear(h.mu.outs[len(stay):])
	h.mu.outs = stay
	h.room.Broadcast()
	return free
}

func (h *held) durable() env.Position {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.durable
}

func (h *held) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.mu.outs)
}

func (h *held) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.closed = true
	h.work.Broadcast()
	h.room.Broadcast()
}
