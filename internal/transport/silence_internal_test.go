package transport

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestSilence: a peer is silent if nothing is heard for a time after something was
// sent, and never while nothing is sent, or something is heard.
func TestSilence(t *testing.T) {
	const limit = 5 * time.Second
	for _, test := range []struct {
		name   string
		answer func(at int) bool // whether it acknowledges in that second
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
				var heard atomic.Uint64
				var found atomic.Int64
				begin := time.Now()
				w := newSilence(limit, heard.Load, func() { found.Store(int64(time.Since(begin) / time.Second)) })
				for at := range 60 {
					if test.send(at) {
						w.sent()
					}
					<-time.After(time.Second / 3) // or it would come with a look, before or after it
					if test.answer(at) {
						heard.Add(1)
					}
					<-time.After(time.Second - time.Second/3)
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

// TestSilenceBetweenLooks: how often something was sent and answered between two
// looks makes no difference. A client that asks twice and is idle then must not
// lose its connection.
func TestSilenceBetweenLooks(t *testing.T) {
	const limit = 5 * time.Second
	for _, test := range []struct {
		name   string
		events string // each 100 ms: s something is sent, p it is acknowledged
		silent bool   // in the end
	}{
		{"asked once", "sp", false},
		{"asked twice", "spsp", false},
		{"asked while the first is on its way", "sspp", false},
		{"asked in two looks", "sp---------spsp", false},
		{"the last isn't answered", "spsps", true},
		{"the last of two looks isn't answered", "spsp-----------s", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var heard atomic.Uint64
				var found atomic.Bool
				w := newSilence(limit, heard.Load, func() { found.Store(true) })
				for _, event := range test.events {
					switch event {
					case 's':
						w.sent()
					case 'p':
						heard.Add(1)
					}
					<-time.After(100 * time.Millisecond)
				}
				<-time.After(time.Minute)
				w.stop()
				synctest.Wait()
				if found.Load() != test.silent {
					t.Errorf("silent: %v, want %v", found.Load(), test.silent)
				}
			})
		})
	}
}
