package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"atoll/client"
	"atoll/internal/cli"
	"atoll/internal/identity"
)

// openAdmin opens a client that may change the members.
func openAdmin(t *testing.T, dir string) *client.Client {
	t.Helper()
	c, err := adminOf(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func adminOf(ctx context.Context, dir string) (*client.Client, error) {
	cfg, err := client.LoadContext(filepath.Join(dir, identity.FileAdmin))
	if err != nil {
		return nil, err
	}
	cfg.Timeout = time.Minute
	return client.Open(ctx, cfg)
}

// replacing is the change that puts a node in another's place.
func replacing(before, after string) client.Change {
	return client.Change{Replace: []client.Replacement{{Old: before, New: after}}}
}

// decide has a change decided, and doesn't wait for more.
func decide(t *testing.T, admin *client.Client, change client.Change) client.Plan {
	t.Helper()
	plan, err := admin.Plan(t.Context(), change)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Propose(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

// slowly makes replicas that are started from now on take over so many MiB in a
// second at most: each large value is a page, and after each they rest.
func slowly(t *testing.T, mib int) { t.Setenv(cli.Environment(flagTransfer), strconv.Itoa(mib)) }

const large = 1 << 20

// putLarge writes so many large values.
func putLarge(t *testing.T, c *client.Client, n int) {
	t.Helper()
	for i := range n {
		if _, err := c.Put(t.Context(), fmt.Sprint("large", i), make([]byte, large)); err != nil {
			t.Fatal(err)
		}
	}
}

func checkLarge(t *testing.T, c *client.Client, n int) {
	t.Helper()
	for i := range n {
		if v, err := c.Get(t.Context(), fmt.Sprint("large", i)); err != nil || len(v.Bytes) != large {
			t.Errorf("large%d: %d bytes, %v", i, len(v.Bytes), err)
		}
	}
}

// killAll kills replicas at the same time.
func killAll(t *testing.T, all ...*child) {
	t.Helper()
	var killing sync.WaitGroup
	for _, c := range all {
		killing.Go(func() {
			if err := c.kill(); err != nil {
				t.Error(err)
			}
		})
	}
	killing.Wait()
}

// again starts a replica that was killed.
func (c *child) again(t *testing.T) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	next, err := startChild(t.Context(), self, c.folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.stop)
	return next
}

// TestAllAreKilledInTheMiddleOfAChange: all nodes die at random moments between the
// decision on new members and its end, and are started again. The change ends by
// itself; every acked write is there, and no tag has gone back.
func TestAllAreKilledInTheMiddleOfAChange(t *testing.T) {
	slowly(t, 16)
	dir := filepath.Join(t.TempDir(), "cluster")
	cs := startCluster(t, dir, 3, "majority")
	if _, err := cs.join(t.Context(), dir, 1<<20); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 5))
	before, after := "c", "d"
	for round := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		c := openClient(t, dir)
		putLarge(t, c, 2)
		l := startLoad(ctx, c, 16)
		l.reach(t, 100)
		plan := decide(t, openAdmin(t, dir), replacing(before, after))
		// At once the first time, and then at some moment of what takes 70 ms.
		moment := time.NewTimer(time.Duration(round) * time.Duration(random.Int64N(int64(50*time.Millisecond))))
		<-moment.C
		killAll(t, cs.all...)
		cancel()
		l.workers.Wait()
		cs = startCluster(t, dir, 3, "majority")
		if err := openAdmin(t, dir).Await(t.Context(), plan.Target.Index(), nil); err != nil {
			t.Fatal(err)
		}
		l.check(t, openClient(t, dir))
		before, after = after, before
	}
}

