package server

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeSource is a session that is congested when a test says so.
type fakeSource struct {
	id        uint64
	congested atomic.Bool
	bulk      atomic.Bool // congested with large answers
	charged   atomic.Int64
}

func (s *fakeSource) Discharge(n int)   { s.charged.Add(-int64(n)) }
func (s *fakeSource) ChargeAgain(n int) { s.charged.Add(int64(n)) }

func (s *fakeSource) ID() uint64      { return s.id }
func (s *fakeSource) Congested() bool { return s.congested.Load() }

func (s *fakeSource) BulkCongested() bool { return s.bulk.Load() }

// always is a disk that keeps up.
func always() bool { return true }

// some returns n items of a source, numbered from first on.
func some(s *fakeSource, first, n int) []item {
	items := make([]item, n)
	for i := range items {
		items[i] = item{source: s, from: env.Address{Session: s.id, Conversation: uint64(first + i)}, message: &abd.PutAck{}}
	}
	return items
}

// names tells items apart: "1:0 1:1 2:0".
func names(items []item) string {
	var b strings.Builder
	for _, it := range items {
		fmt.Fprintf(&b, " %d:%d", it.from.Session, it.from.Conversation)
	}
	return strings.TrimPrefix(b.String(), " ")
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

func TestInboxKeepsTheOrderOfASession(t *testing.T) {
	b, one, two := newInbox(), &fakeSource{id: 1}, &fakeSource{id: 2}
	b.put(one, some(one, 0, 2))
	b.put(two, some(two, 0, 1))
	b.put(one, some(one, 2, 1))
	if n := b.len(); n != 4 {
		t.Errorf("%d wait, want 4", n)
	}
	items, ok := b.take(nil, always)
	if got, want := names(items), "1:0 1:1 1:2 2:0"; got != want || !ok || b.len() != 0 {
		t.Errorf("took %s, %v, and %d are left; want %s", got, ok, b.len(), want)
	}
}

func TestInboxWaitsForItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, one := newInbox(), &fakeSource{id: 1}
		var items []item
		var ok bool
		taken := finishes(func() { items, ok = b.take(nil, always) })
		if taken() {
			t.Fatal("took from an empty inbox")
		}
		b.put(one, some(one, 7, 1))
		if !taken() || names(items) != "1:7" || !ok {
			t.Errorf("took %v, %v", items, ok)
		}
	})
}

func TestInboxSessionsTakeTurns(t *testing.T) {
	b, busy, quiet := newInbox(), &fakeSource{id: 1}, &fakeSource{id: 2}
	b.put(busy, some(busy, 0, 3*maxTurn))
	b.put(quiet, some(quiet, 0, 1))
	items, _ := b.take(nil, always)
	if at := slices.IndexFunc(items, func(it item) bool { return it.source == quiet }); at != maxShare || len(items) > maxTurn+maxShare {
		t.Errorf("of a turn of %d, the quiet session's item is number %d, want %d", len(items), at, maxShare)
	}
	// What is left comes in order, and all of it.
	next := uint64(len(items) - 1)
	for next < 3*maxTurn {
		items, _ = b.take(items, always)
		for _, it := range items {
			if it.from.Conversation != next {
				t.Fatalf("item %d comes as number %d", it.from.Conversation, next)
			}
			next++
		}
	}
}

