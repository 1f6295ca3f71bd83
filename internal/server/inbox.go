package server

import (
	"bytes"
	"container/list"
	"sync"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/transport"
	"atoll/internal/wire"
)

// source is where requests come from and their answers go: a session, or the
// node's own tasks.
type source interface {
	ID() uint64
	// Congested reports that the peer doesn't take answers as fast as it
	// gets them, and BulkCongested the same of large ones. The inbox is told
	// by wake when that is over.
	Congested() bool
	BulkCongested() bool
	// Discharge is told that so many bytes that were charged to the peer don't
	// wait any more, and ChargeAgain that they do after all.
	Discharge(bytes int)
	ChargeAgain(bytes int)
}

// item is a message and who sent it.
type item struct {
	source  source
	from    env.Address
	message env.Message
	// answer is the size of the answer in bytes, if it is known to be large.
	answer int
	// charged is what was charged to the source for it, in bytes.
	charged int
}

// large reports whether an item goes with the large ones: because of the value
// that it brings, or of the one that it asks for.
func (it *item) large() bool {
	return it.answer > transport.BulkAbove || weight(it.message) > transport.BulkAbove
}

// cost is about how many bytes it takes to work on a large item.
func (it *item) cost() int { return max(it.answer, weight(it.message)) }

// inbox is where readers, and the node's own tasks, leave messages for the
// loop: for each session, and for the tasks, a queue of small items and one of
// large items.
//
// Queues are bounded: put waits while its queue is full, which stops that
// reader of the session and with it, by flow control, the sender. Queues take
// turns, so that a session that asks for much doesn't hold up another. And a
// session that is congested is left alone: what it asks for stays a request,
// which is small, and doesn't become an answer that nobody takes.
//
// Large items wait on their own. Only so many bytes of them are taken at a
// time, those that bring values only while the disk keeps up, and small items
// go by.
type inbox struct {
	mu struct {
		sync.Mutex
		small, large line
		// wanting: a large item isn't taken because the disk is behind.
		wanting bool
		closed  bool
	}
	filled  sync.Cond // there may be something to take, or it was closed
	drained sync.Cond // items were taken, or it was closed
}

// line is the queues of one kind.
type line struct {
	queues map[uint64]*queue // by session
	turns  list.List         // of the *queue that aren't empty, whose turn is next in front
	units  int
	bytes  int
}

// queue is what waits of one session and one kind.
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
	for _, l := range []*line{&b.mu.small, &b.mu.large} {
		l.queues = make(map[uint64]*queue)
		l.turns.Init()
	}
	return b
}

// put adds items of one session, waiting for room. It reports false once the
// inbox is closed.
func (b *inbox) put(from source, items []item) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	// One reader brings items of one kind, unless the peer knows but one
	// stream.
	for len(items) > 0 && !b.mu.closed {
		n := 1
		for n < len(items) && items[n].large() == items[0].large() {
			n++
		}
		b.putSame(from, items[:n])
		items = items[n:]
	}
	return !b.mu.closed
}

// lineOf is where an item waits.
func (b *inbox) lineOf(it *item) *line {
	if it.large() {
		return &b.mu.large
	}
	return &b.mu.small
}

// putSame is put for items of one kind, with b.mu locked.
func (b *inbox) putSame(from source, items []item) {
	l := b.lineOf(&items[0])
	q := l.queue(from)
	for !b.mu.closed && (q.full() || l.units >= maxInbox || l.bytes >= maxInboxBytes) {
		b.drained.Wait()
	}
	if b.mu.closed {
		return
	}
	if q.head < len(q.items) || from.Congested() {
		own(items)
	}
	l.add(q, items...)
	b.filled.Signal()
}

// own gives small values that will wait an array of their own. Until then they
// are part of what was read with them, up to a hundred times their size.
func own(items []item) {
	for i := range items {
		put, ok := items[i].message.(*abd.Put)
		if !ok || len(put.Record.Value) == 0 || items[i].large() {
			continue
		}
		copied := *put
		copied.Record.Value = bytes.Clone(put.Record.Value)
		items[i].message = &copied
	}
}

// offer adds an item, unless its queue is full or the inbox is closed, and
// doesn't wait. It heeds no other limit than the queue's: while the sessions
// have filled the inbox, and wait for room, a source that can't wait would never
// find any.
func (b *inbox) offer(it item) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lineOf(&it)
	q := l.queue(it.source)
	switch {
	case b.mu.closed:
		return errClosing
	case q.full():
		return errBusy
	}
	l.add(q, it)
	b.filled.Signal()
	return nil
}

func (q *queue) full() bool { return q.units >= maxQueue || q.bytes >= maxQueueBytes }

// add puts items of one kind behind a queue.
func (l *line) add(q *queue, items ...item) {
	q.compact(len(items))
	q.items = append(q.items, items...)
	for i := range items {
		l.count(q, &items[i], +1)
	}
	l.join(q)
}

// queue returns a session's queue, a new one if it has none.
func (l *line) queue(from source) *queue {
	q := l.queues[from.ID()]
	if q == nil {
		q = &queue{source: from}
		l.queues[from.ID()] = q
	}
	return q
}

