package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
	"atoll/internal/identity"
	"atoll/internal/server"
	"atoll/internal/transport"
	"atoll/join"
	"atoll/rambo"
)

const (
	flagListen    = "listen"
	flagAdvertise = "advertise"
	flagMetrics   = "metrics"
	flagMemory    = "memory"
	flagTransfer  = "transfer-rate"
	flagUntilEOF  = "until-eof"

	defaultLogLevel = slog.LevelInfo

	// What --memory may be, in MiB. Less than the least is too little for the
	// connections of a small cluster.
	defaultMemory = transport.DefaultMemory >> 20
	leastMemory   = 64
	mostMemory    = 1 << 20

	// What --transfer-rate may be, in MiB a second. 0 is without limit.
	defaultTransfer = rambo.DefaultRate >> 20
	mostTransfer    = 1 << 20
)

// settingFlags are the settings of a node, which run uses and config show
// explains.
func settingFlags() []urfave.Flag {
	return append(addressFlags(dataDirOfNode,
		"without it, the node's addresses in cluster.json",
		"without it, as cluster.json says, or else where the node listens"), limitFlags()...)
}

// addressFlags say where the folder of a node is and where the node is; the texts,
// what holds without them.
func addressFlags(dir, listen, advertise string) []urfave.Flag {
	return []urfave.Flag{
		dataDirFlag(dir),
		&urfave.StringSliceFlag{
			Name: flagListen, EnvVars: []string{cli.Environment(flagListen)},
			Usage: "`HOST:PORT`,... to listen on; may be repeated; no HOST: all interfaces, port 0: any free one; " + listen,
			Action: func(_ *urfave.Context, all []string) error {
				return cli.CheckListen(flagListen, all...)
			},
		},
		&urfave.StringSliceFlag{
			Name: flagAdvertise, EnvVars: []string{cli.Environment(flagAdvertise)},
			Usage: "`HOST:PORT`,... that others dial; may be repeated; " + advertise,
			Action: func(_ *urfave.Context, all []string) error {
				return cli.CheckDial(flagAdvertise, all...)
			},
		},
	}
}

// limitFlags are the other settings of a node that runs.
func limitFlags() []urfave.Flag {
	return []urfave.Flag{
		&urfave.StringFlag{
			Name: flagMetrics, EnvVars: []string{cli.Environment(flagMetrics)},
			Usage: "loopback `HOST:PORT` for /metrics, /healthz, /livez and /debug/pprof; without it, none",
			Action: func(_ *urfave.Context, address string) error {
				if err := cli.CheckListen(flagMetrics, address); err != nil {
					return err
				}
				if err := server.CheckMetrics(address); err != nil {
					return cli.Usagef("--%s: %v", flagMetrics, err)
				}
				return nil
			},
		},
		&urfave.IntFlag{
			Name: flagMemory, EnvVars: []string{cli.Environment(flagMemory)}, Value: defaultMemory,
			Usage: fmt.Sprintf("`MIB` of memory that all connections together may cost; %d to %d", leastMemory, mostMemory),
			Action: func(_ *urfave.Context, mib int) error {
				if mib < leastMemory || mib > mostMemory {
					return cli.Usagef("--%s must be from %d to %d, not %d", flagMemory, leastMemory, mostMemory, mib)
				}
				return nil
			},
		},
		&urfave.IntFlag{
			Name: flagTransfer, EnvVars: []string{cli.Environment(flagTransfer)}, Value: defaultTransfer,
			Usage: fmt.Sprintf("`MIB` of records that the node takes over in a second when it becomes a member; up to %d; 0: as many as it can", mostTransfer),
			Action: func(_ *urfave.Context, mib int) error {
				if mib < 0 || mib > mostTransfer {
					return cli.Usagef("--%s must be from 0 to %d, not %d", flagTransfer, mostTransfer, mib)
				}
				return nil
			},
		},
	}
}

func runCommand() *urfave.Command {
	return cli.Command{
		Name:    "run",
		Purpose: "run the node whose folder init wrote",
		Details: `Serves until it is interrupted (SIGINT, SIGTERM), and prints one line once it
serves. What was acknowledged is on disk: kill -9 loses nothing.`,
		Examples: []string{
			"replica run --data-dir cluster/a",
			"replica run --data-dir cluster/a --listen 0.0.0.0:7400 --metrics 127.0.0.1:9400",
		},
		Flags: append(append(settingFlags(),
			&urfave.BoolFlag{Name: flagUntilEOF, Usage: "end when standard input does, so that no parent can leave the node behind"},
			cli.OutputFlag(cli.TableFormat, cli.JSONFormat),
		), cli.LogFlags(defaultLogLevel)...),
		Codes:  []int{cli.ExitPrecondition, cli.ExitNoQuorum, cli.ExitDenied, cli.ExitDamaged},
		Serves: true,
		Run:    runNode,
	}.Build()
}

