package main

import (
	"errors"
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
		Details: `Asks all members, on the host of one of them, with that node's own certificate:
no context file is needed. A member that doesn't answer is shown as silent.`,
		Examples: []string{
			"replica status --data-dir cluster/a",
			"replica status --data-dir cluster/a -o json",
		},
		Flags: append([]urfave.Flag{
			dataDirFlag("of the node, as init wrote it"),
			cli.TimeoutFlag("the search for a member that answers"),
			cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat),
		}, cli.LogFlags(defaultLogLevel)...),
		Codes: []int{cli.ExitPrecondition, cli.ExitNoQuorum, cli.ExitDenied, cli.ExitDamaged},
		Run:   showStatus,
	}.Build()
}

func showStatus(c *urfave.Context) (err error) {
	dir, err := requiredDir(c)
	if err != nil {
		return err
	}
	folder, err := identity.OpenFolder(dir)
	if err != nil {
		return err
	}
	cfg := client.Config{
		Endpoints: folder.Cluster.Endpoints(),
		Timeout:   c.Duration(cli.FlagTimeout),
		Log:       cli.Logger(c),
	}
	for name, to := range map[string]*[]byte{identity.FileCA: &cfg.CA, identity.FileCertificate: &cfg.Certificate, identity.FileKey: &cfg.Key} {
		if *to, err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
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
