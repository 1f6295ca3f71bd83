package udpproxy_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"atoll/internal/udpproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come. It is no measure.
const patience = time.Minute

// party is one end: a UDP socket that a test reads and writes.
type party struct {
	t    testing.TB
	conn *net.UDPConn
}

func newParty(t testing.TB) party {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return party{t, conn}
}

func (p party) address() string { return p.conn.LocalAddr().String() }

func (p party) send(to net.Addr, datagram []byte) {
	p.t.Helper()
	if _, err := p.conn.WriteTo(datagram, to); err != nil {
		p.t.Fatal(err)
	}
}

func (p party) receive() ([]byte, net.Addr) {
	p.t.Helper()
	buffer := make([]byte, udpproxy.MaxDatagram)
	if err := p.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		p.t.Fatal(err)
	}
	n, from, err := p.conn.ReadFrom(buffer)
	if err != nil {
		p.t.Fatal(err)
	}
	return buffer[:n], from
}

// bed is a server and a proxy in front of it.
type bed struct {
	t      testing.TB
	server party
	proxy  *udpproxy.Proxy
}

func newBed(t testing.TB, seed uint64) bed {
	t.Helper()
	b := bed{t: t, server: newParty(t)}
	var err error
	if b.proxy, err = udpproxy.New(udpproxy.Config{To: b.server.address(), Seed: seed}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b bed) front() net.Addr { return net.UDPAddrFromAddrPort(b.proxy.Addr()) }

// numbers sends n datagrams with f in force, then one without faults, and
// returns what the server got before that, in order.
func (b bed) numbers(client party, n int, f udpproxy.Faults) []string {
	b.t.Helper()
	b.proxy.Set(f)
	for i := range n {
		before := b.proxy.Stats(udpproxy.ToServer)
		client.send(b.front(), fmt.Appendf(nil, "number %4d", i))
		b.until("it was decided", func() bool { return decided(b.proxy.Stats(udpproxy.ToServer)) > decided(before) })
	}
	b.proxy.Set(udpproxy.Faults{})
	client.send(b.front(), []byte("end"))
	var got []string
	for {
		datagram, _ := b.server.receive()
		if string(datagram) == "end" {
			return got
		}
		got = append(got, string(datagram))
	}
}

func decided(s udpproxy.Stats) uint64 { return s.Forwarded + s.Lost + s.Overflow }

// until waits for what nothing tells.
func (b bed) until(what string, ok func() bool) {
	b.t.Helper()
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			b.t.Fatalf("in vain: %s", what)
		}
	}
}

func TestForwardsBothWays(t *testing.T) {
	t.Parallel()
	b := newBed(t, 1)
	clients := []party{newParty(t), newParty(t), newParty(t)}
	ports := make(map[string]bool)
	for i, c := range clients {
		c.send(b.front(), fmt.Appendf(nil, "from %d", i))
		datagram, from := b.server.receive()
		if want := fmt.Sprintf("from %d", i); string(datagram) != want {
			t.Errorf("the server got %q, want %q", datagram, want)
		}
		ports[from.String()] = true
		b.server.send(from, fmt.Appendf(nil, "to %d", i))
	}
	for i, c := range clients {
		datagram, from := c.receive()
		if want := fmt.Sprintf("to %d", i); string(datagram) != want || from.String() != b.proxy.Addr().String() {
			t.Errorf("client %d got %q from %v, want %q from the proxy", i, datagram, from, want)
		}
	}
	if len(ports) != len(clients) || b.proxy.Flows() != len(clients) {
		t.Errorf("%d clients, %d ports, %d flows", len(clients), len(ports), b.proxy.Flows())
	}
	largest := bytes.Repeat([]byte{7}, udpproxy.MaxDatagram)
	clients[0].send(b.front(), largest)
	if datagram, _ := b.server.receive(); !bytes.Equal(datagram, largest) {
		t.Errorf("of %d bytes %d came", len(largest), len(datagram))
	}
}

