package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"atoll/client"
	"atoll/internal/cli"
	"atoll/quorum"
	"atoll/reconfig"
)

const (
	flagQuorum = "quorum"
	flagForce  = "force"
	flagWait   = "wait"
)

const changeHelp = `NODE is a node's id, or its name if no other node has it; "client member list"
prints both. The change is made while reads and writes go on. The nodes that are
to be members are asked first whether they are ready, and the command says which
aren't; then the members of now decide. That can't be undone. It is done when the
new configuration is installed: from then on nodes that were removed may be
switched off, and not before. A member that is dead doesn't matter, while a read
and a write quorum live.

Given twice, the command changes nothing the second time. Interrupted after the
decision, or with --wait=false, it leaves the rest to the nodes: "client member
progress" shows how far they are. It needs an admin's context, admin.json.`

// changeCommand declares a command that changes the members.
func changeCommand(name, arguments, purpose, details string, examples []string, change func([]string) client.Change) *urfave.Command {
	if details != "" {
		details += "\n\n"
	}
	return cli.Command{
		Name:      name,
		Arguments: arguments,
		Purpose:   purpose,
		Details:   details + changeHelp,
		Examples:  examples,
		Flags: clusterFlags("all that is done up to the decision",
			&urfave.StringFlag{
				Name:  flagQuorum,
				Usage: "change the quorum `SYSTEM` too: majority; get=2,put=3; weights=a:2,b:1,c:1; grid=2x3; without it, that of now",
				Action: func(_ *urfave.Context, text string) error {
					if _, err := quorum.ParseSystem(text); err != nil {
						return cli.Usagef("--%s: %s", flagQuorum, strings.TrimPrefix(err.Error(), "quorum: "))
					}
					return nil
				},
			},
			&urfave.BoolFlag{
				Name:  flagForce,
				Usage: "propose it even if the death of some one member would stop reads or writes then",
			},
			&urfave.BoolFlag{
				Name: flagWait, Value: true,
				Usage: "wait until the new configuration is installed, which is the default; --wait=false ends when it is decided",
			},
			cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat)),
		Codes: cli.ConnectionCodes(cli.ExitNotFound, cli.ExitConflict, cli.ExitUnknown),
		Meanings: map[int]string{
			cli.ExitPrecondition: "not possible here; or some one member's death would stop the cluster, and no --" + flagForce,
			cli.ExitNotFound:     "no such node is known",
			cli.ExitConflict:     "another change is under way, or was faster",
			cli.ExitNoQuorum:     "nodes that are needed aren't ready, or no quorum; definitely not changed",
			cli.ExitUnknown:      "outcome unknown: the same command again finds out",
		},
		Check: checkNodes,
		Run: func(c *urfave.Context) error {
			ch := change(c.Args().Slice())
			ch.Quorum, ch.Force = c.String(flagQuorum), c.Bool(flagForce)
			return withClient(c.Context, c, func(ctx context.Context, conn *client.Client) error {
				return makeChange(ctx, c, conn, ch)
			})
		},
	}.Build()
}

// checkNodes returns a usage error if what is given can't be nodes.
func checkNodes(nodes []string) error {
	for _, node := range nodes {
		switch {
		case node == "":
			return cli.Usagef("a node is empty: give its id or its name")
		case strings.Contains(node, ","):
			return cli.Usagef("%q isn't a node: write spaces between nodes, and no commas", node)
		}
	}
	if twice := twiceIn(nodes); twice != "" {
		return cli.Usagef("%s is named twice", twice)
	}
	return nil
}

// twiceIn returns a name that is there twice, which is likely a mistyped other one;
// "" if none is.
func twiceIn(names []string) string {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return name
		}
	}
	return ""
}

func memberAdd() *urfave.Command {
	return changeCommand("add", "NODE...", "make nodes on standby members", "",
		[]string{"client member add d", "client member add d e --quorum get=2,put=4"},
		func(nodes []string) client.Change { return client.Change{Add: nodes} })
}

func memberRemove() *urfave.Command {
	return changeCommand("remove", "NODE...", "make members leave the cluster", "",
		[]string{"client member remove c", "client member remove c d -o json"},
		func(nodes []string) client.Change { return client.Change{Remove: nodes} })
}

