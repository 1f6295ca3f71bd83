package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
	"atoll/internal/identity"
	"atoll/internal/store"
)

const (
	flagReplicas = "replicas"
	flagPort     = "port"
	flagOnce     = "once"

	defaultPort     = 7400
	defaultReplicas = 3
	// maxReplicas keeps a dev cluster to what one machine bears.
	maxReplicas = 26
	// maxTaken is how many ports that are taken are met before a free one.
	maxTaken = 100
	maxPort  = 65535
)

func devCommand() *urfave.Command {
	return cli.Command{
		Name:    "dev",
		Purpose: "run a whole cluster on this machine",
		Details: `Starts each replica as a process of its own on loopback, with a CA and
certificates made for the purpose, prints where they are, and stays until it
is interrupted; then it ends them. A replica that is killed stays dead: try it.

A client without --context and --endpoints uses this cluster while it runs, as an
admin: "client member" changes it. Nodes that join in its folder are started, too.
With --data-dir the cluster is kept there, and started again the next time, but
for members whose folders are damaged: it says which.
With --once it takes free ports (unless --port is given), shows the main things
that a cluster does, under keys that begin with "tour/", and ends; interrupted
before that, or before the cluster serves, it ends with 130.`,
		Examples: []string{
			"replica dev",
			"replica dev --data-dir ~/atoll --replicas 5",
			"replica dev --once",
		},
		Flags: append([]urfave.Flag{
			&urfave.IntFlag{Name: flagReplicas, EnvVars: []string{cli.Environment(flagReplicas)}, Value: defaultReplicas, Usage: fmt.Sprintf("`COUNT` of replicas of a new cluster, 1 to %d", maxReplicas)},
			dataDirFlag("to keep the cluster in; without it, a temporary one"),
			&urfave.IntFlag{Name: flagPort, EnvVars: []string{cli.Environment(flagPort)}, Value: defaultPort, Usage: fmt.Sprintf("`PORT` of the first replica of a new cluster, from 1; the others follow, up to %d", maxPort)},
			quorumFlag(),
			maxValueFlag(),
			&urfave.BoolFlag{Name: flagOnce, Usage: "show what a cluster does, and end"},
		}, cli.LogFlags(defaultLogLevel)...),
		Codes:  []int{cli.ExitPrecondition, cli.ExitNoQuorum, cli.ExitUnknown, cli.ExitDenied, cli.ExitDamaged, cli.ExitInterrupted},
		Serves: true,
		Run:    runDev,
	}.Build()
}

