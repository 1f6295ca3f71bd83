package main

import (
	"context"
	"fmt"
	"time"

	"atoll/bench/load"
	"atoll/bench/report"
	"atoll/bench/target"
)

// connected is what connections measures.
type connected struct {
	settings
	ops       []load.Op
	clients   int
	processes int
	duration  time.Duration
	rounds    int
	shared    bool
	bench2    string
}

func runConnections(ctx context.Context, args []string) error {
	c, err := parseConnections(args)
	if err != nil {
		return err
	}
	return onBed(ctx, c.settings, c.run)
}

func parseConnections(args []string) (connected, error) {
	c := connected{ops: []load.Op{load.Put, load.Get}}
	fs := newFlags("connections", &c.settings)
	targetFlags(fs, &c.settings)
	valueFlag(fs, &c.settings)
	keysFlag(fs, &c.settings, 10_000)
	fs.Func("ops", "operations, of put,get,mixed (default put,get)", listOf(&c.ops, load.ParseOp))
	fs.IntVar(&c.clients, "clients", 1000, "`number` of clients, each with connections of its own")
	fs.IntVar(&c.processes, "processes", 10, "`number` of processes that they are in")
	secondsFlag(fs, &c.duration, "seconds", 3, "how long a run takes")
	fs.IntVar(&c.rounds, "rounds", 2, "`number` of rounds, each with new processes and connections")
	fs.BoolVar(&c.shared, "shared", false, "clients of a process share the connections of one")
	fs.StringVar(&c.bench2, "bench2", "", "bench `program` whose processes drive atoll2: another build of the client library")
	if err := c.parse(fs, args); err != nil {
		return c, err
	}
	if c.rounds < 1 || c.clients < 1 || c.processes < 1 || c.clients%c.processes != 0 {
		return c, usagef("-rounds, -clients and -processes must be at least 1, and -clients a multiple of -processes")
	}
	return c, nil
}

func (c connected) run(b *bed) error {
	all, err := comparison{settings: c.settings}.start(b)
	defer func() {
		for _, t := range all {
			b.discard(t.Target)
		}
	}()
	if err != nil {
		return err
	}
	empty := make(map[string]int64)
	for _, t := range all {
		if err := b.fill(t.name, t, keyNames(c.keys)); err != nil {
			return err
		}
		if empty[t.name], err = residentOf(t.Nodes()); err != nil {
			return err
		}
	}
	for round := range c.rounds {
		for turn := range all {
			t := all[(turn+round)%len(all)]
			if err := c.one(b, t, all, round, turn, empty[t.name]); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
		}
	}
	return nil
}

// one connects clients to a target, drives them and lets them go.
func (c connected) one(b *bed, t contestant, all []contestant, round, turn int, empty int64) error {
	begin := time.Now()
	program := b.self
	if t.name == target.Atoll2 && c.bench2 != "" {
		program = c.bench2
	}
	w, err := startWorkers(b.ctx, program, job{Access: t.Access(), Clients: c.clients / c.processes, Shared: c.shared}, c.processes)
	if err != nil {
		return err
	}
	defer w.stop()
	took := time.Since(begin)
	resident, err := residentOf(t.Nodes())
	if err != nil {
		return err
	}
	for _, op := range c.ops {
		if err := settle(b.ctx, all); err != nil {
			return err
		}
		o := order{Op: op, Keys: c.keys, Value: c.value, Duration: c.duration, Seed: uint64(round) + 1}
		spec := load.Spec{Op: op, Clients: c.clients, Keys: keyNames(c.keys), ValueSize: c.value}
		run, _, err := measureBy(t, all, spec, func() (*load.Result, time.Duration, error) { return w.run(o) })
		if err != nil {
			return err
		}
		run.Kind, run.Round, run.Turn = report.KindConnections, round, turn
		r := report.Connections{Run: run, Processes: c.processes, Shared: c.shared, Connecting: rounded(took.Seconds()), Empty: empty, Resident: resident}
		b.results.Connections = append(b.results.Connections, r)
		if err := b.write(r); err != nil {
			return err
		}
	}
	return nil
}

// residentOf is the resident memory of all nodes together.
func residentOf(nodes []*target.Process) (sum int64, err error) {
	for _, p := range nodes {
		n, _, err := p.Memory()
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
