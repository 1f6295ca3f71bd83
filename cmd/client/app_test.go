package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	urfave "github.com/urfave/cli/v2"

	"atoll/abd"
	"atoll/internal/cli"
)

// run runs the program in this process, where no dev cluster is to be found.
func run(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("HOME", dir)
	for _, flag := range []string{"context", "endpoints", "output", "timeout", "cacert", "cert", "key", "log-level", "log-format"} {
		t.Setenv(cli.Environment(flag), "")
	}
	var out, errs bytes.Buffer
	a := app()
	a.Reader, a.Writer, a.ErrWriter = strings.NewReader(stdin), &out, &errs
	code = cli.RunContext(context.Background(), a, append([]string{"client"}, args...))
	return out.String(), errs.String(), code
}

// TestRefused: what is wrong with a command line is said in one line, and in
// a second how to write it, on stderr, before anything is looked for or sent.
func TestRefused(t *testing.T) {
	longKey, longValue := strings.Repeat("k", abd.MaxKey+1), strings.Repeat("v", abd.LargestMaxValue+1)
	for _, c := range []struct {
		stdin string
		args  []string
		want  string
		code  int
	}{
		{"", []string{"put", "k"}, "client: put: VALUE|- is missing", cli.ExitUsage},
		{"", []string{"put", "k", "v", "w"}, `client: put: unexpected argument "w"`, cli.ExitUsage},
		{"", []string{"put", "k", "-5"}, "client: put: unknown flag -5; if it is an argument, write -- before it", cli.ExitUsage},
		{"", []string{"put", "", "v"}, "client: put: the key has 0 bytes, at least 1 are needed", cli.ExitUsage},
		{"", []string{"put", longKey, "v"}, "client: put: the key has 1025 bytes, at most 1024 are allowed", cli.ExitUsage},
		{"", []string{"put", "k", longValue}, "client: put: the value has 8388609 bytes, at most 8388608 are allowed", cli.ExitUsage},
		{longValue, []string{"put", "k", "-"}, "client: put: stdin holds more than 8388608 bytes, and no value is larger than that", cli.ExitUsage},
		{"", []string{"get"}, "client: get: KEY is missing", cli.ExitUsage},
		{"", []string{"get", ""}, "client: get: the key has 0 bytes, at least 1 are needed", cli.ExitUsage},
		{"", []string{"get", "k", "-o", "xml"}, `client: get: --output "xml": this command prints table|json|jsonl|raw`, cli.ExitUsage},
		{"", []string{"get", "k", "--timeout", "5"}, `client: get: --timeout "5": write DURATION with its unit, as in 5s`, cli.ExitUsage},
		{"", []string{"delete", longKey}, "client: delete: the key has 1025 bytes, at most 1024 are allowed", cli.ExitUsage},
		{"", []string{"list", longKey}, "client: list: the prefix has 1025 bytes, at most 1024 are allowed", cli.ExitUsage},
		{"", []string{"status", "-o", "raw"}, `client: status: --output "raw": this command prints table|json|jsonl`, cli.ExitUsage},
		{"", []string{"bench"}, "client: bench: which command? put, get, mixed", cli.ExitUsage},
		{"", []string{"bench", "put", "--clients", "0"}, "client: bench: put: --clients must be from 1 to 100000, not 0", cli.ExitUsage},
		{"", []string{"bench", "put", "--clients", "x"}, `client: bench: put: --clients "x": write N as a whole number`, cli.ExitUsage},
		{"", []string{"bench", "put", "-d", "-1s"}, "client: bench: put: --duration must be more than 0, not -1s", cli.ExitUsage},
		{"", []string{"puts", "k", "v"}, `client: unknown command "puts"; did you mean "put"?`, cli.ExitUsage},
		{"", []string{"get", "k", "-e", "localhost"}, `client: get: --endpoints: "localhost" is not an address: write HOST:PORT`, cli.ExitUsage},
		{"", []string{"get", "k"}, "client: get: which cluster? give --context FILE (or set ATOLL_CONTEXT), or start a cluster on this machine with: replica dev", cli.ExitPrecondition},
		{"", []string{"get", "k", "-e", "localhost:1"}, "client: get: endpoints alone are not enough: give --context FILE, or --cacert, --cert and --key, too", cli.ExitPrecondition},
		{"", []string{"get", "k", "--context", "/nonexistent/file"}, "client: get: the context file /nonexistent/file", cli.ExitPrecondition},
		{"", []string{"get", "k", "-e", "localhost:1", "--cacert", "/nonexistent/ca", "--cert", "x", "--key", "y"},
			"client: get: --cacert: open /nonexistent/ca: no such file or directory", cli.ExitPrecondition},
	} {
		stdout, stderr, code := run(t, c.stdin, c.args...)
		first, _, _ := strings.Cut(stderr, "\n")
		lines := 1
		if c.code == cli.ExitUsage {
			lines = 2
		}
		if stdout != "" || !strings.HasPrefix(first, c.want) || code != c.code || len(stderr) > 1000 || strings.Count(stderr, "\n") != lines {
			t.Errorf("client %.60q: stdout %q, exit %d, stderr:\n%.500s\nwant exit %d and:\n%s", c.args, stdout, code, stderr, c.code, c.want)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "-o", "json"}, {"--version"}} {
		stdout, stderr, code := run(t, "", args...)
		if !strings.Contains(stdout, "atoll/1") || stderr != "" || code != cli.ExitDone {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

// TestStdinThatDoesNotEnd can be interrupted, and the timeout counts.
func TestStdinThatDoesNotEnd(t *testing.T) {
	terminal, typist := io.Pipe()
	defer typist.Close()
	for _, c := range []struct {
		timeout string
		stderr  string
		code    int
	}{
		{"50ms", "client: put: stdin did not end within 50ms, and nothing was sent; --timeout gives it longer\n", cli.ExitPrecondition},
		{"1h", "client: put: interrupted\n", cli.ExitInterrupted},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		if c.code == cli.ExitInterrupted {
			go func() {
				_, _ = typist.Write([]byte("x")) // it is being read
				interrupt()
			}()
		}
		var out, errs bytes.Buffer
		a := app()
		a.Reader, a.Writer, a.ErrWriter = terminal, &out, &errs
		code := cli.RunContext(ctx, a, []string{"client", "put", "k", "-", "--timeout", c.timeout, "--context", "/nonexistent/file"})
		if out.Len() > 0 || errs.String() != c.stderr || code != c.code {
			t.Errorf("--timeout %s: exit %d, stdout %q, stderr %q\nwant exit %d, %q", c.timeout, code, &out, &errs, c.code, c.stderr)
		}
	}
}

// TestHelp: the help of every leaf has all its parts, each flag says its
// environment variable if it has one, and the examples are command lines that
// this program takes.
func TestHelp(t *testing.T) {
	for _, path := range leaves("", app().Commands) {
		stdout, stderr, code := run(t, "", append(strings.Fields(path), "--help")...)
		if code != cli.ExitDone || stderr != "" {
			t.Errorf("%s: exit %d, %s", path, code, stderr)
		}
		for _, part := range []string{"client " + path + ": ", "\nUSAGE\n", "\nEXAMPLES\n  client " + path, "\nFLAGS\n", "ATOLL_OUTPUT", "\nEXIT CODES\n"} {
			if !strings.Contains(stdout, part) {
				t.Errorf("the help of %s has no %q:\n%s", path, part, stdout)
			}
		}
		_, examples, _ := strings.Cut(stdout, "\nEXAMPLES\n")
		examples, _, _ = strings.Cut(examples, "\n\n")
		if n := strings.Count(examples, "\n") + 1; n < 2 {
			t.Errorf("the help of %s has %d examples, want two", path, n)
		}
		for example := range strings.Lines(examples) {
			example, _, _ = strings.Cut(example, " < ")
			example, _, _ = strings.Cut(example, " | ")
			example, _, _ = strings.Cut(example, " > ")
			if _, err := cli.Reorder(app(), strings.Fields(example)); err != nil {
				t.Errorf("the example %q: %v", example, err)
			}
		}
	}
}

// leaves returns the names of the commands that do something.
func leaves(prefix string, commands []*urfave.Command) []string {
	var all []string
	for _, c := range commands {
		name := strings.TrimSpace(prefix + " " + c.Name)
		if len(c.Subcommands) == 0 {
			all = append(all, name)
		}
		all = append(all, leaves(name, c.Subcommands)...)
	}
	return all
}

func TestValueOf(t *testing.T) {
	for _, c := range []struct{ arg, stdin, want string }{
		{"", "x", ""}, {"v", "x", "v"}, {"-", "", ""}, {"-", "a\x00\xff\n", "a\x00\xff\n"}, {"--", "x", "--"},
	} {
		got, err := valueOf(t.Context(), c.arg, strings.NewReader(c.stdin))
		if err != nil || string(got) != c.want {
			t.Errorf("valueOf(%q) = %q, %v, want %q", c.arg, got, err, c.want)
		}
	}
}
