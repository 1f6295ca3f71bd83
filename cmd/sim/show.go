package main

import (
	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
	"atoll/sim/scenario"
)

func show() *urfave.Command {
	return cli.Command{
		Name:      "show",
		Arguments: "SCENARIO",
		Purpose:   "print a scenario as a file, or the plan that a seed draws from it",
		Details: `What is printed is a file that sim run takes, every field with its value: a good
beginning for a scenario of one's own. With --seed it is the plan of that seed,
a file that sim replay takes: the settings, and each fault with its time.`,
		Examples: []string{
			"sim show registers > mine.json",
			"sim show registers --seed 7 > plan.json",
		},
		Flags: append([]urfave.Flag{seedFlag("print the plan that the seed `N` draws")}, variantFlags()...),
		Codes: []int{cli.ExitPrecondition},
		Meanings: map[int]string{
			cli.ExitPrecondition: badFile,
		},
		Run: func(c *urfave.Context) error {
			s, err := loadScenario(c.Args().First())
			if err != nil {
				return err
			}
			s = applyFlags(c, s)
			if err := s.Check(); err != nil {
				return &cli.PreconditionError{Text: s.Name, Err: err}
			}
			b := s.WithDefaults().JSON()
			if c.IsSet(flagSeed) {
				var plan scenario.Plan
				if plan, err = drawn(c, s); err != nil {
					return err
				}
				b = plan.JSON()
			}
			_, err = c.App.Writer.Write(b)
			return err
		},
	}.Build()
}

// drawn returns the plan that the seed of --seed draws.
func drawn(c *urfave.Context, s scenario.Scenario) (scenario.Plan, error) {
	seed, err := parseSeed(c.String(flagSeed))
	if err != nil {
		return scenario.Plan{}, cli.Usagef("--%s: %v", flagSeed, err)
	}
	return s.Draw(seed), nil
}