// TestMembersThatAreSwitchedOffTooEarly: the only member of the old configuration
// dies while the new one has not taken over all. Operations wait, and say for whom,
// as status does. When it is back, everything ends.
func TestMembersThatAreSwitchedOffTooEarly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	cs := startCluster(t, dir, 1, "majority")
	old := cs.all[0]
	c, admin := openClient(t, dir), openAdmin(t, dir)
	putLarge(t, c, 3)
	slowly(t, 1)
	if _, err := cs.join(t.Context(), dir, c.MaxValue()); err != nil {
		t.Fatal(err)
	}
	plan := decide(t, admin, replacing("a", "b"))
	if err := old.kill(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), failFast)
	defer cancel()
	var none *client.NoQuorumError
	if _, err := c.Get(ctx, "large0"); !errors.As(err, &none) || !strings.Contains(err.Error(), "a: ") {
		t.Errorf("get: %v, want a NoQuorumError that names a", err)
	}
	s, err := admin.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const want = "[configuration 0 has no quorum for reads and writes; silent: a]"
	if got := fmt.Sprint(s.Wants()); got != want {
		t.Errorf("status waits for %s, want %s", got, want)
	}
	if p, err := admin.Progress(t.Context()); err != nil || fmt.Sprint(p.Wants()) != want || len(p.Merging()) != 1 || p.Merging()[0].Status == nil {
		t.Errorf("progress: %+v, %v; want b to be up, and that it waits for %s", p, err, want)
	}
	old = old.again(t)
	if err := admin.Await(t.Context(), plan.Target.Index(), nil); err != nil {
		t.Fatal(err)
	}
	checkLarge(t, c, 3) // a client that slept until now wouldn't know where b is
	if err := old.kill(); err != nil {
		t.Fatal(err)
	}
	checkLarge(t, c, 3)
}

// TestGrowingToTwo: a second node that isn't up is refused, and nothing changes. One
// that dies as soon as it is a member is waited for by name.
func TestGrowingToTwo(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cluster")
	cs := startCluster(t, dir, 1, "majority")
	second, err := cs.join(t.Context(), dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	c, admin := openClient(t, dir), openAdmin(t, dir)
	grow := client.Change{Add: []string{"b"}, Force: true}
	if err := second.kill(); err != nil {
		t.Fatal(err)
	}
	plan, err := admin.Plan(t.Context(), grow)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), failFast)
	defer cancel()
	_, err = admin.Propose(ctx, plan)
	if _, unready := errors.AsType[*client.NotReadyError](err); !unready || !strings.Contains(err.Error(), "nothing was changed") || !strings.Contains(err.Error(), "b: ") {
		t.Errorf("the second isn't up: %v, want a NotReadyError that names b", err)
	}
	if _, err := c.Put(t.Context(), "k", []byte("1")); err != nil {
		t.Errorf("afterwards: %v", err)
	}

	second = second.again(t)
	plan = decide(t, admin, grow)
	if err := second.kill(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), failFast)
	defer cancel()
	if _, err := c.Put(ctx, "k", []byte("2")); err == nil || !strings.Contains(err.Error(), "b: ") {
		t.Errorf("the second died: %v, want an error that names b", err)
	}
	second.again(t)
	if err := admin.Await(t.Context(), plan.Target.Index(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(t.Context(), "k", []byte("3")); err != nil {
		t.Error(err)
	}
}

// operate is a process that replaces a member: how is the cluster's folder, who
// goes, and who comes.
func operate(how string) {
	words := strings.Split(how, "\n")
	admin, err := adminOf(context.Background(), words[0])
	if err == nil {
		_, err = admin.Reconfigure(context.Background(), replacing(words[1], words[2]))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(cli.ExitOther)
	}
	os.Exit(cli.ExitDone)
}

// TestAnOperatorDies: who changes the members is killed at random moments of it.
// Another one who wants the same has it, whatever became of the first one's, and no
// write fails.
func TestAnOperatorDies(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cluster")
	cs := startCluster(t, dir, 3, "majority")
	if _, err := cs.join(t.Context(), dir, 1<<20); err != nil {
		t.Fatal(err)
	}
	admin := openAdmin(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := startLoad(ctx, openClient(t, dir), 16)
	random := rand.New(rand.NewPCG(6, 6))
	before, after := "c", "d"
	for range 6 {
		first := exec.Command(os.Args[0])
		first.Env = append(os.Environ(), beOperator+"="+strings.Join([]string{dir, before, after}, "\n"))
		if err := first.Start(); err != nil {
			t.Fatal(err)
		}
		moment := time.NewTimer(time.Duration(random.Int64N(int64(200 * time.Millisecond))))
		<-moment.C
		_ = first.Process.Kill()
		_ = first.Wait() // killed, or done before
		target, err := admin.Reconfigure(t.Context(), replacing(before, after))
		if err != nil {
			t.Fatal(err)
		}
		if p, err := admin.Progress(t.Context()); err != nil || len(p.Active) != 1 || !p.Active[0].Equal(target) {
			t.Errorf("active are %v, %v; want %v alone", p.Active, err, target)
		}
		l.reach(t, l.total.Load()+100)
		before, after = after, before
	}
	cancel()
	l.ended(t)
	l.check(t, openClient(t, dir))
}
