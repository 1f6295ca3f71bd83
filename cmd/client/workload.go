package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"atoll/client"
	"atoll/internal/cli"
	"atoll/internal/pulse"
	"atoll/tags"
)

const (
	// fillClients is how many writes of the keys are in flight at least.
	fillClients = 64
	// errorPause keeps a client from spinning on operations that fail at
	// once.
	errorPause = 10 * time.Millisecond
)

// registers is what a workload needs of a *client.Client.
type registers interface {
	Put(ctx context.Context, key string, value []byte) (tags.Tag, error)
	Get(ctx context.Context, key string) (client.Value, error)
}

// workload is what bench does: a closed loop for each client.
type workload struct {
	op        string // "put", "get" or "mixed"
	clients   int
	valueSize int // bytes
	keys      int
	duration  time.Duration
	stderr    io.Writer // for progress
}

// result is what came out of a workload.
type result struct {
	workload
	took      time.Duration // until the last operation ended
	latencies histogram     // of the operations that were done
	errors    uint64        // operations that were certainly not done
	unknown   uint64        // operations that were done or not
	first     error         // of errors and unknown
	stall     time.Duration // the longest time in which none was done
}

// fill writes every key once. When a write fails no other one begins, and those that
// are in flight come to their own ends: together they say who doesn't answer.
func (w *workload) fill(ctx context.Context, c registers) error {
	bar := cli.NewProgress(w.stderr, "writing keys", int64(w.keys))
	defer bar.End()
	var next, done atomic.Int64
	var failed failures
	var all sync.WaitGroup
	for range min(max(w.clients, fillClients), w.keys) {
		source := newSource(w)
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(w.keys) && failed.err() == nil; i = next.Add(1) - 1 {
				if _, err := c.Put(ctx, keyName(int(i)), source.value()); err != nil {
					failed.add(err)
					return
				}
				bar.Set(done.Add(1))
			}
		})
	}
	all.Wait()
	return failed.err()
}

// failures makes one error of those of several operations: the first, with the
// members of all. One operation alone names those that it still needed.
type failures struct {
	mu struct {
		sync.Mutex
		first   error
		members map[string]client.MemberError // by what they are called
	}
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.first == nil {
		f.mu.first, f.mu.members = err, make(map[string]client.MemberError)
	}
	for _, m := range membersOf(err) {
		if name := cmp.Or(m.Name, string(m.ID)); f.mu.members[name].Text == "" {
			f.mu.members[name] = m
		}
	}
}

// err returns the error, nil if nothing has failed.
func (f *failures) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var members []client.MemberError
	for _, name := range slices.Sorted(maps.Keys(f.mu.members)) {
		members = append(members, f.mu.members[name])
	}
	if u, ok := errors.AsType[*client.UnknownError](f.mu.first); ok {
		all := *u
		all.Members = members
		return &all
	}
	if n, ok := errors.AsType[*client.NoQuorumError](f.mu.first); ok {
		all := *n
		all.Members = members
		return &all
	}
	return f.mu.first
}

// membersOf returns the members that an error names.
func membersOf(err error) []client.MemberError {
	if u, ok := errors.AsType[*client.UnknownError](err); ok {
		return u.Members
	}
	if n, ok := errors.AsType[*client.NoQuorumError](err); ok {
		return n.Members
	}
	return nil
}

// run runs the workload until its duration is over, or ctx ends. Operations
// in flight at the end of the duration are waited for, and count: stopping
// them would leave their outcomes unknown. Those that ctx ended don't count.
func (w *workload) run(ctx context.Context, c registers) *result {
	begin := time.Now()
	var stalls pulse.Pulse
	over := begin.Add(w.duration)
	stopBar := w.showProgress(begin)
	workers := make([]worker, w.clients)
	var all sync.WaitGroup
	for i := range workers {
		workers[i] = worker{workload: w, source: newSource(w), begin: begin, pulse: &stalls}
		all.Go(func() { workers[i].run(ctx, c, over) })
	}
	all.Wait()
	end := time.Now()
	stopBar()
	stalls.Beat(end.Sub(begin))
	r := &result{workload: *w, took: end.Sub(begin), stall: stalls.Cut()}
	for i := range workers {
		r.latencies.merge(&workers[i].latencies)
		r.errors += workers[i].errors
		r.unknown += workers[i].unknown
		if r.first == nil {
			r.first = workers[i].first
		}
	}
	return r
}

// showProgress draws the time that has passed, until the returned function is
// called.
func (w *workload) showProgress(begin time.Time) (stop func()) {
	if !cli.IsTerminal(w.stderr) {
		return func() {}
	}
	bar := cli.NewProgress(w.stderr, "measuring "+w.op, int64(w.duration/time.Millisecond))
	done := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				bar.End()
				return
			case now := <-tick.C:
				bar.Set(int64(min(now.Sub(begin), w.duration) / time.Millisecond))
			}
		}
	})
	return func() {
		close(done)
		drawing.Wait()
	}
}

// worker is one client of a workload.
type worker struct {
	*workload
	source    *source
	begin     time.Time // of the workload
	pulse     *pulse.Pulse
	latencies histogram
	errors    uint64
	unknown   uint64
	first     error
}

func (w *worker) run(ctx context.Context, c registers, over time.Time) {
	for ctx.Err() == nil {
		begin := time.Now()
		if !begin.Before(over) {
			return
		}
		err := w.one(ctx, c)
		end := time.Now()
		switch {
		case err == nil:
			w.latencies.add(end.Sub(begin))
			w.pulse.Beat(end.Sub(w.begin))
			continue
		case ctx.Err() != nil:
			return // interrupted: it says nothing about the cluster
		}
		if _, ok := errors.AsType[*client.UnknownError](err); ok {
			w.unknown++
		} else {
			w.errors++
		}
		if w.first == nil {
			w.first = err
		}
		pause(ctx, errorPause)
	}
}

// one does one operation.
func (w *worker) one(ctx context.Context, c registers) error {
	key := keyName(w.source.IntN(w.keys))
	if w.op == "put" || w.op == "mixed" && w.source.Uint64()&1 == 0 {
		_, err := c.Put(ctx, key, w.source.value())
		return err
	}
	_, err := c.Get(ctx, key)
	if errors.Is(err, client.ErrNotFound) {
		// All were written before; somebody else deletes them.
		return fmt.Errorf("key %s: %w", key, err)
	}
	return err
}

func keyName(i int) string { return "k" + strconv.Itoa(i) }

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// source makes keys and values, for one goroutine.
type source struct {
	*rand.Rand
	size int
}

func newSource(w *workload) *source {
	return &source{Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), size: w.valueSize}
}

// value returns a fresh value of random bytes: nothing on the way can
// compress it, or have seen it before.
func (s *source) value() []byte {
	b := make([]byte, 0, s.size+8)
	for len(b) < s.size {
		b = binary.LittleEndian.AppendUint64(b, s.Uint64())
	}
	return b[:s.size]
}
