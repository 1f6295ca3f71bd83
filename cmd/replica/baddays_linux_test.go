package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"atoll/internal/cli"
)

// failSyncs makes a replica that is this test binary fail its next sync of the
// journal, when it gets SIGUSR1: in the place of the journal's files it has
// /dev/null from then on, which takes every write and can't be synced.
func failSyncs() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		<-signals
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			panic(err)
		}
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			panic(err)
		}
		for _, e := range entries {
			target, _ := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
			var fd int
			if _, err := fmt.Sscan(e.Name(), &fd); err == nil && strings.HasSuffix(target, ".log") && filepath.Base(filepath.Dir(target)) == "journal" {
				if err := unix.Dup3(int(null.Fd()), fd, unix.O_CLOEXEC); err != nil {
					panic(err)
				}
			}
		}
	}()
}

// TestAFailingSyncEndsTheProcess: a real process whose fsync fails ends and
// says why. It has acked nothing that isn't there when it is started again,
// and nobody else minds.
func TestAFailingSyncEndsTheProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	cs := startCluster(t, dir, 3, "majority")
	c := openClient(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	l := startLoad(ctx, c, 16)
	l.reach(t, 300)
	victim := cs.all[1]
	if err := victim.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	<-victim.done
	if code := victim.cmd.ProcessState.ExitCode(); code != cli.ExitOther {
		t.Errorf("the process ended with %v, want exit %d", victim.err, cli.ExitOther)
	}
	last := lastLine(filepath.Join(victim.folder, logFile))
	if !strings.Contains(last, "syncing "+filepath.Join(victim.folder, "journal")) || !strings.Contains(last, "fdatasync") {
		t.Errorf("the process's last words were %q", last)
	}
	l.reach(t, l.total.Load()+300)
	cancel()
	l.ended(t)
	cs.stop()
	startCluster(t, dir, 3, "majority")
	l.check(t, openClient(t, dir))
}

// TestToolsOnAFolderInUse: whatever is called on the folder of a running
// process ends at once, names that, and disturbs nothing.
func TestToolsOnAFolderInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	cs := startCluster(t, dir, 1, "majority")
	first := cs.all[0]
	c := openClient(t, dir)
	if _, err := c.Put(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"run", "--listen", "127.0.0.1:0"},
		{"data", "check"},
		{"data", "dump"},
		{"data", "compact"},
	} {
		code, stdout, stderr := run(t, append(args, "--data-dir", first.folder)...)
		if code != cli.ExitPrecondition || !strings.Contains(stderr, fmt.Sprintf("pid %d", first.serving.PID)) {
			t.Errorf("%v on a folder in use: exit %d, %s", args, code, stderr)
		}
		oneLineOf(t, code, stdout, stderr)
	}
	if v, err := c.Get(t.Context(), "k"); err != nil || string(v.Bytes) != "v" {
		t.Errorf("afterwards: %q, %v", v.Bytes, err)
	}
}
