package load

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// errorPause keeps a client from spinning on operations that fail at
	// once.
	errorPause = 5 * time.Millisecond
	// stragglers is how long operations may take that are in flight when the
	// time is over.
	stragglers = 20 * time.Second
)

// Client is one client of a store. It has one operation in flight at a time.
type Client interface {
	// Put writes a value, which the caller changes again afterwards. When it
	// returns nil the value is on the disks of a majority.
	Put(ctx context.Context, key string, value []byte) error
	// Get reads a key that has a value; that it has none is an error.
	Get(ctx context.Context, key string) error
}

// Op is what clients do.
type Op string

// The operations.
const (
	Put   Op = "put"
	Get   Op = "get"
	Mixed Op = "mixed" // each a Put or a Get, by the toss of a coin
)

// ParseOp returns the operation with the given name.
func ParseOp(s string) (Op, error) {
	switch op := Op(s); op {
	case Put, Get, Mixed:
		return op, nil
	}
	return "", fmt.Errorf("no operation %q: put, get or mixed", s)
}

// Spec is a workload.
type Spec struct {
	Op      Op
	Clients int
	// Keys are chosen from at random, each as likely as any other.
	Keys []string
	// ValueSize is in bytes. Values are random, so nothing can compress
	// them, and differ from one put to the next.
	ValueSize int
	Duration  time.Duration
	// Stop, when it is closed, ends the run before that.
	Stop <-chan struct{}
	// Seed makes the clients' choices.
	Seed uint64
	// Timeout bounds each operation; 0: only the end of the run does.
	Timeout time.Duration
	// Stalls, if given, is what to measure stalls with: for callers that
	// look at it in mid-run.
	Stalls *Stalls
}

// Result is what came out of a workload.
type Result struct {
	// Took is the time until the last operation had ended.
	Took time.Duration
	// Latencies are those of the operations that were done.
	Latencies Histogram
	// Errors counts the operations that failed, or may have; First is the
	// error of one of them.
	Errors uint64
	First  error
	// Stall is the longest time in which no operation was done, and
	// ClientStall the longest that a single client waited for its next one,
	// both since the last Cut of Spec.Stalls.
	Stall, ClientStall time.Duration
	// SinceCut is the number of operations done since then.
	SinceCut uint64
	// Series has the number of operations done in each second of the run.
	// What was in flight at its end counts to the last one.
	Series []uint64
}

// PerSecond returns the operations done per second.
func (r *Result) PerSecond() float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(r.Latencies.Count()) / r.Took.Seconds()
}

// Merge adds what clients of another process did at the same time. Stalls are
// then the longest of those that a process saw of its own clients.
func (r *Result) Merge(o *Result) {
	r.Took = max(r.Took, o.Took)
	r.Latencies.Merge(&o.Latencies)
	r.Errors += o.Errors
	r.Stall, r.ClientStall = max(r.Stall, o.Stall), max(r.ClientStall, o.ClientStall)
	r.SinceCut += o.SinceCut
	for i, n := range o.Series {
		if i == len(r.Series) {
			r.Series = append(r.Series, 0)
		}
		r.Series[i] += n
	}
}

// Run runs a workload with the clients that the function returns for 0 to
// s.Clients-1. It ends early, with ctx's error, when ctx does; the result is
// then what was measured until then.
func Run(ctx context.Context, s Spec, client func(i int) Client) (*Result, error) {
	if s.Stalls == nil {
		s.Stalls = NewStalls(s.Clients)
	}
	workers := make([]*worker, s.Clients)
	for i := range workers {
		workers[i] = newWorker(&s, i, client(i))
	}
	limited, cancel := context.WithTimeout(ctx, s.Duration+stragglers)
	defer cancel()
	begin := time.Now()
	s.Stalls.Begin(begin, begin.Add(s.Duration))
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() { w.run(limited, begin) })
	}
	all.Wait()
	end := time.Now()
	r := &Result{Took: end.Sub(begin), Series: make([]uint64, seconds(s.Duration))}
	r.Stall, r.ClientStall, r.SinceCut = s.Stalls.End()
	for _, w := range workers {
		r.Latencies.Merge(&w.latencies)
		r.Errors += w.errors
		if r.First == nil {
			r.First = w.first
		}
		for i, n := range w.series {
			r.Series[i] += uint64(n)
		}
	}
	return r, ctx.Err()
}

// seconds is how many seconds of a series d begins, at least one.
func seconds(d time.Duration) int {
	return max(1, int((d+time.Second-1)/time.Second))
}

// worker is one client at work.
type worker struct {
	*Spec
	index     int
	client    Client
	random    *rand.Rand
	value     []byte
	puts      uint64
	latencies Histogram
	series    []uint32
	errors    uint64
	first     error
}

func newWorker(s *Spec, i int, c Client) *worker {
	w := &worker{
		Spec: s, index: i, client: c,
		random: rand.New(rand.NewPCG(s.Seed, uint64(i))),
		series: make([]uint32, seconds(s.Duration)),
	}
	w.value = RandomValue(w.random, s.ValueSize)
	return w
}

// RandomValue returns size random bytes.
func RandomValue(r *rand.Rand, size int) []byte {
	b := make([]byte, 0, size+8)
	for len(b) < size {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return b[:size]
}

func (w *worker) run(ctx context.Context, begin time.Time) {
	over := begin.Add(w.Duration)
	for ctx.Err() == nil {
		start := time.Now()
		if !start.Before(over) {
			return
		}
		select {
		case <-w.Stop:
			return
		default:
		}
		err := w.one(ctx)
		end := time.Now()
		if err == nil {
			w.latencies.Add(end.Sub(start))
			w.series[min(int(end.Sub(begin)/time.Second), len(w.series)-1)]++
			w.Stalls.Done(w.index, end)
			continue
		}
		w.errors++
		if w.first == nil {
			w.first = err
		}
		pause(ctx, errorPause)
	}
}

// one does one operation.
func (w *worker) one(ctx context.Context) error {
	if w.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.Timeout)
		defer cancel()
	}
	key := w.Keys[w.random.IntN(len(w.Keys))]
	if w.Op == Put || w.Op == Mixed && w.random.Uint64()&1 == 0 {
		w.puts++
		if len(w.value) >= 8 {
			binary.LittleEndian.PutUint64(w.value, w.puts)
		}
		return w.client.Put(ctx, key, w.value)
	}
	return w.client.Get(ctx, key)
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
