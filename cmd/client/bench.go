package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	urfave "github.com/urfave/cli/v2"

	"atoll/abd"
	"atoll/client"
	"atoll/internal/cli"
)

// Defaults and limits of bench.
const (
	defaultClients   = 64
	maxClients       = 100_000
	defaultValueSize = 100
	defaultKeys      = 10_000
	defaultDuration  = 10 * time.Second
)

func bench() *urfave.Command {
	return cli.Group("bench", "measure a cluster",
		benchCommand("put", "measure writes", "Each operation writes a new value to a key chosen at random."),
		benchCommand("get", "measure reads", "Each operation reads a key chosen at random. All keys are written first."),
		benchCommand("mixed", "measure reads and writes", "Each operation is a read or a write, by the toss of a coin, of a key chosen at\nrandom. All keys are written first."),
	)
}

func benchCommand(op, purpose, details string) *urfave.Command {
	return cli.Command{
		Name:    op,
		Purpose: purpose,
		Details: details + `
It overwrites the keys k0, k1, ... of the cluster, and leaves them there.

Clients run side by side in this process and share its connections; each starts
its next operation when the last one has ended. Operations of unknown outcome
are counted apart from errors; latencies are those of operations that were
done. max_stall is the longest time in which no client's operation was done.

Ctrl-C ends the measurement early: what was measured is printed, and the
command ends with 130. If no operation was done, its exit code is that of the
first error.`,
		Examples: []string{
			"client bench " + op,
			"client bench " + op + " --clients 512 --value-size 1000 --duration 30s -o json",
		},
		Flags: clusterFlags("each operation",
			count("clients", defaultClients, "run `N` clients side by side, each with one operation at a time", 1, maxClients),
			count("value-size", defaultValueSize, "write values of `N` bytes, no more than the cluster takes", 0, abd.LargestMaxValue),
			count("keys", defaultKeys, "choose among `N` keys", 1, 1<<30),
			durationFlag(),
			cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat)),
		Codes: cli.ConnectionCodes(cli.ExitUnknown),
		Run: func(c *urfave.Context) error {
			w := workload{
				op: op, clients: c.Int("clients"), valueSize: c.Int("value-size"), keys: c.Int("keys"),
				duration: c.Duration("duration"), stderr: c.App.ErrWriter,
			}
			return withClient(c.Context, c, func(ctx context.Context, conn *client.Client) error {
				return measure(ctx, c, conn, w)
			})
		},
	}.Build()
}

// count is a flag for a whole number from least to most.
func count(name string, value int, usage string, least, most int) urfave.Flag {
	return &urfave.IntFlag{
		Name: name, Value: value, Usage: fmt.Sprintf("%s; %d to %d", usage, least, most),
		Action: func(_ *urfave.Context, n int) error {
			if n < least || n > most {
				return cli.Usagef("--%s must be from %d to %d, not %d", name, least, most, n)
			}
			return nil
		},
	}
}

func durationFlag() urfave.Flag {
	return &urfave.DurationFlag{
		Name: "duration", Aliases: []string{"d"}, Value: defaultDuration, Usage: "measure for `DURATION`, with its unit: 500ms, 30s, 5m",
		Action: func(_ *urfave.Context, d time.Duration) error {
			if d <= 0 {
				return cli.Usagef("--duration must be more than 0, not %v", d)
			}
			return nil
		},
	}
}

// measure writes the keys if the workload reads them, runs it, and prints
// what came out.
func measure(ctx context.Context, c *urfave.Context, conn *client.Client, w workload) error {
	if most := conn.MaxValue(); w.valueSize > most {
		return cli.Usagef("--value-size %d: this cluster takes values of up to %d bytes", w.valueSize, most)
	}
	stay := func() {
		fmt.Fprintf(c.App.ErrWriter, "the keys that it wrote, of k0 to k%d, stay in the cluster\n", w.keys-1)
	}
	if w.op != "put" {
		fmt.Fprintf(c.App.ErrWriter, "writing %d keys first\n", w.keys)
		if err := w.fill(ctx, conn); err != nil {
			stay()
			if ctx.Err() != nil {
				return cli.ErrInterrupted
			}
			return fmt.Errorf("writing the keys first: %w", err)
		}
	}
	r := w.run(ctx, conn)
	if err := r.print(c.App.Writer, cli.OutputOf(c)); err != nil {
		return err
	}
	if w.op != "put" || r.latencies.n+r.unknown > 0 {
		stay()
	}
	switch {
	case ctx.Err() != nil:
		return cli.ErrInterrupted
	case r.first == nil:
		return nil
	case r.latencies.n == 0:
		return r.first
	}
	fmt.Fprintf(c.App.ErrWriter, "the first of %d operations that were not done: %v\n", r.errors+r.unknown, r.first)
	return nil
}

// benchObject is the result in JSON.
type benchObject struct {
	Op         string  `json:"op"`
	Clients    int     `json:"clients"`
	ValueSize  int     `json:"value_size"`
	Seconds    float64 `json:"seconds"`
	Operations uint64  `json:"operations"`
	Errors     uint64  `json:"errors"`
	Unknown    uint64  `json:"unknown"`
	OpsPerS    float64 `json:"ops_per_s"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	P999       float64 `json:"p999_ms"`
	MaxStall   float64 `json:"max_stall_ms"`
}

func (r *result) object() benchObject {
	return benchObject{
		Op: r.op, Clients: r.clients, ValueSize: r.valueSize,
		Seconds:    rounded(r.took.Seconds()),
		Operations: r.latencies.n, Errors: r.errors, Unknown: r.unknown,
		OpsPerS:  rounded(float64(r.latencies.n) / r.took.Seconds()),
		P50:      milliseconds(r.latencies.quantile(0.5)),
		P99:      milliseconds(r.latencies.quantile(0.99)),
		P999:     milliseconds(r.latencies.quantile(0.999)),
		MaxStall: milliseconds(r.stall),
	}
}

func (r *result) print(w io.Writer, format cli.Format) error {
	o := r.object()
	if format != cli.TableFormat {
		return cli.PrintObject(w, format, o)
	}
	measured := func(f float64, unit string) string {
		if o.Operations == 0 && unit == "ms" {
			return "-" // of nothing
		}
		return strconv.FormatFloat(f, 'f', 3, 64) + " " + unit
	}
	return cli.Pairs(w,
		"operation", o.Op,
		"clients", strconv.Itoa(o.Clients),
		"value size", strconv.Itoa(o.ValueSize)+" B",
		"measured", measured(o.Seconds, "s"),
		"operations", strconv.FormatUint(o.Operations, 10),
		"errors", strconv.FormatUint(o.Errors, 10),
		"unknown", strconv.FormatUint(o.Unknown, 10),
		"operations/s", strconv.FormatFloat(o.OpsPerS, 'f', 0, 64),
		"p50", measured(o.P50, "ms"),
		"p99", measured(o.P99, "ms"),
		"p99.9", measured(o.P999, "ms"),
		"longest stall", measured(o.MaxStall, "ms"))
}

// rounded returns f with three decimals.
func rounded(f float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', 3, 64), 64)
	return r
}

func milliseconds(d time.Duration) float64 { return rounded(float64(d) / float64(time.Millisecond)) }
