package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"atoll/client"
	"atoll/tags"
)

// memory is registers in memory. Each operation takes a millisecond; before
// it, hook, if set, may fail it or hold it up.
type memory struct {
	hook func(n int) error // n counts the operations from 1

	mu struct {
		sync.Mutex
		values map[string][]byte
		n      int
	}
}

func (m *memory) enter() error {
	m.mu.Lock()
	m.mu.n++
	n := m.mu.n
	m.mu.Unlock()
	pause(context.Background(), time.Millisecond) // of the bubble's time
	if m.hook != nil {
		return m.hook(n)
	}
	return nil
}

func (m *memory) Put(_ context.Context, key string, value []byte) (tags.Tag, error) {
	if err := m.enter(); err != nil {
		return tags.Tag{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.values == nil {
		m.mu.values = make(map[string][]byte)
	}
	m.mu.values[key] = value
	return tags.Tag{}, nil
}

func (m *memory) Get(_ context.Context, key string) (client.Value, error) {
	if err := m.enter(); err != nil {
		return client.Value{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.mu.values[key]
	if !ok {
		return client.Value{}, client.ErrNotFound
	}
	return client.Value{Bytes: v}, nil
}

func testWorkload(op string) workload {
	return workload{op: op, clients: 4, valueSize: 13, keys: 50, duration: time.Second, stderr: io.Discard}
}

func TestWorkload(t *testing.T) {
	for _, op := range []string{"put", "get", "mixed"} {
		synctest.Test(t, func(t *testing.T) {
			m, w := new(memory), testWorkload(op)
			if err := w.fill(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if len(m.mu.values) != w.keys || len(m.mu.values["k49"]) != w.valueSize || m.mu.n != w.keys {
				t.Errorf("%s: fill wrote %d keys with %d writes, k49 is %d bytes", op, len(m.mu.values), m.mu.n, len(m.mu.values["k49"]))
			}
			r := w.run(t.Context(), m).object()
			if r.Op != op || r.Operations != 4*1000 || r.Errors != 0 || r.Unknown != 0 || r.Seconds != 1 || r.OpsPerS != 4000 {
				t.Errorf("%s: %+v, want 4,000 operations in a second", op, r)
			}
			if r.P50 < 0.99 || r.P50 > 1.01 || r.P999 < 0.99 || r.P999 > 1.01 || r.MaxStall != 1 {
				t.Errorf("%s: %+v, want each to take a millisecond", op, r)
			}
		})
	}
}

func TestWorkloadCountsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := testWorkload("put")
		w.clients = 1
		r := w.run(t.Context(), &memory{hook: func(n int) error {
			switch {
			case n%10 == 0:
				return &client.NoQuorumError{Cause: context.DeadlineExceeded}
			case n%10 == 5:
				return &client.UnknownError{Cause: context.DeadlineExceeded}
			}
			return nil
		}})
		// Ten operations take 10 ms, and the two that fail cost a pause of
		// 10 ms each: 33 rounds of ten, and 10 ms more.
		if o := r.object(); o.Operations != 33*8+4+4 && o.Operations != 33*8+4 || o.Errors != 33 || o.Unknown < 33 || o.Unknown > 34 {
			t.Errorf("%+v, want 33 errors and 33 or 34 unknown", o)
		}
		if _, ok := errors.AsType[*client.UnknownError](r.first); !ok {
			t.Errorf("the first failure is %v, want that of operation 5", r.first)
		}
	})
}

func TestWorkloadStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := testWorkload("put")
		begin := time.Now()
		r := w.run(t.Context(), &memory{hook: func(int) error {
			// Nothing is done from 0.4 s to 0.7 s.
			if at := time.Since(begin); at > 400*time.Millisecond && at < 700*time.Millisecond {
				pause(context.Background(), 700*time.Millisecond-at)
			}
			return nil
		}})
		if o := r.object(); o.MaxStall != 300 || o.P50 > 1.01 {
			t.Errorf("%+v, want a stall of 300 ms", o)
		}
	})
}

func TestWorkloadInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond+time.Microsecond)
		defer cancel()
		w := testWorkload("put")
		r := w.run(ctx, &memory{hook: func(int) error { return ctx.Err() }})
		if o := r.object(); o.Operations != 400 || o.Errors != 0 || o.Unknown != 0 {
			t.Errorf("%+v, want 400 operations, and those in flight not counted", o)
		}
	})
}

func TestFillFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, want := testWorkload("get"), errors.New("no quorum")
		err := w.fill(t.Context(), &memory{hook: func(n int) error {
			if n == 20 {
				return want
			}
			return nil
		}})
		if !errors.Is(err, want) {
			t.Errorf("fill = %v, want %v", err, want)
		}
	})
}

// A write that has failed names the members that it still needed. All that were in
// flight together name all that are gone.
func TestFillNamesAllThatDoNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := testWorkload("get")
		gone := func(name string) client.MemberError { return client.MemberError{Name: name, Text: "no answer"} }
		err := w.fill(t.Context(), &memory{hook: func(n int) error {
			switch n {
			case 20:
				return &client.UnknownError{Cause: context.DeadlineExceeded, Members: []client.MemberError{gone("b"), gone("c")}}
			case 21:
				return &client.NoQuorumError{Cause: context.DeadlineExceeded, Members: []client.MemberError{gone("a"), gone("c")}}
			}
			return nil
		}})
		unknown, ok := errors.AsType[*client.UnknownError](err)
		if !ok {
			unknown = new(client.UnknownError)
			if n, ok := errors.AsType[*client.NoQuorumError](err); ok { // it came first
				unknown.Members = n.Members
			}
		}
		names := ""
		for _, m := range unknown.Members {
			names += m.Name
		}
		if names != "abc" {
			t.Errorf("fill = %v, want one that names a, b and c", err)
		}
	})
}

func TestBenchPrint(t *testing.T) {
	r := &result{workload: testWorkload("get"), took: 2 * time.Second, errors: 3, unknown: 4, stall: 1500 * time.Microsecond}
	for range 1000 {
		r.latencies.add(100) // has a bucket of its own
	}
	var out strings.Builder
	if err := r.print(&out, "jsonl"); err != nil {
		t.Fatal(err)
	}
	const want = `{"op":"get","clients":4,"value_size":13,"seconds":2,"operations":1000,"errors":3,"unknown":4,` +
		`"ops_per_s":500,"p50_ms":0,"p99_ms":0,"p999_ms":0,"max_stall_ms":1.5}` + "\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
	out.Reset()
	if err := r.print(&out, "table"); err != nil || !strings.HasSuffix(out.String(), `
measured       2.000 s
operations     1000
errors         3
unknown        4
operations/s   500
p50            0.000 ms
p99            0.000 ms
p99.9          0.000 ms
longest stall  1.500 ms
`) {
		t.Errorf("%v:\n%s", err, out.String())
	}
	out.Reset()
	r.latencies = histogram{}
	if err := r.print(&out, "table"); err != nil || !strings.HasSuffix(out.String(), "operations/s   0\np50            -\np99            -\np99.9          -\nlongest stall  -\n") {
		t.Errorf("of nothing: %v:\n%s", err, out.String())
	}
}
