package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"atoll/bench/load"
	"atoll/bench/report"
	"atoll/bench/target"
	"atoll/client"
)

// replacements is what replace measures.
type replacements struct {
	settings
	clients       []int
	rates         []int // MiB/s; asItComes: the replica's own
	before, after time.Duration
	rounds        int
	plot          string
}

const (
	// replaceMembers is the size of the cluster.
	replaceMembers = 3
	// asItComes as a rate leaves it to the replica.
	asItComes = -1
	// plotStep is how much time a point of the plot stands for.
	plotStep = 250 * time.Millisecond
	// endless bounds the clients' work while a member is replaced.
	endless = time.Hour
)

func runReplace(ctx context.Context, args []string) error {
	s, err := parseReplace(args)
	if err != nil {
		return err
	}
	return onBed(ctx, s.settings, s.run)
}

func parseReplace(args []string) (replacements, error) {
	var s replacements
	fs := newFlags("replace", &s.settings)
	s.targets = []string{target.Atoll}
	targetFlags(fs, &s.settings)
	valueFlag(fs, &s.settings)
	keysFlag(fs, &s.settings, 1_000_000)
	numbersFlag(fs, &s.clients, "clients", "numbers of clients that read and write meanwhile; 0: nobody does", size, 0, 64)
	numbersFlag(fs, &s.rates, "rates", "`MiB` of records a second that the new node may take over, 0: no limit, -1: as many as it takes by itself", rate, asItComes)
	secondsFlag(fs, &s.before, "before", 5, "how long the clients are measured before")
	secondsFlag(fs, &s.after, "after", 5, "how long they are measured after")
	fs.IntVar(&s.rounds, "rounds", 3, "`number` of replacements of each kind")
	fs.StringVar(&s.plot, "plot", "", "draw throughput over time, of the last round under load, to this `file`, an SVG")
	if err := s.parse(fs, args); err != nil {
		return s, err
	}
	if s.rounds < 1 {
		return s, usagef("-rounds must be at least 1, not %d", s.rounds)
	}
	for _, t := range s.targets {
		if t != target.Atoll && t != target.Atoll2 {
			return s, usagef("no member of %s can be replaced here", t)
		}
	}
	return s, nil
}

// rate parses a rate.
func rate(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < asItComes {
		return 0, fmt.Errorf("%q is not a rate", s)
	}
	return n, nil
}

func (s replacements) run(b *bed) error {
	err := s.measure(b)
	if s.plot == "" || len(b.results.Replacements) == 0 {
		return err
	}
	return errors.Join(err, report.Plot(s.plot, b.results.Replacements)) // of what there is, if it was interrupted
}

