package transport

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// name is who an account is of.
type name string

func (n name) String() string { return string(n) }

// bank is a budget whose evicted sessions close their accounts when a test says
// so.
type bank struct {
	t *testing.T
	*budget
	mu      sync.Mutex
	evicted []string // in order
}

func newBank(t *testing.T, limit int) *bank {
	return &bank{t: t, budget: newBudget(limit, slog.New(slog.DiscardHandler), new(counters))}
}

// client opens an account of a client that has some bytes in all.
func (b *bank) client(who string, bytes int) *account { return b.opened(who, false, bytes) }

func (b *bank) node(who string, bytes int) *account { return b.opened(who, true, bytes) }

func (b *bank) opened(who string, node bool, bytes int) *account {
	b.t.Helper()
	a := b.open()
	if a == nil {
		b.t.Fatalf("%s finds no room", who)
	}
	if !node {
		if err := a.settle(); err != nil {
			b.t.Fatalf("%s: %v", who, err)
		}
	}
	a.keep(name(who), node, func(*OverBudgetError) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.evicted = append(b.evicted, who)
	})
	if err := a.take(bytes-connectionCost, false); err != nil {
		b.t.Fatalf("%s: %v", who, err)
	}
	return a
}

// gone waits until all are told, and returns who had to go.
func (b *bank) gone() []string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.evicted)
}

const mib = 1 << 20

// TestTheGreediestClientMakesRoom: of a limit of 64 MiB, 40 are for clients.
func TestTheGreediestClientMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(t, 64*mib)
		modest, hog, another := b.client("modest", mib), b.client("hog", 30*mib), b.client("another", 8*mib)
		if err := modest.take(2*mib, false); err != nil {
			t.Errorf("a client with less than its share gets nothing: %v", err)
		}
		if got := b.gone(); !slices.Equal(got, []string{"hog"}) {
			t.Errorf("%q had to go, want the hog", got)
		}
		if err := hog.take(1, false); err == nil {
			t.Error("who has to go gets more")
		}
		hog.close()
		if all, clients := b.used(); all != 11*mib || clients != all {
			t.Errorf("%d bytes are left, %d of clients", all, clients)
		}
		// Now there is room, and nobody has to go whatever its share is.
		if err := another.take(29*mib, false); err != nil {
			t.Errorf("there is room, and a client gets nothing: %v", err)
		}
		var over *OverBudgetError
		if err := another.take(mib, false); !errors.As(err, &over) || over.Bytes != 37*mib || over.Limit != 64*mib || over.Connections != 2 {
			t.Errorf("a client that has the most gets more than there is: %v", err)
		}
		if got := b.gone(); len(got) != 1 || b.counters.evicted.Load() != 1 {
			t.Errorf("%q had to go, and %d are counted", got, b.counters.evicted.Load())
		}
	})
}

// TestNodesHaveAReserve: clients that take all they can leave a quarter for
// nodes, which get the rest at the expense of clients, and never have to go.
func TestNodesHaveAReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(t, 64*mib)
		var clients []*account
		for _, who := range []string{"one", "two", "three", "four"} {
			clients = append(clients, b.client(who, 10*mib))
		}
		if err := clients[0].take(1, false); err == nil {
			t.Error("clients have more than what is theirs")
		}
		n := b.node("n", 16*mib)
		if got := b.gone(); len(got) != 0 {
			t.Errorf("%q had to go for what is reserved", got)
		}
		if err := n.take(8*mib, false); err != nil {
			t.Errorf("a node gets nothing, and clients have all: %v", err)
		}
		if got := b.gone(); len(got) != 1 {
			t.Errorf("%q had to go, want one client", got)
		}
		for _, c := range clients {
			c.close()
		}
		if err := n.take(32*mib, false); err != nil {
			t.Errorf("a node doesn't get all but what is left free: %v", err)
		}
		if err := n.take(1, false); err == nil {
			t.Error("a node gets more than there is")
		}
		if a := b.open(); a != nil {
			t.Error("there is room for another connection")
		}
		n.close()
		if all, _ := b.used(); all != 0 {
			t.Errorf("%d bytes are in use by nobody", all)
		}
	})
}

