package server

import (
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"atoll/abd"
	"atoll/env"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// from returns n items of a sender, numbered from first on.
func from(sender uint64, first, n int) []item {
	items := make([]item, n)
	for i := range items {
		items[i] = item{from: env.Address{Session: sender, Conversation: uint64(first + i)}, message: &abd.PutAck{}}
	}
	return items
}

// finishes runs f in a synctest bubble on a goroutine of its own, and returns
// a function that reports whether f has returned or else waits for something.
func finishes(f func()) func() bool {
	var done bool
	go func() {
		f()
		done = true
	}()
	return func() bool {
		synctest.Wait()
		return done
	}
}

func TestInboxTakesAllThatWaits(t *testing.T) {
	b := newInbox()
	b.put(from(1, 0, 3))
	b.put(from(1, 3, 2))
	if n := b.len(); n != 5 {
		t.Errorf("%d wait, want 5", n)
	}
	items, ok := b.take(nil)
	for i, it := range items {
		if it.from.Conversation != uint64(i) {
			t.Errorf("item %d is number %d", i, it.from.Conversation)
		}
	}
	if len(items) != 5 || !ok || b.len() != 0 {
		t.Errorf("took %d, %v, and %d are left", len(items), ok, b.len())
	}
}

func TestInboxWaitsForItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newInbox()
		var items []item
		var ok bool
		taken := finishes(func() { items, ok = b.take(nil) })
		if taken() {
			t.Fatal("took from an empty inbox")
		}
		b.put(from(1, 7, 1))
		if !taken() || len(items) != 1 || !ok {
			t.Errorf("took %v, %v", items, ok)
		}
	})
}

func TestInboxIsBounded(t *testing.T) {
	value := make([]byte, 8<<20)
	large := make([]item, maxInboxBytes/len(value))
	for i := range large {
		large[i].message = &abd.Put{Record: abd.Record{Value: value}}
	}
	for _, test := range []struct {
		name string
		full []item
	}{
		{"messages", from(1, 0, maxInbox)},
		{"bytes", large},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newInbox()
				if !b.put(test.full[:len(test.full)-1]) || !b.put(test.full[len(test.full)-1:]) {
					t.Fatal("closed")
				}
				var ok bool
				first := finishes(func() { ok = b.put(from(2, 0, 1)) })
				second := finishes(func() { b.put(from(3, 0, 1)) })
				if first() || second() {
					t.Fatal("a full inbox took more")
				}
				if items, _ := b.take(nil); len(items) != len(test.full) {
					t.Errorf("took %d, want %d", len(items), len(test.full))
				}
				if !first() || !second() || !ok || b.len() != 2 {
					t.Errorf("after there was room: %d wait, want 2", b.len())
				}
			})
		})
	}
}

func TestInboxCloseEndsAllWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newInbox()
		took, put := true, true
		taken := finishes(func() { _, took = b.take(nil) })
		if taken() {
			t.Fatal("took from an empty inbox")
		}
		full := newInbox()
		full.put(from(1, 0, maxInbox))
		added := finishes(func() { put = full.put(from(1, 0, 1)) })
		if added() {
			t.Fatal("a full inbox took more")
		}
		b.close()
		full.close()
		if !taken() || !added() || took || put {
			t.Errorf("after close: taken %v %v, put %v %v", taken(), took, added(), put)
		}
		if _, ok := b.take(nil); ok || b.put(from(1, 0, 1)) {
			t.Error("a closed inbox can be used")
		}
	})
}

// TestInboxShared has many put while one takes: nothing is lost or comes
// twice, and what one sender put stays in order.
func TestInboxShared(t *testing.T) {
	const senders, batches, size = 8, 200, 5
	b := newInbox()
	var putting sync.WaitGroup
	for sender := range senders {
		putting.Go(func() {
			for n := range batches {
				b.put(from(uint64(sender), n*size, size))
			}
		})
	}
	var next [senders]uint64
	var items []item
	for total := 0; total < senders*batches*size; total += len(items) {
		items, _ = b.take(items)
		for _, it := range items {
			if want := next[it.from.Session]; it.from.Conversation != want {
				t.Fatalf("of sender %d came number %d, want %d", it.from.Session, it.from.Conversation, want)
			}
			next[it.from.Session]++
		}
	}
	putting.Wait()
}