// The node's own tasks are one more session: they hold nobody up however much
// they ask, and get their turns however much others do.
func TestInboxTasksTakeTurns(t *testing.T) {
	own := func(first, n int) []item {
		items := some(&fakeSource{}, first, n)
		for i := range items {
			items[i].source = self{}
		}
		return items
	}
	place := func(items []item, of source) int {
		return slices.IndexFunc(items, func(it item) bool { return it.source.ID() == of.ID() })
	}
	quiet := &fakeSource{id: 2}
	b := newInbox()
	for i, it := range own(0, maxQueue+1) {
		want := error(nil)
		if i == maxQueue {
			want = errBusy
		}
		if err := b.offer(it); err != want {
			t.Fatalf("offering item %d: %v, want %v", i, err, want)
		}
	}
	b.put(quiet, some(quiet, 0, 1))
	items, _ := b.take(nil, always)
	if at := place(items, quiet); at != maxShare {
		t.Errorf("a client's message is number %d, behind the tasks' %d, want %d", at, maxQueue, maxShare)
	}

	// An inbox that is full of what clients ask has room for a task, at once.
	b = newInbox()
	const clients = maxInbox / maxQueue
	for i := range clients {
		busy := &fakeSource{id: uint64(10 + i)}
		b.put(busy, some(busy, 0, maxQueue))
	}
	if err := b.offer(own(0, 1)[0]); err != nil {
		t.Fatal(err)
	}
	at := -1
	for taken := 0; at < 0 && b.len() > 0; taken += len(items) {
		items, _ = b.take(items, always)
		if at = place(items, self{}); at >= 0 {
			at += taken
		}
	}
	if want := clients * maxShare; at != want {
		t.Errorf("the task's message is number %d, want %d: each client's share comes before", at, want)
	}
	b.close()
	if err := b.offer(own(0, 1)[0]); err != errClosing {
		t.Errorf("offering to an inbox that is closed: %v, want %v", err, errClosing)
	}
}

// What another node asks is never left alone, whatever waits for it: see there.
func TestOtherNodesAreNeverCongested(t *testing.T) {
	var o source = otherNode{} // which would ask its session, and has none
	if o.Congested() || o.BulkCongested() {
		t.Error("a node is left alone")
	}
}

func TestInboxListsCountForMore(t *testing.T) {
	b, one := newInbox(), &fakeSource{id: 1}
	lists := some(one, 0, 100)
	for i := range lists {
		lists[i].message = &abd.List{Limit: abd.MaxPage}
	}
	b.put(one, lists)
	items, _ := b.take(nil, always)
	if most := maxTurn/(abd.MaxPage/keysPerUnit) + maxShare; len(items) > most {
		t.Errorf("a turn has %d lists, want %d at most", len(items), most)
	}
}

func TestInboxLeavesCongestedSessionsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, slow, quick := newInbox(), &fakeSource{id: 1}, &fakeSource{id: 2}
		slow.congested.Store(true)
		b.put(slow, some(slow, 0, 2))
		b.put(quick, some(quick, 0, 1))
		items, _ := b.take(nil, always)
		if got := names(items); got != "2:0" {
			t.Errorf("took %s, want 2:0", got)
		}
		taken := finishes(func() { items, _ = b.take(items, always) })
		if taken() {
			t.Fatalf("took %s of a congested session", names(items))
		}
		slow.congested.Store(false)
		b.wake()
		if !taken() || names(items) != "1:0 1:1" {
			t.Errorf("took %s, want 1:0 1:1", names(items))
		}
	})
}

func TestInboxTakesBack(t *testing.T) {
	b, one, two, gone := newInbox(), &fakeSource{id: 1}, &fakeSource{id: 2}, &fakeSource{id: 3}
	b.put(one, some(one, 0, 3))
	b.put(two, some(two, 0, 2))
	b.put(gone, some(gone, 0, 1))
	items, _ := b.take(nil, always)
	b.put(one, some(one, 3, 1)) // came meanwhile
	b.forget(gone)
	b.giveBack(append(slices.Clone(items[1:3]), items[4:]...)) // 1:1 1:2 2:1 3:0
	if n := b.len(); n != 4 {
		t.Errorf("%d wait, want 4", n)
	}
	items, _ = b.take(nil, always)
	if got, want := names(items), "1:1 1:2 1:3 2:1"; got != want {
		t.Errorf("took %s, want %s", got, want)
	}
}

// values returns n puts of a source with values of some size.
func values(s *fakeSource, first, n, size int) []item {
	items := some(s, first, n)
	value := make([]byte, size)
	for i := range items {
		items[i].message = &abd.Put{Record: abd.Record{Value: value}}
	}
	return items
}