func memberReplace() *urfave.Command {
	return changeCommand("replace", "OLD NEW", "put a node in a member's place",
		`OLD may be dead. In a weighted quorum system NEW gets its weight.`,
		[]string{"client member replace c d", "client member replace c d --timeout 30s"},
		func(nodes []string) client.Change {
			return client.Change{Replace: []client.Replacement{{Old: nodes[0], New: nodes[1]}}}
		})
}

func memberSet() *urfave.Command {
	return changeCommand("set", "NODE...", "say who all members are, and their quorum system",
		`The whole set may be another one afterwards. With the members of now and
--quorum it changes the quorum system alone.`,
		[]string{"client member set d e f", "client member set a b c --quorum weights=a:2,b:2,c:1"},
		func(nodes []string) client.Change { return client.Change{Set: nodes} })
}

// makeChange plans, says what that comes to, proposes, and waits.
func makeChange(ctx context.Context, c *urfave.Context, conn *client.Client, ch client.Change) error {
	if err := conn.MayChange(); err != nil { // who may not needn't hear first what is wrong with it
		return err
	}
	deciding, cancel := context.WithTimeout(ctx, c.Duration(cli.FlagTimeout))
	defer cancel()
	plan, err := conn.Plan(deciding, ch)
	if err != nil {
		return err
	}
	if !plan.Done() {
		fmt.Fprintf(c.App.ErrWriter, "configuration %s\nwould tolerate these deaths: %s\n", conn.ConfigurationText(plan.Target), conn.ToleranceText(plan.Target.Tolerance()))
		silent, err := conn.Silent(deciding, plan)
		if err != nil {
			return err
		}
		fmt.Fprint(c.App.ErrWriter, silentText(conn.Name, plan.Target, silent))
		d, err := conn.Propose(deciding, plan)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.App.ErrWriter, "decided: configuration %d; the nodes install it\n", d.Configuration.Index())
	}
	cancel()
	installed := plan.Done() && plan.Installed
	if c.Bool(flagWait) {
		if err := await(ctx, c.App.ErrWriter, conn, plan.Target.Index()); err != nil {
			return err
		}
		installed = true
	}
	return printChange(c, conn, plan, installed)
}

// silentText is a line about members of a target that don't answer now.
func silentText(name func(quorum.NodeID) string, target *quorum.Configuration, silent []quorum.NodeID) string {
	if len(silent) == 0 {
		return ""
	}
	names := make([]string, len(silent))
	dead := func(more ...quorum.NodeID) bool {
		var t quorum.Tally
		t.Begin(quorum.Configurations{target})
		for _, id := range slices.Concat(silent, more) {
			t.Add(id)
		}
		return !t.LeavesRead() || !t.LeavesWrite()
	}
	for i, id := range silent {
		names[i] = cmp.Or(name(id), string(id))
	}
	slices.Sort(names)
	then := "any one death more would be tolerated"
	switch {
	case dead():
		then = "it would have no quorum"
	case slices.ContainsFunc(target.Members(), func(id quorum.NodeID) bool { return dead(id) }):
		then = "one death more could stop it"
	}
	return fmt.Sprintf("but now these don't answer: %s; as long as that is so, %s\n", strings.Join(names, " "), then)
}

// progressPause is how often it is said how far a step is.
const progressPause = time.Second

// await waits until a configuration is installed, and says now and then how far that
// is. Who interrupts it is told that the change isn't.
func await(ctx context.Context, w io.Writer, conn *client.Client, index quorum.ConfigIndex) error {
	next := time.Now().Add(progressPause)
	err := conn.Await(ctx, index, func(p client.Progress) {
		if now := time.Now(); now.After(next) {
			next = now.Add(progressPause)
			fmt.Fprint(w, mergeText(p))
		}
	})
	if errors.Is(err, context.Canceled) {
		fmt.Fprintf(w, "configuration %d is decided, and the nodes install it without this command, too; client member progress shows how far they are\n", index)
	}
	return err
}

