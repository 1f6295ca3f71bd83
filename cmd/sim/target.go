package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
	"atoll/sim/scenario"
)

const (
	flagAlgorithm = "algorithm"
	flagMutant    = "mutant"
)

// variantFlags change a scenario for one run; applyFlags reads them.
func variantFlags() []urfave.Flag {
	return []urfave.Flag{
		&urfave.StringFlag{
			Name: flagAlgorithm, Aliases: []string{"a"}, Usage: "run the algorithm `NAME`, instead of the scenario's",
			Action: func(_ *urfave.Context, name string) error { return checkAlgorithm("--"+flagAlgorithm, name) },
		},
		&urfave.StringSliceFlag{
			Name: flagMutant, Usage: "break the rule `NAME`, in the algorithm or beneath it; may be repeated",
			Action: func(_ *urfave.Context, names []string) error { return checkMutants(names) },
		},
	}
}

// applyFlags returns s as the variant flags want it.
func applyFlags(c *urfave.Context, s scenario.Scenario) scenario.Scenario {
	if name := c.String(flagAlgorithm); name != "" {
		s = withAlgorithm(s, name)
	}
	s.Rules = slices.Concat(s.Rules, c.StringSlice(flagMutant))
	slices.Sort(s.Rules)
	s.Rules = slices.Compact(s.Rules)
	return s
}

// withAlgorithm returns s for another algorithm, with what that one demands of
// a workload.
func withAlgorithm(s scenario.Scenario, name string) scenario.Scenario {
	s.Algorithm = name
	s.SingleWriter = s.SingleWriter || singleWriter(name)
	return s
}

func singleWriter(name string) bool {
	return slices.ContainsFunc(scenario.Algorithms(), func(a scenario.Algorithm) bool {
		return a.Name() == name && a.Traits().SingleWriter
	})
}

// variantArguments returns the variant flags as they were given, for the line
// that replays a run.
func variantArguments(c *urfave.Context) string {
	var b strings.Builder
	if name := c.String(flagAlgorithm); name != "" {
		fmt.Fprintf(&b, " --%s %s", flagAlgorithm, quoteArgument(name))
	}
	for _, name := range c.StringSlice(flagMutant) {
		fmt.Fprintf(&b, " --%s %s", flagMutant, quoteArgument(name))
	}
	return b.String()
}

// quoteArgument returns s as a shell takes it for one word.
func quoteArgument(s string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./=:,+@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func checkAlgorithm(what, name string) error {
	return checkName(what, "algorithm", name, algorithmNames())
}

func checkMutants(names []string) error {
	for _, name := range names {
		if err := checkName("--"+flagMutant, "rule", name, scenario.RuleNames()); err != nil {
			return err
		}
	}
	return nil
}

// checkName holds a name against those that there are, and says which one was
// probably meant, or all of them.
func checkName(what, kind, name string, names []string) error {
	if slices.Contains(names, name) {
		return nil
	}
	guess := ""
	if s := meant(name, names); s != "" {
		guess = fmt.Sprintf("did you mean %q? ", s)
	}
	return cli.Usagef("%s: no %s %.60q; %sthere are %s", what, kind, name, guess, strings.Join(names, ", "))
}

// meant returns the one of names that name was probably to be: it may lack what
// stands before the dot. It is empty if none is near.
func meant(name string, names []string) string {
	for _, n := range names {
		if _, last, ok := strings.Cut(n, "."); ok && strings.EqualFold(last, name) {
			return n
		}
	}
	return cli.Closest(name, names)
}

func algorithmNames() []string {
	var names []string
	for _, a := range scenario.Algorithms() {
		names = append(names, a.Name())
	}
	return names
}

func scenarioNames() []string {
	var names []string
	for _, s := range scenario.Builtins() {
		names = append(names, s.Name)
	}
	return names
}

// loadScenario returns the scenario that is built in under a name, or that is
// in a file. What can't be a file is a name, so that a name that isn't known
// is answered with one that is.
func loadScenario(nameOrFile string) (scenario.Scenario, error) {
	for _, s := range scenario.Builtins() {
		if s.Name == nameOrFile {
			return s, nil
		}
	}
	f, err := os.Open(nameOrFile)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(nameOrFile, `./\`) {
			return scenario.Scenario{}, checkName("SCENARIO", "scenario or file", nameOrFile, scenarioNames())
		}
		return scenario.Scenario{}, &cli.PreconditionError{Text: "the scenario", Err: err}
	}
	defer f.Close()
	var text bytes.Buffer
	s, err := scenario.Parse(io.TeeReader(f, &text))
	if err != nil {
		if isPlan(text.Bytes()) {
			err = errors.New("that is a plan: sim replay runs it, and sim shrink --plan cuts it")
		}
		return scenario.Scenario{}, &cli.PreconditionError{Text: nameOrFile, Err: err}
	}
	return s, nil
}

// loadPlan returns the plan that is in a file.
func loadPlan(path string) (scenario.Plan, error) {
	f, err := os.Open(path)
	if err != nil {
		return scenario.Plan{}, &cli.PreconditionError{Text: "the plan", Err: err}
	}
	defer f.Close()
	var text bytes.Buffer
	p, err := scenario.ParsePlan(io.TeeReader(f, &text))
	if err != nil {
		if isScenario(text.Bytes()) {
			err = errors.New("that is a scenario: sim run runs it, and sim show --seed prints the plan of a seed")
		}
		return scenario.Plan{}, &cli.PreconditionError{Text: path, Err: err}
	}
	return p, nil
}

// isPlan and isScenario say what a file was meant to be that isn't the other:
// a plan has a scenario inside, a scenario has a name.
func isPlan(text []byte) bool { return hasField(text, "scenario") }

func isScenario(text []byte) bool { return hasField(text, "name") && !isPlan(text) }

func hasField(text []byte, name string) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return false
	}
	_, ok := fields[name]
	return ok
}
