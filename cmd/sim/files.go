package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strconv"

	urfave "github.com/urfave/cli/v2"

	"atoll/internal/cli"
)

// files are those that a run writes beside its report. They are opened before
// anything runs: a path that can't be written must not cost an hour's work.
type files struct {
	operations *csvFile
	history    *os.File
	counted    bool // bytes are counted
}

// csvFile is a file of comma-separated values.
type csvFile struct {
	f *os.File
	w *csv.Writer
}

// openFiles opens those that the flags name. single: there is one run.
func openFiles(c *urfave.Context, single bool) (*files, error) {
	if c.Path(flagHistory) != "" && !single {
		return nil, cli.Usagef("--%s is for a single run: give --%s N, without --%s", flagHistory, flagSeed, flagCompare)
	}
	fs := files{counted: c.Bool(flagBytes)}
	if path := c.Path(flagOperations); path != "" {
		f, err := create(flagOperations, path)
		if err != nil {
			return nil, err
		}
		fs.operations = &csvFile{f, csv.NewWriter(f)}
		if err := fs.operations.w.Write([]string{"seed", "side", "client", "key", "kind", "outcome",
			"began_ms", "latency_ms", "rounds", "messages", "bytes"}); err != nil {
			return nil, err
		}
	}
	if path := c.Path(flagHistory); path != "" {
		f, err := create(flagHistory, path)
		if err != nil {
			return nil, err
		}
		fs.history = f
	}
	return &fs, nil
}

func create(flag, path string) (*os.File, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, &cli.PreconditionError{Text: "--" + flag, Err: err}
	}
	return f, nil
}

func (fs *files) keep() keep {
	return keep{operations: fs.operations != nil, result: fs.history != nil}
}

// write writes what is to be kept of a run.
func (fs *files) write(r *record, sides []side) error {
	if fs.operations != nil {
		for _, e := range r.ended {
			// The writer remembers an error.
			_ = fs.operations.w.Write([]string{
				strconv.FormatUint(r.seed, 10), sides[r.side].label, e.Client, e.Key, e.Kind.String(), e.Outcome.String(),
				number(milliseconds(e.Began)), number(milliseconds(e.Ended - e.Began)),
				strconv.Itoa(e.Rounds), strconv.Itoa(e.Messages), fs.bytes(e.Bytes),
			})
		}
		if err := fs.operations.w.Error(); err != nil {
			return failed(flagOperations, err)
		}
	}
	if fs.history != nil && r.result != nil {
		w := bufio.NewWriter(fs.history)
		_, err := r.result.History.WriteTo(w)
		if err == nil {
			err = w.Flush()
		}
		return failed(flagHistory, err)
	}
	return nil
}

// failed says which file could not be written.
func failed(flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("--%s: %w", flag, err)
}

// bytes returns a number of bytes for CSV, nothing if they weren't counted.
func (fs *files) bytes(n int) string {
	if !fs.counted {
		return ""
	}
	return strconv.Itoa(n)
}

// close closes the files, and returns what could not be written to them.
func (fs *files) close() error {
	var errs []error
	if fs.operations != nil {
		fs.operations.w.Flush()
		err := fs.operations.w.Error()
		if closing := fs.operations.f.Close(); err == nil {
			err = closing
		}
		errs = append(errs, failed(flagOperations, err))
	}
	if fs.history != nil {
		errs = append(errs, failed(flagHistory, fs.history.Close()))
	}
	return errors.Join(errs...)
}
