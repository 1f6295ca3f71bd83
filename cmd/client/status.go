package main

import (
	"context"

	urfave "github.com/urfave/cli/v2"

	"atoll/client"
	"atoll/internal/cli"
)

func status() *urfave.Command {
	return cli.Command{
		Name:    "status",
		Purpose: "print what the cluster says of itself",
		Details: `Asks every member how it is, and prints which deaths the configuration tolerates.
A member that doesn't answer is printed as silent, and is no error: scripts look
at "live" in the JSON, which says whether reads and writes work now.`,
		Examples: []string{
			"client status",
			"client status -o json",
		},
		Flags: clusterFlags("the whole command", cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat)),
		Codes: cli.ConnectionCodes(),
		Run: func(c *urfave.Context) error {
			return with(c, func(ctx context.Context, conn *client.Client) error {
				s, err := conn.Status(ctx)
				if err != nil {
					return err
				}
				return cli.PrintStatus(c.App.Writer, cli.OutputOf(c), s)
			})
		},
	}.Build()
}
