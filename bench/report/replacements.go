package report

import (
	"fmt"
	"strings"
)

// replacements writes a table of replacements.
func replacements(b *strings.Builder, all []Replacement) {
	var rows [][]string
	for _, cell := range distinct(all, Replacement.cell) {
		of := matching(all, func(r Replacement) bool { return r.cell() == cell })
		over := func(f func(Replacement) float64) string { return between(spread(each(of, f))) }
		row := []string{
			cell, fmt.Sprint(len(of)),
			over(func(r Replacement) float64 { return float64(r.Moved) / 1e6 }),
			over(func(r Replacement) float64 { return r.Installing }),
			over(func(r Replacement) float64 { return float64(r.Moved) / 1e6 / r.Installing }),
			over(func(r Replacement) float64 { return r.CPUNew }) + " + " + over(func(r Replacement) float64 { return r.CPUOld }),
		}
		if of[0].Clients > 0 {
			errors := uint64(0)
			for _, r := range of {
				errors += r.Before.Errors + r.During.Errors + r.After.Errors
			}
			row = append(row,
				over(func(r Replacement) float64 { return r.Before.PerSecond }), over(func(r Replacement) float64 { return r.During.PerSecond }),
				over(func(r Replacement) float64 { return r.After.PerSecond }), over(Replacement.share),
				fmt.Sprintf("%s → %s", over(func(r Replacement) float64 { return r.Before.P50 }), over(func(r Replacement) float64 { return r.During.P50 })),
				fmt.Sprintf("%s → %s", over(func(r Replacement) float64 { return r.Before.P99 }), over(func(r Replacement) float64 { return r.During.P99 })),
				over(func(r Replacement) float64 { return r.During.Stall }), count(errors))
		} else {
			row = append(row, "–", "–", "–", "–", "–", "–", "–", "–")
		}
		rows = append(rows, row)
	}
	b.WriteString("A member replaced by a node that has nothing; MB are 1,000,000 bytes of keys and values; ratios are of the same replacement:\n\n")
	table(b, []string{"cell", "replacements", "moved, MB", "seconds", "MB/s", "processor s, new node + others", "ops/s before", "meanwhile", "after",
		"meanwhile / before and after", "p50 ms", "p99 ms", "longest stall ms", "errors"}, rows)
}

func (r Replacement) cell() string {
	name := fmt.Sprintf("%s, %d clients, %d keys of %d B", r.Target, r.Clients, r.Keys, r.Value)
	switch {
	case r.Rate > 0:
		name += fmt.Sprintf(", at most %d MiB/s", r.Rate)
	case r.Rate == 0:
		name += ", no limit"
	}
	return name
}

// share is which part of the clients' throughput is left meanwhile.
func (r Replacement) share() float64 {
	return 2 * r.During.PerSecond / (r.Before.PerSecond + r.After.PerSecond)
}
