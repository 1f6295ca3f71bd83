package client

import (
	"context"
	"testing"

	"golang.org/x/sync/semaphore"

	"atoll/internal/transport"
)

// Large values are sent a few at a time, in their order; small ones at once.
func TestLargeValuesTakeTurns(t *testing.T) {
	c := &Client{large: semaphore.NewWeighted(maxLargeBytes)}
	first := c.takeTurn(t.Context(), 2*maxLargeBytes)
	c.takeTurn(t.Context(), transport.BulkAbove)() // doesn't wait
	ended, end := context.WithCancel(t.Context())
	end()
	c.takeTurn(ended, maxLargeBytes)() // gives back nothing, since it got nothing
	if c.large.TryAcquire(1) {
		t.Fatal("a second one has its turn beside the first")
	}
	got := make(chan func())
	go func() { got <- c.takeTurn(t.Context(), maxLargeBytes/2) }()
	first()
	second := <-got
	if !c.large.TryAcquire(maxLargeBytes / 2) {
		t.Error("the first didn't give back all of its turn")
	}
	second()
}
