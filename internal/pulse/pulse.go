// Package pulse measures the longest time in which nothing happened.
package pulse

import (
	"sync/atomic"
	"time"
)

// Pulse finds the longest gap between its beats, and between the begin and the
// first. Times are counted from that begin, which is the caller's. It errs
// upwards, by as long as a goroutine waits between what happened and its beat.
// The zero Pulse is ready, and safe for concurrent use.
type Pulse struct {
	last    atomic.Int64 // ns since the begin
	longest atomic.Int64 // ns
}

// Beat says that something happened then.
func (p *Pulse) Beat(at time.Duration) {
	now := int64(at)
	for {
		last := p.last.Load()
		if now <= last {
			return // something happened later, and has said so already
		}
		if p.last.CompareAndSwap(last, now) {
			p.widen(now - last)
			return
		}
	}
}

func (p *Pulse) widen(gap int64) {
	for old := p.longest.Load(); gap > old; old = p.longest.Load() {
		if p.longest.CompareAndSwap(old, gap) {
			return
		}
	}
}

// Cut returns the longest gap since the last Cut, and begins to look for the
// next. A gap that lasts belongs, from its beginning, to the next.
func (p *Pulse) Cut() time.Duration { return time.Duration(p.longest.Swap(0)) }
