package porttest

import (
	"net"
	"testing"
)

// TestReserve: a port that is held isn't given to another process, and free for the
// server that it is meant for; released, it is anybody's.
func TestReserve(t *testing.T) {
	addresses, release, err := Reserve(3)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, address := range addresses {
		seen[address] = true
		if l, err := hold(address); err == nil {
			l.Close()
			t.Errorf("%s is held twice", address)
		}
		packets, err := net.ListenPacket("udp4", address)
		if err != nil {
			t.Fatal(err)
		}
		packets.Close()
	}
	if len(seen) != 3 {
		t.Errorf("%v aren't three", addresses)
	}
	release()
	l, err := hold(addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
