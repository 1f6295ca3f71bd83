package main

import (
	"context"

	urfave "github.com/urfave/cli/v2"

	"atoll/abd"
	"atoll/client"
	"atoll/internal/cli"
)

func remove() *urfave.Command {
	return cli.Command{
		Name:      "delete",
		Arguments: "KEY",
		Purpose:   "make a key absent",
		Details: `It makes no difference whether the key has a value. A deletion is ordered among the
writes of the key like any other, and has a tag.

` + writtenHelp,
		Examples: []string{
			"client delete greeting",
			"client delete greeting -o json",
		},
		Flags: clusterFlags("the whole command", writtenOutput()),
		Codes: cli.ConnectionCodes(cli.ExitUnknown),
		Run: func(c *urfave.Context) error {
			key := c.Args().First()
			if err := abd.Key(key).Check(); err != nil {
				return err
			}
			return with(c, func(ctx context.Context, conn *client.Client) error {
				tag, err := conn.Delete(ctx, key)
				if err != nil {
					return err
				}
				return printWritten(c, key, tag)
			})
		},
	}.Build()
}
