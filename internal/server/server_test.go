package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"atoll/abd"
	"atoll/client"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/transport"
	"atoll/replica"
	"atoll/tags"
)

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{MaxValue: 1000})
	n.start(n.config())
	p := n.dial(nil)
	tag := tags.Tag{Seq: 1}
	put := func(key string, r abd.Record) env.Message { return &abd.Put{Key: abd.Key(key), Record: r} }
	for _, test := range []struct {
		message env.Message
		reason  env.Reason
		text    string
	}{
		{put("k", abd.Record{Tag: tag, Value: make([]byte, 1001)}), env.ReasonTooLarge, "1001 bytes"},
		{put("k", abd.Record{Tag: tag, Value: make([]byte, abd.LargestMaxValue)}), env.ReasonTooLarge, "8388608 bytes"},
		{put("", abd.Record{Tag: tag}), env.ReasonBadRequest, "key has 0 bytes"},
		{put("k", abd.Record{}), env.ReasonBadRequest, "needs a tag"},
		{put("k", abd.Record{Tag: tag, Deleted: true, Value: []byte("v")}), env.ReasonBadRequest, "tombstone"},
		{&abd.Get{}, env.ReasonBadRequest, "key has 0 bytes"},
		{&abd.List{Limit: 0}, env.ReasonBadRequest, "1 to 1000 keys"},
		{&abd.List{Limit: abd.MaxPage + 1}, env.ReasonBadRequest, "1 to 1000 keys"},
	} {
		refused, ok := p.ask(test.message).(*env.Refused)
		if !ok || refused.Reason != test.reason || !strings.Contains(refused.Text, test.text) {
			t.Errorf("%T: %v, want %v: ...%s...", test.message, refused, test.reason, test.text)
		}
	}
	// Answers, which nobody has asked for, are answered by nothing: to refuse a
	// refusal would never end.
	for _, answer := range []env.Message{&abd.GetAck{}, &abd.PutAck{}, &abd.Page{}, &replica.Status{Node: "n"}, &env.Refused{}} {
		p.send(answer)
	}
	// None of that was stored, and the session is as good as before.
	if ack, ok := p.ask(&abd.Get{Key: "k"}).(*abd.GetAck); !ok || !ack.Record.Tag.IsZero() {
		t.Errorf("k holds %+v", ack)
	}
	if _, ok := p.ask(put("k", abd.Record{Tag: tag, Value: make([]byte, 1000)})).(*abd.PutAck); !ok {
		t.Error("a good put wasn't acked")
	}
	p.nothing()
}

func TestDescribeAndStatus(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{MaxValue: 1000})
	cfg := n.config()
	first := n.start(cfg)
	p := n.dial(nil)
	p.ask(putOf("k", "v"))
	d, ok := p.ask(&replica.Describe{}).(*replica.Description)
	if !ok || d.Node != cfg.Folder.ID || d.Cluster != cfg.Folder.Cluster.Cluster || d.MaxValue != 1000 ||
		len(d.Members) != 1 || d.Members[0].Name != "a" || d.Members[0].Addresses[0] != n.address {
		t.Errorf("it describes %+v", d)
	}
	s, ok := p.ask(&replica.StatusQuery{}).(*replica.Status)
	if !ok || s.Version != "test" || s.Process == 0 || s.Uptime <= 0 || s.Usage.Keys != 1 || s.Appended != s.Durable || s.Durable == 0 {
		t.Errorf("its status is %+v", s)
	}

	// What was durable is so from the start.
	n.stop(first)
	n.start(n.config())
	p = n.dial(nil)
	again, ok := p.ask(&replica.StatusQuery{}).(*replica.Status)
	if !ok || again.Usage.Keys != 1 || again.Appended != s.Appended+1 || again.Durable != s.Durable+1 {
		t.Errorf("after a restart, which counts itself, its status is %+v, it was %+v", again, s)
	}
}

