package server

import (
	"container/list"
	"sync"

	"atoll/abd"
	"atoll/env"
)

// source is where requests come from and their answers go: a session.
type source interface {
	ID() uint64
	// Congested reports that the peer doesn't take answers as fast as it
	// gets them. The inbox is told by drained when that is over.
	Congested() bool
}

// item is a message and who sent it.
type item struct {
	source  source
	from    env.Address
	message env.Message
}

// inbox is where readers leave messages for the loop: a queue for each
// session.
//
// Queues are bounded: put waits while its queue is full, which stops the
// session's reader and with it, by flow control, the sender. Queues take
// turns, so that a session that asks for much doesn't hold up another. And a
// session that is congested is left alone: what it asks for stays a request,
// which is small, and doesn't become an answer that nobody takes.
type inbox struct {
	mu struct {
		sync.Mutex
		queues map[uint64]*queue // by session
		turns  list.List         // of the *queue that aren't empty, whose turn is next in front
		units  int
		bytes  int
		closed bool
	}
	filled  sync.Cond // there may be something to take, or it was closed
	drained sync.Cond // items were taken, or it was closed
}

// queue is what waits of one session.
type queue struct {
	source source
	items  []item // from head on
	head   int
	turn   *list.Element // nil when it is empty
	units  int
	bytes  int
}

func newInbox() *inbox {
	b := &inbox{}
	b.filled.L, b.drained.L = &b.mu, &b.mu
	b.mu.queues = make(map[uint64]*queue)
	b.mu.turns.Init()
	return b
}

// put adds items of one session, waiting for room. It reports false once the
// inbox is closed.
func (b *inbox) put(from source, items []item) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.mu.queues[from.ID()]
	if q == nil {
		q = &queue{source: from}
		b.mu.queues[from.ID()] = q
	}
	for !b.mu.closed && (q.units >= maxQueue || q.bytes >= maxQueueBytes || b.mu.units >= maxInbox || b.mu.bytes >= maxInboxBytes) {
		b.drained.Wait()
	}
	if b.mu.closed {
		return false
	}
	if q.head > 0 && len(q.items)+len(items) > cap(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, items...)
	for _, it := range items {
		b.count(q, it, +1)
	}
	b.line(q)
	b.filled.Signal()
	return true
}

// count adds an item to the sums, or takes it off.
func (b *inbox) count(q *queue, it item, sign int) {
	units, bytes := sign*units(it.message), sign*weight(it.message)
	q.units += units
	q.bytes += bytes
	b.mu.units += units
	b.mu.bytes += bytes
}

// line puts a queue in line, unless it is there or empty.
func (b *inbox) line(q *queue) {
	if q.turn == nil && q.head < len(q.items) {
		q.turn = b.mu.turns.PushBack(q)
	}
}

// take appends a turn to spare, which is emptied first: some of each queue in
// turn, up to maxTurn units. It waits while there is nothing to take, and
// reports false once the inbox is closed.
func (b *inbox) take(spare []item) ([]item, bool) {
	clear(spare)
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.mu.closed {
		if turn := b.gather(spare[:0]); len(turn) > 0 {
			b.drained.Broadcast()
			return turn, true
		}
		b.filled.Wait()
	}
	return nil, false
}

func (b *inbox) gather(turn []item) []item {
	total, skipped := 0, 0
	for total < maxTurn && skipped < b.mu.turns.Len() {
		front := b.mu.turns.Front()
		q := front.Value.(*queue)
		if q.source.Congested() {
			b.mu.turns.MoveToBack(front)
			skipped++
			continue
		}
		skipped = 0
		for share := 0; share < maxShare && q.head < len(q.items); q.head++ {
			it := q.items[q.head]
			q.items[q.head] = item{}
			b.count(q, it, -1)
			share += units(it.message)
			total += units(it.message)
			turn = append(turn, it)
		}
		if q.head < len(q.items) {
			b.mu.turns.MoveToBack(front)
			continue
		}
		b.mu.turns.Remove(front)
		q.items, q.head, q.turn = q.items[:0], 0, nil
	}
	return turn
}

// giveBack puts items that were taken and not worked on in front of their
// queues again, in their order.
func (b *inbox) giveBack(items []item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(items) - 1; i >= 0; i-- {
		it := items[i]
		q := b.mu.queues[it.source.ID()]
		if q == nil {
			continue // the session has ended
		}
		if q.head == 0 {
			q.items = append(make([]item, len(items), 2*len(items)+len(q.items)), q.items...)
			q.head = len(items)
		}
		q.head--
		q.items[q.head] = it
		b.count(q, it, +1)
		b.line(q)
	}
	b.filled.Signal() // it may have drained before it was in line again
}

// forget drops what waits of a session that has ended.
func (b *inbox) forget(from source) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.mu.queues[from.ID()]
	if q == nil {
		return
	}
	for _, it := range q.items[q.head:] {
		b.count(q, it, -1)
	}
	if q.turn != nil {
		b.mu.turns.Remove(q.turn)
	}
	delete(b.mu.queues, from.ID())
	b.drained.Broadcast()
}

// wake is called when a session that was congested no longer is.
func (b *inbox) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.filled.Signal()
}

func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.closed = true
	b.filled.Broadcast()
	b.drained.Broadcast()
}

// len is how many units wait.
func (b *inbox) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.units
}

// units is about how much work a request is: that of a get is 1.
func units(m env.Message) int {
	if l, ok := m.(*abd.List); ok {
		return 1 + max(0, min(l.Limit, abd.MaxPage))/keysPerUnit
	}
	return 1
}

// weight is what a message costs in bytes, beyond its frame.
func weight(m env.Message) int {
	switch m := m.(type) {
	case *abd.Put:
		return len(m.Record.Value)
	case *abd.GetAck:
		return len(m.Record.Value)
	case *abd.Page:
		return len(m.Items) * itemBytes
	}
	return 0
}
