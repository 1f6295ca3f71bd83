package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
	"atoll/sim/history"
)

func check() *urfave.Command {
	return cli.Command{
		Name:      "check",
		Arguments: "HISTORY|-",
		Purpose:   "judge whether the history of a system is linearizable",
		Details: `HISTORY is a file with an operation in each line, a JSON object, of any system that
keeps registers; - is stdin. docs/SIMULATOR.md describes the format. Each key is
a register by itself, without a value at first, and no value may be written to
it twice. There are two answers and no third: the history is linearizable, or
here is why not; the latter ends the command with 1. A file without operations
says nothing, and is an error.`,
		Examples: []string{
			"sim check run.jsonl",
			"jepsen-export | sim check - -o json",
		},
		Flags: []urfave.Flag{cli.OutputFlag(cli.TableFormat, cli.JSONFormat, cli.LinesFormat)},
		Codes: []int{cli.ExitPrecondition},
		Meanings: map[int]string{
			cli.ExitOther:        "the history isn't linearizable, or any other error",
			cli.ExitPrecondition: badFile,
		},
		Run: checkHistory,
	}.Build()
}

// judgement is the result of check in JSON.
type judgement struct {
	Linearizable bool              `json:"linearizable"`
	Operations   int               `json:"operations"`
	Keys         int               `json:"keys"`
	Violation    *checkedViolation `json:"violation"`
}

// checkedViolation is a violation in JSON; the operations are as in the file.
type checkedViolation struct {
	Rule       string    `json:"rule"`
	Key        string    `json:"key"`
	Detail     string    `json:"detail"`
	Operations []rawLine `json:"operations"`
}

// rawLine is a line of a history file.
type rawLine []byte

// MarshalJSON returns the line.
func (r rawLine) MarshalJSON() ([]byte, error) { return r, nil }

func checkHistory(c *urfave.Context) error {
	name := c.Args().First()
	h, err := loadHistory(c, name)
	if name == "-" {
		name = "stdin"
	}
	if err != nil {
		return err
	}
	if len(h) == 0 {
		return cli.Preconditionf("%s has no operations", name)
	}
	v, err := history.Check(h)
	if invalid, ok := errors.AsType[*history.InvalidError](err); ok {
		return cli.Preconditionf("%s: operation %d of the file, %v of key %.60q: %s",
			name, invalid.At+1, invalid.Operation, invalid.Operation.Key, invalid.Reason)
	}
	if err != nil {
		return err
	}
	keys := make(map[string]bool)
	for i := range h {
		keys[h[i].Key] = true
	}
	if format := cli.OutputOf(c); format != cli.TableFormat {
		err = printJudgement(c.App.Writer, format, judgement{v == nil, len(h), len(keys), nil}, v)
	} else {
		err = printVerdict(c.App.Writer, len(h), len(keys), v)
	}
	if err != nil || v == nil {
		return err
	}
	return &notLinearizableError{name, v}
}

// loadHistory reads the history that is in a file, or on stdin.
func loadHistory(c *urfave.Context, name string) (history.History, error) {
	in := io.Reader(c.App.Reader)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, &cli.PreconditionError{Text: "the history", Err: err}
		}
		defer f.Close()
		in = f
	}
	h, err := history.Load(bufio.NewReaderSize(in, 1<<20))
	if err != nil {
		return nil, &cli.PreconditionError{Text: name, Err: err}
	}
	return h, nil
}

func printVerdict(w io.Writer, operations, keys int, v *history.Violation) error {
	what := counted(uint64(operations), "operation") + " on " + counted(uint64(keys), "key")
	if v == nil {
		_, err := fmt.Fprintf(w, "linearizable: %s\n", what)
		return err
	}
	_, err := fmt.Fprintf(w, "not linearizable: %s\n\n%v", what, v)
	return err
}

func printJudgement(w io.Writer, format cli.Format, j judgement, v *history.Violation) error {
	if v != nil {
		j.Violation = &checkedViolation{Rule: string(v.Rule), Key: v.Key, Detail: v.Detail}
		for _, op := range v.Operations {
			line, err := op.AppendJSON(nil)
			if err != nil {
				return err
			}
			j.Violation.Operations = append(j.Violation.Operations, line)
		}
	}
	return cli.PrintObject(w, format, j)
}

// notLinearizableError is the answer no: exit code 1.
type notLinearizableError struct {
	name string
	v    *history.Violation
}

// Error returns the file and the rule.
func (e *notLinearizableError) Error() string {
	return fmt.Sprintf("%s is not linearizable: key %.60q: %s", e.name, e.v.Key, e.v.Rule)
}