// compact moves what waits to the front if n more don't fit behind it.
func (q *queue) compact(n int) {
	if q.head > 0 && len(q.items)+n > cap(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
}

// count adds an item to the sums, or takes it off.
func (l *line) count(q *queue, it *item, sign int) {
	units, bytes := sign*units(it.message), sign*weight(it.message)
	q.units += units
	q.bytes += bytes
	l.units += units
	l.bytes += bytes
}

// join puts a queue in line, unless it is there or empty.
func (l *line) join(q *queue) {
	if q.turn == nil && q.head < len(q.items) {
		q.turn = l.turns.PushBack(q)
	}
}

// pop takes the first item off a queue.
func (l *line) pop(q *queue) item {
	it := q.items[q.head]
	q.items[q.head] = item{}
	q.head++
	l.count(q, &it, -1)
	return it
}

// leave ends the turn of the queue in front: it is last now, or out of line if
// it is empty.
func (l *line) leave(q *queue) {
	if q.head < len(q.items) {
		l.turns.MoveToBack(q.turn)
		return
	}
	l.turns.Remove(q.turn)
	q.items, q.head, q.turn = q.items[:0], 0, nil
}

// take appends a turn to spare, which is emptied first: some of each queue in
// turn, up to maxTurn units of small items and maxBulkTurn bytes of large ones.
// room says whether the disk keeps up with large values; roomAgain must be
// called when it does again. take waits while there is nothing to take, and
// reports false once the inbox is closed.
func (b *inbox) take(spare []item, room func() bool) ([]item, bool) {
	clear(spare)
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.mu.closed {
		// Large items first: a small get whose answer turns out to be large
		// must not take the room that others have waited for.
		turn := b.gatherLarge(spare[:0], room())
		if turn = b.gatherSmall(turn); len(turn) > 0 {
			b.drained.Broadcast()
			return turn, true
		}
		b.filled.Wait()
	}
	return nil, false
}

func (b *inbox) gatherSmall(turn []item) []item {
	l := &b.mu.small
	total, skipped := 0, 0
	for total < maxTurn && skipped < l.turns.Len() {
		q := l.turns.Front().Value.(*queue)
		if q.source.Congested() {
			l.turns.MoveToBack(q.turn)
			skipped++
			continue
		}
		skipped = 0
		charged := 0
		for share := 0; share < maxShare && q.head < len(q.items); {
			it := l.pop(q)
			share += units(it.message)
			total += units(it.message)
			charged += it.charged
			turn = append(turn, it)
		}
		q.source.Discharge(charged)
		l.leave(q)
	}
	return turn
}

// gatherLarge takes one item of each queue in turn, and at least one in all.
func (b *inbox) gatherLarge(turn []item, room bool) []item {
	l := &b.mu.large
	b.mu.wanting = false
	total, skipped := 0, 0
	for total < maxBulkTurn && skipped < l.turns.Len() {
		q := l.turns.Front().Value.(*queue)
		next := &q.items[q.head]
		behind := !room && weight(next.message) > 0
		if behind || next.answer > 0 && q.source.BulkCongested() {
			b.mu.wanting = b.mu.wanting || behind
			l.turns.MoveToBack(q.turn)
			skipped++
			continue
		}
		skipped = 0
		total += next.cost()
		q.source.Discharge(next.charged)
		turn = append(turn, l.pop(q))
		l.leave(q)
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
		l := b.lineOf(&it)
		q := l.queues[it.source.ID()]
		if q == nil {
			continue // the session has ended
		}
		if q.head == 0 {
			q.items = append(make([]item, len(items), 2*len(items)+len(q.items)), q.items...)
			q.head = len(items)
		}
		q.head--
		q.items[q.head] = it
		l.count(q, &it, +1)
		it.source.ChargeAgain(it.charged)
		l.join(q)
	}
	b.filled.Signal() // it may have drained before it was in line again
}

// demote puts items whose answers turned out to be large behind the other
// large items of their sessions. It doesn't wait for room: they had some.
func (b *inbox) demote(items []item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range items {
		it := &items[i]
		if b.mu.small.queues[it.source.ID()] == nil {
			continue // the session has ended
		}
		l := b.lineOf(it)
		l.add(l.queue(it.source), *it)
		it.source.ChargeAgain(it.charged)
	}
	b.filled.Signal()
}

// forget drops what waits of a session that has ended.
func (b *inbox) forget(from source) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range []*line{&b.mu.small, &b.mu.large} {
		q := l.queues[from.ID()]
		if q == nil {
			continue
		}
		for i := q.head; i < len(q.items); i++ {
			l.count(q, &q.items[i], -1)
			from.Discharge(q.items[i].charged)
		}
		if q.turn != nil {
			l.turns.Remove(q.turn)
		}
		delete(l.queues, from.ID())
	}
	b.drained.Broadcast()
}

// roomAgain is called when the disk has caught up a little.
func (b *inbox) roomAgain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.wanting {
		b.filled.Signal()
	}
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
	return b.mu.small.units + b.mu.large.units
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
	if m, ok := m.(*abd.Page); ok {
		return len(m.Items) * itemBytes
	}
	return wire.ValueSize(m)
}
