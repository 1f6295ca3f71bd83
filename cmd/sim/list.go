package main

import (
	"fmt"
	"io"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
	"atoll/sim/explore"
	"atoll/sim/scenario"
)

// named is something that a scenario or a flag can name.
type named struct {
	Name  string `json:"name"`
	About string `json:"about,omitempty"`
}

// listed is all that can be named.
type listed struct {
	Scenarios  []named `json:"scenarios"`
	Algorithms []named `json:"algorithms"`
	Faults     []named `json:"faults"`
	Mutants    []named `json:"mutants"`
	Scopes     []named `json:"scopes"`
}

func list() *urfave.Command {
	return cli.Command{
		Name:    "list",
		Purpose: "print what there is: scenarios, algorithms, faults, mutants, scopes",
		Details: `Scenarios are what sim run takes. Algorithms are what --algorithm and --compare
take; faults are what the "kinds" of a scenario's faults and the decisions of a
plan name; mutants are rules that --mutant breaks, to see the checks notice.
Scopes are what sim explore takes.`,
		Examples: []string{"sim list", "sim list -o json"},
		Flags:    []urfave.Flag{cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat)},
		Run: func(c *urfave.Context) error {
			l := everythingNamed()
			if format := cli.OutputOf(c); format != cli.TableFormat {
				return cli.PrintObject(c.App.Writer, format, l)
			}
			return l.print(c.App.Writer)
		},
	}.Build()
}

func everythingNamed() listed {
	var l listed
	for _, s := range scenario.Builtins() {
		l.Scenarios = append(l.Scenarios, named{s.Name, s.About})
	}
	for _, a := range scenario.Algorithms() {
		l.Algorithms = append(l.Algorithms, named{a.Name(), a.About()})
	}
	for _, name := range scenario.FaultKinds() {
		l.Faults = append(l.Faults, named{name, scenario.FaultAbout(name)})
	}
	for _, name := range scenario.RuleNames() {
		l.Mutants = append(l.Mutants, named{name, scenario.RuleAbout(name)})
	}
	for _, s := range explore.Scopes() {
		l.Scopes = append(l.Scopes, named{s.Name, s.About})
	}
	return l
}

func (l listed) print(w io.Writer) error {
	for i, part := range []struct {
		head string
		all  []named
	}{{"SCENARIO", l.Scenarios}, {"ALGORITHM", l.Algorithms}, {"FAULT", l.Faults}, {"MUTANT", l.Mutants}, {"SCOPE", l.Scopes}} {
		if i > 0 {
			fmt.Fprintln(w)
		}
		t := cli.NewTable(w, part.head, "")
		for _, n := range part.all {
			if err := t.Row(n.Name, n.About); err != nil {
				return err
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}
