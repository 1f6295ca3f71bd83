package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"atoll/bench/load"
	"atoll/bench/report"
	"atoll/bench/target"
	"atoll/client"
)

// reconfigurations is what reconfigure measures.
type reconfigurations struct {
	settings
	ops           []load.Op
	clients       int
	rate          float64 // changes a second
	phase, warmup time.Duration
	rounds        int
}

const (
	// reconfigureMembers is the size of the cluster. One more node is on standby.
	reconfigureMembers = 3
	maxRate            = 1000
)

func runReconfigure(ctx context.Context, args []string) error {
	r, err := parseReconfigure(args)
	if err != nil {
		return err
	}
	return onBed(ctx, r.settings, r.run)
}

func parseReconfigure(args []string) (reconfigurations, error) {
	r := reconfigurations{}
	fs := newFlags("reconfigure", &r.settings)
	valueFlag(fs, &r.settings)
	keysFlag(fs, &r.settings, 10_000)
	opsFlag(fs, &r.ops)
	r.ops = []load.Op{load.Mixed}
	fs.IntVar(&r.clients, "clients", 64, "`number` of clients, which share one instance of the library; 0: only the cost of a change without load is measured")
	fs.Float64Var(&r.rate, "rate", 5, "`changes` of the members a second")
	secondsFlag(fs, &r.phase, "seconds", 4, "how long to measure without changes and with them, each")
	secondsFlag(fs, &r.warmup, "warmup", 3, "how long to warm the cluster up, half of it with changes")
	fs.IntVar(&r.rounds, "rounds", 5, "`number` of rounds; every other one begins with the changes")
	if err := r.parse(fs, args); err != nil {
		return r, err
	}
	if r.rounds < 1 || r.clients < 0 || r.rate <= 0 || r.rate > maxRate {
		return r, usagef("-rounds must be at least 1, -clients 0, and -rate from above 0 to %d", maxRate)
	}
	return r, nil
}

func (r reconfigurations) run(b *bed) error {
	if err := b.build(); err != nil {
		return err
	}
	cluster, err := target.CreateCluster(b.ctx, target.ClusterConfig{Dir: filepath.Join(b.dir, "reconfigure"), Program: b.replica, Members: reconfigureMembers})
	if err != nil {
		return err
	}
	defer cluster.Stop()
	if err := cluster.LaunchAll(b.ctx); err != nil {
		return err
	}
	c, err := open(b.ctx, cluster.ClientConfig)
	if err != nil {
		return err
	}
	defer c.Close()
	admin, err := open(b.ctx, cluster.AdminConfig)
	if err != nil {
		return err
	}
	defer admin.Close()
	keys := keyNames(r.keys)
	if err := target.FillByPuts(b.ctx, target.AtollClient(c), keys, load.RandomValue(rand.New(rand.NewPCG(1, 1)), r.value)); err != nil {
		return err
	}
	spare, err := cluster.Join(b.ctx, admin)
	if err != nil {
		return err
	}
	m := &changing{cluster, c, &changer{admin: admin, rate: r.rate, out: cluster.Name(reconfigureMembers - 1), in: cluster.Name(spare)}}
	spec := load.Spec{Op: load.Mixed, Clients: r.clients, Keys: keys, ValueSize: r.value, Duration: r.warmup / 2}
	for _, with := range []*changer{nil, m.changer} {
		if _, err := m.stretch(b.ctx, spec, with); err != nil {
			return err
		}
	}
	spec.Duration = r.phase
	for round := range r.rounds {
		for _, op := range r.ops {
			spec.Op, spec.Seed = op, uint64(round)+1
			record, err := m.round(b.ctx, spec, round)
			if err != nil {
				return err
			}
			b.results.Changing = append(b.results.Changing, record)
			if err := b.write(record); err != nil {
				return err
			}
		}
	}
	return target.Ended(cluster.Nodes())
}

func open(ctx context.Context, config func() (client.Config, error)) (*client.Client, error) {
	cfg, err := config()
	if err != nil {
		return nil, err
	}
	return client.Open(ctx, cfg)
}

// changing is a cluster whose members can be changed.
type changing struct {
	cluster *target.Cluster
	client  *client.Client
	changer *changer
}

