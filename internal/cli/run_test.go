package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	urfave "github.com/urfave/cli/v2"

	"atoll/abd"
	"atoll/internal/cli"
)

// run runs testApp in this process.
func run(do func(*urfave.Context) error, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	app := testApp(do)
	app.Writer, app.ErrWriter = &out, &errs
	code = cli.RunContext(context.Background(), app, append([]string{"app"}, args...))
	return out.String(), errs.String(), code
}

func TestRunUsageErrors(t *testing.T) {
	never := func(*urfave.Context) error {
		t.Error("the command ran")
		return nil
	}
	const usage = "usage: app put [flags] KEY VALUE|- (app put --help tells more)\n"
	for _, c := range []struct{ in, want string }{
		{"put k v x", "app: put: unexpected argument \"x\"\n" + usage},
		{"put", "app: put: KEY is missing\n" + usage},
		{"put k", "app: put: VALUE|- is missing\n" + usage},
		{"put k v --timeout soon", "app: put: --timeout \"soon\": write VALUE with its unit, as in 5s\n" + usage},
		{"put k v --timeout 8d", "app: put: --timeout \"8d\": write VALUE with its unit, as in 192h: days and weeks aren't units\n" + usage},
		{"put k v --timeout 2w", "app: put: --timeout \"2w\": write VALUE with its unit, as in 336h: days and weeks aren't units\n" + usage},
		{"put k v --timeout d", "app: put: --timeout \"d\": write VALUE with its unit, as in 5s\n" + usage},
		{"put k v --timeout=7", "app: put: --timeout \"7\": write VALUE with its unit, as in 7s\n" + usage},
		{"put k v --yes=maybe", "app: put: --yes \"maybe\": write true or false\n" + usage},
		{"put k v --yes=", "app: put: --yes \"\": write true or false\n" + usage},
		{"put k v --nope", "app: put: unknown flag --nope; if it is an argument, write -- before it\n" + usage},
		{"watch", "app: watch: KEY is missing\nusage: app watch [flags] KEY... (app watch --help tells more)\n"},
		{"list a b", "app: list: unexpected argument \"b\"\nusage: app list [flags] [PREFIX] (app list --help tells more)\n"},
		{"nope", "app: unknown command \"nope\"; the commands are put, list, watch, bench, version, lock, set\nusage: app COMMAND (app --help tells more)\n"},
		{"bench nope", "app: bench: unknown command \"nope\"; the commands are get, put\nusage: app bench COMMAND (app bench --help tells more)\n"},
		{"", "app: which command? put, list, watch, bench, version, lock, set\nusage: app COMMAND (app --help tells more)\n"},
	} {
		stdout, stderr, code := run(never, strings.Fields(c.in)...)
		if stdout != "" || stderr != c.want || code != cli.ExitUsage {
			t.Errorf("%q: stdout %q, exit %d, stderr:\n%s\nwant:\n%s", c.in, stdout, code, stderr, c.want)
		}
	}
}

