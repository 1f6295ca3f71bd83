package main

import (
	"fmt"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
	"atoll/sim/scenario"
)

// goFormat is the source of a Go test.
const goFormat cli.Format = "go"

const (
	flagRuns = "runs"
	flagPlan = "plan"
	maxRuns  = 1_000_000
)

func shrink() *urfave.Command {
	return cli.Command{
		Name:      "shrink",
		Arguments: "SCENARIO",
		Purpose:   "cut a run that breaks a promise to what it takes to break it",
		Details: `Takes out of the run of --seed, one after another, faults, clients, keys, nodes
and operations, as long as the run of what is left breaks the same promise. With
--plan, SCENARIO is a plan file, and is cut itself.

The table tells what is left and how the promise breaks; -o json prints the
plan, a file for sim replay; -o go prints a Go test that fails as long as the
promise is broken. The command ends with 0 when it has shrunk a run, and with 4
when there is nothing to shrink: the run keeps all promises.`,
		Examples: []string{
			"sim shrink registers --seed 7 --mutant abd.NoWriteBack",
			"sim shrink registers --seed 7 --mutant abd.NoWriteBack -o json > plan.json",
			"sim shrink --plan plan.json -o go > found_test.go",
		},
		Flags: slices.Concat([]urfave.Flag{
			seedFlag("shrink the run of the seed `N`"),
			&urfave.BoolFlag{Name: flagPlan, Usage: "SCENARIO is a plan file"},
			runsFlag(),
		}, variantFlags(), []urfave.Flag{cli.OutputFlag(cli.TableFormat, cli.JSONFormat, goFormat)}),
		Codes: []int{cli.ExitPrecondition, cli.ExitNotFound},
		Meanings: map[int]string{
			cli.ExitNotFound:     "nothing to shrink: the run keeps all promises",
			cli.ExitPrecondition: badFile,
		},
		Run: runShrink,
	}.Build()
}

func runsFlag() urfave.Flag {
	return &urfave.IntFlag{
		Name: flagRuns, Value: scenario.DefaultShrinkRuns, Usage: "try up to `N` smaller plans",
		Action: func(_ *urfave.Context, n int) error {
			if n < 1 || n > maxRuns {
				return cli.Usagef("--%s must be from 1 to %d, not %d", flagRuns, maxRuns, n)
			}
			return nil
		},
	}
}

// planToShrink returns the plan that the arguments mean, and what to call it.
func planToShrink(c *urfave.Context) (plan scenario.Plan, name string, err error) {
	argument := c.Args().First()
	if c.Bool(flagPlan) {
		if c.IsSet(flagSeed) || c.IsSet(flagAlgorithm) || c.IsSet(flagMutant) {
			return plan, "", cli.Usagef("a plan has its seed, algorithm and mutants: --%s, --%s and --%s don't go with --%s",
				flagSeed, flagAlgorithm, flagMutant, flagPlan)
		}
		plan, err = loadPlan(argument)
		return plan, argument, err
	}
	if !c.IsSet(flagSeed) {
		return plan, "", cli.Usagef("--%s is missing: the seed whose run is to be shrunk", flagSeed)
	}
	s, err := loadScenario(argument)
	if err != nil {
		return plan, "", err
	}
	s = applyFlags(c, s)
	if err := s.Check(); err != nil {
		return plan, "", &cli.PreconditionError{Text: s.Name, Err: err}
	}
	plan, err = drawn(c, s)
	return plan, fmt.Sprintf("%s, seed %s", s.Name, c.String(flagSeed)), err
}

func runShrink(c *urfave.Context) error {
	plan, name, err := planToShrink(c)
	if err != nil {
		return err
	}
	small, result, runs, err := shrunk(c, plan)
	switch {
	case err != nil:
		return err
	case result.Violation == nil:
		return &cli.NotFoundError{Text: name + " keeps all promises: there is nothing to shrink"}
	}
	switch cli.OutputOf(c) {
	case cli.JSONFormat:
		_, err = c.App.Writer.Write(small.JSON())
	case goFormat:
		_, err = fmt.Fprint(c.App.Writer, small.GoTest(testName(result.Violation.Rule)))
	default:
		err = printShrunk(c, plan, small, result, runs)
	}
	return err
}

// shrunk shrinks a plan, and gives up on it when the command is interrupted.
func shrunk(c *urfave.Context, plan scenario.Plan) (small scenario.Plan, r scenario.Result, runs int, err error) {
	most := c.Int(flagRuns)
	progress := cli.NewProgress(c.App.ErrWriter, "shrinking", int64(most))
	defer progress.End()
	done := make(chan struct{})
	go func() {
		defer close(done)
		small, r, err = scenario.Shrink(plan, scenario.ShrinkOptions{
			Runs:  most,
			Tried: func(n int, _ scenario.Plan) { runs = n; progress.Set(int64(n)) },
		})
	}()
	select {
	case <-done:
		return small, r, runs, err
	case <-c.Context.Done():
		// The process ends, and the goroutine with it: a shrink can't be told
		// to stop, and nobody waits for it any more.
		return scenario.Plan{}, scenario.Result{}, 0, cli.ErrInterrupted
	}
}

// testName makes the name of a Go test of the name of a rule.
func testName(rule string) string {
	var b strings.Builder
	b.WriteString("Test")
	up := true
	for _, r := range rule {
		switch {
		case 'a' <= r && r <= 'z' && up:
			b.WriteRune(r - 'a' + 'A')
			up = false
		case 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9':
			b.WriteRune(r)
			up = false
		default:
			up = true
		}
	}
	return b.String()
}

func printShrunk(c *urfave.Context, before, after scenario.Plan, r scenario.Result, runs int) error {
	w := c.App.Writer
	from, to := before.Scenario.WithDefaults(), after.Scenario.WithDefaults()
	fmt.Fprintf(w, "after %s:\n\n", counted(uint64(runs), "run"))
	table := cli.NewTable(w, "", "BEFORE", "AFTER")
	for _, row := range []struct {
		name     string
		from, to any
	}{
		{"faults", len(before.Decisions), len(after.Decisions)},
		{"clusters", from.Clusters, to.Clusters},
		{"nodes", from.Nodes, to.Nodes},
		{"clients", from.Clusters*from.Clients - len(before.Idle), to.Clusters*to.Clients - len(after.Idle)},
		{"keys", from.Keys, to.Keys},
		{"duration", from.Duration, to.Duration},
	} {
		if err := table.Row(row.name, fmt.Sprint(row.from), fmt.Sprint(row.to)); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s ended before the promise was broken. The faults that are left:\n", counted(r.Figures.Operations(), "operation"))
	for _, d := range after.Decisions {
		fmt.Fprintf(w, "  %v\n", d)
	}
	if len(after.Decisions) == 0 {
		fmt.Fprintln(w, "  none")
	}
	_, err := fmt.Fprintf(w, "\n%s\n", indent(r.Violation.Error()))
	return err
}
