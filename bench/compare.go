package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"atoll/bench/load"
	"atoll/bench/report"
)

// comparison is what compare measures.
type comparison struct {
	settings
	ops      []load.Op
	clients  []int
	values   []int // bytes
	duration time.Duration
	warmup   time.Duration
	rounds   int
}

func runCompare(ctx context.Context, args []string) error {
	c, err := parseCompare(args)
	if err != nil {
		return err
	}
	return onBed(ctx, c.settings, c.run)
}

func parseCompare(args []string) (comparison, error) {
	var c comparison
	fs := newFlags("compare", &c.settings)
	targetFlags(fs, &c.settings)
	numbersFlag(fs, &c.values, "value", "sizes of values in bytes; each has a cluster of its own", size, 100)
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

const (
	// warmupClients is how many clients warm a target up.
	warmupClients = 64
	// filledMost and inFlightMost bound the bytes of values that all keys and all
	// clients of a cell have: of large values there are fewer keys, and cells
	// with more clients are left out.
	filledMost   = 256 << 20
	inFlightMost = 64 << 20
)

// keysOf returns how many keys there are for a size of values.
func (c comparison) keysOf(value int) int { return min(c.keys, max(1, filledMost/max(1, value))) }

// clientsOf returns the numbers of clients that a size of values allows; the
// smallest is always there.
func (c comparison) clientsOf(value int) []int {
	most := max(slices.Min(c.clients), inFlightMost/max(1, value))
	return slices.DeleteFunc(slices.Clone(c.clients), func(n int) bool { return n > most })
}

func (c comparison) run(b *bed) error {
	runs := 0
	for _, v := range c.values {
		runs += len(c.ops) * len(c.clientsOf(v)) * c.rounds * len(c.targets)
	}
	b.note("%d runs, %v at least", runs, (time.Duration(runs) * (c.duration + quietSpan)).Round(time.Second))
	for _, v := range c.values {
		if err := c.sized(b, v); err != nil {
			return err
		}
	}
	return nil
}

// sized runs all cells of one size of values.
func (c comparison) sized(b *bed, value int) error {
	all, err := c.start(b)
	defer func() {
		for _, t := range all {
			b.discard(t.Target)
		}
	}()
	if err != nil {
		return err
	}
	b.value = value
	keys := keyNames(c.keysOf(value))
	clients := c.clientsOf(value)
	for _, t := range all {
		if err := b.fill(t.name, t, keys); err != nil {
			return err
		}
		warmup := load.Spec{Op: load.Mixed, Clients: min(warmupClients, slices.Max(clients)), Keys: keys, ValueSize: value, Duration: c.warmup}
		if _, err := load.Run(b.ctx, warmup, t.Client); err != nil {
			return err
		}
	}
	for _, op := range c.ops {
		for _, n := range clients {
			spec := load.Spec{Op: op, Clients: n, Keys: keys, ValueSize: value, Duration: c.duration}
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
