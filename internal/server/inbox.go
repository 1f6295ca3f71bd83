package server

import (
	"sync"

	"atoll/abd"
	"atoll/env"
)

// item is a message and who sent it.
type item struct {
	from    env.Address
	message env.Message
}

// inbox is where readers leave messages for the loop. It is bounded: put
// waits while it is full, which stops the reader and with it, by flow
// control, the sender.
type inbox struct {
	mu struct {
		sync.Mutex
		items  []item
		bytes  int
		closed bool
	}
	filled  sync.Cond // items came, or it was closed
	drained sync.Cond // items were taken, or it was closed
}

func newInbox() *inbox {
	b := &inbox{}
	b.filled.L, b.drained.L = &b.mu, &b.mu
	return b
}

// put adds items, waiting for room. It reports false once the inbox is closed.
func (b *inbox) put(items []item) bool {
	size := 0
	for _, it := range items {
		size += weight(it.message)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.mu.closed && (len(b.mu.items) >= maxInbox || b.mu.bytes >= maxInboxBytes) {
		b.drained.Wait()
	}
	if b.mu.closed {
		return false
	}
	if len(b.mu.items) == 0 {
		b.filled.Signal()
	}
	b.mu.items = append(b.mu.items, items...)
	b.mu.bytes += size
	return true
}

// take returns everything that waits, and waits while there is nothing. The
// emptied spare becomes the next buffer. It reports false once the inbox is
// closed.
func (b *inbox) take(spare []item) ([]item, bool) {
	clear(spare)
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.mu.closed && len(b.mu.items) == 0 {
		b.filled.Wait()
	}
	items := b.mu.items
	b.mu.items, b.mu.bytes = spare[:0], 0
	b.drained.Broadcast()
	return items, !b.mu.closed
}

func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.closed = true
	b.filled.Broadcast()
	b.drained.Broadcast()
}

func (b *inbox) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.mu.items)
}

// weight is what a waiting message costs in bytes, beyond its frame.
func weight(m env.Message) int {
	if put, ok := m.(*abd.Put); ok {
		return len(put.Record.Value)
	}
	return 0
}