func TestDurationText(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"1h": time.Hour, "8760h": 8760 * time.Hour, "1h30m": 90 * time.Minute, "1m": time.Minute, "1h0m10s": time.Hour + 10*time.Second,
		"10m": 10 * time.Minute, "0s": 0, "10s": 10 * time.Second, "-5m": -5 * time.Minute, "1.5s": 1500 * time.Millisecond,
	} {
		if got := cli.DurationText(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestRunReportsErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
		code int
	}{
		{nil, "", cli.ExitDone},
		{errors.New("it broke"), "app: bench: get: it broke\n", cli.ExitOther},
		{errors.Join(errors.New("one"), errors.New("two")), "app: bench: get: one; two\n", cli.ExitOther},
		{cli.Preconditionf("no %s", "room"), "app: bench: get: no room\n", cli.ExitPrecondition},
		{fmt.Errorf("read: %w", &fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}), "app: bench: get: read: open x: permission denied\n", cli.ExitPrecondition},
		{&abd.SizeError{What: "key", Size: 9, Max: 8}, "app: bench: get: the key has 9 bytes, at most 8 are allowed\nusage: app bench get [flags] (app bench get --help tells more)\n", cli.ExitUsage},
		{&cli.PreconditionError{Text: "listen", Err: syscall.EADDRINUSE}, "app: bench: get: listen: address already in use\n", cli.ExitPrecondition},
		{os.NewSyscallError("bind", syscall.EADDRINUSE), "app: bench: get: bind: address already in use\n", cli.ExitPrecondition},
		{fmt.Errorf("bench: %w", context.Canceled), "app: bench: get: interrupted\n", cli.ExitInterrupted},
		{cli.ErrInterrupted, "app: bench: get: interrupted\n", cli.ExitInterrupted},
		{cli.Silently(cli.Preconditionf("no room")), "", cli.ExitPrecondition},
	} {
		stdout, stderr, code := run(func(*urfave.Context) error { return c.err }, "bench", "get")
		if stdout != "" || stderr != c.want || code != c.code {
			t.Errorf("%v: stdout %q, stderr %q, exit %d; want %q, %d", c.err, stdout, stderr, code, c.want, c.code)
		}
	}
}

func TestRunInterrupted(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{{errors.New("gave up"), cli.ExitInterrupted}, {nil, cli.ExitDone}, {cli.Usagef("wrong"), cli.ExitUsage}} {
		ctx, cancel := context.WithCancel(context.Background())
		app := testApp(func(ctx *urfave.Context) error {
			cancel()
			<-ctx.Done()
			return c.err
		})
		app.Writer, app.ErrWriter = io.Discard, io.Discard
		if code := cli.RunContext(ctx, app, []string{"app", "version"}); code != c.code {
			t.Errorf("interrupted, and then %v: exit %d, want %d", c.err, code, c.code)
		}
	}
}

