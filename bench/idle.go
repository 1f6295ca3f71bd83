package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"atoll/bench/load"
	"atoll/bench/report"
	"atoll/bench/target"
	"atoll/client"
)

// idlers is what idle measures.
type idlers struct {
	settings
	ops       []load.Op
	clients   int
	processes int
	busy      int
	still     time.Duration
	duration  time.Duration
	rounds    int
}

const (
	idleMembers = 3
	// pathProbes is how long QUIC tries out larger packets on a new connection,
	// about: what follows is what an idle one costs.
	pathProbes = 5 * time.Second
	// fillAtOnce is how many keys are written at the same time before anything is
	// measured, and fillLimit how long all may take.
	fillAtOnce = 500
	fillLimit  = 2 * time.Minute
	// backPoll is how often it is looked how many clients are back.
	backPoll = 50 * time.Millisecond
	// backLimit is how long all may take.
	backLimit = 6 * time.Minute
	// tellEvery is how often it is told how far that is.
	tellEvery = 15 * time.Second
)

func runIdle(ctx context.Context, args []string) error {
	s, err := parseIdle(args)
	if err != nil {
		return err
	}
	return onBed(ctx, s.settings, s.run)
}

func parseIdle(args []string) (idlers, error) {
	s := idlers{ops: []load.Op{load.Put, load.Get}}
	fs := newFlags("idle", &s.settings)
	valueFlag(fs, &s.settings)
	keysFlag(fs, &s.settings, 10_000)
	fs.Func("ops", "operations of the busy clients, of put,get,mixed (default put,get)", listOf(&s.ops, load.ParseOp))
	fs.IntVar(&s.clients, "clients", 10_000, "`number` of idle clients, each with connections of its own")
	fs.IntVar(&s.processes, "processes", 20, "`number` of processes that they are in")
	fs.IntVar(&s.busy, "busy", 64, "`number` of busy clients, in a process of their own")
	secondsFlag(fs, &s.still, "still", 20, "how long all are idle, to see what that costs")
	secondsFlag(fs, &s.duration, "seconds", 5, "how long a run of the busy ones takes")
	fs.IntVar(&s.rounds, "rounds", 2, "`number` of rounds, each with new processes and connections")
	if err := s.parse(fs, args); err != nil {
		return s, err
	}
	if s.rounds < 1 || s.clients < 1 || s.busy < 1 || s.processes < 1 || s.clients%s.processes != 0 {
		return s, usagef("-rounds, -clients, -busy and -processes must be at least 1, and -clients a multiple of -processes")
	}
	return s, nil
}

func (s idlers) run(b *bed) error {
	if err := b.build(); err != nil {
		return err
	}
	dir := filepath.Join(b.dir, "idle")
	cluster, err := target.CreateCluster(b.ctx, target.ClusterConfig{Dir: dir, Program: b.replica, Members: idleMembers})
	if err != nil {
		return err
	}
	if !b.keep {
		defer os.RemoveAll(dir)
	}
	defer cluster.Stop()
	if err := cluster.LaunchAll(b.ctx); err != nil {
		return err
	}
	if err := s.fill(b, cluster); err != nil {
		return err
	}
	busy, err := startWorkers(b.ctx, b.self, job{Access: cluster.Access(), Clients: s.busy, Shared: true}, 1)
	if err != nil {
		return err
	}
	defer busy.stop()
	for round := range s.rounds {
		r, err := s.round(b, cluster, busy, round)
		if err != nil {
			return err
		}
		b.results.Idle = append(b.results.Idle, r)
		if err := b.write(r); err != nil {
			return err
		}
	}
	return nil
}