// TestWhoDoesNotReadStopsNobodyElse has a peer ask for far more large values
// than may wait for it, and read none of them for a while. What it asked stays
// a request: the node makes no more answers than it may keep. Others are served
// meanwhile, and so is the peer itself with what is small, and it gets
// everything once it reads.
func TestWhoDoesNotReadStopsNobodyElse(t *testing.T) {
	t.Parallel()
	const gets = 100
	n := newNode(t, identity.Spec{})
	cfg := n.config()
	cfg.Metrics = "127.0.0.1:0"
	s := n.start(cfg)
	c := n.client()
	if _, err := c.Put(t.Context(), "large", bytes.Repeat([]byte("v"), abd.DefaultMaxValue)); err != nil {
		t.Fatal(err)
	}
	hold := make(chan struct{})
	read := sync.OnceFunc(func() { close(hold) })
	defer read()
	deaf := n.dial(hold)
	asked := make(map[uint64]bool) // conversations
	for range gets {
		asked[deaf.send(&abd.Get{Key: "large"})] = true
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const fits = transport.DefaultMaxBulkClient / abd.DefaultMaxValue
	for i := 0; metric(t, s, "atoll_inbox_messages") < gets-2*fits; i++ {
		key := strconv.Itoa(i)
		if _, err := c.Put(ctx, key, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		key := strconv.Itoa(i)
		_, err := c.Put(ctx, key, []byte(key))
		v, gerr := c.Get(ctx, key)
		if err != nil || gerr != nil || string(v.Bytes) != key {
			t.Fatalf("%q: put %v, get %q, %v", key, err, v.Bytes, gerr)
		}
	}
	if ack, ok := deaf.ask(&abd.Get{Key: "0"}).(*abd.GetAck); !ok || string(ack.Record.Value) != "0" {
		t.Errorf("asked for a small value: %T", ack)
	}
	if waiting := metric(t, s, "atoll_inbox_messages"); waiting < gets-2*fits {
		t.Errorf("only %v of %d requests still wait, and nothing was read", waiting, gets)
	}
	read()
	for range gets {
		in := receive(t, deaf.in)
		if ack, ok := in.Message.(*abd.GetAck); !ok || len(ack.Record.Value) != abd.DefaultMaxValue || !asked[in.Conversation] {
			t.Fatalf("got %T for conversation %d", in.Message, in.Conversation)
		}
		delete(asked, in.Conversation)
	}
	if dropped := metric(t, s, "atoll_answers_dropped_total"); dropped != 0 {
		t.Errorf("%v answers were dropped", dropped)
	}
}

// TestCloseUnderLoadLosesNothing closes the server while many write, and looks
// for every acked write after it was started again.
func TestCloseUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	const writers, rounds = 16, 3
	n := newNode(t, identity.Spec{})
	acked := make([]int, writers)
	begun := make([]int, writers)
	for range rounds {
		s := n.start(n.config())
		c := n.client()
		ctx, cancel := context.WithCancel(t.Context())
		var total atomic.Int64
		enough := make(chan struct{})
		var work sync.WaitGroup
		for w := range writers {
			work.Go(func() {
				for ctx.Err() == nil {
					begun[w]++
					if _, err := c.Put(ctx, fmt.Sprint(w), []byte(strconv.Itoa(begun[w]))); err != nil {
						if !errors.Is(err, context.Canceled) {
							t.Error(err)
						}
						return
					}
					acked[w] = begun[w]
					if total.Add(1) == 200 {
						close(enough)
					}
				}
			})
		}
		receive(t, enough)
		n.stop(s)
		cancel()
		work.Wait()
		checkWriters(t, n, acked, begun)
	}
}

// checkWriters starts the node and checks what it holds.
func checkWriters(t *testing.T, n node, acked, begun []int) {
	t.Helper()
	s := n.start(n.config())
	defer n.stop(s)
	c := n.client()
	for w := range acked {
		v, err := c.Get(t.Context(), fmt.Sprint(w))
		if errors.Is(err, client.ErrNotFound) && acked[w] == 0 {
			continue
		}
		got, cerr := strconv.Atoi(string(v.Bytes))
		if err != nil || cerr != nil || got < acked[w] || got > begun[w] {
			t.Errorf("writer %d: %q, %v; want a number from %d (acked) to %d (begun)", w, v.Bytes, err, acked[w], begun[w])
		}
	}
}
