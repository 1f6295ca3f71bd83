package transport

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"testing"

	"github.com/quic-go/quic-go"
)

// arrivals lets connections into a door, and ends them with the test.
type arrivals struct {
	t    *testing.T
	door door
}

func newArrivals(t *testing.T) *arrivals {
	a := &arrivals{t: t}
	a.door.limit, a.door.log, a.door.counters = DefaultMaxIncoming, slog.New(slog.DiscardHandler), new(counters)
	a.door.budget = newBudget(DefaultMemory, a.door.log, a.door.counters)
	return a
}

// come lets n connections of a host in, and returns them.
func (a *arrivals) come(host string, n int) (guests []*guest, leave context.CancelFunc) {
	a.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	for i := range n {
		from := net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(host), uint16(i)))
		in, err := a.door.enter(ctx, &quic.ClientInfo{RemoteAddr: from})
		if err != nil {
			a.t.Fatalf("connection %d of %s: %v", i, host, err)
		}
		guests = append(guests, in.Value(guestKey{}).(*guest))
	}
	return guests, cancel
}

// refused reports whether one more connection of a host is.
func (a *arrivals) refused(host string) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := a.door.enter(ctx, &quic.ClientInfo{RemoteAddr: &net.UDPAddr{IP: net.ParseIP(host)}})
	return errors.Is(err, errCrowded)
}

// TestOneHostTakesItsShare: a host that finishes no handshake leaves places to
// others, and what it has finished doesn't count.
func TestOneHostTakesItsShare(t *testing.T) {
	a := newArrivals(t)
	first, leave := a.come("192.0.2.1", maxHandshakesPerHost)
	if !a.refused("192.0.2.1") {
		t.Error("a host has more than its share")
	}
	_, leaveToo := a.come("192.0.2.2", maxHandshakes-maxHandshakesPerHost)
	if !a.refused("192.0.2.3") {
		t.Error("there are more unfinished handshakes than may be")
	}
	leaveToo()
	for _, g := range first[:10] {
		if !g.prove() || g.prove() {
			t.Error("news, or no news")
		}
	}
	_, leaveThree := a.come("192.0.2.1", 10)
	if !a.refused("192.0.2.1") {
		t.Error("a host has more than its share")
	}
	leaveThree()
	leave()
	a.door.departure.Wait()
	if all, _ := a.door.budget.used(); all != 0 {
		t.Errorf("all have left, and %d bytes are counted", all)
	}
	if n := len(a.door.mu.hosts); n != 0 || a.door.unproven.Load() != 0 || a.door.inside.Load() != 0 {
		t.Errorf("all have left, and %d hosts, %d unfinished, %d in all are counted", n, a.door.unproven.Load(), a.door.inside.Load())
	}
}

// TestHostOf: one customer of IPv6 is one host.
func TestHostOf(t *testing.T) {
	for _, test := range []struct{ one, other string }{
		{"2001:db8::1", "2001:db8::ffff:1"},
		{"::ffff:192.0.2.1", "192.0.2.1"},
	} {
		one, other := hostOf(&net.UDPAddr{IP: net.ParseIP(test.one)}), hostOf(&net.UDPAddr{IP: net.ParseIP(test.other)})
		if one != other {
			t.Errorf("%s and %s are %v and %v", test.one, test.other, one, other)
		}
	}
	one, other := hostOf(&net.UDPAddr{IP: net.ParseIP("2001:db8::1")}), hostOf(&net.UDPAddr{IP: net.ParseIP("2001:db8:0:1::1")})
	if one == other {
		t.Error("two networks are one host")
	}
}
