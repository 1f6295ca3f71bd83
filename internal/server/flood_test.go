package server_test

import (
	"runtime"
	runtimemetrics "runtime/metrics"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/store"
	"atoll/internal/transport"
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
		// As long as it is taken, and no longer than a while: what is over the
		// limits waits on the sender's side.
		if err := s.SetWriteDeadline(time.Now().Add(150 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		sent := 0
		for {
			k, err := s.Write(batch)
			if sent += k; err != nil {
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
