package rambo

import (
	"testing"
	"time"
)

// TestWhatCountsAsProgress: a driver waits for a member that comes further than it
// has ever been. One that starts anew again and again doesn't, nor does one that merges
// for another configuration.
func TestWhatCountsAsProgress(t *testing.T) {
	const patience = 10 * time.Second
	for _, c := range []struct {
		name  string
		heard []Progress // one a second
		since time.Duration
	}{
		{"it stands still", []Progress{{Index: 2, After: "k"}, {Index: 2, After: "k"}}, 1 * time.Second},
		{"it gets on", []Progress{{Index: 2}, {Index: 2, After: "b"}, {Index: 2, After: "k"}}, 3 * time.Second},
		{"it starts anew", []Progress{{Index: 2, After: "k"}, {Index: 2}, {Index: 2, After: "b"}, {Index: 2, After: "k"}}, 1 * time.Second},
		{"it starts anew and gets on", []Progress{{Index: 2, After: "k"}, {Index: 2, After: "b"}, {Index: 2, After: "l"}}, 3 * time.Second},
		{"it merges for another one", []Progress{{Index: 1, After: "b"}, {Index: 1, After: "k"}}, 0},
		{"it is done with another one", []Progress{{Index: 1, Done: true}}, 0},
	} {
		w := new(watched)
		for i, p := range c.heard {
			w.hear(p, 2, time.Duration(i+1)*time.Second)
		}
		if w.since != c.since || !w.getsOn(c.since+patience-1, patience) || w.getsOn(c.since+patience, patience) {
			t.Errorf("%s: %+v, want since %v", c.name, *w, c.since)
		}
	}
	w := &watched{Progress: Progress{Index: 2, After: "k"}}
	for _, now := range []time.Duration{time.Second, time.Hour} {
		w.hear(Progress{Index: 2, Done: true}, 2, now)
		if !w.getsOn(now+patience-1, patience) {
			t.Errorf("who says that it is through isn't waited for: %+v", *w)
		}
	}
	if w.getsOn(time.Hour+patience, patience) {
		t.Errorf("who was through and says nothing any more is waited for: %+v", *w)
	}
}