// mergeText has a line for each new member, and for each configuration that lacks a
// quorum.
func mergeText(p client.Progress) string {
	var b strings.Builder
	for _, w := range p.Wants() {
		fmt.Fprintf(&b, "waiting: %v\n", w)
	}
	for _, m := range p.Merging() {
		if m.Status == nil {
			fmt.Fprintf(&b, "%s: silent\n", m.Label())
			continue
		}
		merge := m.Status.Merge
		switch {
		case merge.Index != p.Active[1].Index():
			fmt.Fprintf(&b, "%s: has not begun", m.Label())
		case merge.Done:
			fmt.Fprintf(&b, "%s: has all, %d keys, %s", m.Label(), merge.Keys, cli.Bytes(merge.Bytes))
		default:
			fmt.Fprintf(&b, "%s: %d keys, %s so far", m.Label(), merge.Keys, cli.Bytes(merge.Bytes))
		}
		if trouble := m.Status.Trouble; trouble != "" {
			fmt.Fprintf(&b, "; takes no writes: %s", trouble)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// changeObject is what a change prints as JSON.
type changeObject struct {
	Config cli.ConfigObject `json:"config"`
	// Changed: it wasn't so before.
	Changed bool `json:"changed"`
	// Installed: nodes that are no members any more may be switched off. If not, it
	// is decided, as far as this command knows.
	Installed bool `json:"installed"`
}

func printChange(c *urfave.Context, conn *client.Client, plan client.Plan, installed bool) error {
	if format := cli.OutputOf(c); format != cli.TableFormat {
		return cli.PrintObject(c.App.Writer, format, changeObject{cli.ConfigOf(plan.Target, conn.Name), !plan.Done(), installed})
	}
	_, err := fmt.Fprintf(c.App.Writer, "configuration %s: %s\n", conn.ConfigurationText(plan.Target), stateText(!plan.Done(), installed))
	return err
}

// stateText says what has become of a change, as far as the command knows.
func stateText(changed, installed bool) string {
	switch {
	case changed && installed:
		return "installed"
	case changed:
		return "decided"
	case installed:
		return "is so already"
	}
	return "decided already, not installed yet"
}

func memberAbort() *urfave.Command {
	return cli.Command{
		Name:    "abort",
		Purpose: "see to it that a change that isn't decided yet never is",
		Details: `Only a change that is pending can be aborted, as when whoever proposed it has
died: the members of now are decided once more, as the next configuration. Members
and quorums stay, no key is copied, and only a number is used up. With nothing
pending it does nothing. A change that was refused changes nothing and is in
nobody's way: there is no need to abort it. One that is decided can't be aborted:
make the opposite one. It needs an admin's context, admin.json.`,
		Examples: []string{"client member abort", "client member abort -o json"},
		Flags:    clusterFlags("the whole command", cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat)),
		Codes:    cli.ConnectionCodes(cli.ExitConflict, cli.ExitUnknown),
		Meanings: map[int]string{
			cli.ExitConflict: "too late: a change is decided",
			cli.ExitUnknown:  "outcome unknown: the same command again finds out",
		},
		Run: func(c *urfave.Context) error {
			return with(c, func(ctx context.Context, conn *client.Client) error {
				again, err := conn.Abort(ctx)
				if err != nil && !errors.Is(err, reconfig.ErrNothingPending) {
					return err
				}
				return printAbort(c, conn, again)
			})
		},
	}.Build()
}

// printAbort prints what was decided instead, nil if nothing was pending.
func printAbort(c *urfave.Context, conn *client.Client, again *quorum.Configuration) error {
	if format := cli.OutputOf(c); format != cli.TableFormat {
		o := struct {
			Aborted bool              `json:"aborted"`
			Config  *cli.ConfigObject `json:"config,omitempty"`
		}{Aborted: again != nil}
		if again != nil {
			config := cli.ConfigOf(again, conn.Name)
			o.Config = &config
		}
		return cli.PrintObject(c.App.Writer, format, o)
	}
	text := "no change of the members is pending\n"
	if again != nil {
		text = fmt.Sprintf("aborted; decided instead: configuration %s\nmembers and quorums are what they were; only the number is used up\n", conn.ConfigurationText(again))
	}
	_, err := io.WriteString(c.App.Writer, text)
	return err
}
