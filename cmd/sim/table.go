package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"atoll/internal/cli"
	"atoll/sim/scenario"
	"atoll/sim/stat"
)

// maxRows is up to how many seeds each has a row in the table.
const maxRows = 50

// tableReporter prints for people.
type tableReporter struct {
	w     io.Writer
	g     campaign
	table *cli.Table
	all   bool // a row for each run
}

func newTableReporter(w io.Writer, g campaign) *tableReporter {
	return &tableReporter{w: w, g: g, all: g.seeds.count() <= maxRows}
}

func (t *tableReporter) run(r *record) error {
	if !t.all && r.violation == nil {
		return nil
	}
	if t.table == nil {
		t.table = cli.NewTable(t.w, t.heads()...)
	}
	promises := "kept"
	if r.violation != nil {
		promises = "BROKEN: " + r.violation.Rule
	}
	row := []string{strconv.FormatUint(r.seed, 10)}
	if len(t.g.sides) > 1 {
		row = append(row, t.g.sides[r.side].label)
	}
	return t.table.Row(append(row, promises,
		grouped(r.operations()), grouped(r.failed()), grouped(r.unknown()), grouped(r.figures.Messages),
		strconv.Itoa(r.figures.Decisions), seconds(r.figures.Simulated), fmt.Sprintf("%016x", r.hash))...)
}

func (t *tableReporter) heads() []string {
	heads := []string{"SEED"}
	if len(t.g.sides) > 1 {
		heads = append(heads, "SIDE")
	}
	return append(heads, "PROMISES", "OPERATIONS", "FAILED", "UNKNOWN", "MESSAGES", "FAULTS", "SIMULATED", "HASH")
}

func (t *tableReporter) end(s *summary) error {
	if t.table != nil {
		if err := t.table.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(t.w)
	}
	t.headline(s)
	var err error
	if len(s.sides) > 1 {
		err = t.differences(s)
	} else {
		err = t.means(s)
	}
	if err != nil || s.first == nil {
		return err
	}
	v := s.first.violation
	side, again := "", "to see it again:"
	if len(s.sides) > 1 {
		side, again = ", side "+s.sides[s.first.side].label+",", "to see both sides again:"
	}
	fmt.Fprintf(t.w, "\nseed %d%s broke a promise:\n%s\n\n%s\n", s.first.seed, side, indent(v.Error()), again)
	_, err = fmt.Fprintln(t.w, s.replay)
	return err
}

func (t *tableReporter) headline(s *summary) {
	n := s.totals
	verdict := "no promise was broken"
	if n.violations > 0 {
		verdict = grouped(n.violations) + " BROKE A PROMISE"
	}
	var labels []string
	for _, side := range s.sides {
		labels = append(labels, side.label)
	}
	what := s.title
	if len(labels) > 1 {
		what += ", " + strings.Join(labels, " against ")
	}
	fmt.Fprintf(t.w, "%s: %s, %s\n", what, counted(n.runs, "run"), verdict)
	fmt.Fprintf(t.w, "%s ended well, %s failed, %s unknown; %s in %s, %s a second\n",
		counted(n.operations, "operation"), grouped(n.failed), grouped(n.unknown), counted(n.messages, "message"),
		seconds(n.took), grouped(uint64(n.messagesPerSecond())))
}

// means prints a column for each kind of operations.
func (t *tableReporter) means(s *summary) error {
	kinds := s.kinds()
	if len(kinds) == 0 || s.totals.violations == s.totals.runs {
		return nil // nothing was measured
	}
	heads := []string{"MEAN OVER SEEDS"}
	for _, kind := range kinds {
		heads = append(heads, strings.ToUpper(kind.String()))
	}
	fmt.Fprintln(t.w)
	table := cli.NewTable(t.w, heads...)
	row := []string{"operations, in all"}
	for _, kind := range kinds {
		row = append(row, grouped(s.count[0][kind]))
	}
	if err := table.Row(row...); err != nil {
		return err
	}
	for _, name := range figureNames(s.figures, kinds[0]) {
		row := []string{figureText(name)}
		filled := false
		for _, kind := range kinds {
			i := s.sample(0, kind, name).Interval()
			row = append(row, intervalText(i))
			filled = filled || i.N > 0
		}
		if !filled {
			continue
		}
		if err := table.Row(row...); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return t.whole(s)
}

// whole prints the figures of whole runs.
func (t *tableReporter) whole(s *summary) error {
	var pairs []string
	for _, name := range figureNames(s.figures, everything) {
		pairs = append(pairs, figureText(name), intervalText(s.sample(0, everything, name).Interval()))
	}
	fmt.Fprintln(t.w)
	return cli.Pairs(t.w, pairs...)
}

// differences prints a row for each figure.
func (t *tableReporter) differences(s *summary) error {
	if s.totals.violations == s.totals.runs {
		return nil
	}
	fmt.Fprintln(t.w)
	table := cli.NewTable(t.w, "MEAN OVER SEEDS", strings.ToUpper(s.sides[0].label), strings.ToUpper(s.sides[1].label), "DIFFERENCE", "CHANGE")
	for i := range s.figures {
		p := &s.pairs[i]
		d := p.Difference()
		if d.N == 0 {
			continue
		}
		change := ""
		if share, ok := p.Change(); ok {
			change = percent(share)
		}
		if d.Apart() {
			change += " *"
		}
		name := figureText(s.figures[i].name)
		if kind := s.figures[i].kind; kind != everything {
			name = kind.String() + ": " + name
		}
		if err := table.Row(name, intervalText(p.Base()), intervalText(p.Other()), intervalText(d), change); err != nil {
			return err
		}
	}
	return table.Flush()
}

// percent returns a change for people.
func percent(share float64) string {
	s := fixed(100*share, 1) + " %"
	if s[0] != '-' {
		s = "+" + s
	}
	return s
}

// figureNames returns the names of the figures of a kind.
func figureNames(all []figure, kind scenario.Kind) []string {
	var names []string
	for i := range all {
		if all[i].kind == kind {
			names = append(names, all[i].name)
		}
	}
	return names
}

// figureText returns the name of a figure for people.
func figureText(name string) string {
	switch name {
	case "one_round":
		return "share of one round"
	case "longest_stall_ms":
		return "longest stall, ms"
	}
	if base, unit, ok := strings.Cut(name, "_"); ok {
		return base + " latency, " + unit
	}
	return name
}

// intervalText returns a mean with as many digits as its interval leaves it,
// and two of the interval.
func intervalText(i stat.Interval) string {
	switch {
	case i.N == 0:
		return "-"
	case !i.Known() || i.Half == 0:
		return short(i.Mean)
	}
	digits := 1
	for limit := 1.0; digits < decimals && i.Half < limit; limit /= 10 {
		digits++
	}
	if i.Half >= 10 {
		digits = 0
	}
	return fixed(i.Mean, digits) + " ± " + fixed(i.Half, digits)
}
