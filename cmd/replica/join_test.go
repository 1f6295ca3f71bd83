package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"atoll/internal/cli"
	"atoll/internal/identity"
	"atoll/join"
)

// ticketOf makes a ticket of the cluster in dir.
func ticketOf(t *testing.T, dir, name string, at time.Time) string {
	t.Helper()
	ca, err := identity.LoadCA(filepath.Join(dir, "ca"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := identity.LoadContext(filepath.Join(dir, identity.FileContext))
	if err != nil {
		t.Fatal(err)
	}
	ticket, err := ca.Ticket(identity.TicketRequest{Name: name, MaxValue: 1 << 20, Endpoints: c.Endpoints, Now: at})
	if err != nil {
		t.Fatal(err)
	}
	return ticket.String()
}

// serveOnce runs the program as a process until it serves, and then interrupts it.
func serveOnce(t *testing.T, stdin string, args ...string) serving {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(args, "-o", "json")...)
	cmd.Stdin = strings.NewReader(stdin)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	var s serving
	if err := json.Unmarshal([]byte(line), &s); err != nil {
		_ = cmd.Wait()
		t.Fatalf("it doesn't serve: %v\n%s", err, &errs)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("interrupted, it ends with %v\n%s", err, &errs)
	}
	return s
}

// TestJoinCommand: a ticket makes a node that serves and is on standby; the command
// can be given again, and then run is enough. Another folder, and a late one, are
// refused.
func TestJoinCommand(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cluster")
	startCluster(t, dir, 1, "")
	ticket := ticketOf(t, dir, "d", time.Now())
	folder := filepath.Join(t.TempDir(), "d")
	first := serveOnce(t, ticket, "join", "-", "--data-dir", folder, "--listen", "127.0.0.1:0")
	if again := serveOnce(t, "", "join", ticket, "--data-dir", folder, "--listen", "localhost:0"); again.Node != first.Node || again.Name != "d" {
		t.Errorf("again it is %+v, it was %+v", again, first)
	}
	if f, err := identity.OpenFolder(folder); err != nil || !slices.Equal(f.Listen(), []string{"localhost:0"}) {
		t.Errorf("again, elsewhere: it listens on %v from now on, %v", f.Listen(), err)
	}
	if run := serveOnce(t, "", "run", "--data-dir", folder, "--advertise", "localhost:7400"); run.Node != first.Node ||
		!slices.Equal(run.Advertised, []string{"localhost:7400"}) || !strings.Contains(run.text(), ", others dial it at localhost:7400") {
		t.Errorf("run is %+v, it was %+v", run, first)
	}
	if text := first.text(); len(first.Advertised) != 1 || strings.Contains(text, "others") {
		t.Errorf("it says %q", text)
	}
	s, err := openClient(t, dir).Status(t.Context())
	if err != nil || len(s.Members) != 1 || len(s.Standby) != 1 || string(s.Standby[0].ID) != first.Node {
		t.Errorf("the cluster knows %+v, %v", s.Standby, err)
	}
	file := filepath.Join(t.TempDir(), "ticket.txt")
	if err := os.WriteFile(file, []byte(ticket+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused, nowhere := filepath.Join(t.TempDir(), "d"), filepath.Join(t.TempDir(), "f")
	late := ticketOf(t, dir, "e", time.Now().Add(-identity.DefaultTicketTTL))
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		name string
		args []string
		want string
		code int
	}{
		{"a second use", []string{file, "--data-dir", refused, "--listen", "127.0.0.1:0"}, "this ticket was used already", cli.ExitDenied},
		{"late", []string{late, "--data-dir", filepath.Join(t.TempDir(), "e"), "--listen", "127.0.0.1:0"}, "the ticket has expired", cli.ExitPrecondition},
		{"another's folder", []string{late, "--data-dir", folder, "--listen", "127.0.0.1:0"}, "is the folder of d", cli.ExitPrecondition},
		{"cut off", []string{ticket[:len(ticket)-3], "--data-dir", filepath.Join(t.TempDir(), "e"), "--listen", "127.0.0.1:0"}, "the ticket is cut off or mistyped", cli.ExitPrecondition},
		{"no ticket", []string{"ticket", "--data-dir", filepath.Join(t.TempDir(), "e"), "--listen", "127.0.0.1:0"}, `"ticket" is neither a ticket nor a file`, cli.ExitPrecondition},
		{"an empty stdin", []string{"-", "--data-dir", filepath.Join(t.TempDir(), "e"), "--listen", "127.0.0.1:0"}, "the ticket is empty; client member ticket -o raw prints one, or says why not", cli.ExitPrecondition},
		{"nowhere", []string{late, "--data-dir", filepath.Join(t.TempDir(), "e")}, "", cli.ExitPrecondition},
		{"no folder", []string{ticket, "--listen", "127.0.0.1:0"}, "--data-dir is missing", cli.ExitUsage},
		{"where another one listens", []string{ticket, "--data-dir", folder, "--listen", taken.LocalAddr().String()}, "taken", cli.ExitPrecondition},
		{"where nobody can dial it", []string{ticketOf(t, dir, "f", time.Now()), "--data-dir", nowhere, "--listen", ":0"}, ":0 is all interfaces; say where with --advertise HOST:PORT", cli.ExitPrecondition},
	} {
		code, stdout, stderr := run(t, append([]string{"join"}, c.args...)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %s\nwant %d and %q", c.name, code, stderr, c.code, c.want)
		}
	}
	for _, left := range []string{refused, nowhere} {
		if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was refused has left a folder: %v", err)
		}
	}
	if f, err := identity.OpenFolder(folder); err != nil || !slices.Equal(f.Listen(), []string{"localhost:0"}) {
		t.Errorf("a start that was refused has made it listen on %v, %v", f.Listen(), err)
	}
}

// TestAJoinWithoutAClusterSaysWhatToDo: in one line, and other errors stay as they are.
func TestAJoinWithoutAClusterSaysWhatToDo(t *testing.T) {
	alone := &join.UnreachableError{Cluster: "c1", Endpoints: []error{errors.New("h:1: no answer")}}
	const want = "cluster c1 isn't found: h:1: no answer; is the cluster up, and reachable from here? d is written: give the same command again; if the cluster is elsewhere by now, delete that folder and join with a newer ticket"
	if err := tryAgain("d", alone); err.Error() != want || cli.ExitCode(err) != cli.ExitNoQuorum {
		t.Errorf("exit %d, %v\nwant %s", cli.ExitCode(err), err, want)
	}
	other := errors.New("other")
	if err := tryAgain("d", other); err != other {
		t.Errorf("of another error it makes %v", err)
	}
}

// TestAnOldFolderEndsWithOneError: a member that is started on an older copy of its
// folder, while another one knows better, ends with code 9 and says what to do.
func TestAnOldFolderEndsWithOneError(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cluster")
	cs := startCluster(t, dir, 2, "")
	victim := cs.all[1]
	if _, err := openClient(t, dir).Put(t.Context(), "k", []byte("v")); err != nil { // both serve, and have met
		t.Fatal(err)
	}
	_ = victim.input.Close()
	<-victim.done
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(victim.folder)); err != nil {
		t.Fatal(err)
	}
	serveOnce(t, "", "run", "--data-dir", victim.folder)
	code, _, stderr := run(t, "run", "--data-dir", copied)
	if code != cli.ExitDamaged || !strings.Contains(lastOf(stderr), "this folder is a copy") && !strings.Contains(lastOf(stderr), "an older copy") ||
		!strings.Contains(lastOf(stderr), "client member ticket") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
