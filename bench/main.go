package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"atoll/bench/target"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// command is one of the things that this program does.
type command struct {
	name, purpose string
	run           func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"compare", "drive all targets in turn, cell by cell", runCompare},
		{"connections", "a thousand connections from processes of their own", runConnections},
		{"idle", "ten thousand idle clients, and what they do to busy ones", runIdle},
		{"gap", "kill a node under writes", runGap},
		{"silent", "make a replica silent, lossy or flapping under reads and writes", runSilent},
		{"reconfigure", "change the members again and again under reads and writes", runReconfigure},
		{"sustained", "write to a million keys for a minute", runSustained},
		{"startup", "start a replica that has millions of keys, and look at its memory", runStartup},
		{"replace", "put a fresh node in a member's place, and plot what clients see of it", runReplace},
		{"chaos", "kill and stop replicas again and again, and judge what clients saw", runChaos},
		{"report", "print the tables of files of results, in Markdown", runReport},
	}
}

// usageError is a mistake on the command line.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) == 2 && args[0] == target.NodeCommand {
		// The parent ends a node by its input or with SIGKILL.
		return code(target.RunNode(args[1]))
	}
	if len(args) == 2 && args[0] == workerCommand {
		return code(runWorker(context.Background(), args[1], os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) == 0 {
		usage(os.Stderr)
		return exitUsage
	}
	if slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		usage(os.Stdout)
		return exitDone
	}
	for _, c := range commands() {
		if c.name != args[0] {
			continue
		}
		err := c.run(ctx, args[1:])
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "bench: interrupted")
			return exitInterrupted
		}
		return code(err)
	}
	return code(usagef("no command %q; bench help lists them", args[0]))
}

func code(err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "bench measures atoll beside etcd, NATS JetStream and ZooKeeper on this machine.")
	fmt.Fprintln(w)
	for _, c := range commands() {
		fmt.Fprintf(w, "  bench %-12s %s\n", c.name, c.purpose)
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "bench COMMAND -h lists the flags of a command. README.md says what the figures mean.")
}
