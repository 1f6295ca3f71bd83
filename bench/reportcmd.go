package main

import (
	"context"
	"fmt"
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

func readFile(all *report.Records, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return all.Read(f)
}