func TestRunSignal(t *testing.T) {
	app := testApp(func(ctx *urfave.Context) error {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
	var errs bytes.Buffer
	app.Writer, app.ErrWriter = io.Discard, &errs
	code := cli.Run(app, []string{"app", "version"})
	if code != cli.ExitInterrupted || errs.String() != "app: version: interrupted\n" {
		t.Errorf("exit %d, stderr %q, want 130 and interrupted", code, errs.String())
	}
}

// brokenWriter fails with err.
type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestRunBrokenStdout(t *testing.T) {
	for _, c := range []struct {
		err    error
		stderr string
	}{
		{syscall.EPIPE, ""},
		{syscall.ENOSPC, "app: version: the result could not be written: no space left on device\n"},
	} {
		var errs bytes.Buffer
		app := testApp(func(ctx *urfave.Context) error {
			fmt.Fprintln(ctx.App.Writer, "result") // its error is lost
			return nil
		})
		app.Writer, app.ErrWriter = brokenWriter{c.err}, &errs
		code := cli.RunContext(context.Background(), app, []string{"app", "version"})
		if code != cli.ExitOther || errs.String() != c.stderr {
			t.Errorf("%v: exit %d, stderr %q, want 1, %q", c.err, code, errs.String(), c.stderr)
		}
	}
}

func TestHelp(t *testing.T) {
	never := func(*urfave.Context) error {
		t.Error("the command ran")
		return nil
	}
	for _, args := range [][]string{{"--help"}, {"help"}, {"put", "--help"}, {"help", "put"}, {"bench", "-h"}, {"help", "bench", "get"}} {
		stdout, stderr, code := run(never, args...)
		if !strings.HasPrefix(stdout, "app") || !strings.Contains(stdout, "\nUSAGE\n") || stderr != "" || code != cli.ExitDone {
			t.Errorf("%q: exit %d, stderr %q, stdout:\n%s", args, code, stderr, stdout)
		}
	}
}

func TestLeafHelp(t *testing.T) {
	app := cli.App("app", "try things", cli.Command{
		Name:      "wait",
		Arguments: "KEY",
		Purpose:   "wait for {{a}} key",
		Details:   "It waits.",
		Examples:  []string{"app wait k", "app wait k --timeout 1m"},
		Flags:     []urfave.Flag{cli.TimeoutFlag("the wait"), cli.OutputFlag(cli.TableFormat, cli.JSONFormat), cli.YesFlag()},
		Codes:     []int{cli.ExitNotFound},
	}.Build())
	var out bytes.Buffer
	app.Writer = &out
	cli.RunContext(context.Background(), app, []string{"app", "wait", "--help"})
	const want = `app wait: wait for {{a}} key

It waits.

USAGE
  app wait [flags] KEY

EXAMPLES
  app wait k
  app wait k --timeout 1m

FLAGS
      --timeout DURATION
        let the wait take no longer than DURATION, with its unit: 500ms, 5s, 1m (default 5s;
        environment ATOLL_TIMEOUT)
  -o, --output FORMAT
        print the result as FORMAT: table|json (default table; environment ATOLL_OUTPUT)
  -y, --yes
        don't ask, do it
  -h, --help
        show this

EXIT CODES
    0  done
    1  any other error
    2  wrong usage; nothing was done
    4  not found
  130  interrupted
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestEnvironment(t *testing.T) {
	for _, c := range []struct {
		env    map[string]string
		args   string
		want   string
		code   int
		stderr string
	}{
		{nil, "", "[] default, table default, 5s default", 0, ""},
		{map[string]string{"ATOLL_OUTPUT": "json", "ATOLL_ENDPOINTS": "a:1,b:2", "ATOLL_TIMEOUT": "7s"}, "",
			"[a:1 b:2] environment ATOLL_ENDPOINTS, json environment ATOLL_OUTPUT, 7s environment ATOLL_TIMEOUT", 0, ""},
		{map[string]string{"ATOLL_OUTPUT": "", "ATOLL_ENDPOINTS": "", "ATOLL_TIMEOUT": ""}, "", "[] default, table default, 5s default", 0, ""},
		{map[string]string{"ATOLL_OUTPUT": "json", "ATOLL_ENDPOINTS": "a:1", "ATOLL_TIMEOUT": "7s"}, "-o table -e c:3 -e d:4 --timeout 1s",
			"[c:3 d:4] flag, table flag, 1s flag", 0, ""},
		{map[string]string{"ATOLL_OUTPUT": "nope", "ATOLL_TIMEOUT": "soon"}, "-o table --timeout 1s", "[] default, table flag, 1s flag", 0, ""},
		{map[string]string{"ATOLL_OUTPUT": "raw"}, "", "", 2, `--output "raw": this command prints table|json`},
		{map[string]string{"ATOLL_TIMEOUT": "soon"}, "", "", 2, `app: show: ATOLL_TIMEOUT "soon": write DURATION with its unit, as in 5s` + "\nusage: "},
		{nil, "--timeout 0s", "", 2, "--timeout must be more than 0, not 0s"},
		{nil, "-e ,", "", 2, "an address is empty"},
		{nil, "-e [::1]:7400 -e a:1", "[[::1]:7400 a:1] flag, table default, 5s default", 0, ""},
		{nil, "-e ::1", "", 2, "--endpoints: \"::1\""},
	} {
		t.Run("", func(t *testing.T) {
			for _, name := range []string{"ATOLL_OUTPUT", "ATOLL_ENDPOINTS", "ATOLL_TIMEOUT"} {
				t.Setenv(name, "") // so that it is restored
				if v, ok := c.env[name]; ok {
					t.Setenv(name, v)
				} else {
					os.Unsetenv(name)
				}
			}
			app := cli.App("app", "try things", cli.Command{
				Name:  "show",
				Flags: append(cli.ConnectionFlags(), cli.OutputFlag(cli.TableFormat, cli.JSONFormat), cli.TimeoutFlag("it")),
				Run: func(c *urfave.Context) error {
					fmt.Fprintf(c.App.Writer, "%v %s, %s %s, %v %s", c.StringSlice("endpoints"), cli.Source(c, "endpoints"),
						cli.OutputOf(c), cli.Source(c, "output"), c.Duration("timeout"), cli.Source(c, "timeout"))
					return nil
				},
			}.Build())
			var out, errs bytes.Buffer
			app.Writer, app.ErrWriter = &out, &errs
			code := cli.RunContext(context.Background(), app, append([]string{"app", "show"}, strings.Fields(c.args)...))
			if out.String() != c.want || code != c.code || !strings.Contains(errs.String(), c.stderr) {
				t.Errorf("%v %q: %q, exit %d, stderr %q\nwant %q, %d, %q", c.env, c.args, out.String(), code, errs.String(), c.want, c.code, c.stderr)
			}
		})
	}
}

// A server that is told to stop, and does, has done what it was asked.
func TestRunStopped(t *testing.T) {
	app := testApp(func(ctx *urfave.Context) error {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	app.Writer, app.ErrWriter = io.Discard, io.Discard
	if code := cli.Run(app, []string{"app", "version"}); code != cli.ExitDone {
		t.Errorf("exit %d, want 0", code)
	}
}

// TestHelpOfAServer: it is done when it was asked to stop.
func TestHelpOfAServer(t *testing.T) {
	app := cli.App("app", "try things", cli.Command{Name: "serve", Purpose: "serve", Serves: true}.Build())
	var out bytes.Buffer
	app.Writer = &out
	cli.RunContext(context.Background(), app, []string{"app", "serve", "--help"})
	_, codes, _ := strings.Cut(out.String(), "EXIT CODES\n")
	const want = "    0  done, or stopped by SIGINT or SIGTERM\n    1  any other error\n    2  wrong usage; nothing was done\n"
	if codes != want {
		t.Errorf("got:\n%s\nwant:\n%s", codes, want)
	}
}

func TestWholeNumbers(t *testing.T) {
	app := func() *urfave.App {
		return cli.App("app", "try things", cli.Command{
			Name:  "run",
			Flags: []urfave.Flag{&urfave.IntFlag{Name: "size", EnvVars: []string{"ATOLL_SIZE"}, Usage: "`BYTES` of it"}},
			Run: func(c *urfave.Context) error {
				fmt.Fprint(c.App.Writer, c.Int("size"))
				return nil
			},
		}.Build())
	}
	for _, c := range []struct{ flag, env, stdout, stderr string }{
		{"1048576", "", "1048576", ""},
		{"0x10", "", "16", ""},
		{"7", "1M", "7", ""},
		{"1M", "", "", `app: run: --size "1M": write BYTES as a whole number`},
		{"", "", "", `app: run: --size "": write BYTES as a whole number`},
		{"99999999999999999999", "", "", `app: run: --size "99999999999999999999": the number is too large`},
		{"-", "1M", "", `app: run: ATOLL_SIZE "1M": write BYTES as a whole number`},
	} {
		t.Setenv("ATOLL_SIZE", c.env)
		args := []string{"app", "run"}
		if c.flag != "-" {
			args = append(args, "--size", c.flag)
		}
		var out, errs bytes.Buffer
		a := app()
		a.Writer, a.ErrWriter = &out, &errs
		code := cli.RunContext(context.Background(), a, args)
		first, _, _ := strings.Cut(errs.String(), "\n")
		if out.String() != c.stdout || first != c.stderr || (code == cli.ExitUsage) != (c.stderr != "") {
			t.Errorf("%+v: exit %d, stdout %q, stderr %q", c, code, out.String(), first)
		}
	}
}

func TestCheckListen(t *testing.T) {
	for _, c := range []struct{ address, want string }{
		{"127.0.0.1:0", ""}, {":7400", ""}, {"localhost:1", ""}, {"[::1]:7400", ""},
		{"", "--listen: an address is empty"},
		{"foo", `--listen: "foo" is not an address: write HOST:PORT`},
		{"::1:17410", `--listen: "::1:17410"`},
		{"h:99999", "from 0, which means any free one, to 65535"},
	} {
		err := cli.CheckListen("listen", "127.0.0.1:1", c.address)
		_, usage := errors.AsType[*cli.UsageError](err)
		if usage != (c.want != "") || usage && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.address, err, c.want)
		}
	}
}
