package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"atoll/client"
	"atoll/internal/smalldisk"
)

// occupy writes a file that leaves so many bytes of its file system free.
func occupy(t *testing.T, path string, leave int64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fallocate(int(f.Fd()), 0, 0, int64(s.Bavail)*s.Bsize-leave); err != nil {
		t.Fatal(err)
	}
}

// TestAChangeOverAFullDisk: somebody fills the new member's disk while that takes
// over what it lacks. Nobody's writes fail; the new member says what it waits for;
// and when there is space again, the change ends by itself.
func TestAChangeOverAFullDisk(t *testing.T) {
	t.Setenv(beReplica, "") // for the child, which is a test
	disk, child := smalldisk.Mount(t, "400m")
	if !child {
		return
	}
	t.Setenv(beReplica, "1")
	dir := filepath.Join(t.TempDir(), "cluster")
	cs := startCluster(t, dir, 3, "majority")
	c, admin := openClient(t, dir), openAdmin(t, dir)
	putLarge(t, c, 4)
	slowly(t, 1)
	if _, err := cs.joinAt(t.Context(), dir, filepath.Join(disk, "d"), c.MaxValue()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := startLoad(ctx, c, 8)
	l.reach(t, 50)
	plan := decide(t, admin, replacing("c", "d"))
	other := filepath.Join(disk, "somebody's file")
	occupy(t, other, 64<<20)
	waits := errors.New("d has said that it has no space")
	waiting, enough := context.WithCancelCause(t.Context())
	err := admin.Await(waiting, plan.Target.Index(), func(p client.Progress) {
		if merging := p.Merging(); len(merging) == 1 && merging[0].Status != nil && strings.Contains(merging[0].Status.Trouble, "no space") {
			enough(waits)
		}
	})
	if context.Cause(waiting) != waits {
		t.Fatalf("the change ended with %v, and d never said that it has no space", err)
	}
	l.reach(t, l.total.Load()+300)
	if p, err := admin.Progress(t.Context()); err != nil || len(p.Active) != 2 || len(p.Wants()) != 0 {
		t.Errorf("on a full disk: active %v, waiting for %v, %v", p.Active, p.Wants(), err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	if err := admin.Await(t.Context(), plan.Target.Index(), nil); err != nil {
		t.Fatal(err)
	}
	if err := cs.all[2].kill(); err != nil {
		t.Fatal(err)
	}
	l.reach(t, l.total.Load()+50)
	cancel()
	l.ended(t)
	l.check(t, c)
	checkLarge(t, c, 4)
}
