package load_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atoll/bench/load"
)

// memory is a client of a store that only counts. Every failEvery'th operation
// fails.
type memory struct {
	mu        sync.Mutex
	keys      []string
	values    map[string]bool
	puts      atomic.Uint64
	gets      atomic.Uint64
	failEvery uint64
}

var errRefused = errors.New("refused")

func (m *memory) Put(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	m.keys = append(m.keys, key)
	m.values[string(value)] = true
	m.mu.Unlock()
	return m.outcome(m.puts.Add(1))
}

func (m *memory) Get(_ context.Context, key string) error {
	m.mu.Lock()
	m.keys = append(m.keys, key)
	m.mu.Unlock()
	return m.outcome(m.gets.Add(1))
}

func (m *memory) outcome(n uint64) error {
	if m.failEvery > 0 && n%m.failEvery == 0 {
		return errRefused
	}
	return nil
}

func newMemory(failEvery uint64) *memory {
	return &memory{values: make(map[string]bool), failEvery: failEvery}
}

func spec(op load.Op, clients int) load.Spec {
	return load.Spec{Op: op, Clients: clients, Keys: []string{"a", "b", "c"}, ValueSize: 20, Duration: 30 * time.Millisecond, Seed: 7}
}

func TestRunCountsEverything(t *testing.T) {
	m := newMemory(10)
	r, err := load.Run(t.Context(), spec(load.Mixed, 4), func(int) load.Client { return m })
	if err != nil {
		t.Fatal(err)
	}
	puts, gets := m.puts.Load(), m.gets.Load()
	if puts == 0 || gets == 0 {
		t.Errorf("%d puts and %d gets of a mixed load", puts, gets)
	}
	if got, want := r.Latencies.Count()+r.Errors, puts+gets; got != want {
		t.Errorf("%d operations done or failed, of %d", got, want)
	}
	if want := puts/10 + gets/10; r.Errors != want {
		t.Errorf("%d errors, want %d", r.Errors, want)
	}
	if r.Errors > 0 && !errors.Is(r.First, errRefused) {
		t.Errorf("first error %v, want %v", r.First, errRefused)
	}
	if len(r.Series) != 1 || r.Series[0] != r.Latencies.Count() || r.SinceCut != r.Latencies.Count() {
		t.Errorf("series %v and %d since the cut, of %d done", r.Series, r.SinceCut, r.Latencies.Count())
	}
	if r.Stall > r.ClientStall {
		t.Errorf("all clients stalled for %v, and no single one for longer than %v", r.Stall, r.ClientStall)
	}
}

// TestRunAsksTheSame: the same seed gives a client the same keys, another one
// other keys, and values differ from put to put.
func TestRunAsksTheSame(t *testing.T) {
	keys := func(seed uint64) []string {
		m := newMemory(0)
		s := spec(load.Put, 1)
		s.Keys = strings.Split("abcdefghijklmnopqrstuvwxyz", "")
		s.Seed = seed
		if _, err := load.Run(t.Context(), s, func(int) load.Client { return m }); err != nil {
			t.Fatal(err)
		}
		if uint64(len(m.values)) != m.puts.Load() {
			t.Errorf("%d values in %d puts", len(m.values), m.puts.Load())
		}
		return m.keys
	}
	a, b, other := keys(1), keys(1), keys(2)
	n := min(len(a), len(b), len(other))
	if n < 20 {
		t.Skipf("only %d operations", n)
	}
	if !slices.Equal(a[:n], b[:n]) {
		t.Errorf("one seed, two sequences:\n%v\n%v", a[:n], b[:n])
	}
	if slices.Equal(a[:n], other[:n]) {
		t.Error("two seeds, one sequence")
	}
}

func TestRunEndsEarly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := spec(load.Put, 2)
	s.Duration = time.Hour
	if _, err := load.Run(ctx, s, func(int) load.Client { return newMemory(0) }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// TestMerge: what two processes did is what both did.
func TestMerge(t *testing.T) {
	var sum load.Result
	for i := range 2 {
		r := load.Result{Took: time.Duration(i), Errors: 1, Series: make([]uint64, i+1), Stall: 5, SinceCut: 2}
		r.Latencies.Add(time.Second)
		r.Series[i] = 7
		sum.Merge(&r)
	}
	if sum.Took != 1 || sum.Errors != 2 || sum.Latencies.Count() != 2 || sum.Stall != 5 || sum.SinceCut != 4 || !slices.Equal(sum.Series, []uint64{7, 7}) {
		t.Errorf("%d operations, %d errors, %v, %v", sum.Latencies.Count(), sum.Errors, sum.Took, sum.Series)
	}
}

func TestStalls(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	s := load.NewStalls(2)
	s.Begin(begin, at(1000))
	check := func(what string, anybody, client time.Duration, done uint64, wantAnybody, wantClient int, wantDone uint64) {
		t.Helper()
		if anybody != time.Duration(wantAnybody)*time.Millisecond || client != time.Duration(wantClient)*time.Millisecond || done != wantDone {
			t.Errorf("%s: %v, %v, %d; want %d ms, %d ms, %d", what, anybody, client, done, wantAnybody, wantClient, wantDone)
		}
	}
	s.Done(0, at(10))
	s.Done(1, at(60))
	s.Done(0, at(100))
	a, c, n := s.Cut()
	check("before the cut", a, c, n, 50, 90, 3)
	// The stall from 100 began before the cut, and belongs after it.
	s.Done(0, at(400))
	s.Done(1, at(500))
	// Out of order: it was another one's turn to be late.
	s.Done(0, at(450))
	// In flight when the time was over: its client waited, the others had
	// nothing to do.
	s.Done(0, at(980))
	s.Done(1, at(3000))
	a, c, n = s.End()
	check("after the cut", a, c, n, 480, 2500, 5)
}

func TestHistogram(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var whole, half load.Histogram
	var all []time.Duration
	for i := range 20_000 {
		d := time.Duration(1) << random.IntN(36)
		d += time.Duration(random.Int64N(int64(d)))
		all = append(all, d)
		if i%2 == 0 {
			whole.Add(d)
		} else {
			half.Add(d)
		}
	}
	whole.Merge(&half)
	slices.Sort(all)
	if whole.Count() != uint64(len(all)) || whole.Max() != all[len(all)-1] {
		t.Errorf("count %d, max %v; want %d, %v", whole.Count(), whole.Max(), len(all), all[len(all)-1])
	}
	for _, q := range []float64{0.0001, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[max(0, int(q*float64(len(all))+0.5)-1)]
		got := whole.Quantile(q)
		if off := float64(got-want) / float64(want); off < -0.01 || off > 0.01 {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	b, err := json.Marshal(&whole)
	if err != nil {
		t.Fatal(err)
	}
	var again load.Histogram
	if err := json.Unmarshal(b, &again); err != nil || again != whole {
		t.Errorf("through JSON it isn't the same: %v", err)
	}
	if err := json.Unmarshal([]byte(`{"Counts":{"99999":1}}`), &again); err == nil {
		t.Error("a bucket that there is none of was taken")
	}
	var empty load.Histogram
	if got := empty.Quantile(0.5); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
}