// TestRoomThatIsLeavingIsWaitedFor: only so much is closed at a time, and who
// needs more waits until it is back, unless it has to go itself.
func TestRoomThatIsLeavingIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(t, 64*mib)
		hog, second, third := b.client("hog", 20*mib), b.client("second", 19*mib), b.client("third", connectionCost)
		poor := b.client("poor", mib-connectionCost)
		if err := poor.take(8*mib, false); err != nil { // more isn't made room of while the hog is there
			t.Fatal(err)
		}
		if err := third.take(mib, false); err == nil {
			t.Error("more is closed than is kept free")
		}
		got := make(chan error, 1)
		go func() { got <- third.take(mib, true) }()
		synctest.Wait()
		select {
		case err := <-got:
			t.Errorf("it didn't wait: %v", err)
		default:
		}
		hog.close()
		if err := <-got; err != nil {
			t.Errorf("after the wait: %v", err)
		}
		// The one who waits is closed meanwhile: it isn't left waiting.
		second.take(12*mib, false)
		go func() { got <- third.take(30*mib, true) }()
		third.close()
		if err := <-got; err == nil {
			t.Error("a closed account got something")
		}
	})
}

// TestANewcomerWaitsForThoseWhoLeave: clients have all that is theirs, and as
// many are leaving as may at a time. A newcomer isn't refused for it, but when
// all others have as little as it has.
func TestANewcomerWaitsForThoseWhoLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(t, 64*mib)
		hog, second := b.client("hog", 21*mib), b.client("second", 19*mib)
		first := b.client("first", connectionCost) // the hog leaves for it
		for _, a := range []*account{second, first} {
			for a.take(connectionCost, false) == nil { // what is left
			}
		}
		newcomer := b.open()
		got := make(chan error, 1)
		go func() { got <- newcomer.settle() }()
		synctest.Wait()
		select {
		case err := <-got:
			t.Errorf("it didn't wait: %v", err)
		default:
		}
		if gone := b.gone(); !slices.Equal(gone, []string{"hog"}) {
			t.Errorf("%q had to go, want the hog", gone)
		}
		hog.close()
		if err := <-got; err != nil {
			t.Errorf("after the wait: %v", err)
		}
		newcomer.close()
		second.close()
		first.close()
		for range ForClients(64*mib) / connectionCost {
			b.client("small", connectionCost)
		}
		if err := b.open().settle(); err == nil {
			t.Error("somebody had to go for one who has as much")
		}
	})
}

// TestWindowsTakeNoRoomFromOthers: QUIC's windows grow while half of what is
// for clients is free, and nobody has to go for them.
func TestWindowsTakeNoRoomFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBank(t, 64*mib)
		c := b.client("c", 10*mib)
		if !c.tryWindow(10 * mib) {
			t.Error("a window doesn't grow, and half is free")
		}
		if c.tryWindow(mib) {
			t.Error("a window grows beyond half")
		}
		n := b.node("n", mib)
		if !n.tryWindow(15 * mib) {
			t.Error("a node's window doesn't grow")
		}
		if got := b.gone(); len(got) != 0 {
			t.Errorf("%q had to go for a window", got)
		}
	})
}

// TestTheBudgetHolds has accounts come, take, give and go at random. All
// together never have more than the limit, and what is counted is the sum of
// the accounts.
func TestTheBudgetHolds(t *testing.T) {
	const limit = 64 * mib
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		b := newBudget(limit, slog.New(slog.DiscardHandler), new(counters))
		var open []*account
		var closing sync.WaitGroup
		for range 2000 {
			if i := rng.IntN(40); i >= len(open) {
				a := b.open()
				if a == nil {
					continue
				}
				closing.Add(1)
				evict := sync.OnceFunc(func() { a.close(); closing.Done() })
				node := rng.IntN(4) == 0
				if !node && a.settle() != nil {
					a.gone()
					closing.Done()
					continue
				}
				a.keep(name("c"), node, func(*OverBudgetError) { evict() })
				open = append(open, a)
				if rng.IntN(10) == 0 {
					evict()
				}
			} else if a, has := open[i], open[i].mine(); rng.IntN(3) == 0 && has > connectionCost {
				a.give(rng.IntN(has - connectionCost))
			} else {
				_ = a.take(rng.IntN(8*mib), rng.IntN(2) == 0)
			}
			if all, clients := b.used(); all > limit || clients > limit-limit/nodePart || clients < 0 {
				t.Fatalf("seed %d: %d bytes in use, %d of clients", seed, all, clients)
			}
		}
		sum := 0
		for _, a := range open {
			sum += a.mine()
		}
		if all, _ := b.used(); all != sum {
			t.Errorf("seed %d: %d bytes are counted, the accounts have %d", seed, all, sum)
		}
		for _, a := range open {
			a.close()
		}
		if all, clients := b.used(); all != 0 || clients != 0 || b.mu.members != 0 || b.mu.leaving != 0 || len(b.mu.accounts) != 0 {
			t.Errorf("seed %d: all are gone, and %d bytes are in use, %d leaving, by %d clients", seed, all, b.mu.leaving, b.mu.members)
		}
	}
}

// mine is what the account has.
func (a *account) mine() int {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if a.closed {
		return 0
	}
	return a.bytes
}
