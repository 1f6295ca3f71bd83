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

	// free is the latest of the places that are not in use, in the lower
	// placeBits; conversation.next leads from there to the others. The bits
	// above count the changes, so that a place which was taken and given back
	// meanwhile isn't mistaken for one that was free all along. A lock instead
	// would be the one that all callers meet at: with 512 of them on two
	// cores, they queued behind whoever was interrupted while holding it.
	free atomic.Uint64

	// hungry is set while somebody waits for mu.room.
	hungry atomic.Bool
	mu     struct {
		sync.Mutex               // held to make places, too
		room       chan struct{} // closed when a place becomes free; nil if nobody waits
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
	place := uint32(key & placeMask)
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
	if c := t.pop(); c != nil {
		return c, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.grow(); c != nil {
		return c, nil
	}
	if t.mu.room == nil {
		t.mu.room = make(chan struct{})
		t.hungry.Store(true)
	}
	// Who gave one back just before that didn't see that anybody waits.
	if c := t.pop(); c != nil {
		return c, nil
	}
	return nil, t.mu.room
}

// grow makes another place, unless the limit is reached. Called with mu held.
func (t *table) grow() *conversation {
	place := t.made.Load() + 1
	if place > t.limit {
		return nil
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
	return c
}

// pop takes a place that is free, if there is one.
func (t *table) pop() *conversation {
	for {
		head := t.free.Load()
		place := uint32(head & placeMask)
		if place == 0 {
			return nil
		}
		c := t.at(place)
		if t.free.CompareAndSwap(head, changed(head, c.next.Load())) {
			return c
		}
	}
}

// give takes back a conversation that take returned.
func (t *table) give(c *conversation) {
	for {
		head := t.free.Load()
		c.next.Store(uint32(head & placeMask))
		if t.free.CompareAndSwap(head, changed(head, c.place)) {
			break
		}
	}
	if t.hungry.Load() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.mu.room != nil {
			close(t.mu.room)
			t.mu.room = nil
			t.hungry.Store(false)
		}
	}
}

// taken is how many places are in use. While callers come and go it is a guess,
// since the list of those that are free is walked without a lock.
func (t *table) taken() int {
	made := int(t.made.Load())
	free := 0
	for place := uint32(t.free.Load() & placeMask); place != 0 && free < made; free++ {
		place = t.at(place).next.Load()
	}
	return made - free
}

// changed returns the table's free that comes after head.
func changed(head uint64, place uint32) uint64 {
	return head&^placeMask + 1<<placeBits | uint64(place)
}
