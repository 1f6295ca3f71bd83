package live

import (
	"iter"
	"math/bits"
	"sync"
	"sync/atomic"
)

// table holds the conversations. A place once made stays, and serves one
// conversation after another; finding the place of a number takes no lock.
// Compared with a map in shards this saves two map writes and one to three
// look-ups an Ask, and what a conversation has allocated is there for the next.
type table struct {
	// rows are the places: row i has those numbered 2^i to 2^(i+1)-1, and is
	// made when it is needed. Place 0 doesn't exist.
	rows [placeBits]atomic.Pointer[[]conversation]
	made atomic.Uint32 // places 1 to made have been in use

	generation uint64 // the first one of each place
	limit      uint32 // how many places there may be

	mu struct {
		sync.Mutex
		free *conversation // those not in use, the latest one first
		room chan struct{} // closed when one becomes free; nil if nobody waits
	}
}

func (t *table) init(generation uint64) {
	t.generation = generation
	t.limit = MaxConversations
}

// at returns the conversation at a place that was made.
func (t *table) at(place uint32) *conversation {
	row := bits.Len32(place) - 1
	return &(*t.rows[row].Load())[place-1<<row]
}

// find returns the conversation whose number, redirects aside, is key. It may
// end at any time: who takes its lock must look at its key again.
func (t *table) find(key uint64) *conversation {
	place := uint32(key & (1<<placeBits - 1))
	if place == 0 || place > t.made.Load() {
		return nil
	}
	if c := t.at(place); c.key.Load() == key {
		return c
	}
	return nil
}

// all yields every place that was ever in use.
func (t *table) all() iter.Seq[*conversation] {
	return func(yield func(*conversation) bool) {
		made := t.made.Load()
		for place := uint32(1); place <= made; place++ {
			if !yield(t.at(place)) {
				return
			}
		}
	}
}

// take returns a conversation that is not in use, or else a channel that is
// closed when it is worth trying again.
func (t *table) take() (*conversation, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.mu.free; c != nil {
		t.mu.free, c.next = c.next, nil
		return c, nil
	}
	place := t.made.Load() + 1
	if place > t.limit {
		if t.mu.room == nil {
			t.mu.room = make(chan struct{})
		}
		return nil, t.mu.room
	}
	if row := bits.Len32(place) - 1; t.rows[row].Load() == nil {
		made := make([]conversation, 1<<row)
		t.rows[row].Store(&made)
	}
	c := t.at(place)
	c.place = place
	c.generation = t.generation
	c.wake = make(chan struct{}, 1)
	t.made.Store(place)
	return c, nil
}

// give takes back a conversation that take returned.
func (t *table) give(c *conversation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.next, t.mu.free = t.mu.free, c
	if t.mu.room != nil {
		close(t.mu.room)
		t.mu.room = nil
	}
}
