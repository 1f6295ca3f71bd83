package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"time"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
	"atoll/internal/identity"
	"atoll/internal/server"
	"atoll/join"
)

func joinCommand() *urfave.Command {
	return cli.Command{
		Name:      "join",
		Arguments: "TICKET|FILE|-",
		Purpose:   "become a new node of a cluster, and run",
		Details: `Takes a ticket that "client member ticket" has made, as it is, in a file, or from
standard input (-); in the arguments others on this host can read it. Writes the
node's folder, all of it or nothing, makes the node known to the cluster, and
runs it as "replica run" does. From then on "replica run --data-dir" is enough;
the same command again does no harm, and takes over other addresses.
If the cluster refuses the ticket, there is no folder either.

The node is on standby then: it stores and decides nothing until a change of the
members names it. A ticket makes one node, once, and not after its end.`,
		Examples: []string{
			"replica join ticket.txt --data-dir d --listen 10.0.0.4:7400",
			"client member ticket -o raw | replica join - --data-dir d --listen :7400 --advertise d.example:7400",
		},
		Flags: append(append(append(addressFlags("of the new node, to create: missing, empty, or written for this ticket",
			"without it, what --advertise says; once the folder is written, what it says",
			"without it, where the node listens, which must not be all interfaces then; once the folder is written, what it says"), limitFlags()...),
			cli.OutputFlag(cli.TableFormat, cli.JSONFormat),
		), cli.LogFlags(defaultLogLevel)...),
		Codes:  []int{cli.ExitPrecondition, cli.ExitNoQuorum, cli.ExitDenied, cli.ExitDamaged},
		Serves: true,
		Run:    runJoin,
	}.Build()
}

func runJoin(c *urfave.Context) error {
	dir, err := requiredDir(c)
	if err != nil {
		return err
	}
	ticket, err := readTicket(c.Args().First(), c.App.Reader)
	if err != nil {
		return err
	}
	there, err := ticket.IsTicketOf(dir)
	if err != nil {
		return err
	}
	spec := identity.JoinSpec{Ticket: ticket, Listen: c.StringSlice(flagListen), Prepare: prepareStore}
	for _, a := range c.StringSlice(flagAdvertise) {
		address, err := identity.ParseEndpoint(a)
		if err != nil {
			return cli.Usagef("--%s: %v", flagAdvertise, err)
		}
		spec.Advertise = append(spec.Advertise, address)
	}
	if !there {
		err = createMember(dir, spec)
	}
	if identity.ClassOf(err) == identity.NoClass && err != nil {
		if _, ok := errors.AsType[*cli.PreconditionError](err); !ok {
			err = cli.Usagef("%v", err)
		}
	}
	if err != nil {
		return err
	}
	folder, err := identity.OpenFolder(dir)
	if err != nil {
		return err
	}
	// Where it listens is noted once it does: a start that is refused changes nothing.
	err = serveFolder(c, folder, func() error { return identity.Readdress(dir, spec.Listen, spec.Advertise) })
	if _, refused := errors.AsType[*join.RefusedError](err); refused && !there {
		// Nobody knows this node, and it has stored nothing: its folder would only
		// be in the way of the next ticket.
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// createMember writes the folder of a new node.
func createMember(dir string, spec identity.JoinSpec) error {
	if err := spec.Ticket.Grant.Expired(time.Now()); err != nil {
		return err
	}
	if len(spec.Listen) == 0 {
		spec.Listen = spec.Advertise
	}
	if len(spec.Listen) == 0 {
		return cli.Usagef("--%s is missing: HOST:PORT", flagListen)
	}
	if len(spec.Advertise) == 0 {
		for _, address := range spec.Listen {
			if host, _, err := net.SplitHostPort(address); err == nil && identity.AllInterfaces(host) {
				return &cli.PreconditionError{Text: (&server.AdvertiseError{Problem: fmt.Sprintf("%s is all interfaces", address)}).Error()}
			}
		}
	}
	return identity.CreateMember(dir, spec)
}

// readTicket reads a ticket: the argument itself, a file of that name, or what
// stdin holds.
func readTicket(argument string, stdin io.Reader) (identity.Ticket, error) {
	if identity.IsTicket(argument) {
		return identity.ParseTicket(argument)
	}
	if argument != "-" {
		f, err := os.Open(argument)
		if errors.Is(err, fs.ErrNotExist) {
			return identity.Ticket{}, cli.Preconditionf("%.60q is neither a ticket nor a file; make a ticket with: client member ticket", argument)
		}
		if err != nil {
			return identity.Ticket{}, err
		}
		defer f.Close()
		stdin = f
	}
	text, err := io.ReadAll(io.LimitReader(stdin, identity.MaxTicket+1))
	if err != nil {
		return identity.Ticket{}, &cli.PreconditionError{Text: fmt.Sprintf("reading the ticket from %s", argument), Err: err}
	}
	return identity.ParseTicket(string(text))
}
