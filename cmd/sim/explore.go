package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
	"atoll/sim/explore"
)

const (
	flagStates  = "states"
	flagFor     = "for"
	flagCrashes = "crashes"
	flagLost    = "lost"
	flagPath    = "path"
)

func exploration() *urfave.Command {
	return cli.Command{
		Name:      "explore",
		Arguments: "SCOPE",
		Purpose:   "look at everything that can happen in a small scope",
		Details: `SCOPE is the name of one that is built in (sim list prints them): two or three
configurations, a write, a read, and a node that drives the step from one
configuration to the next. Every order is tried in which messages can arrive, in
which a process can die, and an answer be lost, and every promise is checked on
the way; what has been seen in one order isn't looked at again in another.
docs/SIMULATOR.md says what is left out.

LOCAL is in how many states single processes were seen, which are run one by one
and put together. The numbers of states double quickly. --states (about that many:
those that lie equally deep are seen together) and --for end the search before it is
complete: the report says so and by which of them, and the exit code is 10.
--crashes and --lost make a scope smaller, or larger.

A broken promise ends the search, and the command with exit code 1. What happened
is printed move by move, and the line that makes the same moves again is the last
one on stdout.`,
		Examples: []string{
			"sim explore one",
			"sim explore shrink --crashes 0 --lost 0 --mutant rambo.ServeUnfenced",
			"sim explore replace --lost 0",
		},
		Flags: []urfave.Flag{
			&urfave.StringSliceFlag{
				Name: flagMutant, Usage: "break the rule `NAME`; may be repeated",
				Action: func(_ *urfave.Context, names []string) error { return checkMutants(names) },
			},
			countFlag(flagCrashes, "let `N` processes die", "the scope's number"),
			countFlag(flagLost, "let the answers of `N` moments be lost", "the scope's number"),
			countFlag(flagStates, "end after `N` states; 0: no limit", noLimit),
			&urfave.DurationFlag{
				Name: flagFor, Usage: "end after `DURATION`, as in 30s or 10m; 0: no limit", DefaultText: noLimit,
				Action: func(_ *urfave.Context, d time.Duration) error {
					if d < 0 {
						return cli.Usagef("--%s %v: want 0 or more", flagFor, d)
					}
					return nil
				},
			},
			&urfave.StringFlag{Name: flagPath, Usage: "make the moves of `PATH`, and no others, and print what happens"},
			cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat),
		},
		Codes: []int{cli.ExitIncomplete},
		Meanings: map[int]string{
			cli.ExitOther:      "a promise was broken, or any other error",
			cli.ExitIncomplete: "not complete: --" + flagStates + " or --" + flagFor + " ended it, and no promise was broken until then",
		},
		Run: exploreScope,
	}.Build()
}

// noLimit is what the help says of a limit that isn't given.
const noLimit = "no limit"

// countFlag is a number of 0 or more; without it holds what the text says.
func countFlag(name, usage, without string) *urfave.IntFlag {
	return &urfave.IntFlag{Name: name, Usage: usage, DefaultText: without, Action: func(_ *urfave.Context, n int) error {
		if n < 0 {
			return cli.Usagef("--%s %d: want 0 or more", name, n)
		}
		return nil
	}}
}

func scopeOf(c *urfave.Context) (explore.Scope, error) {
	name := c.Args().First()
	scope, ok := explore.Find(name)
	if !ok {
		var names []string
		for _, s := range explore.Scopes() {
			names = append(names, s.Name)
		}
		return scope, checkName("SCOPE", "scope", name, names)
	}
	if c.IsSet(flagCrashes) {
		scope.Crashes = c.Int(flagCrashes)
	}
	if c.IsSet(flagLost) {
		scope.Lost = c.Int(flagLost)
	}
	return scope, nil
}

// explored is the result in JSON.
type explored struct {
	Scope     string           `json:"scope"`
	Complete  bool             `json:"complete"`
	States    int              `json:"states"`
	Moves     int              `json:"moves"`
	Local     int              `json:"local"`
	Depth     int              `json:"depth"`
	Ends      int              `json:"ends"`
	Seconds   float64          `json:"seconds"`
	Ended     string           `json:"ended,omitempty"` // by what, if neither complete nor by a violation
	Violation *brokenInExplore `json:"violation"`
}

// brokenInExplore is a violation in JSON.
type brokenInExplore struct {
	Rule   string   `json:"rule"`
	Text   string   `json:"text"`
	Moves  []string `json:"moves"`
	Replay string   `json:"replay"`
}