func TestInboxIsBounded(t *testing.T) {
	const small, large = transport.BulkAbove, 1 << 20
	one, two := &fakeSource{id: 1}, &fakeSource{id: 2}
	for _, test := range []struct {
		name   string
		size   int // of the values
		fill   func(b *inbox)
		others bool // may still put
	}{
		{"a session's messages", 0, func(b *inbox) { b.put(one, some(one, 0, maxQueue)) }, true},
		{"a session's bytes", small, func(b *inbox) { b.put(one, values(one, 0, maxQueueBytes/small, small)) }, true},
		{"a session's large bytes", large, func(b *inbox) { b.put(one, values(one, 0, maxQueueBytes/large, large)) }, true},
		{"messages", 0, func(b *inbox) {
			for i := range maxInbox / maxQueue {
				s := &fakeSource{id: uint64(10 + i)}
				b.put(s, some(s, 0, maxQueue))
			}
		}, false},
		{"large bytes", large, func(b *inbox) {
			for i := range maxInboxBytes / maxQueueBytes {
				s := &fakeSource{id: uint64(10 + i)}
				b.put(s, values(s, 0, maxQueueBytes/large, large))
			}
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newInbox()
				test.fill(b)
				if test.size == large { // small ones go by
					if !finishes(func() { b.put(one, some(one, 0, 1)) })() {
						t.Fatal("a small item waits for large ones")
					}
				}
				var ok bool
				same := finishes(func() { ok = b.put(one, values(one, 0, 1, test.size)) })
				other := finishes(func() { b.put(two, values(two, 0, 1, test.size)) })
				if same() || other() != test.others {
					t.Fatalf("a full inbox took more of the same: %v, of another: %v; want false, %v", same(), other(), test.others)
				}
				for range maxInbox / maxTurn {
					if same() && other() { // in whatever order
						break
					}
					b.take(nil, always)
				}
				if !same() || !other() || !ok {
					t.Error("there is room, and no more was taken")
				}
			})
		})
	}
}

// TestInboxLargeItems: they come a few at a time, beside all small ones; those
// with values wait for the disk, and those that ask for values for their peer.
func TestInboxLargeItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, one, two := newInbox(), &fakeSource{id: 1}, &fakeSource{id: 2}
		room := false
		take := func() string {
			items, _ := b.take(nil, func() bool { return room })
			return names(items)
		}
		b.put(one, values(one, 0, 3, maxBulkTurn))
		b.put(one, some(one, 3, 2))
		if got, want := take(), "1:3 1:4"; got != want {
			t.Errorf("the disk is behind: took %s, want %s", got, want)
		}
		asked := some(two, 0, 2)
		asked[0].answer, asked[1].answer = maxBulkTurn, maxBulkTurn
		b.demote(asked) // of a session that has put nothing: it has ended
		b.put(two, some(two, 2, 1))
		b.demote(asked)
		if got, want := take(), "2:0 2:2"; got != want {
			t.Errorf("a read doesn't wait for the disk: took %s, want %s", got, want)
		}
		two.bulk.Store(true)
		var got string
		taken := finishes(func() { got = take() })
		if taken() {
			t.Fatalf("took %s: the disk is behind, and the peer takes nothing", got)
		}
		room = true
		b.roomAgain()
		if want := "1:0"; !taken() || got != want {
			t.Errorf("took %s, want %s", got, want)
		}
		if got, want := take(), "1:1"; got != want {
			t.Errorf("took %s, want %s", got, want)
		}
		two.bulk.Store(false)
		b.wake()
		// Sessions take turns.
		if got, want := take()+" "+take(), "2:1 1:2"; got != want {
			t.Errorf("took %s, want %s", got, want)
		}
		if n := b.len(); n != 0 {
			t.Errorf("%d are left", n)
		}
	})
}

func TestInboxForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, one := newInbox(), &fakeSource{id: 1}
		b.put(one, some(one, 0, maxQueue))
		b.forget(one)
		if n := b.len(); n != 0 {
			t.Errorf("%d units of a session that has ended wait", n)
		}
		taken := finishes(func() { b.take(nil, always) })
		if taken() {
			t.Error("took from a session that has ended")
		}
		b.close()
		if !taken() {
			t.Error("close didn't end the waiting")
		}
	})
}

func TestInboxCloseEndsAllWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, full, one := newInbox(), newInbox(), &fakeSource{id: 1}
		took, put := true, true
		taken := finishes(func() { _, took = b.take(nil, always) })
		full.put(one, some(one, 0, maxQueue))
		added := finishes(func() { put = full.put(one, some(one, 0, 1)) })
		if taken() || added() {
			t.Fatal("took from an empty inbox, or put into a full one")
		}
		b.close()
		full.close()
		if !taken() || !added() || took || put {
			t.Errorf("after close: taken %v %v, put %v %v", taken(), took, added(), put)
		}
		if _, ok := b.take(nil, always); ok || b.put(one, some(one, 0, 1)) {
			t.Error("a closed inbox can be used")
		}
	})
}

// TestInboxShared has many put while one takes, gives some back, and finds
// sessions congested now and then: nothing is lost or comes twice, and what
// one session put stays in order.
func TestInboxShared(t *testing.T) {
	const senders, batches, size = 8, 200, 5
	b := newInbox()
	var sources [senders]fakeSource
	var putting sync.WaitGroup
	for i := range sources {
		s := &sources[i]
		s.id = uint64(i)
		putting.Go(func() {
			for n := range batches {
				s.congested.Store(n%7 == 3)
				b.put(s, some(s, n*size, size))
				s.congested.Store(false)
				b.wake()
			}
		})
	}
	var next [senders]uint64
	var items []item
	for total, turn := 0, 0; total < senders*batches*size; turn++ {
		items, _ = b.take(items, always)
		worked := len(items)
		if turn%3 == 0 {
			worked /= 2
			b.giveBack(slices.Clone(items[worked:]))
		}
		for _, it := range items[:worked] {
			if n := &next[it.from.Session]; it.from.Conversation != *n {
				t.Fatalf("session %d: item %d comes as number %d", it.from.Session, it.from.Conversation, *n)
			} else {
				*n++
			}
		}
		total += worked
	}
	putting.Wait()
	if n := b.len(); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// TestInboxDischargesWhatItLetsGo: what was charged for an item is given back
// when it is taken, or its session ends, and is charged again when it comes back.
func TestInboxDischargesWhatItLetsGo(t *testing.T) {
	const each = 10
	b, one := newInbox(), &fakeSource{id: 1}
	charged := func(items []item) []item {
		for i := range items {
			items[i].charged = each
			one.charged.Add(each)
		}
		return items
	}
	expect := func(what string, items int) {
		t.Helper()
		if got := one.charged.Load(); got != int64(items*each) {
			t.Errorf("%s: %d are charged, want %d", what, got, items*each)
		}
	}
	b.put(one, charged(append(some(one, 0, 3), values(one, 3, 2, maxBulkTurn)...)))
	expect("put", 5)
	taken, _ := b.take(nil, always) // all small ones, and one large one
	expect("taken", 1)
	b.giveBack(taken[1:])
	expect("given back", 4)
	taken, _ = b.take(nil, always)
	expect("taken again", 0)
	b.demote(taken[:2])
	expect("demoted", 2)
	b.forget(one)
	expect("forgotten", 0)
}

// TestSmallValuesThatWaitAreTheirOwn: those that wait behind others, or for a
// congested peer, keep nothing alive that was read with them.
func TestSmallValuesThatWaitAreTheirOwn(t *testing.T) {
	b, one, slow := newInbox(), &fakeSource{id: 1}, &fakeSource{id: 2}
	slow.congested.Store(true)
	chunk := []byte("value")
	put := func(s *fakeSource) {
		it := some(s, 0, 1)
		it[0].message = &abd.Put{Key: "k", Record: abd.Record{Value: chunk}}
		b.put(s, it)
	}
	put(one)
	put(one)
	put(slow)
	slow.congested.Store(false)
	items, _ := b.take(nil, always)
	clear(chunk)
	var got []string
	for _, it := range items {
		got = append(got, string(it.message.(*abd.Put).Record.Value))
	}
	if want := []string{"\x00\x00\x00\x00\x00", "value", "value"}; !slices.Equal(got, want) {
		t.Errorf("after what was read is used again: %q, want %q", got, want)
	}
}
