package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"atoll/client"
	"atoll/internal/cli"
	"atoll/reconfig"
)

func memberProgress() *urfave.Command {
	return cli.Command{
		Name:    "progress",
		Purpose: "print how far a change of the members has come",
		Details: `While a change is decided and not installed, prints what each new member has
merged. Otherwise prints which changes are pending: some members know of them, and
none is decided, as while somebody proposes one, or after he has died or given up.
That takes a quorum: without one it prints the rest, in JSON without "pending", and
ends with 6.`,
		Examples: []string{"client member progress", "client member progress -o json"},
		Flags:    clusterFlags("the whole command", cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat)),
		Codes:    cli.ConnectionCodes(),
		Run: func(c *urfave.Context) error {
			return with(c, func(ctx context.Context, conn *client.Client) error {
				p, err := conn.Progress(ctx)
				if err != nil {
					return err
				}
				var pending *reconfig.Report
				if len(p.Active) == 1 {
					pending, err = conn.Pending(ctx)
					if _, decided := errors.AsType[*client.ConflictError](err); decided {
						p, err = conn.Progress(ctx)
					}
					// Without a quorum it can't be known what is pending; the rest can.
					if _, blind := errors.AsType[*client.NoQuorumError](err); err != nil && !blind {
						return err
					}
				}
				return errors.Join(printProgress(c, conn, p, pending), err)
			})
		},
	}.Build()
}

// progressObject is what `member progress -o json` prints.
type progressObject struct {
	// Active are the configurations whose quorums operations need, the installed one
	// first.
	Active []cli.ConfigObject `json:"active"`
	// Waiting are those of them that lack a quorum.
	Waiting []cli.WantObject `json:"waiting_for"`
	Merging []mergingObject  `json:"merging"`
	// Pending is left out when no quorum could be asked: then it isn't known.
	Pending []pendingObject `json:"pending,omitzero"`
}

type mergingObject struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	State string `json:"state"` // "up" or "silent"
	Keys  int64  `json:"keys"`
	Bytes int64  `json:"bytes"`
	Done  bool   `json:"done"`
	// Trouble is what keeps the node from taking writes.
	Trouble string `json:"trouble,omitempty"`
}

type pendingObject struct {
	Config cli.ConfigObject `json:"config"`
	// State is "asked": members were asked whether they are ready for it; "proposed":
	// the same, and something has been proposed; or "accepted": it may be decided
	// already.
	State string           `json:"state"`
	Known []cli.NodeObject `json:"known_by"`
}

func printProgress(c *urfave.Context, conn *client.Client, p client.Progress, pending *reconfig.Report) error {
	if format := cli.OutputOf(c); format != cli.TableFormat {
		return cli.PrintObject(c.App.Writer, format, progressJSON(conn, p, pending))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "installed: configuration %s\n", conn.ConfigurationText(p.Active[0]))
	for _, next := range p.Active[1:] {
		fmt.Fprintf(&b, "decided: configuration %s\n", conn.ConfigurationText(next))
	}
	b.WriteString(mergeText(p))
	if pending != nil {
		for _, x := range pending.Accepted {
			fmt.Fprintf(&b, "accepted by %d: configuration %s\n", len(x.Nodes), conn.ConfigurationText(x.Configuration))
		}
		for _, x := range pending.Ready {
			state := "proposed"
			if pending.Unproposed() {
				state = "not proposed"
			}
			fmt.Fprintf(&b, "%s; %d ready for: configuration %s\n", state, len(x.Nodes), conn.ConfigurationText(x.Configuration))
		}
		if pending.Nothing() {
			b.WriteString("no change of the members is pending\n")
		}
	}
	_, err := fmt.Fprint(c.App.Writer, b.String())
	return err
}

func progressJSON(conn *client.Client, p client.Progress, pending *reconfig.Report) progressObject {
	o := progressObject{Waiting: cli.WantsOf(p.Wants()), Merging: []mergingObject{}}
	if pending != nil || len(p.Active) > 1 { // while one is decided none is pending
		o.Pending = []pendingObject{}
	}
	for _, a := range p.Active {
		o.Active = append(o.Active, cli.ConfigOf(a, conn.Name))
	}
	for _, m := range p.Merging() {
		x := mergingObject{ID: string(m.ID), Name: m.Name, State: "silent"}
		if m.Status != nil {
			x.State, x.Trouble = "up", m.Status.Trouble
			if merge := m.Status.Merge; merge.Index == p.Active[1].Index() {
				x.Keys, x.Bytes, x.Done = merge.Keys, merge.Bytes, merge.Done
			}
		}
		o.Merging = append(o.Merging, x)
	}
	if pending != nil {
		for _, x := range pending.Accepted {
			o.Pending = append(o.Pending, pendingJSON(conn, x, "accepted"))
		}
		state := "proposed"
		if pending.Unproposed() {
			state = "asked"
		}
		for _, x := range pending.Ready {
			o.Pending = append(o.Pending, pendingJSON(conn, x, state))
		}
	}
	return o
}

func pendingJSON(conn *client.Client, x reconfig.Candidate, state string) pendingObject {
	return pendingObject{cli.ConfigOf(x.Configuration, conn.Name), state, cli.NodesOf(x.Nodes, conn.Name)}
}
