// Command replica runs the nodes of a cluster: one of a real one, or a whole
// cluster on this machine for a try.
//
//	replica dev                    a cluster on this machine in one command
//	replica init | run | renew     a real one
//	replica join                   one more node of it
//	replica status | config show | version
//	replica data check|dump|compact  the files of a node that doesn't run
package main

import (
	"os"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
)

func main() { os.Exit(cli.Run(app(), os.Args)) }

func app() *urfave.App {
	return cli.App("replica", "run the nodes of an atoll cluster",
		devCommand(),
		initCommand(),
		renewCommand(),
		runCommand(),
		joinCommand(),
		statusCommand(),
		dataCommands(),
		cli.Group("config", "what a node's settings are", configShowCommand()),
		cli.Version("replica"),
	)
}