func exploreScope(c *urfave.Context) error {
	scope, err := scopeOf(c)
	if err != nil {
		return err
	}
	rules := c.StringSlice(flagMutant)
	if path := c.String(flagPath); path != "" {
		return replayPath(c, scope, rules, path)
	}
	began := time.Now()
	limit := c.Duration(flagFor)
	r, err := explore.Explore(scope, explore.Options{Rules: rules, MaxStates: c.Int(flagStates), Workers: runtime.GOMAXPROCS(0), Stop: func() bool {
		return interrupted(c.Context) || limit > 0 && time.Since(began) > limit
	}})
	if err != nil {
		return err
	}
	out := explored{Scope: scope.Name, Complete: r.Complete, States: r.States, Moves: r.Moves, Local: r.Local, Depth: r.Depth, Ends: r.Ends,
		Seconds: time.Since(began).Seconds()}
	if r.Violation == nil && !r.Complete {
		out.Ended = endedBy(c, r.States)
	}
	if v := r.Violation; v != nil {
		lines, _, err := explore.Replay(scope, rules, v.Path)
		if err != nil {
			return err
		}
		out.Violation = &brokenInExplore{v.Rule, v.Text, lines, exploreLine(c, scope, v.Path)}
	}
	if format := cli.OutputOf(c); format != cli.TableFormat {
		err = cli.PrintObject(c.App.Writer, format, out)
	} else {
		err = out.print(c.App.Writer)
	}
	switch {
	case err != nil:
		return err
	case r.Violation != nil:
		return &brokenPathError{scope.Name, r.Violation.Rule}
	case r.Complete:
		return nil
	case interrupted(c.Context):
		return cli.ErrInterrupted
	}
	return &cli.IncompleteError{Text: fmt.Sprintf("the exploration of %s isn't complete: it was ended by %s", scope.Name, out.Ended)}
}

// endedBy says what has ended an exploration after so many states before it was
// complete.
func endedBy(c *urfave.Context, states int) string {
	switch most := c.Int(flagStates); {
	case interrupted(c.Context):
		return "an interruption"
	case most > 0 && states >= most:
		return fmt.Sprintf("--%s %d", flagStates, most)
	}
	return fmt.Sprintf("--%s %v", flagFor, c.Duration(flagFor))
}

// exploreLine is the line that makes the moves of a path again.
func exploreLine(c *urfave.Context, scope explore.Scope, path string) string {
	line := fmt.Sprintf("sim explore %s --%s %d --%s %d", scope.Name, flagCrashes, scope.Crashes, flagLost, scope.Lost)
	for _, name := range c.StringSlice(flagMutant) {
		line += fmt.Sprintf(" --%s %s", flagMutant, quoteArgument(name))
	}
	return line + fmt.Sprintf(" --%s %s", flagPath, path)
}

func (e *explored) print(w io.Writer) error {
	how := "complete: this is all that can happen"
	switch {
	case e.Violation != nil:
		how = "ended by a broken promise"
	case !e.Complete:
		how = "NOT complete: it was ended before, by " + e.Ended
	}
	fmt.Fprintf(w, "%s: %s\n", e.Scope, how)
	t := cli.NewTable(w, "STATES", "MOVES", "LOCAL", "DEPTH", "ENDS", "SECONDS")
	count := func(n int) string { return grouped(uint64(n)) }
	if err := t.Row(count(e.States), count(e.Moves), count(e.Local), count(e.Depth), count(e.Ends), fmt.Sprintf("%.2f", e.Seconds)); err != nil {
		return err
	}
	if err := t.Flush(); err != nil || e.Violation == nil {
		return err
	}
	v := e.Violation
	_, err := fmt.Fprintf(w, "\n%s: %s\n\n%s\n\n%s\n", v.Rule, v.Text, strings.Join(v.Moves, "\n"), v.Replay)
	return err
}

// replayPath makes the moves of a path.
func replayPath(c *urfave.Context, scope explore.Scope, rules []string, path string) error {
	lines, v, err := explore.Replay(scope, rules, path)
	if err != nil {
		return cli.Usagef("--%s: %v", flagPath, err)
	}
	if _, err := fmt.Fprintln(c.App.Writer, strings.Join(lines, "\n")); err != nil || v == nil {
		return err
	}
	if _, err := fmt.Fprintf(c.App.Writer, "\n%s: %s\n", v.Rule, v.Text); err != nil {
		return err
	}
	return &brokenPathError{scope.Name, v.Rule}
}

// brokenPathError says that a promise can be broken: exit code 1.
type brokenPathError struct{ scope, rule string }

// Error says which.
func (e *brokenPathError) Error() string {
	return fmt.Sprintf("in scope %s a promise can be broken: %s", e.scope, e.rule)
}
