package live

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"atoll/env"
	"atoll/quorum"
)

// silence is a network that takes everything.
type silence struct{}

func (silence) Send(quorum.NodeID, uint64, env.Message) error { return nil }
func (silence) Answer(env.Address, env.Message) error         { return nil }

func forever(env.Conversation, quorum.NodeID, env.Message) bool { return false }

// TestAskWaitsForAPlace: when all places are taken, an Ask waits until one
// becomes free, or its scope ends.
func TestAskWaitsForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{Network: silence{}})
		defer r.Stop()
		r.table.limit = 3
		results := make(chan error)
		start := func(ctx context.Context) {
			go func() { results <- r.Scope(ctx).Ask([]quorum.NodeID{"a"}, nil, forever) }()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		for range r.table.limit {
			start(ctx)
		}
		short, cancelShort := context.WithTimeout(t.Context(), time.Second)
		defer cancelShort()
		start(short)
		start(t.Context())
		start(t.Context())
		if err := <-results; !errors.Is(err, env.ErrDeadline) {
			t.Fatalf("the Ask that waited for a place ended with %v, want %v", err, env.ErrDeadline)
		}
		cancel()
		for range r.table.limit {
			if err := <-results; !errors.Is(err, env.ErrCanceled) {
				t.Fatalf("an Ask ended with %v, want %v", err, env.ErrCanceled)
			}
		}
		synctest.Wait()
		open := 0
		for c := range r.table.all() {
			if c.key.Load() != 0 {
				open++
			}
		}
		if open != 2 {
			t.Errorf("%d conversations are open, want the 2 that waited", open)
		}
		r.Stop()
		<-results
		<-results
	})
}

// TestTable: places are found by their numbers, across the rows.
func TestTable(t *testing.T) {
	var table table
	table.init(7)
	const n = 1000
	for i := range uint32(n) {
		c, _ := table.take()
		if c.place != i+1 || table.at(i+1) != c {
			t.Fatalf("place %d is at %d", i+1, c.place)
		}
		key, _, _ := c.begin(question{}, nil, 0, nil)
		if table.find(key) != c {
			t.Fatalf("place %d isn't found", i+1)
		}
		if table.find(key+1<<(64-generationBits)) != nil {
			t.Fatalf("place %d is found by a number that it doesn't have", i+1)
		}
	}
	if table.find(0) != nil || table.find(n+1) != nil || table.find(1<<placeBits-1) != nil {
		t.Error("a place is found that was never made")
	}
}

// TestTableIsShared: a place is in the hands of one at a time, also when there
// are fewer places than callers.
func TestTableIsShared(t *testing.T) {
	var table table
	table.init(0)
	table.limit = 5
	var taken [6]atomic.Bool
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 5000 {
				c, room := table.take()
				for c == nil {
					<-room
					c, room = table.take()
				}
				if !taken[c.place].CompareAndSwap(false, true) {
					t.Errorf("place %d was taken twice", c.place)
				}
				taken[c.place].Store(false)
				table.give(c)
			}
		})
	}
	callers.Wait()
	free := 0
	for c := table.pop(); c != nil; c = table.pop() {
		free++
	}
	if free != int(table.made.Load()) {
		t.Errorf("%d places are free in the end, want %d", free, table.made.Load())
	}
}

// TestGenerationWraps: a number is never zero, and never that of the
// conversation before, where the generation overflows.
func TestGenerationWraps(t *testing.T) {
	var table table
	table.init(1<<generationBits - 2)
	seen := make(map[uint64]bool)
	for range 4 {
		c, _ := table.take()
		key, _, _ := c.begin(question{}, nil, 0, nil)
		if key == 0 || key&redirectMask != 0 || seen[key] {
			t.Errorf("number %#x", key)
		}
		seen[key] = true
		c.end(key, nil)
		c.forget()
		table.give(c)
	}
}

// TestIdleSweeperSleeps: nothing wakes the sweeper while nothing waits to be
// resent, and only then.
func TestIdleSweeperSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{Network: silence{}})
		defer r.Stop()
		asleep := func(when string, want bool) {
			t.Helper()
			synctest.Wait()
			if got := time.Duration(r.sweep.next.Load()) == never; got != want {
				t.Errorf("%s, the sweeper sleeps for good: %v, want %v", when, got, want)
			}
		}
		asleep("at first", true)
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() { result <- r.Scope(ctx).Ask([]quorum.NodeID{"a"}, nil, forever) }()
		asleep("while an answer is awaited", false)
		time.Sleep(time.Hour)
		asleep("an hour later", false)
		for c := range r.table.all() {
			r.Deliver("a", c.key.Load(), nil)
		}
		time.Sleep(MaxResend)
		asleep("when all have answered, as in a watch", true)
		cancel()
		<-result
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			r.Scope(ctx).Ask([]quorum.NodeID{"a"}, nil, forever)
			cancel()
		}
		asleep("after short conversations", false)
		time.Sleep(FirstResend)
		asleep("later", true)
	})
}

// TestConversationIsGone: using a conversation outside each is refused, lest
// it reaches the next one at its place.
func TestConversationIsGone(t *testing.T) {
	var c conversation
	for name, use := range map[string]func(){
		"Add":      func() { c.Add("a") },
		"Redirect": func() { c.Redirect("a", nil) },
		"Sent":     func() { c.Sent("a") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s outside each didn't panic", name)
				}
			}()
			use()
		}()
	}
}
