package client_test

import (
	"context"
	"runtime"
	"testing"

	"atoll/internal/identity"
)

// TestWhatWaitsForALostMember: an operation that can't go on without a member that is lost,
// and nothing else, makes the client look for it soon.
func TestWhatWaitsForALostMember(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 1, identity.Spec{})
	c := h.open()
	if _, err := c.Put(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	c.StopRefreshing() // it would take what is looked for here
	c.Needed()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h.down("a")
	for c.Complete() && ctx.Err() == nil {
		runtime.Gosched()
	}
	if c.Waits() || c.Needed() {
		t.Error("a client that does nothing waits for a member that is lost")
	}
	failed := make(chan error, 1)
	go func() {
		_, err := c.Get(ctx, "k")
		failed <- err
	}()
	for !c.Waits() && ctx.Err() == nil {
		runtime.Gosched()
	}
	if !c.Waits() {
		t.Error("nothing waits, while a get does")
	}
	cancel()
	if err := <-failed; err == nil {
		t.Error("a get without any member has worked")
	}
	if c.Waits() {
		t.Error("something waits when the get has ended")
	}
	if !c.Needed() {
		t.Error("the get could be sent to nobody, and nobody was told")
	}
}
