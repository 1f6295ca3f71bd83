package transport_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"atoll/internal/transport"
)

// BenchmarkCall measures requests and answers of 100 bytes over one session.
func BenchmarkCall(b *testing.B) {
	for _, callers := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { benchmarkCall(b, callers) })
	}
}

func benchmarkCall(b *testing.B, callers int) {
	c := newCluster(b)
	server, address, _ := server(b, c)
	wake := make([]chan struct{}, callers)
	for i := range wake {
		wake[i] = make(chan struct{}, 1)
	}
	client := open(b, transport.Config{Credentials: c.client(), Handler: newHandler(b,
		func(_ *transport.Session, in []transport.Incoming) {
			for _, m := range in {
				wake[m.Conversation] <- struct{}{}
			}
		})})
	s := dial(b, client, address)
	m := put(100)
	before := client.Stats()
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for i, answered := range wake {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := s.Queue(uint64(i), m); err != nil {
					b.Error(err)
					return
				}
				s.Flush()
				<-answered
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	after := client.Stats()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64(after.FramesOut-before.FramesOut)/float64(after.Writes-before.Writes), "requests/write")
	b.ReportMetric(float64(server.Stats().FramesOut)/float64(server.Stats().Writes), "answers/write")
}

// BenchmarkQueue measures what a sender pays for a message, in batches of 100.
func BenchmarkQueue(b *testing.B) {
	c := newCluster(b)
	answered := make(chan struct{}, 1)
	_, address, _ := server(b, c)
	client := open(b, transport.Config{Credentials: c.client(), Handler: newHandler(b,
		func(_ *transport.Session, in []transport.Incoming) {
			if in[len(in)-1].Conversation == 1 {
				answered <- struct{}{}
			}
		})})
	s := dial(b, client, address)
	m := put(100)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		last := uint64(0)
		if n%100 == 99 {
			last = 1
		}
		if err := s.Queue(last, m); err != nil {
			b.Fatal(err)
		}
		if last == 1 {
			b.StopTimer()
			s.Flush()
			<-answered
			b.StartTimer()
		}
	}
}
