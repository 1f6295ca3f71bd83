package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"atoll/bench/load"
	"atoll/bench/target"
)

// settings are what the commands that measure share. Not every command has a
// flag for each.
type settings struct {
	targets     []string
	value       int // bytes
	keys        int
	connections int
	libraries   int
	replica     string
	replica2    string
	dir         string
	keep        bool
	out         string
}

// newFlags returns the flags of a command: those that every one has.
func newFlags(name string, s *settings) *flag.FlagSet {
	fs := flag.NewFlagSet("bench "+name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are printed by main, once; help by parse
	s.targets, s.value, s.keys, s.connections, s.libraries = target.Peers, 100, 1, 12, 1
	fs.StringVar(&s.replica, "replica", "", "atoll's replica `program` (default: built from the checkout around the working directory)")
	fs.StringVar(&s.dir, "dir", os.TempDir(), "`folder` to make a temporary one in for all data; its disk is what is measured")
	fs.BoolVar(&s.keep, "keep", false, "keep the temporary folder, with the logs of all nodes")
	fs.StringVar(&s.out, "out", "", "write results to this `file` as well, and the tables beside it, to FILE.md")
	return fs
}

// targetFlags defines the flags of a command that measures several targets.
func targetFlags(fs *flag.FlagSet, s *settings) {
	fs.Func("targets", "targets to measure, of "+strings.Join(target.Names, ",")+" (default "+strings.Join(target.Peers, ",")+")", listOf(&s.targets, func(t string) (string, error) {
		if !slices.Contains(target.Names, t) {
			return "", fmt.Errorf("no target %q", t)
		}
		return t, nil
	}))
	fs.StringVar(&s.replica2, "replica2", "", "replica `program` of the target atoll2: another build, to be compared with atoll")
	fs.IntVar(&s.connections, "connections", 12, "`number` of connections that the clients of a peer share, spread over its nodes")
	fs.IntVar(&s.libraries, "atoll-clients", 1, "`number` of instances of atoll's client library that its clients share, each connected to all nodes")
}

// valueFlag and keysFlag define the flags for one size of values, and for how
// many keys there are.
func valueFlag(fs *flag.FlagSet, s *settings) {
	fs.IntVar(&s.value, "value", s.value, "size of values in `bytes`")
}

func keysFlag(fs *flag.FlagSet, s *settings, keys int) {
	fs.IntVar(&s.keys, "keys", keys, "`number` of keys")
}

// parse parses and checks the shared flags.
func (s *settings) parse(fs *flag.FlagSet, args []string) error {
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(os.Stdout)
		fmt.Printf("%s: flags\n", fs.Name())
		fs.PrintDefaults()
		return err
	} else if err != nil {
		return usagef("%v", err)
	}
	if fs.NArg() > 0 {
		return usagef("unexpected %q", fs.Arg(0))
	}
	for _, f := range []struct {
		name         string
		value, least int
	}{
		{"value", s.value, 0}, {"keys", s.keys, 1}, {"connections", s.connections, 1}, {"atoll-clients", s.libraries, 1},
	} {
		if f.value < f.least {
			return usagef("-%s must be at least %d, not %d", f.name, f.least, f.value)
		}
	}
	if slices.Contains(s.targets, target.Atoll2) && s.replica2 == "" {
		return usagef("the target %s needs -replica2", target.Atoll2)
	}
	return nil
}

// listOf returns a function for a flag whose value is a list with commas, which
// replaces what was in to.
func listOf[T comparable](to *[]T, parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		var list []T
		for item := range strings.SplitSeq(text, ",") {
			v, err := parse(strings.TrimSpace(item))
			if err != nil {
				return err
			}
			if slices.Contains(list, v) {
				return fmt.Errorf("%v is there twice", v)
			}
			list = append(list, v)
		}
		*to = list
		return nil
	}
}

// positive parses a count.
func positive(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a number above 0", s)
	}
	return n, nil
}

// size parses a size of values.
func size(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a number of bytes", s)
	}
	return n, nil
}

// secondsFlag defines a flag for a time in seconds.
func secondsFlag(fs *flag.FlagSet, to *time.Duration, name string, value float64, usage string) {
	*to = seconds(value)
	fs.Func(name, fmt.Sprintf("%s, in `seconds` (default %v)", usage, value), func(text string) error {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || v <= 0 || v > 1e6 {
			return fmt.Errorf("%q is not a number of seconds", text)
		}
		*to = seconds(v)
		return nil
	})
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

// keyNames returns k0, k1, ...
func keyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "k" + strconv.Itoa(i)
	}
	return names
}

// opsFlag defines the flag for operations.
func opsFlag(fs *flag.FlagSet, to *[]load.Op) {
	*to = []load.Op{load.Put, load.Get, load.Mixed}
	fs.Func("ops", "operations, of put,get,mixed (default all)", listOf(to, load.ParseOp))
}

// numbersFlag defines a flag for a list of numbers.
func numbersFlag(fs *flag.FlagSet, to *[]int, name, usage string, parse func(string) (int, error), value ...int) {
	*to = value
	fs.Func(name, fmt.Sprintf("%s (default %s)", usage, strings.ReplaceAll(strings.Trim(fmt.Sprint(value), "[]"), " ", ",")), listOf(to, parse))
}

// clientsFlag defines the flag for numbers of clients.
func clientsFlag(fs *flag.FlagSet, to *[]int, value ...int) {
	numbersFlag(fs, to, "clients", "numbers of clients", positive, value...)
}
