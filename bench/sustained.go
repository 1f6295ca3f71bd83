package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"atoll/bench/load"
	"atoll/bench/report"
	"atoll/bench/target"
)

// sampleEvery is how often memory and disk of the nodes are looked at.
const sampleEvery = time.Second

// sustained is what sustained measures.
type sustained struct {
	settings
	clients  []int
	duration time.Duration
	rounds   int
	fill     bool
}

func runSustained(ctx context.Context, args []string) error {
	s, err := parseSustained(args)
	if err != nil {
		return err
	}
	return onBed(ctx, s.settings, s.run)
}

func parseSustained(args []string) (sustained, error) {
	var s sustained
	fs := newFlags("sustained", &s.settings)
	targetFlags(fs, &s.settings)
	valueFlag(fs, &s.settings)
	keysFlag(fs, &s.settings, 1_000_000)
	clientsFlag(fs, &s.clients, 512)
	secondsFlag(fs, &s.duration, "seconds", 60, "how long a run takes")
	fs.IntVar(&s.rounds, "rounds", 1, "`number` of runs of each target, each with a fresh cluster")
	fs.BoolVar(&s.fill, "fill", true, "write all keys first; without it a key's first write is one of the measured (which ZooKeeper needs two requests for)")
	if err := s.parse(fs, args); err != nil {
		return s, err
	}
	if s.rounds < 1 {
		return s, usagef("-rounds must be at least 1, not %d", s.rounds)
	}
	return s, nil
}

func (s sustained) run(b *bed) error {
	keys := keyNames(s.keys)
	for round := range s.rounds {
		for _, n := range s.clients {
			for turn := range s.targets {
				name := s.targets[(turn+round)%len(s.targets)]
				if err := s.one(b, name, n, round, turn, keys); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// one measures one target, alone.
func (s sustained) one(b *bed, name string, clients, round, turn int, keys []string) error {
	t, err := b.start(name)
	if err != nil || t == nil {
		return err
	}
	defer b.discard(t)
	c := contestant{name, t}
	if s.fill {
		if err := b.fill(name, t, keys); err != nil {
			return err
		}
	}
	if err := settle(b.ctx, []contestant{c}); err != nil {
		return err
	}
	spec := load.Spec{Op: load.Put, Clients: clients, Keys: keys, ValueSize: s.value, Duration: s.duration, Seed: uint64(round) + 1}
	stop := sampling(t)
	run, result, err := measure(b.ctx, c, []contestant{c}, spec, round)
	samples, serr := stop()
	if err := errors.Join(err, serr); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	run.Kind, run.Round, run.Turn = report.KindSustained, round, turn
	r := report.Sustained{Run: run, Series: result.Series, Samples: samples}
	b.results.Sustained = append(b.results.Sustained, r)
	return b.write(r)
}

// sampling looks at the nodes of a target, now and regularly, until the function
// that it returns is called, which returns what was seen.
func sampling(t target.Target) (stop func() ([]report.Sample, error)) {
	var samples []report.Sample
	var failed error
	begin := time.Now()
	look := func() {
		s, err := sample(t)
		s.Second = rounded(time.Since(begin).Seconds())
		samples = append(samples, s)
		failed = errors.Join(failed, err)
	}
	look()
	done := make(chan struct{})
	var task sync.WaitGroup
	task.Go(func() {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for failed == nil {
			select {
			case <-done:
				return
			case <-tick.C:
				look()
			}
		}
	})
	return func() ([]report.Sample, error) {
		close(done)
		task.Wait()
		return samples, failed
	}
}

func sample(t target.Target) (s report.Sample, err error) {
	for _, p := range t.Nodes() {
		n := report.NodeSample{Name: p.Name}
		if n.Resident, n.Anonymous, err = p.Memory(); err != nil {
			return s, err
		}
		if n.Disk, err = target.Size(p.Dir); err != nil {
			return s, err
		}
		if p.Journal != "" {
			if n.Journal, err = target.Size(p.Journal); err != nil {
				return s, err
			}
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s, nil
}
