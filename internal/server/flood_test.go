package server_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	runtimemetrics "runtime/metrics"
	"sync"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/store"
	"atoll/internal/transport"
	"atoll/internal/wire"
	"atoll/tags"
)

// inUse is how many bytes of the heap are in use, garbage aside.
func inUse() uint64 {
	runtime.GC()
	sample := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestFloodsCostBoundedMemory: a client sends as much as it can of one thing
// and reads nothing. What that costs stays within the limits for one client
// and its queue, though all of it would be gigabytes, and somebody else is
// served meanwhile. It measures the heap, so it doesn't run beside others.
func TestFloodsCostBoundedMemory(t *testing.T) {
	const value = 1 << 20
	n := newNode(t, identity.Spec{})
	cfg := n.config()
	cfg.Store = store.Config{SegmentBytes: 4 << 20}
	cfg.NodesOnly(func(m env.Message) bool { _, confirm := m.(*abd.Confirm); return confirm })
	n.start(cfg)
	bystander := n.dial(nil)
	large := &abd.Put{Key: "large", Record: abd.Record{Tag: tags.Tag{Seq: 1}, Value: make([]byte, value)}}
	if _, ok := bystander.ask(large).(*abd.PutAck); !ok {
		t.Fatal("the large value isn't stored")
	}
	// Twice: what waits for the client and what waits in its queue, in either
	// of the two lanes.
	const most = 4 * (transport.DefaultMaxPendingClient + transport.DefaultMaxBulkClient)
	for _, flood := range []struct {
		name  string
		frame []byte
	}{
		{"gets of a large value", bystander.frame(&abd.Get{Key: "large"})},
		{"lists", bystander.frame(&abd.List{Limit: abd.MaxPage})},
		{"what isn't allowed", bystander.frame(&abd.Confirm{Key: "k", Tag: tags.Tag{Seq: 1}})},
		{"kinds that nobody knows", rawFrame(0x93, 0xcd, 0x03, 0xe7, 0x07, 0x90)},
		{"empty puts", bystander.frame(&abd.Put{Key: "k", Record: abd.Record{Tag: tags.Tag{Seq: 1}}})},
	} {
		before := inUse()
		s := n.rawDial()
		var batch []byte
		for len(batch) < 64<<10 {
			batch = append(batch, flood.frame...)
		}
		// For a while, and longer on a machine so busy that it isn't a flood yet. What
		// is over the limits waits on the sender's side.
		sent, rest := 0, batch
		for again, began := true, time.Now(); ; {
			if again {
				if err := s.SetWriteDeadline(time.Now().Add(150 * time.Millisecond)); err != nil {
					t.Fatal(err)
				}
			}
			k, err := s.Write(rest)
			sent, rest = sent+k, rest[k:]
			if len(rest) == 0 {
				rest = batch
			}
			again = errors.Is(err, os.ErrDeadlineExceeded) && sent < len(batch) && time.Since(began) < patience
			if err != nil && !again {
				break
			}
		}
		if got, ok := bystander.ask(&abd.Get{Key: "other"}).(*abd.GetAck); !ok || !got.Record.Tag.IsZero() {
			t.Errorf("%s: somebody else got %v", flood.name, got)
		}
		after := inUse()
		t.Logf("%s: %d KiB sent, %d KiB in use more", flood.name, sent>>10, (int64(after)-int64(before))>>10)
		if after > before+most {
			t.Errorf("%s: %d bytes in use after %d had been sent, %d before", flood.name, after, sent, before)
		}
		if sent < len(batch) {
			t.Errorf("%s: %d bytes were sent: that is no flood", flood.name, sent)
		}
		if err := s.conn.CloseWithError(0, ""); err != nil {
			t.Error(err)
		}
	}
}

// TestFloodsFromManyConnectionsStayWithinTheBudget: many connections do at once
// what one does above, and begin frames that they don't end. Together they would
// take ten times the memory that the node has for connections; the heap grows by
// no more than that, and another client and another node are served.
func TestFloodsFromManyConnectionsStayWithinTheBudget(t *testing.T) {
	const (
		value       = 1 << 20
		memory      = 16 << 20
		connections = 16
		// What the flood has in this process at its own ends: what QUIC keeps of
		// what the node sends, and garbage that the collector hasn't found.
		own = 20 << 20
	)
	n := newNode(t, identity.Spec{})
	cfg := n.config()
	cfg.Store = store.Config{SegmentBytes: 4 << 20}
	cfg.Memory, cfg.Metrics = memory, "127.0.0.1:0"
	s := n.start(cfg)
	// Who has put a large value has a large window: it may well be the one who has
	// to go. So it isn't the bystander.
	writer := n.dial(nil)
	if _, ok := writer.ask(&abd.Put{Key: "large", Record: abd.Record{Tag: tags.Tag{Seq: 1}, Value: make([]byte, value)}}).(*abd.PutAck); !ok {
		t.Fatal("the large value isn't stored")
	}
	writer.session.Close(0, "")
	bystander, other := n.dial(nil), n.dialAs(n.issue(identity.RoleNode), nil)
	n.await("the writer is gone", func() bool { return metric(t, s, "atoll_connections") == 2 })
	begun := append(binary.BigEndian.AppendUint32(nil, wire.MaxFrame), make([]byte, 6<<20)...)
	for _, flood := range []struct {
		name  string
		bytes []byte
	}{
		{"frames that don't end", begun},
		{"gets of a large value", bytes.Repeat(bystander.frame(&abd.Get{Key: "large"}), 20)},
		{"puts", bytes.Repeat(bystander.frame(&abd.Put{Key: "k", Record: abd.Record{Tag: tags.Tag{Seq: 1}, Value: make([]byte, 100)}}), 5_000)},
	} {
		before := inUse()
		var streams []stream
		var floods sync.WaitGroup
		for range connections {
			s := n.rawDial()
			streams = append(streams, s)
			if err := s.SetWriteDeadline(time.Now().Add(400 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			floods.Go(func() { _, _ = s.Write(flood.bytes) }) // as much as is taken
		}
		for range 10 {
			for _, p := range []*peer{bystander, other} {
				if _, ok := p.askAgain(&abd.Get{Key: "other"}).(*abd.GetAck); !ok {
					t.Errorf("%s: somebody else isn't served", flood.name)
				}
			}
		}
		floods.Wait()
		after := inUse()
		counted := metric(t, s, "atoll_connection_memory_bytes")
		t.Logf("%s: %d KiB in use more, %.0f KiB are counted, %v connections had to go", flood.name,
			(int64(after)-int64(before))>>10, counted/1024, metric(t, s, "atoll_connections_evicted_total"))
		if after > before+memory+own {
			t.Errorf("%s: %d bytes in use, %d before", flood.name, after, before)
		}
		if counted > memory {
			t.Errorf("%s: %.0f bytes are counted, %d may be", flood.name, counted, memory)
		}
		for _, s := range streams {
			_ = s.conn.CloseWithError(0, "") // some are closed
		}
		n.await("only the two others are left", func() bool { return metric(t, s, "atoll_connections") == 2 })
	}
	if metric(t, s, "atoll_connections_evicted_total")+metric(t, s, "atoll_connection_memory_refused_total") == 0 {
		t.Error("the floods never came to the limit")
	}
}
