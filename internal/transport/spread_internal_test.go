package transport

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"atoll/quorum"
)

// TestIdleClientsComeBackOneByOne: clients that have nothing to send dial a node
// again at moments of their own; one that has, and a node, at once.
func TestIdleClientsComeBackOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		after := func(self quorum.NodeID, wanted bool, failed int) time.Duration {
			tr, p, begin := &Transport{}, newPeer("n"), time.Now()
			tr.cfg.Self = self
			if wanted {
				p.wanted <- struct{}{}
			}
			tr.spread(context.Background(), p, failed)
			return time.Since(begin)
		}
		for failed, within := range map[int]time.Duration{0: RedialSpread, 1: 4 * RedialSpread, 2: 16 * RedialSpread, 4: LongestSpread, 99: LongestSpread} {
			var early, late int
			for range 200 {
				switch d := after("", false, failed); {
				case d > within:
					t.Fatalf("after %v and %d failures", d, failed)
				case d < within/4:
					early++
				case d > 3*within/4:
					late++
				}
			}
			if early < 20 || late < 20 {
				t.Errorf("of 200, %d came in the first quarter and %d in the last: that isn't spread", early, late)
			}
			if d := after("", true, failed); d != 0 {
				t.Errorf("who has something to send waits for %v", d)
			}
			if d := after("n1", false, failed); d != 0 {
				t.Errorf("a node waits for %v", d)
			}
		}
	})
}
