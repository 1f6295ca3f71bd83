package pulse_test

import (
	"sync"
	"testing"
	"time"

	"atoll/internal/pulse"
)

func TestPulse(t *testing.T) {
	var p pulse.Pulse
	for _, at := range []time.Duration{3, 4, 9, 7, 11} { // 7 comes late
		p.Beat(at)
	}
	if got := p.Cut(); got != 5 {
		t.Errorf("the longest gap is %d, want 5", got)
	}
	if got := p.Cut(); got != 0 {
		t.Errorf("the longest gap since is %d, want 0", got)
	}
	p.Beat(20)
	if got := p.Cut(); got != 9 {
		t.Errorf("the gap that lasted over the cut is %d, want 9", got)
	}
}

// Whoever beats, the gaps are those between all beats.
func TestPulseOfMany(t *testing.T) {
	var p pulse.Pulse
	var all sync.WaitGroup
	for first := range 4 {
		all.Go(func() {
			for at := first; at < 4000; at += 4 {
				p.Beat(time.Duration(at))
			}
		})
	}
	all.Wait()
	p.Beat(5000)
	if got := p.Cut(); got < 1001 || got > 5000 {
		t.Errorf("the longest gap is %d, want 1001 at least", got)
	}
}
