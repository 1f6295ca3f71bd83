package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"atoll/internal/cli"
)

// beReplica makes the test binary behave as the replica program: the tests
// start real processes, and those are this binary again.
const beReplica = "ATOLL_TEST_BE_REPLICA"

// beOperator makes it replace a member: the value is what operate takes.
const beOperator = "ATOLL_TEST_BE_OPERATOR"

func TestMain(m *testing.M) {
	if how := os.Getenv(beOperator); how != "" {
		operate(how)
	}
	if os.Getenv(beReplica) != "" {
		failSyncs()
		main()
	}
	os.Setenv(beReplica, "1")
	os.Exit(m.Run())
}

// run runs a command line in this process and returns how it ended and what
// it printed.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runContext(t.Context(), args...)
}

func runContext(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	a := app()
	a.Writer, a.ErrWriter = &out, &errs
	code = cli.RunContext(ctx, a, append([]string{"replica"}, args...))
	return code, out.String(), errs.String()
}

// What ends a node is in its log: here, that somebody asked for it.
func TestTheLogSaysWhyANodeStops(t *testing.T) {
	_, member := initOne(t, "127.0.0.1:1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, _, stderr := runContext(ctx, "run", "--data-dir", member, "--listen", "127.0.0.1:0")
	if code != cli.ExitDone || !strings.Contains(stderr, "msg=serving") || !strings.Contains(stderr, `msg=stopping node=a reason="it was interrupted"`) ||
		!strings.Contains(lastOf(stderr), "msg=stopped") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