// TestSeed: the same seed loses the same datagrams, and another one others,
// whatever else went wrong with them before.
func TestSeed(t *testing.T) {
	t.Parallel()
	const n = 200
	run := func(seed uint64, first udpproxy.Faults) []string {
		b := newBed(t, seed)
		client := newParty(t)
		b.numbers(client, n, first)
		return b.numbers(client, n, udpproxy.Faults{Loss: 0.3})
	}
	one := run(1, udpproxy.Faults{})
	if len(one) < n/2 || len(one) > n*9/10 {
		t.Errorf("of %d datagrams %d came, about 70 %% should", n, len(one))
	}
	if again := run(1, udpproxy.Faults{Loss: 0.5, Corrupt: 0.1, Truncate: 0.1}); !slices.Equal(one, again) {
		t.Errorf("the same seed:\n%q\n%q", one, again)
	}
	if other := run(2, udpproxy.Faults{}); slices.Equal(one, other) {
		t.Error("another seed lost the same")
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	const n = 50
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("number %4d", i)
	}
	for _, test := range []struct {
		name   string
		faults udpproxy.Faults
		ok     func(got []string) bool
	}{
		{"none", udpproxy.Faults{}, func(got []string) bool { return slices.Equal(got, all) }},
		{"black hole", udpproxy.Faults{Blackhole: true}, func(got []string) bool { return len(got) == 0 }},
		{"all lost", udpproxy.Faults{Loss: 1}, func(got []string) bool { return len(got) == 0 }},
		{"too large", udpproxy.Faults{MTU: len(all[0]) - 1}, func(got []string) bool { return len(got) == 0 }},
		{"large enough", udpproxy.Faults{MTU: len(all[0])}, func(got []string) bool { return slices.Equal(got, all) }},
		{"twice", udpproxy.Faults{Duplicate: 1}, func(got []string) bool {
			return len(got) == 2*n && slices.Equal(slices.Compact(got), all)
		}},
		{"truncated", udpproxy.Faults{Truncate: 1}, func(got []string) bool {
			return len(got) == n && !slices.ContainsFunc(got, func(s string) bool { return len(s) >= len(all[0]) })
		}},
		{"corrupt", udpproxy.Faults{Corrupt: 1}, func(got []string) bool {
			for i, s := range got {
				if len(s) != len(all[i]) || s == all[i] {
					return false
				}
			}
			return len(got) == n
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := newBed(t, 3).numbers(newParty(t), n, test.faults); !test.ok(got) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestRebind: the server sees a client under another port, and the client
// notices nothing.
func TestRebind(t *testing.T) {
	t.Parallel()
	b := newBed(t, 5)
	client := newParty(t)
	client.send(b.front(), []byte("before"))
	_, first := b.server.receive()
	b.proxy.Rebind()
	b.server.send(first, []byte("to nobody"))
	client.send(b.front(), []byte("after"))
	datagram, second := b.server.receive()
	if string(datagram) != "after" || first.String() == second.String() {
		t.Errorf("got %q from %v, before from %v", datagram, second, first)
	}
	b.server.send(second, []byte("answer"))
	if got, _ := client.receive(); string(got) != "answer" {
		t.Errorf("the client got %q", got)
	}
}

// TestServerThatIsGone: a closed port is silence, and the server is found
// again when it is back.
func TestServerThatIsGone(t *testing.T) {
	t.Parallel()
	b := newBed(t, 6)
	client := newParty(t)
	client.send(b.front(), []byte("one"))
	b.server.receive()
	address := b.server.conn.LocalAddr().(*net.UDPAddr)
	if err := b.server.conn.Close(); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		client.send(b.front(), []byte("lost"))
	}
	b.until("all were sent to nobody", func() bool { return decided(b.proxy.Stats(udpproxy.ToServer)) == 11 })
	conn, err := net.ListenUDP("udp4", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client.send(b.front(), []byte("two"))
	if got, _ := (party{t, conn}).receive(); string(got) != "two" {
		t.Errorf("the server got %q", got)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, bad := range []udpproxy.Faults{
		{Loss: -0.1}, {Loss: 1.1}, {Truncate: math.NaN()}, {Corrupt: 2}, {Duplicate: -1}, {Reorder: 1.5},
		{Delay: -1}, {Jitter: udpproxy.MaxDelay + 1}, {ReorderBy: -1}, {MTU: -1}, {Rate: -1},
	} {
		if bad.Validate() == nil {
			t.Errorf("%+v is valid", bad)
		}
		if p, err := udpproxy.New(udpproxy.Config{To: "127.0.0.1:9", Faults: bad}); err == nil {
			t.Errorf("%+v: a proxy was made", bad)
			_ = p.Close()
		}
	}
	if err := (udpproxy.Faults{Loss: 1, Delay: udpproxy.MaxDelay}).Validate(); err != nil {
		t.Error(err)
	}
}