// measure makes the replacements.
func (s replacements) measure(b *bed) error {
	if err := b.build(); err != nil {
		return err
	}
	var all []*replaced
	defer func() {
		for _, c := range all {
			c.close()
		}
	}()
	for _, rate := range s.rates {
		for _, name := range s.targets {
			c, err := s.filled(b, name, rate)
			if c != nil {
				all = append(all, c)
			}
			if err != nil {
				return err
			}
		}
	}
	for round := range s.rounds {
		for _, clients := range s.clients {
			for turn := range all {
				r, err := s.one(b, all[(turn+round)%len(all)], clients)
				if err != nil {
					return err
				}
				r.Round, r.Turn = round, turn
				b.results.Replacements = append(b.results.Replacements, r)
				if err := b.write(r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// replaced is a cluster whose members are replaced one after another.
type replaced struct {
	*target.Cluster
	name  string
	rate  int
	admin *client.Client
	keys  []string
	next  int // the number of the member that goes next
}

func (c *replaced) close() {
	if c.admin != nil {
		_ = c.admin.Close()
	}
	c.Stop()
}

// filled starts a cluster whose members all have all keys on their disks.
func (s replacements) filled(b *bed, name string, rate int) (*replaced, error) {
	c := &replaced{name: name, rate: rate}
	cfg := target.ClusterConfig{Dir: b.folder(name), Program: b.replica, Members: replaceMembers}
	b.started++
	if name == target.Atoll2 {
		cfg.Program = b.replica2
	}
	if rate != asItComes {
		cfg.Flags = []string{"--transfer-rate", strconv.Itoa(rate)}
	}
	var err error
	if c.Cluster, err = target.CreateCluster(b.ctx, cfg); err != nil {
		return nil, err
	}
	begin := time.Now()
	for i := range replaceMembers {
		o := offline{dir: c.Folder(i), value: s.value}
		if err := o.fill(b.ctx, s.keys); err != nil {
			return c, err
		}
		if err := o.settle(b.ctx, s.keys); err != nil {
			return c, err
		}
	}
	b.note("%s: the members have %d keys after %v", filepath.Base(cfg.Dir), s.keys, time.Since(begin).Round(time.Millisecond))
	for i := range s.keys {
		c.keys = append(c.keys, startKey(i))
	}
	if err := c.LaunchAll(b.ctx); err != nil {
		return c, err
	}
	config, err := c.AdminConfig()
	if err != nil {
		return c, err
	}
	c.admin, err = client.Open(b.ctx, config)
	return c, err
}

// one replaces the oldest member.
func (s replacements) one(b *bed, c *replaced, clients int) (r report.Replacement, err error) {
	r = report.Replacement{Kind: report.KindReplacement, Target: c.name, Version: c.Version, Rate: c.rate,
		Cell: report.Cell{Op: string(load.Mixed), Clients: clients, Value: s.value, Keys: s.keys}}
	fresh, err := c.Join(b.ctx, c.admin)
	if err != nil {
		return r, err
	}
	if err := quiet(b.ctx, func() (time.Duration, error) { return cpuOfNodes(c.Nodes()) }); err != nil {
		return r, err
	}
	line := timeline{replacements: &s, b: b, c: c, begin: time.Now()}
	if clients > 0 {
		line.spec = load.Spec{Op: load.Mixed, Clients: clients, Keys: c.keys, ValueSize: s.value, Seed: uint64(fresh)}
	}
	if r.Before, err = line.phase(s.before, nil); err != nil {
		return r, err
	}
	before, err := cpuEach(c.Nodes())
	if err != nil {
		return r, err
	}
	r.Began = line.now()
	installed := make(chan struct{})
	var replacing error
	var task sync.WaitGroup
	task.Go(func() {
		defer close(installed)
		replacing = c.replace(b.ctx, fresh, &r)
	})
	r.During, err = line.phase(endless, installed)
	task.Wait()
	if err := errors.Join(err, replacing); err != nil {
		return r, err
	}
	r.Ended = line.now()
	after, err := cpuEach(c.Nodes())
	if err != nil {
		return r, err
	}
	for i, used := range after {
		if i == len(after)-1 {
			r.CPUNew = rounded((used - before[i]).Seconds())
		} else {
			r.CPUOld += rounded((used - before[i]).Seconds())
		}
	}
	if r.After, err = line.phase(s.after, nil); err != nil {
		return r, err
	}
	r.Series = line.points
	c.next++
	return r, c.Discard(c.next - 1)
}

// replace has a new node take the place of the oldest member, and returns when
// that is installed.
func (c *replaced) replace(ctx context.Context, fresh int, r *report.Replacement) error {
	begin := time.Now()
	plan, err := c.admin.Plan(ctx, client.Change{Replace: []client.Replacement{{Old: c.Name(c.next), New: c.Name(fresh)}}})
	if err != nil {
		return err
	}
	if _, err := c.admin.Propose(ctx, plan); err != nil {
		return err
	}
	decided := time.Now()
	if err := c.admin.Await(ctx, plan.Target.Index(), nil); err != nil {
		return err
	}
	r.Deciding, r.Installing = rounded(decided.Sub(begin).Seconds()), rounded(time.Since(decided).Seconds())
	s, err := c.admin.Status(ctx)
	if err != nil {
		return err
	}
	for _, m := range s.Members {
		if m.Name == c.Name(fresh) && m.Status != nil {
			r.MovedKeys, r.Moved = m.Status.Merge.Keys, m.Status.Merge.Bytes
		}
	}
	return nil
}

// timeline is what clients do over time.
type timeline struct {
	*replacements
	b      *bed
	c      *replaced
	begin  time.Time
	spec   load.Spec // without clients, nobody does anything
	points []report.Point
}

// now is the time of the plot, in seconds.
func (l *timeline) now() float64 { return rounded(time.Since(l.begin).Seconds()) }

// phase has the clients work for some time, or until stop is closed.
func (l *timeline) phase(d time.Duration, stop <-chan struct{}) (p report.Phase, err error) {
	if l.spec.Clients == 0 {
		if stop != nil {
			<-stop
		}
		return p, nil
	}
	l.spec.Duration, l.spec.Stop, l.spec.Stalls = d, stop, load.NewStalls(l.spec.Clients)
	ended := make(chan struct{})
	longest := time.Duration(0)
	var task sync.WaitGroup
	task.Go(func() {
		tick := time.NewTicker(plotStep)
		defer tick.Stop()
		for last := l.now(); ; {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			now := l.now()
			if now-last < plotStep.Seconds()/2 {
				continue // this tick came late, and the next one at once
			}
			stall, _, done := l.spec.Stalls.Cut()
			longest = max(longest, stall)
			l.points = append(l.points, report.Point{At: now, PerSecond: rounded(float64(done) / (now - last))})
			last = now
		}
	})
	result, err := load.Run(l.b.ctx, l.spec, func(int) load.Client { return target.AtollClient(l.c.admin) })
	close(ended)
	task.Wait()
	if err != nil {
		return p, err
	}
	if result.Stall = max(result.Stall, longest); stop != nil {
		result.Stall = longest // the clients stopped before their time
	}
	return phaseOf(result), nil
}

// cpuEach returns the processor time that each node has used.
func cpuEach(nodes []*target.Process) (all []time.Duration, err error) {
	for _, n := range nodes {
		used, err := n.CPU()
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		all = append(all, used)
	}
	return all, nil
}
