package live_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"atoll/env"
	"atoll/internal/live"
	"atoll/quorum"
)

// echoes is a network of nodes that send back what they get, each on a
// goroutine of its own which takes everything that has arrived, as a
// transport's reader does.
type echoes struct {
	runtime *live.Runtime
	nodes   map[quorum.NodeID]*echo
	wg      sync.WaitGroup
}

type echo struct {
	name quorum.NodeID
	wake chan struct{}
	mu   struct {
		sync.Mutex
		waiting []request
		closed  bool
	}
}

type request struct {
	conversation uint64
	m            env.Message
}

func newEchoes(ids []quorum.NodeID) *echoes {
	n := &echoes{nodes: make(map[quorum.NodeID]*echo)}
	n.runtime = live.New(live.Config{Network: n})
	for _, id := range ids {
		e := &echo{name: id, wake: make(chan struct{}, 1)}
		n.nodes[id] = e
		n.wg.Go(func() { e.run(n.runtime) })
	}
	return n
}

func (n *echoes) Send(to quorum.NodeID, conversation uint64, m env.Message) error {
	e := n.nodes[to]
	if e == nil {
		return errors.New("no such node")
	}
	e.mu.Lock()
	e.mu.waiting = append(e.mu.waiting, request{conversation, m})
	e.mu.Unlock()
	e.signal()
	return nil
}

func (n *echoes) Answer(env.Address, env.Message) error { return nil }

func (n *echoes) close() {
	n.runtime.Stop()
	for _, e := range n.nodes {
		e.mu.Lock()
		e.mu.closed = true
		e.mu.Unlock()
		e.signal()
	}
	n.wg.Wait()
}

func (e *echo) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *echo) run(r *live.Runtime) {
	var batch []request
	for range e.wake {
		e.mu.Lock()
		batch, e.mu.waiting = e.mu.waiting, batch[:0]
		closed := e.mu.closed
		e.mu.Unlock()
		for _, q := range batch {
			r.Deliver(e.name, q.conversation, q.m)
		}
		if closed {
			return
		}
	}
}

// BenchmarkAsk is a conversation with three nodes that ends when two have
// answered, in a scope of its own.
func BenchmarkAsk(b *testing.B) {
	three := nodes("a", "b", "c")
	for _, callers := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			n := newEchoes(three)
			defer n.close()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for caller := range callers {
				wg.Go(func() {
					req := &env.Refused{}
					for i := caller; i < b.N; i += callers {
						heard := 0
						err := n.runtime.Scope(ctx).Ask(three, req, func(env.Conversation, quorum.NodeID, env.Message) bool {
							heard++
							return heard == 2
						})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// BenchmarkDeliver is what an answer costs that comes too late.
func BenchmarkDeliverLate(b *testing.B) {
	n := newEchoes(nodes("a"))
	defer n.close()
	n.runtime.Scope(b.Context()).Ask(nodes("a"), &env.Refused{}, atOnce)
	late := &env.Refused{}
	b.ReportAllocs()
	for b.Loop() {
		n.runtime.Deliver("a", 1<<24|1, late)
	}
}
