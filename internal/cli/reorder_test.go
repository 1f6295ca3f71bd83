package cli_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
)

// testApp has what the real programs have: flags with and without values,
// short names, a group, repeated arguments, and commands named like flags.
func testApp(run func(*urfave.Context) error) *urfave.App {
	flags := func() []urfave.Flag {
		return []urfave.Flag{
			&urfave.StringSliceFlag{Name: "endpoints", Aliases: []string{"e"}},
			&urfave.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "table"},
			&urfave.DurationFlag{Name: "timeout"},
			&urfave.BoolFlag{Name: "yes", Aliases: []string{"y"}},
		}
	}
	leaf := func(name, arguments string, more ...urfave.Flag) *urfave.Command {
		return cli.Command{Name: name, Arguments: arguments, Purpose: name + " things", Flags: append(flags(), more...), Run: run}.Build()
	}
	return cli.App("app", "try things",
		leaf("put", "KEY VALUE|-"),
		leaf("list", "[PREFIX]"),
		leaf("watch", "KEY..."),
		cli.Group("bench", "measure", leaf("get", ""), leaf("put", "", &urfave.IntFlag{Name: "clients"})),
		leaf("version", ""),
		leaf("lock", "KEY COMMAND...", &urfave.BoolFlag{Name: "wait"}),
		leaf("set", "ID", &urfave.StringFlag{Name: "wait"}),
	)
}

func TestReorder(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"put k v", "app put -- k v"},
		{"put k v -o json", "app put --output=json -- k v"},
		{"put -o json k v", "app put --output=json -- k v"},
		{"put k -o json v", "app put --output=json -- k v"},
		{"put k v -o=json --timeout=5s", "app put --output=json --timeout=5s -- k v"},
		{"put k v -output json", "app put --output=json -- k v"},
		{"-o json put k v", "app put --output=json -- k v"},
		{"--endpoints a,b put k v -e c", "app put --endpoints=a,b --endpoints=c -- k v"},
		{"put -e a -e b k v", "app put --endpoints=a --endpoints=b -- k v"},
		{"put k -", "app put -- k -"},
		{"put - -", "app put -- - -"},
		{"put -- k -5", "app put -- k -5"},
		{"put k -- -o json", "app put -- k -o json"},
		{"put k v -- --", "app put -- k v --"},
		{"put k v -o -5", "app put --output=-5 -- k v"},
		{"put k v -o --", "app put --output=-- -- k v"},
		{"put k v -o=", "app put --output= -- k v"},
		{"put k --yes v", "app put --yes=true -- k v"},
		{"put k v -y=false", "app put --yes=false -- k v"},
		{"-- put k v", "app put -- k v"},
		{"bench --clients 5 put -o json", "app bench put --clients=5 --output=json --"},
		{"--clients 5 bench put", "app bench put --clients=5 --"},
		{"bench get", "app bench get --"},
		{"put bench get", "app put -- bench get"},
		{"put help help", "app put -- help help"},
		{"lock k -- sh -c --wait", "app lock -- k sh -c --wait"},
		{"--help", "app --help"},
		{"help", "app --help"},
		{"help put", "app put --help"},
		{"help bench put", "app bench put --help"},
		{"put --help", "app put --help"},
		{"put k v -o json -h", "app put --help"},
		{"put --bogus --help", "app put --help"},
		{"bench -h", "app bench --help"},
		{"put k -- --help", "app put -- k --help"},
		{"--version", "app version --"},
		{"-version -o json", "app version --output=json --"},
	} {
		got, err := cli.Reorder(testApp(nil), append([]string{"/bin/app"}, strings.Fields(c.in)...))
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("Reorder(%q) = %q, %v, want %q", c.in, strings.Join(got, " "), err, c.want)
		}
	}
}

func TestReorderKeepsArguments(t *testing.T) {
	got, err := cli.Reorder(testApp(nil), []string{"app", "put", "", "-o", "", "a b\nc"})
	want := []string{"app", "put", "--output=", "--", "", "a b\nc"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Reorder = %q, %v, want %q", got, err, want)
	}
}

func TestReorderRefuses(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "which command? put, list, watch, bench, version, lock, set"},
		{"bench", "which command? get, put"},
		{"putt k v", `unknown command "putt"; did you mean "put"?`},
		{"frobnicate", `unknown command "frobnicate"; the commands are put, list, watch, bench, version, lock, set`},
		{"bench cas", `unknown command "cas"; the commands are get, put`},
		{"put k -5", "unknown flag -5; if it is an argument, write -- before it"},
		{"put k v --timeuot 5s", "unknown flag --timeuot; did you mean --timeout?"},
		{"put k v --hlep", "unknown flag --hlep; did you mean --help?"},
		{"put k v ---timeout 5s", "unknown flag ---timeout; did you mean --timeout?"},
		{"put k v -o", "the flag -o needs a value"},
		{"put k v --clients 5", "unknown flag --clients; if it is an argument, write -- before it"},
		{"--clients 5 put k v", "unknown flag --clients; if it is an argument, write -- before it"},
		{"--bogus put k v", "unknown flag --bogus"},
		{"--wait lock k true", "--wait means different things to different commands; write it after the command"},
		{"frobnicate --version", `unknown command "frobnicate"; the commands are put, list, watch, bench, version, lock, set`},
	} {
		got, err := cli.Reorder(testApp(nil), append([]string{"app"}, strings.Fields(c.in)...))
		usage, ok := errors.AsType[*cli.UsageError](err)
		if !ok || usage.Text != c.want {
			t.Errorf("Reorder(%q) = %q, %v, want the usage error %q", c.in, got, err, c.want)
		}
	}
}

// FuzzReorder holds Reorder against the library: what it returns is understood
// as it was meant, and is its own reordering.
func FuzzReorder(f *testing.F) {
	for _, s := range []string{"put\nk\nv\n-o\njson", "-e\na\nput\n--\n-k\n-v", "bench\nput\n--clients\n3", "put\n-\n-y=true\n", "list\n--yes\n\n", "watch\na\n--\n--\nb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		args := append([]string{"app"}, strings.Split(in, "\n")...)
		canonical, err := cli.Reorder(testApp(nil), args)
		if err != nil {
			if _, ok := errors.AsType[*cli.UsageError](err); !ok {
				t.Fatalf("%q: not a usage error: %v", args, err)
			}
			return
		}
		again, err := cli.Reorder(testApp(nil), canonical)
		if err != nil || !slices.Equal(again, canonical) {
			t.Fatalf("%q became %q, and that %q, %v", args, canonical, again, err)
		}
		end := slices.Index(canonical, "--")
		if end < 0 {
			return // help
		}
		var seen []string
		app := testApp(func(c *urfave.Context) error {
			seen = append([]string{}, c.Args().Slice()...)
			return nil
		})
		app.Writer, app.ErrWriter = new(bytes.Buffer), new(bytes.Buffer)
		// Counts and values of flags may still be wrong; then nothing runs.
		err = app.RunContext(context.Background(), canonical)
		if err == nil && !slices.Equal(seen, canonical[end+1:]) {
			t.Fatalf("%q became %q, and the command saw %q", args, canonical, seen)
		}
		if err == nil && len(seen) > 0 && !inOrder(seen, args) {
			t.Fatalf("%q: the arguments became %q", args, seen)
		}
	})
}

// inOrder reports whether all of sub stand in all, in their order.
func inOrder(sub, all []string) bool {
	for _, s := range all {
		if len(sub) > 0 && sub[0] == s {
			sub = sub[1:]
		}
	}
	return len(sub) == 0
}
