// Package porttest gives tests ports of loopback for servers that stop and start
// again: a port whose server is down must not be taken by somebody else meanwhile,
// and several packages are tested at once.
//
// They are none of those that the system gives to whoever asks for any port. And
// as long as a test has one for UDP, it listens on the same one for TCP, which
// keeps other processes that use this package away from it.
package porttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

const (
	// Linux gives ports from 32,768 to those who ask for any, others from 49,152.
	first, last = 10_000, 32_767
	// tries is how many ports in a row may be taken.
	tries = 100
)

// Address returns an address for UDP that is the test's own until it ends.
func Address(t testing.TB) string {
	t.Helper()
	addresses, release, err := Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return addresses[0]
}

// Reserve returns n addresses for UDP that are the caller's own until it calls
// release.
func Reserve(n int) (addresses []string, release func(), err error) {
	var held []net.Listener
	release = func() {
		for _, l := range held {
			l.Close()
		}
	}
	for failed := 0; len(held) < n; {
		address := fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first))
		l, err := hold(address)
		if err == nil {
			addresses, held, failed = append(addresses, address), append(held, l), 0
		} else if failed++; failed == tries {
			release()
			return nil, nil, fmt.Errorf("no port is free: %w", err)
		}
	}
	return addresses, release, nil
}

// hold listens on a port for TCP if it is free for UDP, too.
func hold(address string) (net.Listener, error) {
	l, err := net.Listen("tcp4", address)
	if err != nil {
		return nil, err
	}
	packets, err := net.ListenPacket("udp4", address)
	if err == nil {
		err = packets.Close()
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
