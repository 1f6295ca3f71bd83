package store

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"atoll/abd"
	"atoll/env"
)

var (
	manyKeys = flag.Int("keys", 1_000_000, "how many keys the benchmarks Sustained and Open have")
	manyDir  = flag.String("store", "", "a `folder` that they fill, or that they have filled before")
)

func manyKey(i int) abd.Key { return abd.Key(fmt.Sprintf("key-%08d", i)) }

// manyStore opens a store of -keys keys with values of 100 bytes.
func manyStore(b *testing.B) (*Store, Config) {
	b.Helper()
	cfg := Config{Dir: *manyDir}
	if cfg.Dir == "" {
		cfg.Dir = b.TempDir()
	}
	_, err := os.Stat(filepath.Join(cfg.Dir, identityName))
	if err == nil {
		return mustOpen(b, cfg), cfg
	}
	mustCreate(b, cfg)
	s := mustOpen(b, cfg)
	value := make([]byte, 100)
	for i := range *manyKeys {
		mustStore(b, s, manyKey(i), abd.Record{Tag: testTag(1), Value: value})
		if i%1000 == 999 {
			mustCommit(b, s)
		}
	}
	mustCommit(b, s)
	applyNow(b, s)
	return s, cfg
}

// processorTime is what this process has used, user and system.
func processorTime() time.Duration {
	var r unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// pageFaults is how often this process had to wait for a page of memory that
// it hadn't touched before.
func pageFaults() int64 {
	var r unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &r)
	return r.Minflt
}

// resident returns how much memory of a kind this process has, in MiB.
func resident(kind string) float64 {
	b, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, kind+":"); ok {
			n, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return n / 1024
		}
	}
	return 0
}

// committer commits on a goroutine of its own, as a node does.
type committer struct {
	store   *Store
	kick    chan struct{}
	done    sync.WaitGroup
	durable atomic.Uint64
	mu      sync.Mutex
	moved   *sync.Cond
	longest time.Duration // of a Commit
}

func startCommitter(b *testing.B, s *Store) *committer {
	c := &committer{store: s, kick: make(chan struct{}, 1)}
	c.moved = sync.NewCond(&c.mu)
	c.durable.Store(uint64(s.Committed()))
	c.done.Go(func() {
		for range c.kick {
			begin := time.Now()
			p, err := s.Commit()
			if err != nil {
				b.Error(err)
			}
			c.longest = max(c.longest, time.Since(begin))
			c.mu.Lock()
			c.durable.Store(uint64(p))
			c.mu.Unlock()
			c.moved.Broadcast()
		}
	})
	return c
}

// cut ends a group, and waits while more than behind records aren't durable.
func (c *committer) cut(behind uint64) {
	p := uint64(c.store.Cut())
	select {
	case c.kick <- struct{}{}:
	default:
	}
	c.mu.Lock()
	for p > c.durable.Load()+behind {
		c.moved.Wait()
	}
	c.mu.Unlock()
}

// BenchmarkSustained is what a replica's store does under random puts of 512
// callers at once: for each a load of the get phase, a load and a store of
// the put phase, and commits on another goroutine. An iteration is a put, and
// the get phase of another one comes between its two loads.
func BenchmarkSustained(b *testing.B) {
	s, _ := manyStore(b)
	defer mustClose(b, s)
	c := startCommitter(b, s)
	r, value := random(uint64(time.Now().UnixNano())), make([]byte, 100)
	runtime.GC()
	begin, cpu, n := time.Now(), processorTime(), 0
	next := manyKey(r.IntN(*manyKeys))
	b.ReportAllocs()
	for b.Loop() {
		n++
		key := next
		next = manyKey(r.IntN(*manyKeys))
		if _, _, err := s.Load(next, false); err != nil {
			b.Fatal(err)
		}
		if _, _, err := s.Load(key, false); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Store(key, abd.Record{Tag: testTag(n + 1), Value: value}); err != nil {
			b.Fatal(err)
		}
		if n%32 == 0 {
			c.cut(512)
		}
	}
	took := time.Since(begin)
	close(c.kick)
	c.done.Wait()
	size, err := s.state.size()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(n)/took.Seconds(), "puts/s")
	b.ReportMetric(float64((processorTime()-cpu).Nanoseconds())/float64(n)/1000, "cpu-µs/op")
	b.ReportMetric(c.longest.Seconds()*1000, "longest-ms")
	b.ReportMetric(resident("RssAnon"), "anon-MB")
	b.ReportMetric(resident("VmRSS"), "rss-MB")
	b.ReportMetric(float64(size)/(1<<20), "state-MB")
}

// BenchmarkOpen opens and closes a store of -keys keys. The journal is as the
// store of -store has it; without one, all is in bbolt.
func BenchmarkOpen(b *testing.B) {
	s, cfg := manyStore(b)
	behind := s.Stats().AppliedBehind
	mustClose(b, s)
	position, memory, cpu, n := env.Position(0), 0.0, processorTime(), 0
	for b.Loop() {
		n++
		s := mustOpen(b, cfg)
		position, memory = s.Committed(), resident("RssAnon")
		mustClose(b, s)
	}
	b.ReportMetric(float64((processorTime()-cpu).Milliseconds())/float64(n), "cpu-ms/op")
	b.ReportMetric(float64(behind), "replayed")
	b.ReportMetric(float64(position), "position")
	b.ReportMetric(memory, "anon-MB")
}
