package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"atoll/bench/load"
	"atoll/bench/report"
	"atoll/bench/target"
	"atoll/client"
	"atoll/internal/udpproxy"
)

// silences is what silent measures.
type silences struct {
	settings
	ops           []load.Op
	modes         []mode
	clients       int
	phase, warmup time.Duration
	rounds        int
}

// mode is one way in which a replica can't be heard. It begins with a call, and
// ends with a call of the function that this returns.
type mode struct {
	name  string
	begin func(t troubled) (end func() error, err error)
}

// troubled is the replica: its process, and the proxy in front of it.
type troubled struct {
	process *target.Process
	proxy   *udpproxy.Proxy
}

const (
	// flapEvery is how long a flapping replica is silent, and how long it is
	// heard again.
	flapEvery = 400 * time.Millisecond
	// lossy is the share of datagrams, each way, that a lossy replica loses.
	lossy = 0.3
	// recovery is between one trouble and the next measurement: dialing again
	// takes a second at most, and what waited is sent.
	recovery = 3 * time.Second
)

func modes() []mode {
	return []mode{
		// What the machine does by itself, in the same order.
		{"nothing", func(troubled) (func() error, error) { return func() error { return nil }, nil }},
		faulty("silent", udpproxy.Faults{Blackhole: true}),
		{"stopped", func(t troubled) (func() error, error) { return t.process.Resume, t.process.Pause() }},
		{"flapping", flap},
		faulty("lossy", udpproxy.Faults{Loss: lossy}),
	}
}

// faulty is a mode in which the network is faulty, both ways.
func faulty(name string, faults udpproxy.Faults) mode {
	return mode{name, func(t troubled) (func() error, error) {
		t.proxy.Set(faults)
		return func() error {
			t.proxy.Set(udpproxy.Faults{})
			return nil
		}, nil
	}}
}

// flap makes a replica silent and audible in turn.
func flap(t troubled) (end func() error, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var task sync.WaitGroup
	task.Go(func() {
		for silent := true; ; silent = !silent {
			t.proxy.Set(udpproxy.Faults{Blackhole: silent})
			if wait(ctx, flapEvery) != nil {
				return
			}
		}
	})
	return func() error {
		cancel()
		task.Wait()
		t.proxy.Set(udpproxy.Faults{})
		return nil
	}, nil
}

func runSilent(ctx context.Context, args []string) error {
	s, err := parseSilent(args)
	if err != nil {
		return err
	}
	return onBed(ctx, s.settings, s.run)
}

func parseSilent(args []string) (silences, error) {
	s := silences{ops: []load.Op{load.Put, load.Get}, modes: modes()}
	fs := newFlags("silent", &s.settings)
	valueFlag(fs, &s.settings)
	keysFlag(fs, &s.settings, 1000)
	fs.Func("ops", "operations, of put,get,mixed (default put,get)", listOf(&s.ops, load.ParseOp))
	var names []string
	for _, m := range s.modes {
		names = append(names, m.name)
	}
	chosen := names
	fs.Func("modes", "what happens to a replica, of "+strings.Join(names, ",")+" (default all)", listOf(&chosen, func(name string) (string, error) {
		if !slices.Contains(names, name) {
			return "", fmt.Errorf("no mode %q", name)
		}
		return name, nil
	}))
	fs.IntVar(&s.clients, "clients", 8, "`number` of clients, each with connections of its own")
	secondsFlag(fs, &s.phase, "seconds", 4, "how long to measure before, during and after, each; longer than connections bear silence shows more")
	secondsFlag(fs, &s.warmup, "warmup", 2, "how long to warm the cluster up")
	fs.IntVar(&s.rounds, "rounds", 3, "`number` of rounds; from one to the next it is another replica")
	if err := s.parse(fs, args); err != nil {
		return s, err
	}
	if s.rounds < 1 || s.clients < 1 {
		return s, usagef("-rounds and -clients must be at least 1")
	}
	s.modes = slices.DeleteFunc(s.modes, func(m mode) bool { return !slices.Contains(chosen, m.name) })
	return s, nil
}

// silentMembers is the size of the cluster.
const silentMembers = 3

