package main

import (
	"slices"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
)

func replay() *urfave.Command {
	return cli.Command{
		Name:      "replay",
		Arguments: "PLAN",
		Purpose:   "run a plan: one run, every fault of which is written down",
		Details: `PLAN is a file as sim show --seed and sim shrink -o json print it. The same plan
gives the same run, to the last event: the hash says so. What is printed is what
sim run prints of a single seed.`,
		Examples: []string{
			"sim replay plan.json",
			"sim replay plan.json --history run.jsonl",
		},
		Flags: slices.Concat(fileFlags(), []urfave.Flag{formatFlag()}),
		Codes: []int{cli.ExitPrecondition},
		Meanings: map[int]string{
			cli.ExitOther:        "a promise was broken, or any other error",
			cli.ExitPrecondition: badFile,
		},
		Run: func(c *urfave.Context) error {
			path := c.Args().First()
			plan, err := loadPlan(path)
			if err != nil {
				return err
			}
			label := algorithmOf(plan.Scenario)
			return campaign{
				c: c, title: plan.Scenario.Name + ", " + label, seeds: seedRange{plan.Seed, plan.Seed},
				sides:  []side{{label: label, scenario: plan.Scenario, plan: &plan}},
				replay: func(uint64) string { return "sim replay " + quoteArgument(path) },
			}.run()
		},
	}.Build()
}
