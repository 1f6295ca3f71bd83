package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"atoll/bench/load"
	"atoll/bench/report"
	"atoll/bench/target"
)

const (
	// quietSpan is how long all targets must have been quiet before a run, and
	// quietShare the share of one processor that is quiet. Heartbeats of three
	// clusters take less.
	quietSpan  = 300 * time.Millisecond
	quietShare = 0.15
	// quietLimit is how long to wait for that.
	quietLimit = 10 * time.Second
)

// contestant is a target in a measurement.
type contestant struct {
	name string
	target.Target
}

// settle makes a run start from rest: this process's garbage is collected, and
// no target is doing anything. When one doesn't become quiet it gives up, since
// the run will record how much was used.
func settle(ctx context.Context, all []contestant) error {
	return quiet(ctx, func() (time.Duration, error) { return cpuOf(all) })
}

// quiet is settle for whatever uses so much processor time.
func quiet(ctx context.Context, used func() (time.Duration, error)) error {
	runtime.GC()
	limit := time.Now().Add(quietLimit)
	for time.Now().Before(limit) {
		before, err := used()
		if err != nil {
			return err
		}
		t := time.NewTimer(quietSpan)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
		after, err := used()
		if err != nil {
			return err
		}
		if after-before <= time.Duration(float64(quietSpan)*quietShare) {
			return nil
		}
	}
	return nil
}

// cpuOf returns the processor time that the nodes have used. A node that has
// ended is an error that says so.
func cpuOf(all []contestant) (time.Duration, error) {
	var sum time.Duration
	for _, c := range all {
		used, err := cpuOfNodes(c.Nodes())
		if err != nil {
			return 0, fmt.Errorf("%s: %w", c.name, err)
		}
		sum += used
	}
	return sum, nil
}

// cpuOfNodes is cpuOf of the nodes of one target.
func cpuOfNodes(nodes []*target.Process) (time.Duration, error) {
	if err := target.Ended(nodes); err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, n := range nodes {
		used, err := n.CPU()
		if err != nil {
			return 0, fmt.Errorf("node %s: %w", n.Name, err)
		}
		sum += used
	}
	return sum, nil
}

// cpu is who used how much processor time so far.
type cpu struct{ target, idle, load, machine time.Duration }

// readCPU reads what the measured target, the others, this process and the
// machine have used.
func readCPU(measured contestant, all []contestant) (u cpu, err error) {
	if u.target, err = cpuOf([]contestant{measured}); err != nil {
		return u, err
	}
	sum, err := cpuOf(all)
	if err != nil {
		return u, err
	}
	u.idle = sum - u.target
	if u.load, err = ownCPU(); err != nil {
		return u, err
	}
	u.machine, err = target.BusyCPU()
	return u, err
}

// measure drives one target with its clients from number first on, and makes the
// record of it. The result is returned too, for what isn't in the record.
func measure(ctx context.Context, c contestant, all []contestant, spec load.Spec, first int) (report.Run, *load.Result, error) {
	return measureBy(c, all, spec, func() (*load.Result, time.Duration, error) {
		result, err := load.Run(ctx, spec, func(i int) load.Client { return c.Client(first + i) })
		return result, 0, err
	})
}

// measureBy is measure with any way to drive the target, which also says how much
// processor time other processes used for that.
func measureBy(c contestant, all []contestant, spec load.Spec, drive func() (*load.Result, time.Duration, error)) (report.Run, *load.Result, error) {
	r := report.Run{
		Kind: report.KindRun, Target: c.name, Version: c.Version(),
		Cell: report.Cell{Op: string(spec.Op), Clients: spec.Clients, Value: spec.ValueSize, Keys: len(spec.Keys)},
	}
	before, err := readCPU(c, all)
	if err != nil {
		return r, nil, err
	}
	result, elsewhere, err := drive()
	if err != nil {
		return r, result, err
	}
	after, err := readCPU(c, all)
	if err != nil {
		return r, result, err
	}
	after.load += elsewhere
	r.Seconds = rounded(result.Took.Seconds())
	r.Operations, r.Errors = result.Latencies.Count(), result.Errors
	if result.First != nil {
		r.FirstError = result.First.Error()
	}
	r.PerSecond = rounded(result.PerSecond())
	r.P50 = milliseconds(result.Latencies.Quantile(0.5))
	r.P99 = milliseconds(result.Latencies.Quantile(0.99))
	r.P999 = milliseconds(result.Latencies.Quantile(0.999))
	r.Max = milliseconds(result.Latencies.Max())
	r.Stall = milliseconds(result.Stall)
	r.CPUTarget = rounded((after.target - before.target).Seconds())
	r.CPUIdle = rounded((after.idle - before.idle).Seconds())
	r.CPULoad = rounded((after.load - before.load).Seconds())
	ours := after.target + after.idle + after.load - before.target - before.idle - before.load
	// The clocks have different grains: a little below 0 is none.
	r.CPUForeign = rounded(max(0, after.machine-before.machine-ours).Seconds())
	return r, result, nil
}

// rounded returns f with three decimals.
func rounded(f float64) float64 { return float64(int64(f*1000+0.5)) / 1000 }

func milliseconds(d time.Duration) float64 { return rounded(float64(d) / float64(time.Millisecond)) }
