package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"atoll/bench/chaos"
	"atoll/bench/report"
	"atoll/bench/target"
	"atoll/client"
	"atoll/internal/transport"
)

// refusedInUse is the exit code of a replica whose folder another one uses.
const refusedInUse = 3

// campaign is what chaos does.
type campaign struct {
	settings
	chaos.Config
	seed    uint64
	members int
	history string
}

func runChaos(ctx context.Context, args []string) error {
	c, err := parseChaos(args)
	if err != nil {
		return err
	}
	return onBed(ctx, c.settings, c.run)
}

func parseChaos(args []string) (campaign, error) {
	c := campaign{Config: chaos.Config{
		Pause: 4 * time.Millisecond, Silence: transport.IdleTimeout + time.Second, Quiet: 1200 * time.Millisecond, Down: 600 * time.Millisecond,
	}}
	fs := newFlags("chaos", &c.settings)
	fs.IntVar(&c.Kills, "kills", 100, "`number` of times that replicas are killed, one, two or all of them")
	fs.IntVar(&c.Clients, "clients", 32, "`number` of clients")
	fs.IntVar(&c.Hot, "hot", 5, "`number` of keys that all clients fight for")
	fs.IntVar(&c.Many, "keys", 2000, "`number` of other keys")
	fs.IntVar(&c.members, "members", 3, "`number` of replicas")
	fs.Uint64Var(&c.seed, "seed", 0, "`number` that all choices follow from (default: another one each time)")
	fs.StringVar(&c.history, "history", "", "write all operations to this `file`, also if all is well (default: to a temporary one, if not)")
	secondsFlag(fs, &c.Limit, "seconds", 900, "how long to go on at most")
	if err := c.parse(fs, args); err != nil {
		return c, err
	}
	for _, f := range []struct {
		name         string
		value, least int
	}{{"kills", c.Kills, 1}, {"clients", c.Clients, 1}, {"hot", c.Hot, 1}, {"keys", c.Many, 1}, {"members", c.members, 3}} {
		if f.value < f.least {
			return c, usagef("-%s must be at least %d, not %d", f.name, f.least, f.value)
		}
	}
	if c.members > maxMembers {
		return c, usagef("-members must be at most %d, not %d", maxMembers, c.members)
	}
	c.Seed = c.seed
	if c.Seed == 0 {
		c.Seed = uint64(time.Now().UnixNano())
	}
	return c, nil
}

// maxMembers: their names are letters.
const maxMembers = 26

func (c campaign) run(b *bed) error {
	if err := b.build(); err != nil {
		return err
	}
	cluster, err := target.CreateCluster(b.ctx, target.ClusterConfig{Dir: filepath.Join(b.dir, "chaos"), Program: b.replica, Members: c.members})
	if err != nil {
		return err
	}
	defer cluster.Stop()
	if err := cluster.LaunchAll(b.ctx); err != nil {
		return err
	}
	settings, err := cluster.ClientConfig()
	if err != nil {
		return err
	}
	b.note("seed %d", c.Seed)
	c.Note = b.note
	result, err := chaos.Run(b.ctx, c.Config, tormented{cluster, c.members, settings})
	if result == nil {
		return err
	}
	r := c.record(cluster.Version, result)
	if err != nil {
		r.Error = err.Error()
	}
	b.results.Chaos = append(b.results.Chaos, r)
	werr := b.write(r)
	if passed := err == nil && result.Passed(); passed && c.history == "" {
		return werr
	}
	return errors.Join(err, werr, c.keepHistory(b, result))
}

// keepHistory writes the history, and says what is wrong with it.
func (c campaign) keepHistory(b *bed, result *chaos.Result) error {
	file := c.history
	if file == "" {
		f, err := os.CreateTemp(b.settings.dir, "atoll-chaos-*.jsonl")
		if err != nil {
			return err
		}
		file = f.Name()
		f.Close()
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = result.History.WriteTo(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	b.note("the history is in %s; to judge it again: sim check %s", file, file)
	if result.Passed() {
		return nil
	}
	b.keep = true // the logs of the replicas
	for _, text := range result.Complaints {
		b.note("%s", text)
	}
	if v := result.Violation; v != nil {
		b.note("%s: %s: %s", v.Key, v.Rule, v.Detail)
	}
	return errors.New("what replicas must never do was done")
}

func (c campaign) record(version string, r *chaos.Result) report.Chaos {
	out := report.Chaos{
		Kind: report.KindChaos, Version: version, Seed: c.Seed, Clients: c.Clients, Replicas: c.members,
		Seconds: rounded(r.Took.Seconds()), One: r.One, Two: r.Two, All: r.All, Starting: r.Starting,
		Processes: r.Processes, Stopped: r.Stopped, Twins: r.Twins, SlowestStart: milliseconds(r.SlowestStart),
		Operations: len(r.History), Puts: r.Puts, Gets: r.Gets, Deletes: r.Deletes,
		Failed: r.Failed, Unknown: r.Unknown, Resumed: r.Resumed, Surprising: r.Surprising, Keys: r.Keys,
		OnceAcked: r.OnceAcked, OnceUnknown: r.OnceUnknown, OnceThere: r.OnceThere, Complaints: r.Complained,
	}
	if r.Violation != nil {
		out.Violation = string(r.Violation.Rule)
	}
	return out
}

// tormented is a cluster as package chaos wants one.
type tormented struct {
	*target.Cluster
	members  int
	settings client.Config
}

func (t tormented) Members() int       { return t.members }
func (t tormented) Kill(i int)         { t.Member(i).Kill() }
func (t tormented) Pause(i int) error  { return t.Member(i).Pause() }
func (t tormented) Resume(i int) error { return t.Member(i).Resume() }
func (t tormented) Ended(i int) error  { return target.Ended([]*target.Process{t.Member(i)}) }

func (t tormented) Open(ctx context.Context) (chaos.Library, error) {
	// Not the client as it is: a nil one must not look like a library.
	c, err := client.Open(ctx, t.settings)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (t tormented) Twin(ctx context.Context, i int) error {
	err := t.Cluster.Twin(ctx, i)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == refusedInUse {
		return fmt.Errorf("%w: %w", chaos.ErrTwinRefused, err)
	}
	return err
}
