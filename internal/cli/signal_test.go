package cli_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
)

// beStubborn makes the test binary a program that ignores that it was asked to
// stop.
const beStubborn = "ATOLL_TEST_BE_STUBBORN"

func TestMain(m *testing.M) {
	if os.Getenv(beStubborn) != "" {
		os.Exit(cli.Run(testApp(func(c *urfave.Context) error {
			cli.LeavesBehind(c.Context, "the first folder stays behind")()
			cli.LeavesBehind(c.Context, "the second folder stays behind")
			fmt.Fprintln(c.App.Writer, "runs")
			<-c.Context.Done()
			fmt.Fprintln(c.App.Writer, "was asked")
			<-make(chan int)
			return nil
		}), []string{"app", "version"}))
	}
	os.Exit(m.Run())
}

// TestASecondSignalEndsTheProcess with the code of the first, not by the
// signal, and with a word about what it leaves behind.
func TestASecondSignalEndsTheProcess(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		program := exec.Command(os.Args[0])
		program.Env = append(os.Environ(), beStubborn+"=1")
		var errs bytes.Buffer
		program.Stderr = &errs
		out, err := program.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		said := ""
		for lines.Scan() {
			said += lines.Text() + "; "
			if err := program.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
		}
		_ = program.Wait() // its exit code is looked at
		if code := program.ProcessState.ExitCode(); code != cli.ExitInterrupted || !strings.HasSuffix(said, "was asked; ") {
			t.Errorf("%v: it said %q and ended as %v, want exit code %d", signal, said, program.ProcessState, cli.ExitInterrupted)
		}
		if errs.String() != "the second folder stays behind\n" {
			t.Errorf("%v: its last words were %q", signal, errs.String())
		}
	}
}
