package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"atoll/abd"
	"atoll/bench/load"
	"atoll/bench/report"
	"atoll/bench/target"
	"atoll/client"
	"atoll/internal/store"
	"atoll/tags"
)

// startups is what startup measures.
type startups struct {
	settings
	counts  []int // of keys
	journal int   // MiB
	kill    int   // MiB of journal
	rounds  int
	clients int
	loaded  time.Duration
	cold    bool
}

const (
	// applyAtOnce as a table's size has everything applied, and never keeps
	// all in the journal.
	applyAtOnce = 1 << 10
	never       = 1 << 50
	// commitEvery is how many records are synced together when a store is
	// filled.
	commitEvery = 20_000
	// settleEvery is how many records are more than a table of applyAtOnce.
	settleEvery = 64
	// applyPoll is how often the store is asked whether all is applied.
	applyPoll = 20 * time.Millisecond
	// sampledKeys is how many of the keys the clients read and write: as many
	// names as a load generator can hold without being what is measured.
	sampledKeys = 1_000_000
	// firstAnswer bounds the wait for it.
	firstAnswer = 5 * time.Minute
)

func runStartup(ctx context.Context, args []string) error {
	s, err := parseStartup(args)
	if err != nil {
		return err
	}
	return onBed(ctx, s.settings, s.run)
}

func parseStartup(args []string) (startups, error) {
	var s startups
	fs := newFlags("startup", &s.settings)
	valueFlag(fs, &s.settings)
	numbersFlag(fs, &s.counts, "keys", "numbers of keys", positive, 1_000_000, 10_000_000)
	fs.IntVar(&s.journal, "journal", 1024, "`MiB` of records that were never applied, in a second series of starts; 0: no such series")
	fs.IntVar(&s.kill, "kill", 0, "`MiB` of journal in use when the replica is killed under writes, in a third series of starts; 0: no such series")
	fs.IntVar(&s.rounds, "rounds", 3, "`number` of starts of each kind")
	fs.IntVar(&s.clients, "clients", 64, "`number` of clients that read and write, for the memory")
	secondsFlag(fs, &s.loaded, "seconds", 5, "how long they do, after the last start of each kind")
	fs.BoolVar(&s.cold, "cold", false, "drop the files from the system's cache before each start")
	if err := s.parse(fs, args); err != nil {
		return s, err
	}
	if s.rounds < 1 || s.clients < 1 || s.journal < 0 || s.kill < 0 {
		return s, usagef("-rounds and -clients must be at least 1, and -journal and -kill at least 0")
	}
	return s, nil
}

func (s startups) run(b *bed) error {
	if err := b.build(); err != nil {
		return err
	}
	for _, n := range s.counts {
		if err := s.filled(b, n); err != nil {
			return fmt.Errorf("%d keys: %w", n, err)
		}
	}
	return nil
}

