package transport_test

import (
	"flag"
	"syscall"
	"testing"
	"time"

	"atoll/internal/transport"
	"atoll/quorum"
)

var returning = flag.Int("clients", 300, "number of clients that the benchmark Return has, each with a socket of its own")

// silent is a handler that does nothing.
type silent struct{}

func (silent) Up(*transport.Session)                             {}
func (silent) Messages(*transport.Session, []transport.Incoming) {}
func (silent) Down(*transport.Session, error)                    {}

// BenchmarkReturn is how long a node that was restarted takes to have all of its
// idle clients again, who were told of its end at the same moment; and what that
// costs both sides: processor time and attempts, those that were turned away and
// those that were begun and given up apart. All are in this one process.
func BenchmarkReturn(b *testing.B) {
	c := newCluster(b)
	node := c.node()
	start := func(address string) *transport.Transport {
		t, err := transport.New(transport.Config{Credentials: node, Listen: []string{address}, Handler: silent{}})
		if err != nil {
			b.Fatal(err)
		}
		return t
	}
	server := start("127.0.0.1:0")
	address := server.Addrs()[0].String()
	credentials := c.client()
	clients := make([]*transport.Transport, *returning)
	for i := range clients {
		clients[i] = open(b, transport.Config{
			Credentials: credentials, Handler: silent{},
			Addresses: func(quorum.NodeID) []string { return []string{address} },
		})
		clients[i].Connect(dial(b, clients[i], address).Node())
	}
	for b.Loop() {
		b.StopTimer()
		var before transport.Stats
		for _, t := range clients {
			addDials(&before, t)
		}
		closeIt(b, server)
		b.StartTimer()
		cpu := processorTime()
		server = start(address)
		until(b, "all clients are back", func() bool { return server.Stats().Sessions == len(clients) })
		var after transport.Stats
		for _, t := range clients {
			addDials(&after, t)
		}
		n := float64(len(clients))
		b.ReportMetric(float64((processorTime()-cpu).Microseconds())/n, "cpu-µs/client")
		b.ReportMetric(float64(after.Dial.Timeout-before.Dial.Timeout)/n, "timeouts/client")
		b.ReportMetric(float64(after.Dial.Refused-before.Dial.Refused)/n, "refused/client")
		b.ReportMetric(float64(server.Stats().Handshakes)/n, "abandoned/client")
	}
	closeIt(b, server)
}

// addDials adds the attempts of a transport that failed.
func addDials(sum *transport.Stats, t *transport.Transport) {
	s := t.Stats()
	sum.Dial.Timeout += s.Dial.Timeout
	sum.Dial.Refused += s.Dial.Refused
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // of itself it always works
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
