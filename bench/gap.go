package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"atoll/bench/load"
	"atoll/bench/report"
)

// gaps is what gap measures.
type gaps struct {
	settings
	clients               int
	warmup, before, after time.Duration
	timeout               time.Duration
	rounds                int
	stop                  bool
}

func runGap(ctx context.Context, args []string) error {
	g, err := parseGap(args)
	if err != nil {
		return err
	}
	return onBed(ctx, g.settings, g.run)
}

func parseGap(args []string) (gaps, error) {
	var g gaps
	fs := newFlags("gap", &g.settings)
	targetFlags(fs, &g.settings)
	valueFlag(fs, &g.settings)
	keysFlag(fs, &g.settings, 1000)
	fs.IntVar(&g.clients, "clients", 8, "`number` of clients, each with a connection of its own")
	secondsFlag(fs, &g.warmup, "warmup", 2, "how long to write before anything is measured")
	// Equally long: of two stretches the longer one has the longer stall, even
	// if nothing happens.
	secondsFlag(fs, &g.before, "before", 6, "how long to measure before the kill")
	secondsFlag(fs, &g.after, "after", 6, "how long to measure after the kill")
	secondsFlag(fs, &g.timeout, "timeout", 2, "after which a write is given up and another one begun")
	fs.IntVar(&g.rounds, "rounds", 3, "`number` of deaths of each target, or of each node where none leads")
	fs.BoolVar(&g.stop, "stop", false, "stop the node with SIGSTOP instead: its connections stay, and are silent")
	if err := g.parse(fs, args); err != nil {
		return g, err
	}
	if g.rounds < 1 || g.clients < 1 {
		return g, usagef("-rounds and -clients must be at least 1")
	}
	return g, nil
}

func (g gaps) run(b *bed) error {
	missing := make(map[string]bool)
	for round := range g.rounds {
		for turn := range g.targets {
			name := g.targets[(turn+round)%len(g.targets)]
			for victims, i := 1, 0; i < victims && !missing[name]; i++ {
				t, err := b.start(name)
				if err != nil {
					return err
				}
				if t == nil {
					missing[name] = true
					continue
				}
				victims = t.Victims()
				r, err := g.death(b, contestant{name, t}, round, i)
				b.discard(t)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				b.results.Gaps = append(b.results.Gaps, r)
				if err := b.write(r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// death writes to a target, kills a node (the turn'th, if none leads), and writes
// on.
func (g gaps) death(b *bed, t contestant, round, turn int) (report.Gap, error) {
	r := report.Gap{Kind: report.KindGap, Target: t.name, Version: t.Version(), Round: round, Clients: g.clients, Stopped: g.stop}
	keys := keyNames(g.keys)
	if err := b.fill(t.name, t, keys); err != nil {
		return r, err
	}
	clients := make([]load.Client, g.clients)
	for i := range clients {
		c, connection, err := t.Roaming(b.ctx, i)
		if err != nil {
			return r, err
		}
		defer func(c io.Closer) { _ = c.Close() }(connection)
		clients[i] = c
	}
	ctx, cancel := context.WithCancelCause(b.ctx)
	defer cancel(nil)
	stalls := load.NewStalls(g.clients)
	spec := load.Spec{
		Op: load.Put, Clients: g.clients, Keys: keys, ValueSize: b.value, Seed: uint64(round) + 1,
		Duration: g.warmup + g.before + g.after, Timeout: g.timeout, Stalls: stalls,
	}
	over := time.Now().Add(spec.Duration)
	var killed time.Time
	var killer sync.WaitGroup
	killer.Go(func() {
		var err error
		if killed, err = g.kill(ctx, t, turn, stalls, &r); err != nil {
			cancel(err) // without a death there is nothing to measure
		}
	})
	result, _ := load.Run(ctx, spec, func(i int) load.Client { return clients[i] })
	killer.Wait()
	if err := context.Cause(ctx); err != nil {
		return r, err
	}
	r.StallAfter, r.ClientAfter = milliseconds(result.Stall), milliseconds(result.ClientStall)
	r.After = rounded(float64(result.SinceCut) / over.Sub(killed).Seconds())
	r.Errors = result.Errors
	if result.First != nil {
		r.First = result.First.Error()
	}
	return r, nil
}

// kill lets the clients warm up, measures them, and kills a node. It returns
// when it did.
func (g gaps) kill(ctx context.Context, t contestant, turn int, stalls *load.Stalls, r *report.Gap) (killed time.Time, err error) {
	if err := wait(ctx, g.warmup); err != nil {
		return killed, err
	}
	stalls.Cut()
	begin := time.Now()
	if err := wait(ctx, g.before); err != nil {
		return killed, err
	}
	// Asked now, and not before: it may have moved.
	victim, leader, err := t.Victim(ctx, turn)
	if err != nil {
		return killed, err
	}
	node := t.Nodes()[victim]
	r.Killed, r.Leader = node.Name, leader
	stall, client, writes := stalls.Cut()
	killed = time.Now()
	if g.stop {
		err = node.Pause()
	} else {
		node.Kill()
	}
	r.StallBefore, r.ClientBefore = milliseconds(stall), milliseconds(client)
	r.Before = rounded(float64(writes) / killed.Sub(begin).Seconds())
	return killed, err
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
