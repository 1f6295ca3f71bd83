package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
	"atoll/sim/scenario"
)

const (
	flagCompare    = "compare"
	flagBytes      = "bytes"
	flagFailFast   = "fail-fast"
	flagOperations = "operations"
	flagHistory    = "history"
)

// CSVFormat is comma-separated values, a row a run under a row of names.
const CSVFormat cli.Format = "csv"

func run() *urfave.Command {
	return cli.Command{
		Name:      "run",
		Arguments: "SCENARIO",
		Purpose:   "run a scenario with many seeds, and check every promise",
		Details: `SCENARIO is the name of one that is built in (sim list prints them) or a file
(docs/SIMULATOR.md describes it; sim show prints one to begin with). Each seed
is a run of its own: it draws which faults exist, and when and where they
happen. As many run at once as GOMAXPROCS allows; the results come in the order
of the seeds and are the same on every machine, but for the time they took.

The table has a row for each of up to 50 seeds, and beyond that for those that
broke a promise; then come means over the seeds, each with its 95 % confidence
interval. Latencies are simulated times, and multiples of the delay bound d, the
longest time that a message takes while no fault delays it. -o json and jsonl
print an object a run and one for the summary, each in a line; csv prints a row
a run.

--compare runs the same seeds with another algorithm, or another scenario, too,
and prints paired differences under common random numbers: both meet the same
delays and faults, so that few seeds show small differences. A * marks those
that chance alone would show less than once in twenty figures.

A broken promise ends its run, and the command with exit code 1 when all seeds
are done. The line that runs that seed again is then the last one on stdout; of
csv it is on stderr, and of json it is the "replay" of the summary.`,
		Examples: []string{
			"sim run registers --seeds 1..200",
			"sim run registers --seeds 1..50 --compare abd-writeback",
			"sim run lossy --seed 7 --mutant abd.NoWriteBack",
			"sim run mine.json --seeds 1..1000 -o csv > figures.csv",
		},
		Flags: slices.Concat(seedsFlags(), variantFlags(), []urfave.Flag{
			&urfave.StringFlag{Name: flagCompare, Usage: "run the algorithm or scenario `B` with the same seeds, too, and print the differences"},
			&urfave.BoolFlag{Name: flagFailFast, Usage: "stop at the first seed that breaks a promise"},
		}, fileFlags(), []urfave.Flag{formatFlag()}),
		Codes: []int{cli.ExitPrecondition},
		Meanings: map[int]string{
			cli.ExitOther:        "a promise was broken, or any other error",
			cli.ExitPrecondition: badFile,
		},
		Run: runScenario,
	}.Build()
}

// fileFlags are those of a command that runs a plan for more than its summary.
func fileFlags() []urfave.Flag {
	return []urfave.Flag{
		&urfave.BoolFlag{Name: flagBytes, Usage: "count the encoded bytes of messages, too; runs take longer"},
		&urfave.PathFlag{Name: flagOperations, Usage: "write each operation with its latency, rounds and messages as a row of CSV to `FILE`"},
		&urfave.PathFlag{Name: flagHistory, Usage: "write what clients saw to `FILE`, for sim check; only with a single run"},
	}
}

func formatFlag() urfave.Flag {
	return cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat, CSVFormat)
}

func runScenario(c *urfave.Context) error {
	name := c.Args().First()
	seeds, err := seedsOf(c)
	if err != nil {
		return err
	}
	s, err := loadScenario(name)
	if err != nil {
		return err
	}
	sides, err := sidesOf(applyFlags(c, s), c.String(flagCompare))
	if err != nil {
		return err
	}
	for _, side := range sides {
		if err := side.scenario.Check(); err != nil {
			return &cli.PreconditionError{Text: side.label, Err: err}
		}
	}
	title := s.Name
	if len(sides) == 1 {
		title += ", " + sides[0].label
	}
	arguments := variantArguments(c)
	if compare := c.String(flagCompare); compare != "" {
		arguments += " --" + flagCompare + " " + quoteArgument(compare)
	}
	return campaign{
		c: c, title: title, seeds: seeds, sides: sides,
		replay: func(seed uint64) string {
			return fmt.Sprintf("sim run %s --seed %d%s", quoteArgument(name), seed, arguments)
		},
	}.run()
}

// campaign is runs of many seeds.
type campaign struct {
	c      *urfave.Context
	title  string
	seeds  seedRange
	sides  []side
	replay func(seed uint64) string // the line that runs one again
}

// errEnough ends a campaign at its first violation.
var errEnough = errors.New("enough")

func (g campaign) run() error {
	files, err := openFiles(g.c, g.seeds.count() == 1 && len(g.sides) == 1)
	if err != nil {
		return err
	}
	all := figures()
	options := scenario.Options{Bytes: g.c.Bool(flagBytes)}
	out := newReporter(g.c, g)
	sum := newSummary(g.title, g.seeds, g.sides, all)
	progress := cli.NewProgress(g.c.App.ErrWriter, g.title, int64(g.seeds.count()))

	began := time.Now()
	work := func(seed uint64) []record {
		records := make([]record, len(g.sides))
		for i := range g.sides {
			records[i] = runSide(g.sides, i, seed, all, options, files.keep())
		}
		return records
	}
	err = inOrder(g.c.Context, g.seeds, workers(g.seeds), work, func(records []record) error {
		for i := range records {
			if err := records[i].err; err != nil {
				return fmt.Errorf("seed %d: %w", records[i].seed, err)
			}
		}
		sum.add(records, g.replay)
		progress.Set(int64(sum.done))
		for i := range records {
			err := errors.Join(out.run(&records[i]), files.write(&records[i], g.sides))
			if err != nil {
				return err
			}
		}
		if sum.first != nil && g.c.Bool(flagFailFast) {
			return errEnough
		}
		return nil
	})
	progress.End()
	sum.totals.took = time.Since(began)
	sum.complete = sum.done == g.seeds.count()
	if errors.Is(err, errEnough) {
		err = nil
	}
	if closing := files.close(); err == nil {
		err = closing // else it says the same again
	}
	if err != nil {
		return err
	}
	return g.finish(out, sum)
}

// workers is how many seeds run at a time.
func workers(seeds seedRange) int {
	return int(min(uint64(runtime.GOMAXPROCS(0)), seeds.count()))
}

// finish prints the summary and returns how the command ended.
func (g campaign) finish(out reporter, sum *summary) error {
	if err := out.end(sum); err != nil {
		return err
	}
	if sum.vacuous > 0 {
		fmt.Fprintf(g.c.App.ErrWriter, "%s: %s: warning: %v\n", g.c.App.Name, g.c.Command.Name, sum.warning())
	}
	if interrupted(g.c.Context) && !sum.complete {
		return cli.ErrInterrupted
	}
	if sum.first == nil {
		return nil
	}
	return &brokenError{runs: sum.totals.runs, broken: sum.totals.violations, seed: sum.first.seed, rule: sum.first.violation.Rule}
}

func interrupted(ctx context.Context) bool { return ctx.Err() != nil }

// brokenError says that promises were broken: exit code 1.
type brokenError struct {
	runs, broken, seed uint64
	rule               string
}

// Error returns how many, and the first.
func (e *brokenError) Error() string {
	if e.runs == 1 {
		return fmt.Sprintf("seed %d broke a promise: %s", e.seed, e.rule)
	}
	return fmt.Sprintf("%s of %s runs broke a promise; the first is that of seed %d: %s", grouped(e.broken), grouped(e.runs), e.seed, e.rule)
}

// indent puts spaces before each line of text.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}
