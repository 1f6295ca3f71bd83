package server

import (
	"sync"

	"atoll/env"
)

// held keeps the answers that wait for the disk, and knows what is durable.
//
// Whatever counts against its limits has a position that isn't durable yet,
// so that a commit is still to come which takes it off again. What was counted
// in any other way could keep the loop waiting for a commit that nobody has a
// reason to begin.
type held struct {
	mu struct {
		sync.Mutex
		outs     []env.Out
		outBytes int // of values in outs
		// appends are what the steps have appended and isn't durable, by
		// position, and unsynced about how many bytes that is.
		appends           []appended
		unsynced          int
		appended, durable env.Position
		stalled           bool // the disk hangs
		closed            bool
	}
	work sync.Cond // something to commit, or closed
	room sync.Cond // something was released, or closed
}

// appended is what some steps have appended: about bytes, up to a position.
type appended struct {
	end   env.Position
	bytes int
}

func newHeld() *held {
	h := &held{}
	h.work.L, h.room.L = &h.mu, &h.mu
	return h
}

// begin is told what is durable before anything was stepped.
func (h *held) begin(durable env.Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.appended, h.mu.durable = durable, durable
}

// admit waits while more is held than the limits allow, unless the disk hangs.
// It reports false once closed.
func (h *held) admit() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.mu.closed && h.over() && !h.mu.stalled {
		h.room.Wait()
	}
	return !h.mu.closed
}

// over reports whether more is held than the limits allow. The caller holds mu.
func (h *held) over() bool {
	return len(h.mu.outs) >= maxHeld || h.mu.outBytes+h.mu.unsynced >= maxHeldBytes
}

// stall is told that the disk hangs, or goes on.
func (h *held) stall(stalled bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.stalled = stalled
	h.room.Broadcast()
}

// crowded reports whether the disk hangs and no more can be held for it: what
// needs the disk must be let go.
func (h *held) crowded() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.stalled && h.over()
}

// keepsUp reports whether the disk keeps up with large values.
func (h *held) keepsUp() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.outBytes+h.mu.unsynced < maxBulkHeld
}

// sift keeps those of outs that must wait, as far as there is room for them,
// and returns the others, in outs' own array. The two are told apart under the lock that durable changes
// under, so that whatever is kept is released by a commit still to come.
// end is the end of what the steps behind outs have written, and bytes about
// how much that is.
func (h *held) sift(outs []env.Out, end env.Position, bytes int) (ready []env.Out) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ready = outs[:0]
	for _, o := range outs {
		switch {
		case o.After <= h.mu.durable:
			ready = append(ready, o)
		case h.mu.stalled && h.over():
			// Whoever asked asks somebody else, or again.
		default:
			h.mu.outs = append(h.mu.outs, o)
			h.mu.outBytes += weight(o.Message)
		}
	}
	if end > h.mu.appended {
		h.mu.appended = end
		h.mu.appends = append(h.mu.appends, appended{end, bytes})
		h.mu.unsynced += bytes
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
	return !h.mu.closed
}

// release notes what is durable now and appends to free what may leave.
func (h *held) release(durable env.Position, free []env.Out) []env.Out {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.durable = durable
	stay := h.mu.outs[:0]
	for _, o := range h.mu.outs {
		if o.After <= durable {
			free = append(free, o)
			h.mu.outBytes -= weight(o.Message)
		} else {
			stay = append(stay, o)
		}
	}
	clear(h.mu.outs[len(stay):])
	h.mu.outs = stay
	done := 0
	for done < len(h.mu.appends) && h.mu.appends[done].end <= durable {
		h.mu.unsynced -= h.mu.appends[done].bytes
		done++
	}
	h.mu.appends = append(h.mu.appends[:0], h.mu.appends[done:]...)
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
