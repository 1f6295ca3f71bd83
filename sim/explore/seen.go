package explore

import "sync"

// budget is what may still go wrong.
type budget struct{ crashes, lost uint8 }

// within reports whether all that can happen within b can within another one.
func (b budget) within(c budget) bool { return b.crashes <= c.crashes && b.lost <= c.lost }

// seen is a set of states, by their hashes, for several goroutines. Of each it
// knows with which budget it was seen: what can happen with a smaller one has been
// seen, too.
type seen struct {
	shards [64]shard
}

type shard struct {
	mu      sync.Mutex
	slots   []uint64 // open addressing; 0: free
	budgets []budget
	count   int
}

// add reports whether a state is new, or was seen with smaller budgets only.
func (s *seen) add(h uint64, b budget) bool {
	x := &s.shards[h>>58]
	h |= 1
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		if 4*x.count >= 3*len(x.slots) {
			x.grow()
		}
		i := x.slot(h)
		switch {
		case x.slots[i] == 0:
			x.slots[i], x.budgets[i] = h, b
			x.count++
			return true
		case b.within(x.budgets[i]):
			return false
		case x.budgets[i].within(b):
			x.budgets[i] = b
			return true
		}
		h = uint64(hash(h).add(uint64(b.lost))) | 1 // more of one, and less of the other
	}
}

func (x *shard) grow() {
	slots, budgets := x.slots, x.budgets
	n := max(1024, 2*len(slots))
	x.slots, x.budgets = make([]uint64, n), make([]budget, n)
	for at, h := range slots {
		if h != 0 {
			i := x.slot(h)
			x.slots[i], x.budgets[i] = h, budgets[at]
		}
	}
}

// slot is where a hash stands, or will.
func (x *shard) slot(h uint64) int {
	mask := uint64(len(x.slots) - 1)
	for i := h >> 1 & mask; ; i = (i + 1) & mask {
		if x.slots[i] == 0 || x.slots[i] == h {
			return int(i)
		}
	}
}
