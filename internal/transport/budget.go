package transport

import (
	"fmt"
	"log/slog"
	"sync"
)

// A budget bounds what all connections of a process together cost in memory,
// as far as their peers decide about it: what of a frame has come, what waits
// in the handler's queues, what waits to be sent, what QUIC may hold that
// nobody has read, and something for the connection itself. Each connection
// has an account in it.
//
// Of the limit, clients never have what is reserved for nodes. What an account
// gets is decided by its share, which is what each client
// would have if all had the same:
//
//   - while there is room, anybody gets what it asks for;
//   - when there is none, a client that has more than its share gets nothing;
//   - one that has less gets it at the expense of the client that has the most,
//     whose connection is closed. If there is no room, somebody must have more
//     than its share.
//   - A node gets it at the expense of clients, and nothing if all is the
//     nodes' own.
//
// Memory comes back a little after a connection was closed. Until then it is
// leaving: room is made of it already, but of no more than a leavingPart'th of
// the limit at a time, which is left free for this.
//
// One mutex guards all of it. It is taken for batches, not for each message.
type budget struct {
	limit    int
	log      *slog.Logger
	counters *counters

	mu struct {
		sync.Mutex
		accounts       map[*account]struct{}
		members        int // accounts of clients, and of who hasn't said what it is
		clients, nodes int // bytes
		leaving        int // of clients
	}
	// left is told when an account is closed, or begins to leave.
	left   sync.Cond
	closed occasional // what is logged
}

// An account is what one connection has of a budget. Its fields are guarded by
// the budget's mutex.
type account struct {
	budget  *budget
	evict   func(*OverBudgetError) // closes the session; nil: there is none yet
	who     fmt.Stringer
	bytes   int
	node    bool
	kept    bool // by a session, which closes it
	leaving bool
	closed  bool
}

func newBudget(limit int, log *slog.Logger, c *counters) *budget {
	b := &budget{limit: limit, log: log, counters: c}
	b.left.L = &b.mu
	b.mu.accounts = make(map[*account]struct{})
	return b
}

// ForClients is how much of a limit clients may have while nodes have no more
// than what is reserved for them.
func ForClients(limit int) int { return limit - limit/nodePart - limit/leavingPart }

// room is how many bytes clients may still have; less than 0 when nodes have
// taken from what was theirs. What is leaving counts as room. b.mu is locked.
func (b *budget) room() int { return b.roomBeside(max(b.mu.nodes, b.limit/nodePart)) }

// nodeRoom is how many bytes nodes may still have. b.mu is locked.
func (b *budget) nodeRoom() int { return b.roomBeside(b.mu.nodes) }

// roomBeside is how many bytes there are beside those that nodes have and what
// clients do. b.mu is locked.
func (b *budget) roomBeside(nodes int) int {
	free := b.limit / leavingPart
	return b.limit - free - nodes - b.mu.clients + min(b.mu.leaving, free)
}

// open opens an account with what a connection costs, or returns nil when
// there is no room for another. Who it is isn't known yet, so nobody is closed
// for it, and it may be a node.
func (b *budget) open() *account {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nodeRoom() < connectionCost {
		b.counters.overBudget.Add(1)
		return nil
	}
	a := &account{budget: b}
	b.mu.accounts[a] = struct{}{}
	b.mu.members++
	b.add(a, connectionCost)
	return a
}

// add changes an account. b.mu is locked.
func (b *budget) add(a *account, n int) {
	if a.closed {
		return
	}
	a.bytes += n
	if a.node {
		b.mu.nodes += n
	} else {
		b.mu.clients += n
	}
	if a.leaving {
		b.mu.leaving += n
	}
}

// settle finds room for what an account has that turns out to be a client's:
// all the room there was may have been the nodes'. Others that have more are
// closed for it, and it waits until they have left. The error says that all
// have as little.
func (a *account) settle() error { return a.take(0, true) }

// keep makes a session the owner of an account, of which it is known now
// whether it is a node's: the session closes it when it ends.
func (a *account) keep(who fmt.Stringer, node bool, evict func(*OverBudgetError)) {
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	a.who, a.kept = who, true
	if a.closed {
		return // so is the connection, which the session will notice
	}
	a.evict = evict
	if node {
		a.node = true
		b.mu.clients -= a.bytes
		b.mu.nodes += a.bytes
		b.mu.members--
	}
}

