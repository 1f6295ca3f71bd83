package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"atoll/bench/load"
)

func TestProcFiles(t *testing.T) {
	cpu, err := cpuOf("12 (a (b) c) S 1 12 12 0 -1 4194304 1 2 3 4 150 25 7 8 20 0 9 0 100 200 300")
	if want := 1750 * time.Millisecond; err != nil || cpu != want {
		t.Errorf("cpuOf: %v, %v; want %v", cpu, err, want)
	}
	busy, err := busyOf("cpu  100 1 50 9999 8888 2 3 4 500 600\ncpu0 1 2 3\n")
	if want := 1600 * time.Millisecond; err != nil || busy != want {
		t.Errorf("busyOf: %v, %v; want %v", busy, err, want)
	}
	rss, anonymous, err := memoryOf("Name:\tx\nVmRSS:\t    2048 kB\nRssAnon:\t     512 kB\n")
	if err != nil || rss != 2<<20 || anonymous != 512<<10 {
		t.Errorf("memoryOf: %d, %d, %v", rss, anonymous, err)
	}
	_, cerr := cpuOf("12 (x) S 1")
	_, berr := busyOf("intr 1 2 3")
	_, _, merr := memoryOf("Name:\tx\n")
	for _, err := range []error{cerr, berr, merr} {
		if err == nil {
			t.Error("nonsense was taken")
		}
	}
}

func TestProcess(t *testing.T) {
	dir := t.TempDir()
	p, err := launch(dir, "x", exec.Command("sh", "-c", "echo first; echo last >&2; exec cat"), nil)
	if err != nil {
		t.Fatal(err)
	}
	killed := false
	defer func() {
		if !killed {
			p.Kill()
		}
	}()
	if err := Ended([]*Process{p}); err != nil {
		t.Errorf("a process that lives: %v", err)
	}
	if _, err := p.CPU(); err != nil {
		t.Error(err)
	}
	if rss, _, err := p.Memory(); err != nil || rss == 0 {
		t.Errorf("memory %d, %v", rss, err)
	}
	p.Kill()
	killed = true
	if err := Ended([]*Process{p}); err == nil || !strings.Contains(err.Error(), "node x ended (signal: killed)") {
		t.Errorf("a process that was killed: %v", err)
	}
	p.Kill() // once more does nothing
}

// TestNodeEndsWithItsInput: what isn't killed with this process ends by itself.
func TestNodeEndsWithItsInput(t *testing.T) {
	p, err := launch(t.TempDir(), "x", exec.Command("cat"), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.input.Close()
	<-p.done
	if err := Ended([]*Process{p}); err == nil || !strings.Contains(err.Error(), "exit status 0") {
		t.Errorf("got %v", err)
	}
}

func TestSize(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(
		os.Mkdir(filepath.Join(dir, "d"), 0o700),
		os.WriteFile(filepath.Join(dir, "a"), make([]byte, 10), 0o600),
		os.WriteFile(filepath.Join(dir, "d", "b"), make([]byte, 5), 0o600)); err != nil {
		t.Fatal(err)
	}
	if n, err := Size(dir); n != 15 || err != nil {
		t.Errorf("size %d, %v; want 15", n, err)
	}
	if n, err := Size(filepath.Join(dir, "none")); n != 0 || err != nil {
		t.Errorf("size of nothing: %d, %v", n, err)
	}
}

func TestFreePorts(t *testing.T) {
	for _, network := range []string{"tcp", "udp"} {
		ports, err := freePorts(network, 9)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(ports)
		if len(slices.Compact(ports)) != 9 {
			t.Errorf("%s: %v aren't nine different ports", network, ports)
		}
	}
}

func TestUnknownTarget(t *testing.T) {
	if _, err := Start(t.Context(), "nosuch", Config{}); err == nil || !strings.Contains(err.Error(), `no target "nosuch"`) {
		t.Errorf("got %v", err)
	}
	if err := RunNode(`{"Target":"zk"}`); err == nil {
		t.Error("a node that this program can't run was run")
	}
}

// filled is a target that keeps what it is filled with, and fails at one key.
type filled struct {
	mu      sync.Mutex
	keys    []string
	largest int
	bad     string
}

func (f *filled) Fill(_ context.Context, keys []string, value []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(keys, f.bad) {
		return fmt.Errorf("key %s", f.bad)
	}
	f.keys = append(f.keys, keys...)
	f.largest = max(f.largest, len(keys)*len(value))
	return nil
}

func (f *filled) Client(int) load.Client { return nil }
func (f *filled) Roaming(context.Context, int) (load.Client, io.Closer, error) {
	return nil, nil, errors.ErrUnsupported
}
func (f *filled) Victim(context.Context, int) (int, bool, error) { return 0, false, nil }
func (f *filled) Access() Access                                 { return Access{} }
func (f *filled) Victims() int                                   { return 1 }
func (f *filled) Nodes() []*Process                              { return nil }
func (f *filled) Version() string                                { return "" }
func (f *filled) Stop()                                          {}

func TestFill(t *testing.T) {
	var keys []string
	for i := range 1234 {
		keys = append(keys, fmt.Sprintf("k%04d", i))
	}
	for _, size := range []int{0, 100, 300_000, 3 << 20} {
		f := &filled{}
		if err := Fill(t.Context(), f, keys, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		slices.Sort(f.keys)
		if !slices.Equal(f.keys, keys) {
			t.Errorf("value of %d: %d keys were written, not each of %d once", size, len(f.keys), len(keys))
		}
		if limit := max(size, fillBytes); f.largest > limit {
			t.Errorf("value of %d: a batch of %d bytes, more than %d", size, f.largest, limit)
		}
	}
	f := &filled{bad: "k0500"}
	if err := Fill(t.Context(), f, keys, nil); err == nil || err.Error() != "key k0500" {
		t.Errorf("got %v, want the batch's error", err)
	}
}
