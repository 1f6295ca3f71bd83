package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhoNeedsNothingRests: a client that has lost a member asks the others soon when
// something waits for it, or comes to; otherwise only when it has rested, or when it loses
// one more.
func TestWhoNeedsNothingRests(t *testing.T) {
	const pause = 12 * refreshFirst
	for name, c := range map[string]struct {
		pause       time.Duration
		needed      bool          // at first
		then        bool          // and when it is looked at again
		meanwhile   func(*Client) // after a second, which is within pause/2
		least, most time.Duration
		last        time.Duration // that it takes in the end
	}{
		"another one, beside":         {pause, true, true, (*Client).miss, time.Second + refreshFirst/2, time.Second + refreshFirst, refreshFirst},
		"something waits":             {pause, true, true, nil, pause / 2, pause, pause},
		"nothing waits":               {pause, false, false, nil, restfulness * pause / 2, restfulness * pause, pause},
		"something comes to wait":     {pause, false, false, (*Client).need, pause / 2, pause, pause},
		"something comes later":       {refreshFirst, false, false, (*Client).need, time.Second, time.Second, pause},
		"another one is lost":         {pause, false, false, (*Client).miss, time.Second + restfulness*refreshFirst/2, time.Second + restfulness*refreshFirst, refreshFirst},
		"another one, that is needed": {pause, false, true, (*Client).miss, time.Second + refreshFirst/2, time.Second + refreshFirst, refreshFirst},
		"one is lost, and again":      {refreshFirst, false, false, (*Client).miss, restfulness * refreshFirst / 2, restfulness * refreshFirst, refreshFirst},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, begin := &Client{lost: make(chan struct{}, 1), needed: make(chan struct{}, 1), refreshes: t.Context()}, time.Now()
			if c.meanwhile != nil {
				time.AfterFunc(time.Second, func() { c.meanwhile(client) })
			}
			rested, goesOn := client.rest(c.pause, func() bool { return c.needed || time.Since(begin) > 0 && c.then })
			if took := time.Since(begin); !goesOn || took < c.least || took > c.most {
				t.Errorf("%s: it goes on (%v) after %v, want %v to %v", name, goesOn, took, c.least, c.most)
			}
			if want := min(c.pause, c.last); rested != want {
				t.Errorf("%s: the next pauses are as if this had been %v, want %v", name, rested, want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		var end context.CancelFunc
		client := &Client{}
		client.refreshes, end = context.WithCancel(t.Context())
		end()
		for _, needed := range []bool{false, true} {
			if _, goesOn := client.rest(pause, func() bool { return needed }); goesOn {
				t.Error("a client that is closed goes on")
			}
		}
	})
}
