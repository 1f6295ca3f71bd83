package client_test

import (
	"fmt"
	"testing"

	"atoll/client"
	"atoll/internal/identity"
)

// TestCloseLeavesWhatWasTold: of a value that a client has written and closed, the
// members know that its write has ended. Here it shows: when a member is dead, no
// value can be written back any more.
func TestCloseLeavesWhatWasTold(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 3, identity.Spec{Quorum: "get=1,put=3"})
	const keys = 10
	for i := range keys {
		c, err := client.Open(t.Context(), h.clientConfig())
		if err != nil {
			t.Fatal(err)
		}
		put(t, c, fmt.Sprint(i), "value")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	h.down("c")
	c := h.open()
	for i := range keys {
		if v, err := c.Get(t.Context(), fmt.Sprint(i)); err != nil || string(v.Bytes) != "value" {
			t.Fatalf("get %d: %q, %v", i, v.Bytes, err)
		}
	}
}