// filled measures the starts of a replica with so many keys, in a cluster of
// its own.
func (s startups) filled(b *bed, keys int) error {
	dir := filepath.Join(b.dir, fmt.Sprintf("startup-%d", keys))
	cluster, err := target.CreateCluster(b.ctx, target.ClusterConfig{Dir: dir, Program: b.replica, Members: 1})
	if err != nil {
		return err
	}
	if !b.keep {
		defer os.RemoveAll(dir)
	}
	defer cluster.Stop()
	begin := time.Now()
	o := offline{dir: cluster.Folder(0), value: s.value}
	if err := o.fill(b.ctx, keys); err != nil {
		return err
	}
	b.note("%d keys are there after %v", keys, time.Since(begin).Round(time.Millisecond))
	// One start that isn't measured: the client must have seen the cluster.
	if err := cluster.Launch(b.ctx, 0); err != nil {
		return err
	}
	cfg, err := cluster.ClientConfig()
	if err != nil {
		return err
	}
	c, err := client.Open(b.ctx, cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	series := []report.Start{{}}
	if s.journal > 0 {
		series = append(series, report.Start{Asked: s.journal})
	}
	if s.kill > 0 {
		series = append(series, report.Start{Asked: s.kill, Killed: true})
	}
	for _, r := range series {
		r.Kind, r.Version, r.Keys, r.Value = report.KindStart, cluster.Version, keys, s.value
		for round := range s.rounds {
			r.Round = round
			r, err := s.one(b, cluster, c, &o, r)
			if err != nil {
				return err
			}
			b.results.Starts = append(b.results.Starts, r)
			if err := b.write(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// one measures one start, of the kind that r says.
func (s startups) one(b *bed, cluster *target.Cluster, c *client.Client, o *offline, r report.Start) (_ report.Start, err error) {
	cluster.Member(0).Kill()
	if err := o.settle(b.ctx, r.Keys); err != nil {
		return r, err
	}
	if r.Killed {
		err = s.killed(b, cluster, c, o, &r)
	} else {
		r.Unapplied, r.Journal, err = o.journal(b.ctx, r.Keys, int64(r.Asked)<<20)
	}
	if err != nil {
		return r, err
	}
	if r.Disk, err = target.Size(o.dir); err != nil {
		return r, err
	}
	if s.cold {
		if err := dropCache(o.dir); err != nil {
			return r, err
		}
	}
	begin := time.Now()
	answered := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(b.ctx, firstAnswer)
		defer cancel()
		_, err := c.Get(ctx, startKey(0))
		r.First = milliseconds(time.Since(begin))
		answered <- err
	}()
	err = cluster.Launch(b.ctx, 0)
	r.Ready = milliseconds(time.Since(begin))
	if err := errors.Join(err, <-answered); err != nil {
		return r, err
	}
	process := cluster.Member(0)
	used, err := process.CPU()
	if err != nil {
		return r, err
	}
	r.CPU = rounded(used.Seconds())
	if r.Resident, r.Anonymous, err = process.Memory(); err != nil {
		return r, err
	}
	if r.Round+1 < s.rounds {
		return r, nil
	}
	return r, s.load(b, c, process, &r)
}

// load reads and writes keys at random, and looks at the memory then.
func (s startups) load(b *bed, c *client.Client, process *target.Process, r *report.Start) error {
	spec := load.Spec{Op: load.Mixed, Clients: s.clients, Keys: sampleOf(r.Keys), ValueSize: s.value, Duration: s.loaded, Seed: 1}
	result, err := load.Run(b.ctx, spec, func(int) load.Client { return target.AtollClient(c) })
	if err != nil {
		return err
	}
	if result.First != nil {
		return fmt.Errorf("%d operations failed: %w", result.Errors, result.First)
	}
	r.Loaded, r.LoadedPerSecond = rounded(result.Took.Seconds()), rounded(result.PerSecond())
	r.LoadedResident, r.LoadedAnonymous, err = process.Memory()
	return err
}

// sampleOf returns the keys that clients read and write, of so many.
func sampleOf(keys int) []string {
	sample := make([]string, min(keys, sampledKeys))
	for i := range sample {
		sample[i] = startKey(i * (keys / len(sample)))
	}
	return sample
}

// startKey names keys so that their order is that of their numbers: a store is
// filled fastest in order.
func startKey(i int) string { return fmt.Sprintf("k%09d", i) }

// offline writes to the store of a replica that doesn't run, as the replica
// would.
type offline struct {
	dir   string
	value int
	seq   tags.Seq
}

// write opens the store and writes records under the keys that next returns,
// every so many with one sync, until it returns false. It returns how the store
// was then.
func (o *offline) write(ctx context.Context, cfg store.Config, every int, next func(*store.Store) (key string, more bool)) (stats store.Stats, err error) {
	cfg.Dir = o.dir
	s, err := store.Open(cfg)
	if err != nil {
		return stats, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	random := rand.New(rand.NewPCG(1, uint64(o.seq)))
	for n := 0; ; n++ {
		if n%every == 0 {
			if err := commit(s); err != nil {
				return stats, err
			}
		}
		key, more := next(s)
		if !more || ctx.Err() != nil {
			err := commit(s)
			return s.Stats(), errors.Join(err, ctx.Err())
		}
		o.seq++
		r := abd.Record{Tag: tags.Tag{Seq: o.seq, PID: tags.NewPID(1, 1, uint64(o.seq))}, Value: load.RandomValue(random, o.value)}
		if _, err := s.Store(abd.Key(key), r); err != nil {
			return stats, err
		}
	}
}

func commit(s *store.Store) error {
	s.Cut()
	_, err := s.Commit()
	return err
}

// fill writes so many keys.
func (o *offline) fill(ctx context.Context, keys int) error {
	i := 0
	_, err := o.write(ctx, store.Config{}, commitEvery, func(*store.Store) (string, bool) {
		i++
		return startKey(i - 1), i <= keys
	})
	return err
}

// settle has all records applied. It writes a few, again and again, since a table
// is applied when more is written; in the end it is one that had a full table.
func (o *offline) settle(ctx context.Context, keys int) error {
	n := 0
	_, err := o.write(ctx, store.Config{TableBytes: applyAtOnce}, settleEvery, func(s *store.Store) (string, bool) {
		if n > 0 && n%settleEvery == 0 {
			if err := wait(ctx, applyPoll); err != nil || s.Stats().AppliedBehind == 0 {
				return "", false
			}
		}
		n++
		return startKey(n % keys), true
	})
	return err
}

// journal writes so many bytes of records, of keys that are there, that stay in
// the journal, and returns how many those are.
func (o *offline) journal(ctx context.Context, keys int, bytes int64) (records, written int64, err error) {
	if bytes == 0 {
		return 0, 0, nil
	}
	random := rand.New(rand.NewPCG(2, uint64(o.seq)))
	stats, err := o.write(ctx, store.Config{TableBytes: never, JournalBytes: never}, commitEvery, func(s *store.Store) (string, bool) {
		return startKey(random.IntN(keys)), s.Stats().JournalBytes < bytes
	})
	return stats.AppliedBehind, stats.JournalBytes, err
}

// dropCache has the system forget what it holds of files.
func dropCache(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		// Pages that aren't on disk yet would stay.
		return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
	})
}