func (s silences) run(b *bed) error {
	if err := b.build(); err != nil {
		return err
	}
	cluster, proxies, err := s.proxied(b)
	defer func() {
		for _, p := range proxies {
			p.Close()
		}
	}()
	if err != nil {
		return err
	}
	defer cluster.Stop()
	if err := cluster.LaunchAll(b.ctx); err != nil {
		return err
	}
	clients, closeAll, err := s.connect(b.ctx, cluster)
	defer closeAll()
	if err != nil {
		return err
	}
	keys := keyNames(s.keys)
	value := load.RandomValue(rand.New(rand.NewPCG(1, 1)), s.value)
	if err := target.FillByPuts(b.ctx, clients[0], keys, value); err != nil {
		return err
	}
	spec := load.Spec{Op: load.Mixed, Clients: s.clients, Keys: keys, ValueSize: s.value, Duration: s.warmup}
	of := func(i int) load.Client { return clients[i] }
	if _, err := load.Run(b.ctx, spec, of); err != nil {
		return err
	}
	spec.Duration = s.phase
	for round := range s.rounds {
		for i, m := range s.modes {
			victim := (round + i) % silentMembers
			for _, op := range s.ops {
				spec.Op, spec.Seed = op, uint64(round)+1
				r, err := s.trouble(b.ctx, m, troubled{cluster.Member(victim), proxies[victim]}, spec, of)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", m.name, op, err)
				}
				r.Version, r.Round = cluster.Version, round
				b.results.Silences = append(b.results.Silences, r)
				if err := b.write(r); err != nil {
					return err
				}
			}
		}
	}
	return target.Ended(cluster.Nodes())
}

// proxied makes a cluster whose members are reached through proxies, by clients
// and by each other.
func (s silences) proxied(b *bed) (cluster *target.Cluster, proxies []*udpproxy.Proxy, err error) {
	cluster, err = target.CreateCluster(b.ctx, target.ClusterConfig{
		Dir: filepath.Join(b.dir, "silent"), Program: b.replica, Members: silentMembers,
		Reach: func(listen []string) (reached []string, err error) {
			for i, to := range listen {
				p, err := udpproxy.New(udpproxy.Config{To: to, Seed: uint64(i) + 1})
				if err != nil {
					return nil, err
				}
				proxies = append(proxies, p)
				reached = append(reached, p.Addr().String())
			}
			return reached, nil
		},
	})
	return cluster, proxies, err
}

// connect opens the clients. The function that it returns closes them.
func (s silences) connect(ctx context.Context, cluster *target.Cluster) (clients []load.Client, closeAll func(), err error) {
	var closers []io.Closer
	closeAll = func() {
		for _, c := range closers {
			_ = c.Close()
		}
	}
	cfg, err := cluster.ClientConfig()
	if err != nil {
		return nil, closeAll, err
	}
	for range s.clients {
		c, err := client.Open(ctx, cfg)
		if err != nil {
			return nil, closeAll, err
		}
		closers = append(closers, c)
		clients = append(clients, target.AtollClient(c))
	}
	return clients, closeAll, nil
}

// trouble measures clients before, during and after a trouble.
func (s silences) trouble(ctx context.Context, m mode, t troubled, spec load.Spec, of func(int) load.Client) (r report.Silence, err error) {
	r = report.Silence{Kind: report.KindSilence, Op: string(spec.Op), Clients: spec.Clients, Value: spec.ValueSize, Mode: m.name, Victim: t.process.Name}
	if err := wait(ctx, recovery); err != nil {
		return r, err
	}
	if r.Before, err = phase(ctx, spec, of); err != nil {
		return r, err
	}
	end, err := m.begin(t)
	if err != nil {
		return r, err
	}
	r.During, err = phase(ctx, spec, of)
	if err := errors.Join(err, end()); err != nil {
		return r, err
	}
	r.After, err = phase(ctx, spec, of)
	return r, err
}

// phase is one stretch of time.
func phase(ctx context.Context, spec load.Spec, of func(int) load.Client) (p report.Phase, err error) {
	result, err := load.Run(ctx, spec, of)
	if err != nil {
		return p, err
	}
	return phaseOf(result), nil
}

// phaseOf is what clients saw in a run.
func phaseOf(result *load.Result) report.Phase {
	p := report.Phase{
		PerSecond: rounded(result.PerSecond()), Errors: result.Errors,
		P50: milliseconds(result.Latencies.Quantile(0.5)), P99: milliseconds(result.Latencies.Quantile(0.99)),
		P999: milliseconds(result.Latencies.Quantile(0.999)), Max: milliseconds(result.Latencies.Max()), Stall: milliseconds(result.Stall),
	}
	if result.First != nil {
		p.First = result.First.Error()
	}
	return p
}