// round measures a workload without changes and with them, or the other way
// round.
func (m *changing) round(ctx context.Context, spec load.Spec, round int) (report.Changing, error) {
	r := report.Changing{
		Kind: report.KindChanging, Version: m.cluster.Version, Round: round, Asked: m.changer.rate,
		Cell: report.Cell{Op: string(spec.Op), Clients: spec.Clients, Value: spec.ValueSize, Keys: len(spec.Keys)},
	}
	if spec.Clients == 0 {
		return r, m.idle(ctx, spec.Duration, &r)
	}
	m.changer = m.changer.fresh()
	for i := range 2 {
		var err error
		if i == round%2 {
			r.Alone, err = m.stretch(ctx, spec, nil)
		} else {
			r.Meanwhile, err = m.stretch(ctx, spec, m.changer)
		}
		if err != nil {
			return r, err
		}
	}
	took := &m.changer.took
	r.PerSecond = rounded(float64(took.Count()) / spec.Duration.Seconds())
	r.P50, r.Max = milliseconds(took.Quantile(0.5)), milliseconds(took.Max())
	return r, m.idle(ctx, spec.Duration/2, &r)
}

// stretch measures a workload, while the members change if there is a changer.
func (m *changing) stretch(ctx context.Context, spec load.Spec, with *changer) (s report.Stretch, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var result *load.Result
	nodes, own, err := m.cost(ctx, func() error {
		var changes sync.WaitGroup
		if with != nil {
			changes.Go(func() {
				if err := with.run(ctx, spec.Duration); err != nil {
					cancel(fmt.Errorf("changing the members: %w", err))
				}
			})
		}
		result, _ = load.Run(ctx, spec, func(int) load.Client { return target.AtollClient(m.client) })
		changes.Wait()
		return context.Cause(ctx)
	})
	if err != nil {
		return s, err
	}
	operations := float64(max(1, result.Latencies.Count()))
	return report.Stretch{Phase: phaseOf(result), CPUNodes: rounded(1e6 * nodes / operations), CPULoad: rounded(1e6 * own / operations)}, nil
}

// idle has the members change while there is no load, and adds what that costs.
func (m *changing) idle(ctx context.Context, d time.Duration, r *report.Changing) error {
	with := m.changer.fresh()
	nodes, own, err := m.cost(ctx, func() error { return with.run(ctx, d) })
	if err != nil {
		return err
	}
	changes := float64(max(1, with.took.Count()))
	r.CostNodes, r.CostChanger, r.IdleP50 = rounded(1000*nodes/changes), rounded(1000*own/changes), milliseconds(with.took.Quantile(0.5))
	m.changer = with
	return nil
}

// cost does something from rest, and returns how much processor time the nodes
// and this process used meanwhile, in seconds.
func (m *changing) cost(ctx context.Context, do func() error) (nodes, own float64, err error) {
	used := func() (time.Duration, error) { return cpuOfNodes(m.cluster.Nodes()) }
	if err := quiet(ctx, used); err != nil {
		return 0, 0, err
	}
	nodesBefore, err := used()
	if err != nil {
		return 0, 0, err
	}
	before, err := ownCPU()
	if err != nil {
		return 0, 0, err
	}
	if err := do(); err != nil {
		return 0, 0, err
	}
	nodesAfter, err := used()
	if err != nil {
		return 0, 0, err
	}
	after, err := ownCPU()
	return (nodesAfter - nodesBefore).Seconds(), (after - before).Seconds(), err
}

// changer puts a node in a member's place, and back, and so on.
type changer struct {
	admin   *client.Client
	rate    float64
	out, in string
	took    load.Histogram
}

// fresh is a changer that goes on from where another one stands.
func (c *changer) fresh() *changer {
	return &changer{admin: c.admin, rate: c.rate, out: c.out, in: c.in}
}

// run makes changes for a while. One that is due before the one before has ended
// is left out.
func (c *changer) run(ctx context.Context, d time.Duration) error {
	until := time.Now().Add(d)
	due := time.NewTicker(time.Duration(float64(time.Second) / c.rate))
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case begin := <-due.C:
			if begin.After(until) {
				return nil
			}
			r := client.Replacement{Old: c.out, New: c.in}
			if _, err := c.admin.Reconfigure(ctx, client.Change{Replace: []client.Replacement{r}}); err != nil {
				return err
			}
			c.took.Add(time.Since(begin))
			c.out, c.in = c.in, c.out
		}
	}
}
