package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"atoll/abd"
	"atoll/internal/cli"
	"atoll/internal/identity"
	"atoll/internal/store"
)

const (
	flagDataDir  = "data-dir"
	flagMembers  = "members"
	flagQuorum   = "quorum"
	flagMaxValue = "max-value"
)

// dataDirOfNode is what --data-dir means to commands about a node that is there.
const dataDirOfNode = "of the node, as init or join wrote it"

func dataDirFlag(what string) urfave.Flag {
	return &urfave.PathFlag{
		Name: flagDataDir, EnvVars: []string{cli.Environment(flagDataDir)},
		Usage: "`FOLDER` " + what,
	}
}

func quorumFlag() urfave.Flag {
	return &urfave.StringFlag{
		Name: flagQuorum, EnvVars: []string{cli.Environment(flagQuorum)}, Value: "majority",
		Usage: "`SYSTEM` of quorums: majority; get=2,put=4; weights=a:3,b:1,c:1; grid=3x3",
	}
}

func maxValueFlag() urfave.Flag {
	return &urfave.IntFlag{
		Name: flagMaxValue, EnvVars: []string{cli.Environment(flagMaxValue)}, Value: abd.DefaultMaxValue,
		Usage: fmt.Sprintf("largest value in `BYTES`, up to %d; for the whole cluster, for good", abd.LargestMaxValue),
		Action: func(_ *urfave.Context, n int) error {
			if n < 1 || n > abd.LargestMaxValue {
				return cli.Usagef("--%s must be 1 to %d bytes, not %d", flagMaxValue, abd.LargestMaxValue, n)
			}
			return nil
		},
	}
}

func initCommand() *urfave.Command {
	return cli.Command{
		Name:    "init",
		Purpose: "write the folders of a new cluster's members",
		Details: `Makes the cluster's CA, a folder for each member to carry to its host, where
"replica run --data-dir" starts it, and context files:

  FOLDER/ca/           the CA; keep it safe, no node needs it
  FOLDER/NAME/         a member's identity, certificate and empty store
  FOLDER/client.json   endpoints and a client's certificate: reads and writes
  FOLDER/admin.json    the same of an admin, who may also change the cluster

It writes all of it or nothing. With one member it is a cluster of one.`,
		Examples: []string{
			"replica init --members a=10.0.0.1:7400,b=10.0.0.2:7400,c=10.0.0.3:7400 --data-dir cluster",
			"replica init --members a=[::1]:7400 --data-dir one",
		},
		Check: func(arguments []string) error {
			for _, a := range arguments {
				if strings.Contains(a, "=") {
					return cli.Usagef("unexpected argument %.60q: write commas between members, and no spaces", a)
				}
			}
			return nil
		},
		Flags: []urfave.Flag{
			&urfave.StringFlag{
				Name: flagMembers, EnvVars: []string{cli.Environment(flagMembers)},
				Usage: "`NAME=HOST:PORT`,... of each member, where others dial it; ports are 1 to 65535",
			},
			dataDirFlag("to create; missing or empty"),
			quorumFlag(),
			maxValueFlag(),
			cli.OutputFlag(cli.TableFormat, cli.JSONFormat),
		},
		Codes: []int{cli.ExitPrecondition},
		Run:   runInit,
	}.Build()
}

func runInit(c *urfave.Context) error {
	dir, err := requiredDir(c)
	if err != nil {
		return err
	}
	if c.String(flagMembers) == "" {
		return cli.Usagef("--%s is missing: NAME=HOST:PORT,...", flagMembers)
	}
	members, err := identity.ParseMembers(c.String(flagMembers))
	if err != nil {
		return cli.Usagef("--%s: %v", flagMembers, err)
	}
	cluster, err := createCluster(dir, members, c.String(flagQuorum), c.Int(flagMaxValue))
	if err != nil {
		return err
	}
	return printCluster(c, dir, cluster)
}

// createCluster writes the folders of a cluster, each with an empty store.
// What the folder isn't to blame for is a usage error.
func createCluster(dir string, members []identity.MemberSpec, quorum string, maxValue int) (identity.ClusterFile, error) {
	cluster, err := identity.CreateCluster(dir, identity.Spec{
		Members:  members,
		Quorum:   quorum,
		MaxValue: maxValue,
		Prepare:  prepareStore,
	})
	_, folder := errors.AsType[*identity.FolderError](err)
	_, precondition := errors.AsType[*cli.PreconditionError](err)
	if err != nil && !folder && !precondition {
		err = cli.Usagef("%v", err)
	}
	return cluster, err
}

// prepareStore makes a node's store, and ties the node to it.
func prepareStore(dir string) error {
	if err := store.Create(store.Config{Dir: dir}); err != nil {
		return &cli.PreconditionError{Text: "the node's store", Err: err}
	}
	id, err := store.ID(dir)
	if err != nil {
		return err
	}
	return identity.Bind(dir, id)
}

func requiredDir(c *urfave.Context) (string, error) {
	dir := c.Path(flagDataDir)
	if dir == "" {
		return "", cli.Usagef("--%s is missing", flagDataDir)
	}
	return filepath.Clean(dir), nil
}

// memberLine is a member as init and dev print it.
type memberLine struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	PID     int    `json:"pid,omitempty"`
	Address string `json:"address"`
	Folder  string `json:"folder"`
}

// byName returns members in the order in which people look for them.
func byName(members []identity.Member) []identity.Member {
	return slices.SortedFunc(slices.Values(members), func(a, b identity.Member) int { return strings.Compare(a.Name, b.Name) })
}

func printCluster(c *urfave.Context, dir string, cluster identity.ClusterFile) error {
	var lines []memberLine
	for _, m := range byName(cluster.Members) {
		lines = append(lines, memberLine{Name: m.Name, ID: string(m.ID), Address: strings.Join(m.Addresses, ",")})
	}
	dir, err := filepath.Abs(dir) // what is printed is copied to other places
	if err != nil {
		return err
	}
	for i := range lines {
		lines[i].Folder = filepath.Join(dir, lines[i].Name)
	}
	if cli.OutputOf(c) == cli.JSONFormat {
		return cli.PrintJSON(c.App.Writer, map[string]any{
			"cluster": cluster.Cluster, "quorum": cluster.Quorum, "max_value": cluster.MaxValue,
			"members": lines, "ca": filepath.Join(dir, "ca"), "context": filepath.Join(dir, identity.FileContext),
			"admin_context": filepath.Join(dir, identity.FileAdmin),
		})
	}
	t := cli.NewTable(c.App.Writer, "NAME", "ID", "ADDRESS", "FOLDER")
	for _, l := range lines {
		if err := t.Row(l.Name, l.ID, l.Address, l.Folder); err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.App.Writer, "\ncluster %s, quorum %s\nclients: export ATOLL_CONTEXT=%s\nadmins: export ATOLL_CONTEXT=%s\n",
		cluster.Cluster, cluster.Quorum, filepath.Join(dir, identity.FileContext), filepath.Join(dir, identity.FileAdmin))
	return err
}
