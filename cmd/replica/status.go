package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	urfave "github.com/urfave/cli/v2"

	"atoll/client"
	"atoll/internal/cli"
	"atoll/internal/identity"
)

func statusCommand() *urfave.Command {
	return cli.Command{
		Name:    "status",
		Purpose: "show how the cluster of a node's folder is",
		Details: `Asks all members, on the host of one of them, as the client that init made for
that folder. A member that doesn't answer is shown as silent.`,
		Examples: []string{
			"replica status --data-dir cluster/a",
			"replica status --data-dir cluster/a -o json",
		},
		Flags: append([]urfave.Flag{
			dataDirFlag(dataDirOfNode),
			cli.TimeoutFlag("the search for a member that answers"),
			cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat),
		}, cli.LogFlags(slog.LevelWarn)...),
		Codes: []int{cli.ExitPrecondition, cli.ExitNoQuorum, cli.ExitDenied, cli.ExitDamaged},
		Run:   showStatus,
	}.Build()
}

func showStatus(c *urfave.Context) (err error) {
	dir, err := requiredDir(c)
	if err != nil {
		return err
	}
	cfg, err := client.LoadContext(filepath.Join(dir, identity.FileContext))
	if errors.Is(err, fs.ErrNotExist) {
		return noContext(dir)
	}
	if err != nil {
		return err
	}
	cfg.Timeout, cfg.Log = c.Duration(cli.FlagTimeout), cli.Logger(c)
	cl, err := client.Open(c.Context, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cl.Close()) }()
	s, err := cl.Status(c.Context)
	if err != nil {
		return err
	}
	return cli.PrintStatus(c.App.Writer, cli.OutputOf(c), s)
}

// noContext says what is wrong with a node's folder in which there is no context file.
func noContext(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return cli.Preconditionf("%s doesn't exist; give the folder of a member", dir)
	}
	return cli.Preconditionf("%s has no %s, which replica init writes for the first members and a node that joins hasn't; ask with client status --context FILE",
		dir, identity.FileContext)
}
