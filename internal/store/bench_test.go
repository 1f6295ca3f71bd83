package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"atoll/abd"
	"atoll/repair"
)

// benchStore returns a store of the usual sizes with n keys.
func benchStore(b *testing.B, n int) (*Store, []abd.Key) {
	b.Helper()
	cfg := Config{Dir: b.TempDir()}
	mustCreate(b, cfg)
	s := mustOpen(b, cfg)
	keys := make([]abd.Key, n)
	for i := range keys {
		keys[i] = abd.Key(fmt.Sprintf("key-%08d", i))
		mustStore(b, s, keys[i], testRecord(i+1, string(make([]byte, 100))))
	}
	mustCommit(b, s)
	return s, keys
}

// BenchmarkCommit is a batch of random puts of 100 bytes, one sync a batch:
// what a node's loop does. rec/s counts the records.
func BenchmarkCommit(b *testing.B) {
	for _, batch := range []int{1, 64, 512} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			s, keys := benchStore(b, 10_000)
			waitSpare(s)
			r, value := random(1), make([]byte, 100)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				for range batch {
					n++
					if _, err := s.Store(keys[r.IntN(len(keys))], abd.Record{Tag: testTag(n), Value: value}); err != nil {
						b.Fatal(err)
					}
				}
				s.Cut()
				if _, err := s.Commit(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rec/s")
		})
	}
}

// BenchmarkLoad reads random keys: from the memory table, from bbolt, and
// keys that were never written, which must be proved absent.
func BenchmarkLoad(b *testing.B) {
	for _, c := range []struct {
		name   string
		apply  bool
		suffix abd.Key
	}{{"hot", false, ""}, {"cold", true, ""}, {"absent", true, "x"}} {
		b.Run(c.name, func(b *testing.B) {
			s, keys := benchStore(b, 100_000)
			if c.apply {
				applyNow(b, s)
			}
			if c.suffix != "" {
				for i := range keys {
					keys[i] += c.suffix
				}
			}
			r := random(1)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := s.Load(keys[r.IntN(len(keys))], true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStore is the part of a put that the stepping goroutine does.
func BenchmarkStore(b *testing.B) {
	s, keys := benchStore(b, 10_000)
	r, value := random(1), make([]byte, 100)
	b.ReportAllocs()
	for n := 1; b.Loop(); n++ {
		key := keys[r.IntN(len(keys))]
		if _, _, err := s.Load(key, false); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Store(key, abd.Record{Tag: testTag(n), Value: value}); err != nil {
			b.Fatal(err)
		}
		if n%1024 == 0 {
			b.StopTimer()
			mustCommit(b, s)
			b.StartTimer()
		}
	}
}

// BenchmarkApply is a table of new records on its way into bbolt.
func BenchmarkApply(b *testing.B) {
	const n = 100_000
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		s, _ := benchStore(b, n)
		b.StartTimer()
		applyNow(b, s)
		b.StopTimer()
		mustClose(b, s)
		b.StartTimer()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rec/s")
}

// BenchmarkSync is why segments are filled with zeros before their first use
// (docs/adr/0002-own-journal.md): the same write and sync into a file that
// grows, one whose space was only allocated, and one that was written before.
func BenchmarkSync(b *testing.B) {
	const size = 4096
	for _, kind := range []string{"growing", "allocated", "filled"} {
		b.Run(kind, func(b *testing.B) {
			f, err := openOS(filepath.Join(b.TempDir(), "f"), os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			switch kind {
			case "allocated":
				err = f.(osFile).Truncate(DefaultSegmentBytes)
			case "filled":
				_, err = f.WriteAt(make([]byte, DefaultSegmentBytes), 0)
			}
			if err = errors.Join(err, f.Sync()); err != nil {
				b.Fatal(err)
			}
			data := bytes.Repeat([]byte{7}, size)
			for n := int64(0); b.Loop(); n++ {
				if _, err := f.WriteAt(data, n*size%DefaultSegmentBytes); err != nil {
					b.Fatal(err)
				}
				if err := f.Sync(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMerge is what the store of a new member does while it takes over a
// million records of 100 bytes, page by page in the order of the keys: all of it,
// the processor time of the journal and of the apply beside it included.
func BenchmarkMerge(b *testing.B) {
	const n, page = 1_000_000, repair.LargestPage
	value := make([]byte, 100)
	for b.Loop() {
		b.StopTimer()
		cfg := Config{Dir: b.TempDir()}
		mustCreate(b, cfg)
		s := mustOpen(b, cfg)
		r, err := repair.NewReplica(repair.Config{Self: "self", MaxValue: len(value)}, s)
		if err != nil {
			b.Fatal(err)
		}
		c := startCommitter(b, s)
		b.StartTimer()
		cpu := processorTime()
		entries := make([]repair.Entry, page)
		for i := 0; i < n; i += page {
			for k := range entries {
				entries[k] = repair.Entry{Key: abd.Key(fmt.Sprintf("key-%08d", i+k)), Record: abd.Record{Tag: testTag(1), Value: value}}
			}
			if _, _, err := r.Take(entries); err != nil {
				b.Fatal(err)
			}
			c.cut(page)
		}
		b.StopTimer()
		b.ReportMetric((processorTime() - cpu).Seconds(), "cpu-s/op")
		close(c.kick)
		c.done.Wait()
		mustClose(b, s)
		b.StartTimer()
	}
}