// take charges n bytes to an account. If there is no room, it makes some, and
// waits for it if wait is set and that will help. The error says that there
// was none; nothing was charged then.
func (a *account) take(n int, wait bool) error {
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	for !a.fits(n) && !b.makeRoom(a, n) {
		if !wait || b.mu.leaving == 0 || a.leaving || a.closed || a.hasMore(n) {
			b.counters.overBudget.Add(1)
			return b.refusal(a)
		}
		b.left.Wait()
	}
	b.add(a, n)
	return nil
}

// fits reports whether there is room for n more bytes. b.mu is locked.
func (a *account) fits(n int) bool {
	if a.node {
		return n <= a.budget.nodeRoom()
	}
	return n <= a.budget.room() && !a.leaving && !a.closed
}

// hasMore reports whether, with n more bytes, a client has more than its share.
// b.mu is locked.
func (a *account) hasMore(n int) bool {
	return !a.node && a.bytes+n > ForClients(a.budget.limit)/max(1, a.budget.mu.members)
}

// makeRoom closes the clients that have the most, one after the other, until
// there is room for n more bytes of an account, and reports whether there is.
// b.mu is locked.
func (b *budget) makeRoom(a *account, n int) bool {
	for !a.fits(n) {
		if a.closed || a.leaving || a.hasMore(n) || b.mu.leaving >= b.limit/leavingPart {
			return false
		}
		most := b.greediest()
		if most == nil || most == a {
			return false
		}
		most.leaving = true
		b.mu.leaving += most.bytes
		b.left.Broadcast() // it may be waiting for room itself
		go b.close(most, b.refusal(most))
	}
	return true
}

// close closes the connection of a client that has the most.
func (b *budget) close(a *account, why *OverBudgetError) {
	b.counters.evicted.Add(1)
	if unlogged, ok := b.closed.allow(); ok {
		b.log.Warn("a connection is closed: there is no memory left for all of them, and it had the most",
			"peer", a.who.String(), "bytes", why.Bytes, "limit", why.Limit, "connections", why.Connections, "unlogged", unlogged)
	}
	a.evict(why)
}

// greediest is the client that has the most and isn't leaving. b.mu is locked.
func (b *budget) greediest() *account {
	var most *account
	for a := range b.mu.accounts {
		if !a.node && !a.leaving && a.evict != nil && (most == nil || a.bytes > most.bytes) {
			most = a
		}
	}
	return most
}

// refusal is why an account gets no more. b.mu is locked.
func (b *budget) refusal(a *account) *OverBudgetError {
	return &OverBudgetError{Bytes: a.bytes, Limit: b.limit, Connections: len(b.mu.accounts)}
}

// tryWindow charges n bytes by which QUIC would let more wait unread. That
// only makes a connection faster, so nobody is closed for it, and clients get
// it only from the first half of what is theirs.
func (a *account) tryWindow(n int) bool {
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	spare := b.room() - ForClients(b.limit)/2
	if a.node {
		spare = b.nodeRoom()
	}
	if a.closed || a.leaving || n > spare {
		return false
	}
	b.add(a, n)
	return true
}

// charge charges n bytes whatever the limit: they were there before, and are
// back.
func (a *account) charge(n int) {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.budget.add(a, n)
}

// give gives n bytes back.
func (a *account) give(n int) { a.charge(-n) }

// pay charges what a buffer that grows costs beyond what was charged for it.
func (a *account) pay(charged *int, cost int) error {
	if cost <= *charged {
		return nil
	}
	if err := a.take(cost-*charged, false); err != nil {
		return err
	}
	*charged = cost
	return nil
}

// change charges what a buffer costs in the place of an earlier one, and waits
// if it must.
func (a *account) change(charged *int, cost int) error {
	cost = max(0, cost)
	switch {
	case cost > *charged:
		if err := a.take(cost-*charged, true); err != nil {
			return err
		}
	case cost < *charged:
		a.give(*charged - cost)
	}
	*charged = cost
	return nil
}

// close gives back all that an account has, when nothing of it is left.
func (a *account) close() {
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.closed {
		return
	}
	b.add(a, -a.bytes)
	a.closed = true
	delete(b.mu.accounts, a)
	if !a.node {
		b.mu.members--
	}
	b.left.Broadcast()
}

// gone is told that the connection has ended. If it became a session, that
// closes the account, when it has let go what it has.
func (a *account) gone() {
	a.budget.mu.Lock()
	kept := a.kept
	a.budget.mu.Unlock()
	if !kept {
		a.close()
	}
}

// full is the error when there is no room for another connection.
func (b *budget) full() *OverBudgetError {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &OverBudgetError{Limit: b.limit, Connections: len(b.mu.accounts)}
}

// used is what all have, and of it clients.
func (b *budget) used() (all, clients int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.clients + b.mu.nodes, b.mu.clients
}
