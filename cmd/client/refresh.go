package main

import (
	"context"
	"fmt"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"atoll/client"
	"atoll/internal/cli"
	"atoll/internal/identity"
)

func refresh() *urfave.Command {
	return cli.Command{
		Name:    "refresh",
		Purpose: "write where the members are now into a context file",
		Details: `Clients find a cluster by the addresses in their context file. A client that runs
follows the members; the file keeps the addresses that it was made with. Asks the
cluster where the present members are and replaces the file's addresses, all or
nothing. When none of the old ones lives any more, --endpoints says where to ask.`,
		Examples: []string{
			"client refresh --context admin.json",
			"client refresh --context admin.json --endpoints 10.0.0.7:7400",
		},
		Flags: clusterFlags("the whole command", cli.OutputFlag(cli.TableFormat, cli.JSONFormat)),
		Codes: cli.ConnectionCodes(),
		Run:   runRefresh,
	}.Build()
}

// refreshed is what `refresh -o json` prints.
type refreshed struct {
	Context   string   `json:"context"`
	Endpoints []string `json:"endpoints"`
}

func runRefresh(c *urfave.Context) error {
	path := c.Path(cli.FlagContext)
	if path == "" {
		return cli.Usagef("--%s is missing: the file that is to be written", cli.FlagContext)
	}
	file, err := identity.LoadContext(path)
	if err != nil {
		return err
	}
	return with(c, func(ctx context.Context, conn *client.Client) error {
		s, err := conn.Status(ctx)
		if err != nil {
			return err
		}
		file.Endpoints = endpointsOf(s)
		if len(file.Endpoints) == 0 {
			return cli.Preconditionf("no member says where it is")
		}
		if err := identity.SaveContext(path, file); err != nil {
			return err
		}
		if format := cli.OutputOf(c); format != cli.TableFormat {
			return cli.PrintObject(c.App.Writer, format, refreshed{path, file.Endpoints})
		}
		_, err = fmt.Fprintf(c.App.Writer, "%s: %s\n", path, strings.Join(file.Endpoints, " "))
		return err
	})
}

// endpointsOf returns the addresses of the newest configuration's members: the first
// ones of all, then the others, as many as a context file may have.
func endpointsOf(s client.Status) []string {
	var first, others []string
	for _, m := range s.Members {
		if _, member := s.Configuration.Place(m.ID); member && len(m.Addresses) > 0 {
			first = append(first, m.Addresses[0])
			others = append(others, m.Addresses[1:]...)
		}
	}
	all := append(first, others...)
	return all[:min(len(all), identity.MaxEndpoints)]
}
