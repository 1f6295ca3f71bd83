package client_test

import (
	"testing"
	"time"

	"atoll/internal/identity"
	"atoll/internal/udpproxy"
)

// TestANodeIsDialedAsLongAsItIsAsked: a node on standby that lives is told from a
// silent one however long it takes to connect, also while the client, which lacks a
// member, looks for it again and again and lets go of nodes that are no members.
func TestANodeIsDialedAsLongAsItIsAsked(t *testing.T) {
	t.Parallel()
	h := startCluster(t, 3, identity.Spec{})
	proxy := h.joinBehind("d")
	proxy.Set(udpproxy.Faults{Delay: 150 * time.Millisecond}) // a connection takes two ways there and back
	h.down("c")
	// A lost packet may cost the time that a status has: then another client asks.
	for tries := 1; ; tries++ {
		status, err := h.open().Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(status.Standby) == 1 && status.Standby[0].Status != nil {
			return
		}
		if tries == 3 {
			t.Fatalf("on standby are %+v, want d, which answers", status.Standby)
		}
	}
}
