package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	urfave "github.com/urfave/cli/v2"

	"atoll/client"
	"atoll/internal/cli"
	"atoll/internal/identity"
)

// tour shows what a cluster does, on the real thing: every line that it
// prints was done through client and quorums, and checked.
func tour(c *urfave.Context, dir string, cs *children) error {
	g := &guide{c: c, dir: dir, children: cs}
	g.say("%s, each a process with its own disk:", plural(len(cs.all), "replica"))
	if err := printChildren(c.App.Writer, cs); err != nil {
		return err
	}
	cfg, err := client.LoadContext(filepath.Join(dir, identity.FileContext))
	if err != nil {
		return err
	}
	if g.client, err = client.Open(c.Context, cfg); err != nil {
		return err
	}
	defer g.client.Close()
	return g.walk()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// guide is who leads the tour.
type guide struct {
	c        *urfave.Context
	dir      string
	client   *client.Client
	children *children
	dead     *child // who was killed, nil if nobody was
}

func (g *guide) say(format string, args ...any) {
	fmt.Fprintf(g.c.App.Writer, "\n"+format+"\n", args...)
}

// The keys of the tour, apart from those of whoever uses the cluster.
const (
	tourPrefix = "tour/"
	tourFirst  = tourPrefix + "greeting"
	tourSecond = tourPrefix + "farewell"

	tourWritten = tourPrefix + "written" // while the members change
)

func (g *guide) walk() error {
	steps := []func(context.Context) error{
		g.putAndGet(tourFirst, "hello"),
		g.overwrite,
		g.killOne,
		g.putAndGet(tourSecond, "still here"),
		g.readBack(tourFirst, "hello again"),
		g.replaceDead,
		g.readBack(tourFirst, "hello again"),
		g.deleteAndList,
		g.status,
	}
	for _, step := range steps {
		if err := step(g.c.Context); err != nil {
			return err
		}
	}
	return nil
}

func (g *guide) putAndGet(key, value string) func(context.Context) error {
	return func(ctx context.Context) error {
		tag, err := g.client.Put(ctx, key, []byte(value))
		if err != nil {
			return err
		}
		g.say("put %s = %q: synced to the disks of a write quorum, under tag %v", key, value, tag)
		return g.readBack(key, value)(ctx)
	}
}

func (g *guide) readBack(key, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := g.client.Get(ctx, key)
		if err != nil {
			return err
		}
		if string(got.Bytes) != want {
			return fmt.Errorf("get %s returned %q after %q was put", key, got.Bytes, want)
		}
		g.say("get %s = %q", key, got.Bytes)
		return nil
	}
}

func (g *guide) overwrite(ctx context.Context) error {
	first, err := g.client.Get(ctx, tourFirst)
	if err != nil {
		return err
	}
	tag, err := g.client.Put(ctx, tourFirst, []byte("hello again"))
	if err != nil {
		return err
	}
	if !first.Tag.Less(tag) {
		return fmt.Errorf("the tag %v of a later write is not larger than %v", tag, first.Tag)
	}
	g.say("put %s again: its tag is larger, %v", tourFirst, tag)
	return nil
}

// killOne kills the last replica that runs, if a quorum is left without it.
func (g *guide) killOne(ctx context.Context) error {
	s, err := g.client.Status(ctx)
	if err != nil {
		return err
	}
	t := s.Configuration.Tolerance()
	if t.Reads.Any < 1 || t.Writes.Any < 1 {
		g.say("this cluster doesn't tolerate the death of just any replica: nobody is killed")
		return nil
	}
	victim := g.children.all[len(g.children.all)-1]
	if err := victim.kill(); err != nil {
		return err
	}
	g.say("kill -9 %d: replica %s is dead. The cluster tolerates that: %d of %d may die for reads, %d for writes, whichever they are",
		victim.serving.PID, victim.serving.Name, t.Reads.Any, t.Members, t.Writes.Any)
	g.dead = victim
	return nil
}

// replaceDead puts a fresh replica in the place of the dead one, while a client
// writes.
func (g *guide) replaceDead(ctx context.Context) error {
	if g.dead == nil {
		return nil
	}
	writer := g.startWriter(ctx)
	defer writer.stop()
	fresh, err := g.children.join(ctx, g.dir, g.client.MaxValue())
	if err != nil {
		return err
	}
	g.say("replica %s is new, and on standby. A client writes without a pause while it takes the place of %s:", fresh.serving.Name, g.dead.serving.Name)
	cfg, err := client.LoadContext(filepath.Join(g.dir, identity.FileAdmin))
	if err != nil {
		return err
	}
	cfg.Timeout = startTimeout
	admin, err := client.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer admin.Close()
	target, err := admin.Reconfigure(ctx, client.Change{Replace: []client.Replacement{{Old: g.dead.serving.Node, New: fresh.serving.Node}}})
	if err != nil {
		return err
	}
	writes, err := writer.stop()
	if err != nil {
		return fmt.Errorf("a write failed while the members changed: %w", err)
	}
	g.say("configuration %s is installed; of %s meanwhile none failed", admin.ConfigurationText(target), plural(writes, "write"))
	return nil
}

// writer is a client that writes one key without a pause.
type writer struct {
	end    context.CancelFunc
	ended  chan struct{}
	writes int
	err    error
}

func (g *guide) startWriter(ctx context.Context) *writer {
	ctx, cancel := context.WithCancel(ctx)
	w := &writer{end: cancel, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for ctx.Err() == nil && w.err == nil {
			_, err := g.client.Put(ctx, tourWritten, []byte(strconv.Itoa(w.writes)))
			switch {
			case err == nil:
				w.writes++
			case !errors.Is(err, context.Canceled):
				w.err = err
			}
		}
	}()
	return w
}

// stop ends the writer, and returns how many writes there were, and why one has
// failed, if one has.
func (w *writer) stop() (int, error) {
	w.end()
	<-w.ended
	return w.writes, w.err
}

func (g *guide) deleteAndList(ctx context.Context) error {
	if _, err := g.client.Delete(ctx, tourFirst); err != nil {
		return err
	}
	if _, err := g.client.Get(ctx, tourFirst); !errors.Is(err, client.ErrNotFound) {
		return fmt.Errorf("get of a deleted key: %v, want %v", err, client.ErrNotFound)
	}
	g.say("delete %s; get %[1]s: %v; what is left:", tourFirst, client.ErrNotFound)
	t := cli.NewTable(g.c.App.Writer, "KEY", "TAG")
	for e, err := range g.client.List(ctx, tourPrefix) {
		if err != nil {
			return err
		}
		if err := t.Row(cli.Cell(e.Key), e.Tag.String()); err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, key := range []string{tourSecond, tourWritten} {
		if _, err := g.client.Delete(ctx, key); err != nil {
			return err
		}
	}
	g.say("delete %s and %s as well: the tour leaves no keys behind, and what it has deleted is counted as DELETED", tourSecond, tourWritten)
	return nil
}

func (g *guide) status(ctx context.Context) error {
	s, err := g.client.Status(ctx)
	if err != nil {
		return err
	}
	g.say("status:")
	return cli.PrintStatus(g.c.App.Writer, cli.TableFormat, s)
}
