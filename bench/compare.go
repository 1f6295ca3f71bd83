package main

import (
	"context"
	"errors"
	"time"

	"atoll/bench/load"
	"atoll/bench/report"
)

// comparison is what compare measures.
type comparison struct {
	settings
	ops      []load.Op
	clients  []int
	duration time.Duration
	warmup   time.Duration
	rounds   int
}

func runCompare(ctx context.Context, args []string) error {
	c, err := parseCompare(args)
	if err != nil {
		return err
	}
	b, err := newBed(ctx, c.settings)
	if err != nil {
		return err
	}
	return errors.Join(c.run(b), b.close())
}

func parseCompare(args []string) (comparison, error) {
	var c comparison
	fs := newFlags("compare", &c.settings)
	targetFlags(fs, &c.settings)
	valueFlag(fs, &c.settings)
	keysFlag(fs, &c.settings, 10_000)
	opsFlag(fs, &c.ops)
	clientsFlag(fs, &c.clients, 1, 64, 512)
	secondsFlag(fs, &c.duration, "seconds", 3, "how long a run takes")
	secondsFlag(fs, &c.warmup, "warmup", 3, "how long each target is warmed up with mixed operations")
	fs.IntVar(&c.rounds, "rounds", 5, "`number` of rounds of each cell")
	if err := c.parse(fs, args); err != nil {
		return c, err
	}
	if c.rounds < 1 {
		return c, usagef("-rounds must be at least 1, not %d", c.rounds)
	}
	return c, nil
}

// warmupClients is how many clients warm a target up.
const warmupClients = 64

func (c comparison) run(b *bed) error {
	all, err := c.start(b)
	defer func() {
		for _, t := range all {
			b.discard(t.Target)
		}
	}()
	if err != nil {
		return err
	}
	keys := keyNames(c.keys)
	for _, t := range all {
		if err := b.fill(t.name, t, keys); err != nil {
			return err
		}
		warmup := load.Spec{Op: load.Mixed, Clients: warmupClients, Keys: keys, ValueSize: c.value, Duration: c.warmup}
		if _, err := load.Run(b.ctx, warmup, t.Client); err != nil {
			return err
		}
	}
	runs := len(c.ops) * len(c.clients) * c.rounds * len(all)
	b.note("%d runs, %v at least", runs, (time.Duration(runs) * (c.duration + quietSpan)).Round(time.Second))
	for _, op := range c.ops {
		for _, n := range c.clients {
			spec := load.Spec{Op: op, Clients: n, Keys: keys, ValueSize: c.value, Duration: c.duration}
			if err := c.cell(b, all, spec); err != nil {
				return err
			}
		}
	}
	return nil
}

// start starts the targets that are there.
func (c comparison) start(b *bed) (all []contestant, err error) {
	for _, name := range c.targets {
		t, err := b.start(name)
		if err != nil {
			return all, err
		}
		if t != nil {
			all = append(all, contestant{name, t})
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no target is left")
	}
	return all, nil
}

// cell runs all rounds of a cell.
func (c comparison) cell(b *bed, all []contestant, spec load.Spec) error {
	for round := range c.rounds {
		spec.Seed = uint64(round) + 1
		for turn := range all {
			t := all[(turn+round)%len(all)]
			if err := settle(b.ctx, all); err != nil {
				return err
			}
			// A few clients have a few of the connections: another round, other
			// ones, since those to a leader are faster.
			r, _, err := measure(b.ctx, t, all, spec, round)
			if err != nil {
				return err
			}
			r.Round, r.Turn = round, turn
			if err := b.record(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// record keeps and writes a run.
func (b *bed) record(r report.Run) error {
	r.Session = len(b.results.Environments)
	b.results.Runs = append(b.results.Runs, r)
	return b.write(r)
}
