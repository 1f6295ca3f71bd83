package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"atoll/bench/report"
)

// runReport prints the tables of files of results, taken together.
func runReport(_ context.Context, args []string) error {
	if len(args) == 0 {
		return usagef("report needs files of results")
	}
	var all report.Records
	for _, name := range args {
		if err := readFile(&all, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return all.WriteMarkdown(os.Stdout)
}

// errNoResults: a file has not one record in it, so it isn't what was meant.
var errNoResults = errors.New("this is no file of results: it holds not one record")

// readFile adds the records of a file. Lines that aren't records are skipped,
// since what was printed can be read again, but a file of nothing else is a
// mistake.
func readFile(all *report.Records, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	var in report.Records
	if err := in.Read(f); err != nil {
		return err
	}
	if in.Empty() && len(in.Environments) == 0 {
		return errNoResults
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return all.Read(f)
}
