package transport

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestSilence: a peer is silent if nothing comes for a time after something was
// sent, and never while nothing is sent, or something comes.
func TestSilence(t *testing.T) {
	const limit = 5 * time.Second
	for _, test := range []struct {
		name   string
		answer func(at int) bool // whether packets come in that second
		send   func(at int) bool
		found  int // in which second; 0: never
	}{
		{"nothing is sent", func(int) bool { return false }, func(int) bool { return false }, 0},
		{"all is answered", func(int) bool { return true }, func(int) bool { return true }, 0},
		{"once, and answered late", func(at int) bool { return at == 4 }, func(at int) bool { return at == 0 }, 0},
		{"once, and never answered", func(int) bool { return false }, func(at int) bool { return at == 0 }, 5},
		{"it dies under traffic", func(at int) bool { return at < 10 }, func(int) bool { return true }, 14},
		{"it dies while nothing is sent", func(at int) bool { return at < 10 }, func(at int) bool { return at < 3 || at == 30 }, 35},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var packets atomic.Uint64
				var found atomic.Int64
				begin := time.Now()
				w := newSilence(limit, packets.Load, func() { found.Store(int64(time.Since(begin) / time.Second)) })
				for at := range 60 {
					if test.send(at) {
						w.sent()
					}
					if test.answer(at) {
						packets.Add(1)
					}
					<-time.After(time.Second)
				}
				w.stop()
				synctest.Wait()
				// It may take a look more.
				if got := int(found.Load()); got < test.found || got > test.found+1 || (test.found == 0) != (got == 0) {
					t.Errorf("found after %d s, want %d", got, test.found)
				}
			})
		})
	}
}
