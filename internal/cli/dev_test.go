package cli_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"atoll/internal/cli"
)

// cacheHome moves the user's cache folder.
func cacheHome(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("HOME", dir) // where the cache folder lies elsewhere
}

func TestDev(t *testing.T) {
	cacheHome(t)
	if _, alive, err := cli.FindDev(); alive || err != nil {
		t.Fatalf("with no announcement: alive %v, %v", alive, err)
	}
	first, err := cli.AnnounceDev("/tmp/first.json")
	if err != nil {
		t.Fatal(err)
	}
	if dev, alive, err := cli.FindDev(); !alive || err != nil || dev.Context != "/tmp/first.json" || dev.PID != os.Getpid() {
		t.Fatalf("FindDev = %+v, %v, %v", dev, alive, err)
	}
	// Another takes its place; the first leaves it alone.
	second, err := cli.AnnounceDev("/tmp/second.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Withdraw(); err != nil {
		t.Fatal(err)
	}
	if dev, alive, err := cli.FindDev(); !alive || err != nil || dev.Context != "/tmp/second.json" {
		t.Fatalf("FindDev = %+v, %v, %v, want the second", dev, alive, err)
	}
	if err := second.Withdraw(); err != nil {
		t.Fatal(err)
	}
	if _, alive, err := cli.FindDev(); alive || err != nil {
		t.Fatalf("after both were withdrawn: alive %v, %v", alive, err)
	}
}

// TestDevOfKilledProcess: an announcement ends with its process, even one
// that is killed, and whoever may have its id by now.
func TestDevOfKilledProcess(t *testing.T) {
	if os.Getenv("CLI_TEST_ANNOUNCE") != "" {
		if _, err := cli.AnnounceDev("context.json"); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("announced\n")
		bufio.NewReader(os.Stdin).ReadByte() // until killed
		return
	}
	cacheHome(t)
	child := exec.Command(os.Args[0], "-test.run=^TestDevOfKilledProcess$")
	child.Env = append(os.Environ(), "CLI_TEST_ANNOUNCE=1")
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && lines.Text() != "announced" {
	}
	dev, alive, err := cli.FindDev()
	if !alive || err != nil || dev.PID != child.Process.Pid || !filepath.IsAbs(dev.Context) {
		t.Errorf("while it lives: %+v, %v, %v", dev, alive, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	child.Wait()
	if dev, alive, err := cli.FindDev(); alive || err != nil {
		t.Errorf("after it was killed: %+v, %v, %v", dev, alive, err)
	}
}
