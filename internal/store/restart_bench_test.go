package store

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var journalMiB = flag.Int("journal", 256, "MiB of journal that the benchmark Restart has (with -store, it is kept there)")

// BenchmarkRestart is how long Open takes. The journal is of -journal MiB;
// bbolt has nothing of it (new), or ten thousand or a million keys, of which the
// journal has random ones (10k-keys, 1M-keys); or there is nothing in it that bbolt hasn't (applied).
// The files are in the system's cache. s/GiB is for a GiB of journal.
func BenchmarkRestart(b *testing.B) {
	const million = 1_000_000
	for _, value := range []int{100, 1024} {
		b.Run(fmt.Sprintf("new/%d", value), func(b *testing.B) { restart(b, value, 0) })
	}
	b.Run("10k-keys/100", func(b *testing.B) { restart(b, 100, 10_000) })
	b.Run("1M-keys/100", func(b *testing.B) { restart(b, 100, million) })
	b.Run("applied", func(b *testing.B) {
		cfg := Config{Dir: b.TempDir()}
		mustCreate(b, cfg)
		fillMany(b, cfg, million, 100)
		openMany(b, cfg)
	})
}

// fillMany puts so many keys into bbolt.
func fillMany(b *testing.B, cfg Config, keys, value int) {
	s := mustOpen(b, Config{Dir: cfg.Dir})
	v := string(make([]byte, value))
	for n := range keys {
		mustStore(b, s, manyKey(n), testRecord(n+1, v))
		if n%1000 == 999 {
			mustCommit(b, s)
		}
	}
	mustCommit(b, s)
	applyNow(b, s)
	mustClose(b, s)
}

// restart measures Open with a journal of records with such values: of new
// keys, or of random ones of so many that bbolt has.
func restart(b *testing.B, value, keys int) {
	cfg := Config{Dir: b.TempDir(), TableBytes: 1 << 40, JournalBytes: 1 << 40}
	if *manyDir != "" {
		cfg.Dir = filepath.Join(*manyDir, fmt.Sprintf("restart-%d-%d-%d", *journalMiB, value, keys))
	}
	size := 2 + len(manyKey(0)) + recordHead + value
	records := *journalMiB << 20 / size
	if _, err := os.Stat(filepath.Join(cfg.Dir, identityName)); err != nil {
		mustCreate(b, cfg)
		fillMany(b, cfg, keys, value)
		fillJournal(b, cfg, records, keys, value)
	}
	openMany(b, cfg)
	took := b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(took*(1<<30)/float64(records*size), "s/GiB")
	b.ReportMetric(took*1e9/float64(records), "ns/record")
}

// fillJournal appends records of random keys, of so many; of new ones if 0.
func fillJournal(b *testing.B, cfg Config, records, keys, value int) {
	s := mustOpen(b, cfg)
	r, v := random(1), string(make([]byte, value))
	for n := range records {
		key := manyKey(n)
		if keys > 0 {
			key = manyKey(r.IntN(keys))
		}
		mustStore(b, s, key, testRecord(2*(keys+n), v))
		if n%512 == 511 {
			mustCommit(b, s)
		}
	}
	mustCommit(b, s)
	mustClose(b, s)
}

// openMany measures Open, each time of the same folder.
func openMany(b *testing.B, cfg Config) {
	path := filepath.Join(cfg.Dir, stateName)
	state, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ResetTimer()
	used, faults, most := time.Duration(0), int64(0), 0.0
	for range b.N {
		// An apply may have begun.
		if err := os.WriteFile(path, state, 0o600); err != nil {
			b.Fatal(err)
		}
		cpu, touched := processorTime(), pageFaults()
		b.StartTimer()
		s, err := Open(cfg)
		b.StopTimer()
		used += processorTime() - cpu
		faults += pageFaults() - touched
		if err != nil {
			b.Fatal(err)
		}
		most = max(most, resident("RssAnon"))
		mustClose(b, s)
	}
	b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(faults)/float64(b.N), "faults/op")
	b.ReportMetric(most, "anon-MB")
}
