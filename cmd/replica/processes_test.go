package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"atoll/client"
	"atoll/internal/identity"
	"atoll/internal/porttest"
	"atoll/tags"
)

// startCluster starts n replicas as processes of their own in dir, creating
// the cluster if dir is empty.
func startCluster(t *testing.T, dir string, n int, quorum string) *children {
	t.Helper()
	cluster, err := existingCluster(dir)
	if err != nil {
		var members []identity.MemberSpec
		for i := range n {
			members = append(members, identity.MemberSpec{Name: memberName(i), Address: porttest.Address(t)})
		}
		if cluster, err = createCluster(dir, members, quorum, 0); err != nil {
			t.Fatal(err)
		}
	}
	cs, err := startChildren(t.Context(), dir, cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cs.stop)
	if len(cs.damaged) > 0 {
		t.Fatal(cs.damaged)
	}
	return cs
}

// TestDevStartsWhatIsWhole: members whose folders are damaged or gone stay off, and
// are named; the others do what they can.
func TestDevStartsWhatIsWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	startCluster(t, dir, 5, "majority").stop()
	remove(t, filepath.Join(dir, "a", identity.FileKey))
	if err := os.RemoveAll(filepath.Join(dir, "c")); err != nil {
		t.Fatal(err)
	}
	cluster, err := existingCluster(dir)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := startChildren(t.Context(), dir, cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cs.stop)
	if len(cs.all) != 3 || len(cs.damaged) != 2 || !strings.Contains(cs.damaged[0].Error(), "replica a: ") || !strings.Contains(cs.damaged[1].Error(), "replica c: ") {
		t.Fatalf("%d were started, and %v", len(cs.all), cs.damaged)
	}
	if _, err := openClient(t, dir).Put(t.Context(), "k", []byte("v")); err != nil {
		t.Error(err)
	}
}

func openClient(t *testing.T, dir string) *client.Client {
	t.Helper()
	cfg, err := client.LoadContext(filepath.Join(dir, identity.FileContext))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// failFast is the deadline of what can't succeed.
const failFast = 700 * time.Millisecond

// load is one writer for each key, which counts upwards as fast as it can.
type load struct {
	keys      int
	attempted []int      // by key: the largest number that a put was begun with
	acked     []int      // by key: the largest that a put returned nil for
	last      []tags.Tag // by key: the tag of that one
	workers   sync.WaitGroup
	total     atomic.Int64
	progress  chan struct{} // holds a token after another put was acked
	failures  []error       // by key: why the writer ended, nil if it was asked to
}

func startLoad(ctx context.Context, c *client.Client, keys int) *load {
	l := &load{keys: keys, attempted: make([]int, keys), acked: make([]int, keys), last: make([]tags.Tag, keys), failures: make([]error, keys), progress: make(chan struct{}, 1)}
	for k := range keys {
		l.workers.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				l.attempted[k] = n
				tag, err := c.Put(ctx, loadKey(k), []byte(strconv.Itoa(n)))
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						l.failures[k] = err
					}
					return
				}
				if !l.last[k].Less(tag) {
					l.failures[k] = fmt.Errorf("the tag went back from %v to %v", l.last[k], tag)
					return
				}
				l.last[k], l.acked[k] = tag, n
				l.total.Add(1)
				select {
				case l.progress <- struct{}{}:
				default:
				}
			}
		})
	}
	return l
}

func loadKey(k int) string { return fmt.Sprintf("load/%02d", k) }

// reach waits until that many puts were acked.
func (l *load) reach(t *testing.T, puts int64) {
	t.Helper()
	for l.total.Load() < puts {
		select {
		case <-l.progress:
		case <-t.Context().Done():
			t.Fatal("the test ended before the load got there")
		}
	}
}

// ended waits until the writers have ended, none of them with a failure.
func (l *load) ended(t *testing.T) {
	t.Helper()
	l.workers.Wait()
	for k, err := range l.failures {
		if err != nil {
			t.Errorf("the writer of %s failed: %v", loadKey(k), err)
		}
	}
}

