package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"os"
	"path/filepath"
	"strconv"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
	"atoll/internal/identity"
)

const (
	flagReplicas = "replicas"
	flagPort     = "port"
	flagOnce     = "once"

	defaultPort     = 7400
	defaultReplicas = 3
	// maxReplicas keeps a dev cluster to what one machine bears.
	maxReplicas = 26
)

func devCommand() *urfave.Command {
	return cli.Command{
		Name:    "dev",
		Purpose: "run a whole cluster on this machine",
		Details: `Starts each replica as a process of its own on loopback, with a CA and
certificates made for the purpose, prints where they are, and stays until it
is interrupted; then it ends them. A replica that is killed stays dead: try it.

A client without --context and --endpoints uses this cluster while it runs.
With --data-dir the cluster is kept there, and started again the next time.
With --once it takes free ports, shows the main things a cluster does, and ends.`,
		Examples: []string{
			"replica dev",
			"replica dev --data-dir ~/atoll --replicas 5",
			"replica dev --once",
		},
		Flags: append([]urfave.Flag{
			&urfave.IntFlag{Name: flagReplicas, EnvVars: []string{cli.Environment(flagReplicas)}, Value: defaultReplicas, Usage: "`COUNT` of replicas of a new cluster"},
			dataDirFlag("to keep the cluster in; without it, a temporary one"),
			&urfave.IntFlag{Name: flagPort, EnvVars: []string{cli.Environment(flagPort)}, Value: defaultPort, Usage: "`PORT` of the first replica of a new cluster; the others follow"},
			quorumFlag(),
			maxValueFlag(),
			&urfave.BoolFlag{Name: flagOnce, Usage: "show what a cluster does, and end"},
		}, cli.LogFlags(defaultLogLevel)...),
		Codes: []int{cli.ExitPrecondition, cli.ExitNoQuorum, cli.ExitUnknown, cli.ExitDenied, cli.ExitDamaged},
		Run:   runDev,
	}.Build()
}

func runDev(c *urfave.Context) (err error) {
	if n := c.Int(flagReplicas); n < 1 || n > maxReplicas {
		return cli.Usagef("--%s must be 1 to %d, not %d", flagReplicas, maxReplicas, n)
	}
	dir, temporary, err := devFolder(c)
	if err != nil {
		return err
	}
	if temporary {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	cluster, err := devCluster(c, dir)
	if err != nil {
		return err
	}
	cs, err := startChildren(c.Context, dir, cluster)
	if err != nil {
		return err
	}
	defer cs.stop()
	if c.Bool(flagOnce) {
		return tour(c, dir, cs)
	}
	return stay(c, dir, temporary, cs)
}

// stay keeps the cluster until the context ends.
func stay(c *urfave.Context, dir string, temporary bool, cs *children) error {
	contextFile := filepath.Join(dir, identity.FileContext)
	announcement, err := cli.AnnounceDev(contextFile)
	if err != nil {
		return err
	}
	defer announcement.Withdraw()
	if err := printChildren(c.App.Writer, cs); err != nil {
		return err
	}
	fmt.Fprintf(c.App.Writer, "\nexport ATOLL_CONTEXT=%s\n", contextFile)
	note := "kept; start it again with the same --data-dir"
	if temporary {
		note = "temporary; it goes when this ends"
	}
	fmt.Fprintf(c.App.ErrWriter, "folder %s: %s\nCtrl-C ends the cluster\n", dir, note)
	ended := make(chan *child)
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	for _, k := range cs.all {
		go func() {
			select {
			case <-k.done:
				select {
				case ended <- k:
				case <-ctx.Done():
				}
			case <-ctx.Done():
			}
		}()
	}
	for alive := len(cs.all); ; {
		select {
		case <-ctx.Done():
			return nil
		case k := <-ended:
			alive--
			fmt.Fprintf(c.App.ErrWriter, "replica %s (pid %d) ended: %v\n", k.serving.Name, k.serving.PID, k.cmd.ProcessState)
			if alive == 0 {
				return errors.New("no replica is left")
			}
		}
	}
}

// devFolder returns the cluster's folder, and whether it goes afterwards.
func devFolder(c *urfave.Context) (dir string, temporary bool, err error) {
	if dir := c.Path(flagDataDir); dir != "" {
		abs, err := filepath.Abs(dir)
		return abs, false, err
	}
	dir, err = os.MkdirTemp("", "atoll-dev-")
	return dir, true, err
}

// devCluster returns the cluster in dir, which it creates if there is none.
func devCluster(c *urfave.Context, dir string) (identity.ClusterFile, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return identity.ClusterFile{}, err
	}
	if len(entries) > 0 {
		for _, flag := range []string{flagReplicas, flagPort, flagQuorum, flagMaxValue} {
			if c.IsSet(flag) {
				return identity.ClusterFile{}, cli.Usagef("--%s is for a new cluster, and %s has one", flag, dir)
			}
		}
		return existingCluster(dir)
	}
	ports := make([]int, c.Int(flagReplicas))
	for i := range ports {
		ports[i] = c.Int(flagPort) + i
	}
	if c.Bool(flagOnce) && !c.IsSet(flagPort) {
		if err := freePorts(ports); err != nil {
			return identity.ClusterFile{}, err
		}
	}
	return createCluster(dir, loopbackMembers(ports), c.String(flagQuorum), c.Int(flagMaxValue))
}

// loopbackMembers names the members a, b, c, ...
func loopbackMembers(ports []int) []identity.MemberSpec {
	var members []identity.MemberSpec
	for i, port := range ports {
		members = append(members, identity.MemberSpec{Name: string(rune('a' + i)), Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))})
	}
	return members
}

// existingCluster returns the cluster of an earlier run: that of any member
// folder in dir, all of which must be there.
func existingCluster(dir string) (identity.ClusterFile, error) {
	folder, err := identity.OpenFolder(filepath.Join(dir, "a"))
	if err != nil {
		return identity.ClusterFile{}, fmt.Errorf("%s is not a dev cluster's folder: %w", dir, err)
	}
	return folder.Cluster, nil
}

// freePorts fills ports with UDP ports that nobody has on loopback now.
func freePorts(ports []int) error {
	for i := range ports {
		conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return err
		}
		defer conn.Close() // all at the end, so that they differ
		ports[i] = conn.LocalAddr().(*net.UDPAddr).Port
	}
	return nil
}

func printChildren(w io.Writer, cs *children) error {
	t := cli.NewTable(w, "NAME", "ID", "PID", "ADDRESS", "FOLDER")
	for _, l := range cs.lines() {
		if err := t.Row(l.Name, l.ID, strconv.Itoa(l.PID), l.Address, l.Folder); err != nil {
			return err
		}
	}
	return t.Flush()
}

// bytesLines yields the lines of b that aren't empty.
func bytesLines(b []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range bytes.Lines(b) {
			if s := string(bytes.TrimSpace(line)); s != "" && !yield(s) {
				return
			}
		}
	}
}
