package udpproxy

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// testLane runs f with a lane on a clock of its own, and returns what left it,
// and when, once everything has.
func testLane(t *testing.T, f func(carry func(text string, faults Faults))) (left []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var l lane
		var mu sync.Mutex // what is delayed leaves on another goroutine
		start := time.Now()
		l.init(func(_ *flow, datagram []byte) error {
			mu.Lock()
			defer mu.Unlock()
			left = append(left, fmt.Sprintf("%.4s after %v", datagram, time.Since(start)))
			return nil
		})
		done := make(chan struct{})
		go l.run(done)
		f(func(text string, faults Faults) {
			l.faults.Store(&faults)
			l.carry(nil, draws{}, []byte(text))
		})
		time.Sleep(MaxDelay) // of the bubble's clock
		close(done)
		synctest.Wait()
	})
	return left
}

// TestUnderWay: what is delayed arrives in the order in which it is due, and
// what is held back is overtaken.
func TestUnderWay(t *testing.T) {
	got := testLane(t, func(carry func(string, Faults)) {
		carry("late", Faults{Delay: time.Second, Reorder: 1, ReorderBy: time.Second})
		carry("two.", Faults{Delay: time.Second})
		carry("thre", Faults{Delay: time.Second})
		carry("one.", Faults{})
	})
	if want := []string{"one. after 0s", "two. after 1s", "thre after 1s", "late after 2s"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRate: what comes too fast waits for its turn, and what finds too much
// waiting is lost.
func TestRate(t *testing.T) {
	got := testLane(t, func(carry func(string, Faults)) {
		for i := range 3 {
			carry(fmt.Sprintf("%04d%096d", i, 0), Faults{Rate: 100})
		}
	})
	if want := []string{"0000 after 1s", "0001 after 2s", "0002 after 3s"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	const size, more = 1 << 16, 10
	got = testLane(t, func(carry func(string, Faults)) {
		for range MaxWaiting/size + more {
			carry(string(make([]byte, size)), Faults{Delay: time.Second})
		}
	})
	if len(got) != MaxWaiting/size {
		t.Errorf("%d datagrams arrived, want %d", len(got), MaxWaiting/size)
	}
}

// TestBlackholeOfWhatIsUnderWay: it swallows what has been delayed, too.
func TestBlackholeOfWhatIsUnderWay(t *testing.T) {
	got := testLane(t, func(carry func(string, Faults)) {
		carry("late", Faults{Delay: time.Second})
		carry("lost", Faults{Blackhole: true})
	})
	if len(got) != 0 {
		t.Errorf("%q came out of a black hole", got)
	}
}