// serving is what run prints once the node serves.
type serving struct {
	Node      string   `json:"node"`
	Name      string   `json:"name"`
	PID       int      `json:"pid"`
	Addresses []string `json:"addresses"` // that it listens on
	// Advertised are those that it tells others to dial.
	Advertised []string `json:"advertised"`
	Metrics    string   `json:"metrics,omitempty"`
}

func runNode(c *urfave.Context) error {
	dir, err := requiredDir(c)
	if err != nil {
		return err
	}
	folder, err := identity.OpenFolder(dir)
	if err != nil {
		return err
	}
	return serveFolder(c, folder, func() error { return nil })
}

// serveFolder runs the node of a folder until it is interrupted. It calls started
// when the folder is this process's own, and the node listens.
func serveFolder(c *urfave.Context, folder *identity.Folder, started func() error) error {
	log := cli.Logger(c).With("node", folder.Name)
	for _, w := range folder.Warnings {
		log.Warn(w)
	}
	s, err := server.Start(server.Config{
		Folder:    folder,
		Listen:    c.StringSlice(flagListen),
		Advertise: c.StringSlice(flagAdvertise),
		Metrics:   c.String(flagMetrics),
		Memory:    c.Int(flagMemory) << 20,
		Version:   cli.ThisBuild().Version,
		Log:       log,

		Reconfiguration: rambo.Pace{Rate: transferRate(c.Int(flagTransfer))},
	})
	if bad, ok := errors.AsType[*server.AdvertiseError](err); ok {
		return &cli.PreconditionError{Text: bad.Error()}
	}
	if errors.Is(err, server.ErrNotLoopback) {
		return cli.Usagef("--%s: %v", flagMetrics, err)
	}
	if err != nil {
		return err
	}
	why, err := "", started()
	if err == nil {
		why, err = joinAndServe(c, folder, s)
	}
	if why != "" {
		log.Info("stopping", "reason", why) // otherwise the server has said why
	}
	begin := time.Now()
	cerr := s.Close()
	if err == nil {
		err = cerr
	}
	log.Info("stopped", "took", time.Since(begin).Round(time.Millisecond))
	return err
}

// transferRate returns what so many MiB a second are to package rambo.
func transferRate(mib int) int64 {
	if mib == 0 {
		return -1
	}
	return int64(mib) << 20
}

// joinTimeout is how long a node looks for the cluster that it joins.
const joinTimeout = 30 * time.Second

// joinAndServe is serve for a node that may have to join its cluster first.
func joinAndServe(c *urfave.Context, folder *identity.Folder, s *server.Server) (why string, err error) {
	if !s.Joined() {
		ctx, cancel := context.WithTimeout(c.Context, joinTimeout)
		defer cancel()
		if err := s.Join(ctx); err != nil {
			return "", tryAgain(folder.Dir, err)
		}
	}
	return serve(c, folder, s)
}

// tryAgain adds to a join's error what to do when the cluster wasn't there.
func tryAgain(dir string, err error) error {
	if _, ok := errors.AsType[*join.UnreachableError](err); !ok {
		return err
	}
	return fmt.Errorf("%w; is the cluster up, and reachable from here? %s is written: give the same command again; if the cluster is elsewhere by now, delete that folder and join with a newer ticket", err, dir)
}

// serve waits until the node must stop, and returns who asked for that, if
// somebody did, or the error.
func serve(c *urfave.Context, folder *identity.Folder, s *server.Server) (why string, err error) {
	line := serving{Node: string(folder.ID), Name: folder.Name, PID: os.Getpid(), Advertised: s.Advertised()}
	for _, a := range s.Addrs() {
		line.Addresses = append(line.Addresses, a.String())
	}
	if a := s.MetricsAddr(); a.IsValid() {
		line.Metrics = a.String()
	}
	if err := printServing(c, line); err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancelCause(c.Context)
	defer cancel(nil)
	if c.Bool(flagUntilEOF) {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel(errEOF)
		}()
	}
	if err := s.Wait(ctx); err != nil {
		return "", err
	}
	if errors.Is(context.Cause(ctx), errEOF) {
		return errEOF.Error(), nil
	}
	return "it was interrupted", nil
}

var errEOF = errors.New("standard input has ended")

func printServing(c *urfave.Context, line serving) error {
	if cli.OutputOf(c) == cli.JSONFormat {
		return cli.PrintLine(c.App.Writer, line)
	}
	_, err := fmt.Fprintln(c.App.Writer, line.text())
	return err
}

// text names where others dial the node unless that is where it listens: who has moved
// it sees what it says of itself.
func (l serving) text() string {
	text := fmt.Sprintf("%s (%s) serves on %s", l.Name, l.Node, strings.Join(l.Addresses, ", "))
	if !slices.Equal(l.Advertised, l.Addresses) {
		text += ", others dial it at " + strings.Join(l.Advertised, ", ")
	}
	if l.Metrics != "" {
		text += ", metrics on " + l.Metrics
	}
	return text
}