func runDev(c *urfave.Context) (err error) {
	if n := c.Int(flagReplicas); n < 1 || n > maxReplicas {
		return cli.Usagef("--%s must be 1 to %d, not %d", flagReplicas, maxReplicas, n)
	}
	if first, last := c.Int(flagPort), c.Int(flagPort)+c.Int(flagReplicas)-1; first < 1 || last > maxPort {
		return cli.Usagef("--%s %d: ports are 1 to %d, and each of the %s takes one", flagPort, first, maxPort, plural(c.Int(flagReplicas), "replica"))
	}
	dir, temporary, err := devFolder(c)
	if err != nil {
		return err
	}
	if temporary {
		gone := cli.LeavesBehind(c.Context, fmt.Sprintf("the temporary folder %s stays behind: remove it when its replicas have ended", dir))
		defer func() {
			err = errors.Join(err, os.RemoveAll(dir))
			gone()
		}()
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
	if c.Bool(flagOnce) && len(cs.damaged) > 0 {
		return cs.damaged[0] // the tour kills one more
	}
	if c.Bool(flagOnce) {
		return tour(c, dir, cs)
	}
	return stay(c, dir, temporary, cs)
}

// stay keeps the cluster until the context ends.
func stay(c *urfave.Context, dir string, temporary bool, cs *children) error {
	contextFile := filepath.Join(dir, identity.FileAdmin)
	withdraw, note := announce(contextFile)
	defer withdraw()
	if err := printChildren(c.App.Writer, cs); err != nil {
		return err
	}
	for _, err := range cs.damaged {
		fmt.Fprintf(c.App.ErrWriter, "NOT STARTED: %v\n", err)
	}
	fmt.Fprintf(c.App.Writer, "\nexport ATOLL_CONTEXT=%s\n", contextFile)
	fate := "kept; start it again with the same --data-dir"
	if temporary {
		fate = "temporary; it goes when this ends"
	}
	fmt.Fprintf(c.App.ErrWriter, "%s\nfolder %s: %s\nCtrl-C ends the cluster\n", note, dir, fate)
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

// announce makes clients on this machine find the cluster, unless they find
// another one already. It returns what ends that, and a line for people.
func announce(contextFile string) (withdraw func(), note string) {
	nobody := func() {}
	if dev, alive, err := cli.FindDev(); err == nil && alive {
		return nobody, fmt.Sprintf("clients without a context use the dev cluster that runs already (pid %d): for this one, set ATOLL_CONTEXT", dev.PID)
	}
	a, err := cli.AnnounceDev(contextFile)
	if err != nil {
		return nobody, fmt.Sprintf("clients won't find this cluster by themselves (%v): set ATOLL_CONTEXT", err)
	}
	return func() { _ = a.Withdraw() }, "clients on this machine find this cluster by themselves"
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
	} else if err := portsFree(ports); err != nil {
		return identity.ClusterFile{}, err
	}
	return createCluster(dir, loopbackMembers(ports), c.String(flagQuorum), c.Int(flagMaxValue))
}

// memberName is the name of the i'th member of a dev cluster: a, b, c, ...
func memberName(i int) string { return string(rune('a' + i)) }

// loopbackMembers names the members a, b, c, ...
func loopbackMembers(ports []int) []identity.MemberSpec {
	var members []identity.MemberSpec
	for i, port := range ports {
		members = append(members, identity.MemberSpec{Name: memberName(i), Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))})
	}
	return members
}

// existingCluster returns the cluster of an earlier run: that of the first member's
// folder in dir that can be opened.
func existingCluster(dir string) (identity.ClusterFile, error) {
	var folder *identity.Folder
	var failed error
	for i := 0; i < maxReplicas && folder == nil; i++ {
		member := filepath.Join(dir, memberName(i))
		if _, err := os.Stat(member); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		f, err := identity.OpenFolder(member)
		if err == nil && f.Configuration != nil { // not one that has joined
			folder = f
		}
		failed = cmp.Or(failed, err)
	}
	switch {
	case folder == nil && failed == nil:
		return identity.ClusterFile{}, cli.Preconditionf("%s has files in it, and they are not a dev cluster's: give another folder", dir)
	case folder == nil:
		return identity.ClusterFile{}, failed
	}
	for _, m := range folder.Cluster.Members {
		if err := store.InUse(filepath.Join(dir, m.Name)); err != nil {
			return identity.ClusterFile{}, err
		}
	}
	return folder.Cluster, nil
}

// freePorts fills ports with UDP ports that nobody has on loopback now. They are
// none of those that the system gives to whoever asks for any port, so nobody
// takes one while its replica is down.
func freePorts(ports []int) error {
	const first, last = 10_000, 32_767
	for i, failed := 0, 0; i < len(ports); {
		port := first + rand.IntN(last-first)
		conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		switch {
		case err == nil:
			defer conn.Close() // all at the end, so that they differ
			ports[i] = port
			i++
		case failed == maxTaken:
			return err
		default:
			failed++
		}
	}
	return nil
}

// portsFree returns an error if one of the ports is taken now: before a
// cluster is made that could never start.
func portsFree(ports []int) error {
	for _, port := range ports {
		conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			return cli.Preconditionf("port %d can't be had (%v): give --%s another one", port, errors.Unwrap(err), flagPort)
		}
		conn.Close()
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
