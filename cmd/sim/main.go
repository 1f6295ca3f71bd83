// Command sim runs clusters on a simulated network, disk and clock, and checks
// every promise that they make.
//
//	sim run SCENARIO       run a scenario with many seeds
//	sim list               what there is: scenarios, algorithms, faults, mutants, scopes
//	sim show SCENARIO      print a scenario, or the plan that a seed draws
//	sim replay PLAN        run a plan
//	sim shrink SCENARIO    cut a run that breaks a promise to what it takes
//	sim explore SCOPE      look at everything that can happen in a small scope
//	sim check HISTORY      judge the history of any system
//	sim version
//
// A SCENARIO is the name of one that is built in, or a file. The same seed
// gives the same run everywhere, and results are printed in the order of the
// seeds, however many run at once. docs/SIMULATOR.md tells how to write
// scenarios and algorithms; internal/cli has what this shares with the other
// programs: flags, output, exit codes.
package main

import (
	"os"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
)

// badFile is what cli.ExitPrecondition means of the commands that take files.
const badFile = "a file can't be read or written, or isn't what it should be"

func main() { os.Exit(cli.Run(app(), os.Args)) }

func app() *urfave.App {
	return cli.App("sim", "run clusters in a simulated world, and check what they promise",
		run(), list(), show(), replay(), shrink(), exploration(), check(), cli.Version("sim"))
}