// check reads every key: its value is one that was acked last, or one begun
// after it whose outcome nobody knows, and its tag hasn't gone back.
func (l *load) check(t *testing.T, c *client.Client) {
	t.Helper()
	for k := range l.keys {
		v, err := c.Get(t.Context(), loadKey(k))
		if errors.Is(err, client.ErrNotFound) && l.acked[k] == 0 {
			continue
		}
		if err != nil {
			t.Fatalf("get %s: %v", loadKey(k), err)
		}
		got, err := strconv.Atoi(string(v.Bytes))
		if err != nil || got < l.acked[k] || got > l.attempted[k] {
			t.Errorf("%s = %q, want a number from %d (acked) to %d (begun)", loadKey(k), v.Bytes, l.acked[k], l.attempted[k])
		}
		if v.Tag.Less(l.last[k]) {
			t.Errorf("the tag of %s went back from %v to %v", loadKey(k), l.last[k], v.Tag)
		}
	}
}

func TestEveryAckedWriteSurvivesTheDeathOfAllReplicas(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	cs := startCluster(t, dir, 3, "majority")
	for round := range 3 {
		c := openClient(t, dir)
		ctx, cancel := context.WithCancel(t.Context())
		l := startLoad(ctx, c, 32)
		l.reach(t, int64(500*(round+1)))
		var killing sync.WaitGroup
		for _, k := range cs.all {
			killing.Go(func() {
				if err := k.kill(); err != nil {
					t.Error(err)
				}
			})
		}
		killing.Wait()
		cancel()
		l.workers.Wait()
		cs = startCluster(t, dir, 3, "majority")
		l.check(t, openClient(t, dir))
	}
}

func TestTheDeathOfOneReplicaFailsNobody(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	cs := startCluster(t, dir, 3, "majority")
	c := openClient(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	l := startLoad(ctx, c, 16)
	l.reach(t, 500)
	if err := cs.all[1].kill(); err != nil {
		t.Fatal(err)
	}
	l.reach(t, l.total.Load()+2000)
	cancel()
	l.ended(t)
	l.check(t, c)
}

// TestAReplicaThatIsStoppedFailsNobodyAndGoesOn: SIGSTOP leaves a replica's
// connections as they are, and silent. After SIGCONT it goes on with what it
// knew, and counts again: it is needed for the quorum when another one dies.
func TestAReplicaThatIsStoppedFailsNobodyAndGoesOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	cs := startCluster(t, dir, 3, "majority")
	c := openClient(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	l := startLoad(ctx, c, 16)
	l.reach(t, 200)
	stopped := cs.all[0].cmd.Process
	if err := stopped.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	l.reach(t, l.total.Load()+1000)
	if err := stopped.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := cs.all[1].kill(); err != nil {
		t.Fatal(err)
	}
	l.reach(t, l.total.Load()+500)
	cancel()
	l.ended(t)
	l.check(t, c)
}

func TestWithoutAQuorumNothingIsWrittenAndNothingInvented(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	cs := startCluster(t, dir, 3, "majority")
	c := openClient(t, dir)
	if _, err := c.Put(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	for _, k := range cs.all[1:] {
		if err := k.kill(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), failFast)
	defer cancel()
	_, err := c.Get(ctx, "k")
	var none *client.NoQuorumError
	if !errors.As(err, &none) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("get: %v, want a NoQuorumError that the deadline caused", err)
	}
	// The get phase of a put finds no quorum, so no put was sent.
	_, err = c.Put(ctx, "k", []byte("w"))
	if !errors.As(err, &none) {
		t.Errorf("put: %v, want a NoQuorumError", err)
	}
	for _, name := range []string{"b", "c"} {
		if !strings.Contains(err.Error(), name+": ") {
			t.Errorf("put: %v, want it to name %s", err, name)
		}
	}
}
