package main

import (
	"errors"
	"time"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
	"atoll/internal/identity"
)

const (
	flagCADir    = "ca-dir"
	flagValidFor = "valid-for"
)

func renewCommand() *urfave.Command {
	return cli.Command{
		Name:      "renew",
		Arguments: "PATH...",
		Purpose:   "make new certificates for the same holders and keys",
		Details: `A PATH is a member's folder (its node.crt, and its client.json), a context file,
or a certificate: of a member far away, carry only node.crt here and back.
Each certificate is replaced at once or not at all. A running replica takes it
over within a second, a running client when it connects the next time, and
connections that stand are left alone. One that has ended can be renewed, too.
What this CA hasn't signed is refused.`,
		Examples: []string{
			"replica renew --ca-dir cluster/ca cluster/a cluster/b cluster/client.json",
			"replica renew --ca-dir cluster/ca --valid-for 2160h /tmp/node.crt",
		},
		Flags: []urfave.Flag{
			&urfave.PathFlag{
				Name: flagCADir, EnvVars: []string{cli.Environment(flagCADir)},
				Usage: "`FOLDER` of the cluster's CA, as init wrote it",
			},
			&urfave.DurationFlag{
				Name: flagValidFor, EnvVars: []string{cli.Environment(flagValidFor)}, Value: identity.DefaultValidity,
				Usage: "let certificates end after `DURATION`, an hour at least, as in 720h; with the CA's at the latest",
				Action: func(_ *urfave.Context, d time.Duration) error {
					if d < identity.MinValidity || d > identity.CAValidity {
						return cli.Usagef("--%s must be from %.0fh to %.0fh, as in 720h, not %v", flagValidFor,
							identity.MinValidity.Hours(), identity.CAValidity.Hours(), d)
					}
					return nil
				},
			},
			cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat),
		},
		Codes: []int{cli.ExitPrecondition, cli.ExitDenied, cli.ExitDamaged},
		Run:   runRenew,
	}.Build()
}

// renewedLine is a renewed certificate as renew prints it.
type renewedLine struct {
	File   string `json:"file"`
	Holder string `json:"holder"`
	End    string `json:"certificate_end"`
}

func runRenew(c *urfave.Context) error {
	if c.Path(flagCADir) == "" {
		return cli.Usagef("--%s is missing", flagCADir)
	}
	ca, err := identity.LoadCA(c.Path(flagCADir))
	if err != nil {
		return err
	}
	var lines []renewedLine
	for _, path := range c.Args().Slice() {
		renewed, failed := ca.Renew(path, time.Now(), c.Duration(flagValidFor))
		for _, r := range renewed {
			lines = append(lines, renewedLine{File: r.File, Holder: r.Holder.String(), End: r.Until.UTC().Format(time.RFC3339)})
		}
		if err = failed; err != nil {
			break // those before it are done, and are printed
		}
	}
	return errors.Join(printRenewed(c, lines), err)
}

func printRenewed(c *urfave.Context, lines []renewedLine) error {
	if len(lines) == 0 {
		return nil
	}
	switch cli.OutputOf(c) {
	case cli.JSONFormat:
		return cli.PrintJSON(c.App.Writer, map[string]any{"renewed": lines})
	case cli.LinesFormat:
		for _, l := range lines {
			if err := cli.PrintLine(c.App.Writer, l); err != nil {
				return err
			}
		}
		return nil
	}
	t := cli.NewTable(c.App.Writer, "FILE", "HOLDER", "ENDS")
	for _, l := range lines {
		if err := t.Row(l.File, l.Holder, l.End); err != nil {
			return err
		}
	}
	return t.Flush()
}
