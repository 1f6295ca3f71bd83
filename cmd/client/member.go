package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	urfave "github.com/urfave/cli/v2"

	"atoll/client"
	"atoll/internal/cli"
	"atoll/internal/identity"
)

const (
	flagName  = "name"
	flagTTL   = "ttl"
	flagCADir = "ca-dir"
)

// member is the group of commands about who is in the cluster.
func member() *urfave.Command {
	return cli.Group("member", "who is in the cluster, and who may come", memberList(), memberTicket(),
		memberAdd(), memberRemove(), memberReplace(), memberSet(), memberProgress(), memberAbort())
}

func memberList() *urfave.Command {
	return cli.Command{
		Name:    "list",
		Purpose: "print the members, and the nodes on standby",
		Details: `Members are the nodes that the newest configuration names, and those before it
whose quorums are still needed. On standby are all others that have joined: new
ones, and those that were removed.`,
		Examples: []string{
			"client member list",
			"client member list -o json",
		},
		Flags: clusterFlags("the whole command", cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat)),
		Codes: cli.ConnectionCodes(),
		Run: func(c *urfave.Context) error {
			return with(c, func(ctx context.Context, conn *client.Client) error {
				s, err := conn.Status(ctx)
				if err != nil {
					return err
				}
				return cli.PrintMembers(c.App.Writer, cli.OutputOf(c), s)
			})
		},
	}.Build()
}

func memberTicket() *urfave.Command {
	return cli.Command{
		Name:    "ticket",
		Purpose: "make a ticket, with which one new node can join",
		Details: `Makes a key and a certificate for a new node, signed with the CA's key, which only
whoever has the CA's folder can do. The ticket is one line of text and holds that
key: it is as secret as the node (umask 077). It makes one node, once, and not after its end:
give it to "replica join" on the new node's host.`,
		Examples: []string{
			"client member ticket --name d -o raw > ticket.txt",
			"client member ticket --context cluster/admin.json --ca-dir cluster/ca --ttl 10m",
		},
		Flags: clusterFlags("the whole command",
			&urfave.StringFlag{
				Name: flagName, EnvVars: []string{cli.Environment(flagName)},
				Usage: "call the new node `NAME`; without it, it gets the first characters of its id",
				Action: func(_ *urfave.Context, name string) error {
					if _, err := identity.ParseName(name); err != nil {
						return cli.Usagef("--%s: %v", flagName, err)
					}
					return nil
				},
			},
			&urfave.DurationFlag{
				Name: flagTTL, EnvVars: []string{cli.Environment(flagTTL)}, Value: identity.DefaultTicketTTL,
				Usage: "let the ticket end after `DURATION`, from a minute to a week, as in 10m or 24h",
				Action: func(_ *urfave.Context, d time.Duration) error {
					if d < identity.MinTicketTTL || d > identity.MaxTicketTTL {
						return cli.Usagef("--%s must be from %s to %s, not %s", flagTTL,
							cli.DurationText(identity.MinTicketTTL), cli.DurationText(identity.MaxTicketTTL), cli.DurationText(d))
					}
					return nil
				},
			},
			&urfave.PathFlag{
				Name: flagCADir, EnvVars: []string{cli.Environment(flagCADir)},
				Usage: "`FOLDER` of the cluster's CA, as init wrote it; without it, ca beside the context file",
			},
			cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat, cli.RawFormat)),
		Codes: cli.ConnectionCodes(cli.ExitDamaged),
		Run:   makeTicket,
	}.Build()
}

func makeTicket(c *urfave.Context) error {
	dir, err := caDir(c)
	if err != nil {
		return err
	}
	ca, err := identity.LoadCA(dir)
	if err != nil {
		return err
	}
	return with(c, func(ctx context.Context, conn *client.Client) error {
		s, err := conn.Status(ctx)
		if err != nil {
			return err
		}
		if s.Cluster != ca.Cluster() {
			return cli.Preconditionf("the CA in %s is of cluster %s, and this is cluster %s; give that of this one with --%s", dir, ca.Cluster(), s.Cluster, flagCADir)
		}
		r := identity.TicketRequest{Name: c.String(flagName), MaxValue: conn.MaxValue(), Endpoints: conn.Endpoints(), Now: time.Now(), TTL: c.Duration(flagTTL)}
		// Who isn't a member and doesn't answer may be dead: its name is free.
		alive := slices.DeleteFunc(slices.Clone(s.Standby), func(m client.MemberStatus) bool { return m.Status == nil })
		for _, m := range slices.Concat(s.Members, alive) {
			if m.Name == r.Name && r.Name != "" {
				return cli.Usagef("--%s: there is a node of the name %q already", flagName, r.Name)
			}
		}
		for _, m := range s.Members {
			if len(r.Contacts) < identity.MaxContacts && len(m.Addresses) > 0 {
				r.Contacts = append(r.Contacts, identity.Member{ID: m.ID, Name: m.Name, Addresses: m.Addresses})
			}
		}
		t, err := ca.Ticket(r)
		if err != nil {
			return err
		}
		return printTicket(c, t)
	})
}

// caDir is the CA's folder: the one given, or that beside the context file.
func caDir(c *urfave.Context) (string, error) {
	if dir := c.Path(flagCADir); dir != "" {
		return dir, nil
	}
	context, err := cli.ContextPath(c)
	if err != nil {
		return "", err
	}
	const hint = "only whoever has the CA can let a node join; give its folder with --" + flagCADir
	if context == "" {
		return "", cli.Preconditionf("where is the cluster's CA? %s", hint)
	}
	dir := filepath.Join(filepath.Dir(context), "ca")
	if !cli.IsFolder(dir) {
		return "", cli.Preconditionf("there is no CA in %s, beside the context file; %s", dir, hint)
	}
	return dir, nil
}

// ticketObject is what `member ticket -o json` prints.
type ticketObject struct {
	Ticket  string `json:"ticket"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Cluster string `json:"cluster"`
	Expires string `json:"expires"` // RFC 3339
}

func printTicket(c *urfave.Context, t identity.Ticket) error {
	g := t.Grant
	switch format := cli.OutputOf(c); format {
	case cli.RawFormat:
		_, err := fmt.Fprintln(c.App.Writer, t)
		return err
	case cli.TableFormat:
		_, err := fmt.Fprintf(c.App.Writer, "%s\n\nfor one new node, %s (%s), until %s; it holds the node's key. On the node's host:\nreplica join TICKET --data-dir FOLDER --listen HOST:PORT\n",
			t, g.Name, g.Node, g.Expires.Format(time.RFC3339))
		return err
	default:
		return cli.PrintObject(c.App.Writer, format, ticketObject{t.String(), string(g.Node), g.Name, string(g.Cluster), g.Expires.Format(time.RFC3339)})
	}
}
