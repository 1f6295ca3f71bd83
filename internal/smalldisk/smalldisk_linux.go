// Package smalldisk gives a test a file system of its own, which it can fill.
package smalldisk

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// mountAt is the environment of a test that runs itself again in namespaces
// of its own: where it is to mount a small file system.
const mountAt = "ATOLL_TEST_MOUNT_AT"

// Mount returns a folder that is a file system of the given size, in memory. It
// runs the test again, in a child that may mount one: the parent gets false, and
// returns. Where that isn't allowed the test is skipped.
func Mount(t *testing.T, size string) (dir string, child bool) {
	t.Helper()
	if dir := os.Getenv(mountAt); dir != "" {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
			t.Skipf("no file system can be mounted here: %v", err)
		}
		return dir, true
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=60s")
	c.Env = append(os.Environ(), mountAt+"="+t.TempDir())
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	output, err := c.CombinedOutput()
	switch exit := (*exec.ExitError)(nil); {
	case errors.As(err, &exit):
		t.Errorf("in a file system of %s: %v\n%s", size, err, output)
	case err != nil:
		t.Skipf("no namespace can be made here: %v", err)
	case strings.Contains(string(output), "--- SKIP"):
		t.Skipf("%s", output)
	case !strings.Contains(string(output), "--- PASS"):
		t.Errorf("the test didn't run in its child:\n%s", output)
	}
	return "", false
}
