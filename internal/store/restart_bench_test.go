package store

import (
	"fmt"
	"testing"

	"atoll/abd"
)

// BenchmarkRestart is how long Open takes: with a journal that bbolt has
// nothing of, and with a database that the journal adds nothing to. The files
// are in the system's cache. s/GiB is for a GiB of journal.
func BenchmarkRestart(b *testing.B) {
	b.Run("journal", func(b *testing.B) {
		const records, value = 250_000, 1000
		cfg := Config{Dir: b.TempDir(), TableBytes: 1 << 40, JournalBytes: 1 << 40}
		restart(b, cfg, records, value, records, false)
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*(1<<30)/(records*(value+float64(recordHead+14))), "s/GiB")
	})
	b.Run("1M-keys", func(b *testing.B) {
		restart(b, Config{Dir: b.TempDir()}, 1_000_000, 100, 1_000_000, true)
	})
}

// restart measures Open of a store with so many records of so many keys.
func restart(b *testing.B, cfg Config, records, value, keys int, applied bool) {
	mustCreate(b, cfg)
	s, err := Open(cfg)
	if err != nil {
		b.Fatal(err)
	}
	v := string(make([]byte, value))
	for n := range records {
		mustStore(b, s, abd.Key(fmt.Sprintf("key-%08d", n%keys)), testRecord(n+1, v))
		if n%1000 == 999 {
			mustCommit(b, s)
		}
	}
	mustCommit(b, s)
	if applied {
		applyNow(b, s)
	}
	mustClose(b, s)
	b.ResetTimer()
	for b.Loop() {
		s, err := Open(cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		mustClose(b, s)
		b.StartTimer()
	}
}