func (s idlers) fill(b *bed, cluster *target.Cluster) error {
	cfg, err := cluster.ClientConfig()
	if err != nil {
		return err
	}
	c, err := client.Open(b.ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(b.ctx, fillLimit)
	defer cancel()
	for keys := range slices.Chunk(keyNames(s.keys), fillAtOnce) {
		if err := target.FillByPuts(ctx, target.AtollClient(c), keys, make([]byte, s.value)); err != nil {
			return err
		}
	}
	return nil
}

// round measures busy clients alone, connects the idle ones, sees what those
// cost, and measures the busy ones again. Then a replica is killed and started
// again, under the busy ones.
func (s idlers) round(b *bed, cluster *target.Cluster, busy *workers, round int) (r report.Idle, err error) {
	r = report.Idle{Kind: report.KindIdle, Version: cluster.Version, Round: round, Clients: s.clients, Processes: s.processes, BusyClients: s.busy}
	before, err := s.measureBusy(busy, round)
	if err != nil {
		return r, err
	}
	if r.Alone, err = costOf(cluster, nil, func() error { return wait(b.ctx, s.still) }); err != nil {
		return r, err
	}
	begin := time.Now()
	stop := b.tellConnections(cluster, 0)
	w, err := startWorkers(b.ctx, b.self, job{Access: cluster.Access(), Clients: s.clients / s.processes}, s.processes)
	stop()
	if err != nil {
		return r, err
	}
	defer w.stop()
	r.Connecting = rounded(time.Since(begin).Seconds())
	b.note("%d clients are connected after %.1f s", s.clients, r.Connecting)
	if err := wait(b.ctx, pathProbes); err != nil {
		return r, err
	}
	var said []done
	if r.Idle, err = costOf(cluster, &said, func() error {
		said, err = w.each(order{Duration: s.still})
		return err
	}); err != nil {
		return r, err
	}
	beside, err := s.measureBusy(busy, round)
	if err != nil {
		return r, err
	}
	for i, op := range s.ops {
		r.Busy = append(r.Busy, report.Beside{Op: string(op), Alone: before[i], Beside: beside[i]})
	}
	r.Back, err = s.restart(b, cluster, busy, round%idleMembers)
	return r, err
}

// tellConnections tells now and then how many connections a replica has, and how
// many came in to get there, until stop is called: who ends a long run knows how
// far it was.
func (b *bed) tellConnections(cluster *target.Cluster, i int) (stop func()) {
	ctx, cancel := context.WithCancel(b.ctx)
	var telling sync.WaitGroup
	telling.Go(func() {
		for begin := time.Now(); wait(ctx, tellEvery) == nil; {
			now, err := cluster.Metric(ctx, i, "atoll_connections")
			came, err2 := cluster.Metric(ctx, i, "atoll_connections_incoming_total")
			if err == nil && err2 == nil {
				b.note("after %.0f s replica %s has %.0f connections; %.0f came in", time.Since(begin).Seconds(), cluster.Name(i), now, came)
			}
		}
	})
	return func() { cancel(); telling.Wait() }
}

// costOf is what replicas and the processes of idle clients use while wait
// does; said is what those say then.
func costOf(cluster *target.Cluster, said *[]done, wait func() error) (c report.Cost, err error) {
	begin := time.Now()
	before, err := cpuOfNodes(cluster.Nodes())
	if err != nil {
		return c, err
	}
	if err := wait(); err != nil {
		return c, err
	}
	after, err := cpuOfNodes(cluster.Nodes())
	if err != nil {
		return c, err
	}
	c.Seconds = rounded(time.Since(begin).Seconds())
	c.CPUNodes = rounded((after - before).Seconds())
	if c.Nodes, err = residentOf(cluster.Nodes()); err != nil {
		return c, err
	}
	if said != nil {
		for _, d := range *said {
			c.Load += d.Resident
			c.CPULoad += d.CPU.Seconds()
		}
		c.CPULoad = rounded(c.CPULoad)
	}
	return c, nil
}

// measureBusy runs each operation of the busy clients.
func (s idlers) measureBusy(busy *workers, round int) (all []report.Phase, err error) {
	for _, op := range s.ops {
		result, _, err := busy.run(order{Op: op, Keys: s.keys, Value: s.value, Duration: s.duration, Seed: uint64(round) + 1})
		if err != nil {
			return nil, err
		}
		all = append(all, phaseOf(result))
	}
	return all, nil
}

// restart kills a replica and starts it again, and returns how long it takes
// until all idle clients are connected with it again, and what the busy ones
// see meanwhile.
func (s idlers) restart(b *bed, cluster *target.Cluster, busy *workers, i int) (r report.Return, err error) {
	r.Replica = cluster.Name(i)
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	var meanwhile sync.WaitGroup
	var busyErr error
	result := new(load.Result)
	meanwhile.Go(func() {
		var took time.Duration
		// In pieces, until all are back.
		for ctx.Err() == nil && busyErr == nil {
			var piece *load.Result
			if piece, _, busyErr = busy.run(order{Op: load.Mixed, Keys: s.keys, Value: s.value, Duration: time.Second, Seed: 1}); busyErr == nil {
				result.Merge(piece)
				took += piece.Took
			}
		}
		result.Took = took
	})
	err = s.comeBack(b, cluster, i, &r)
	cancel()
	meanwhile.Wait()
	r.Busy = phaseOf(result)
	return r, errors.Join(err, busyErr)
}

// comeBack does what restart says, but for the busy clients.
func (s idlers) comeBack(b *bed, cluster *target.Cluster, i int, r *report.Return) error {
	if err := wait(b.ctx, time.Second); err != nil {
		return err
	}
	cluster.Member(i).Kill()
	begin := time.Now()
	if err := cluster.Launch(b.ctx, i); err != nil {
		return err
	}
	r.Serves = rounded(time.Since(begin).Seconds())
	defer b.tellConnections(cluster, i)()
	back := 0.0
	for time.Since(begin) < backLimit {
		n, err := cluster.Metric(b.ctx, i, "atoll_connections")
		if err != nil {
			return err
		}
		back = n
		if most := float64(s.clients); n >= most*0.9 && r.MostBack == 0 {
			r.MostBack = rounded(time.Since(begin).Seconds())
		} else if n > most { // one of the busy, and perhaps other replicas
			r.AllBack = rounded(time.Since(begin).Seconds())
			break
		}
		if err := wait(b.ctx, backPoll); err != nil {
			return err
		}
	}
	if r.AllBack == 0 {
		return fmt.Errorf("not all clients are back after %v: replica %s has %.0f connections", backLimit, r.Replica, back)
	}
	used, err := cluster.Member(i).CPU()
	r.CPU = rounded(used.Seconds())
	return err
}
