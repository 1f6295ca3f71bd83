package report

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// foreignShare is the share of the machine that others may use during a
	// run without being mentioned.
	foreignShare = 0.05
	// shortRun is what a run's CPU shares are taken of at least, in seconds.
	shortRun = 0.001
)

// WriteMarkdown writes tables of everything that was read.
func (r *Records) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	for i, e := range r.Environments {
		if i == 0 || e.machine() != r.Environments[i-1].machine() {
			separate(&b)
			fmt.Fprintf(&b, "%s:\n\n", e.machine())
		}
		fmt.Fprintf(&b, "    %s\n", e.command())
	}
	if len(r.Runs) > 0 {
		separate(&b)
		comparison(&b, Summarize(r.Runs))
		r.noise(&b, r.Runs)
	}
	for _, t := range []struct {
		records int
		write   func(*strings.Builder)
	}{
		{len(r.Connections), r.connections},
		{len(r.Idle), func(b *strings.Builder) { idle(b, r.Idle) }},
		{len(r.Gaps), func(b *strings.Builder) { gaps(b, r.Gaps) }},
		{len(r.Silences), func(b *strings.Builder) { silences(b, r.Silences) }},
		{len(r.Changing), func(b *strings.Builder) { changing(b, r.Changing) }},
		{len(r.Sustained), r.sustained},
		{len(r.Starts), func(b *strings.Builder) { starts(b, r.Starts) }},
		{len(r.Replacements), func(b *strings.Builder) { replacements(b, r.Replacements) }},
		{len(r.Chaos), func(b *strings.Builder) { campaigns(b, r.Chaos) }},
	} {
		if t.records > 0 {
			separate(&b)
			t.write(&b)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// machine says when and where measurements were made.
func (e Environment) machine() string {
	return fmt.Sprintf("%s, %d × %s, %.0f GiB, %s, Linux %s, %s",
		e.Time.Format(time.DateOnly), e.Cores, e.CPU, float64(e.Memory)/(1<<30), e.FileSystem, e.Kernel, e.Go)
}

// command is the command line, without the folder of the program.
func (e Environment) command() string {
	words := slices.Clone(e.Command)
	if len(words) > 0 {
		words[0] = filepath.Base(words[0])
	}
	return strings.Join(words, " ")
}

func separate(b *strings.Builder) {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
}

// comparison writes a table of speeds and one of latencies.
func comparison(b *strings.Builder, s Summary) {
	var peers []string
	for _, t := range s.Targets {
		if t != Subject {
			peers = append(peers, t)
		}
	}
	compares := len(peers) > 0 && len(peers) < len(s.Targets)
	head := append([]string{"cell"}, s.Targets...)
	if compares {
		head = append(head, Subject+" / best")
		for _, p := range peers {
			head = append(head, Subject+" / "+p)
		}
	}
	rows := [][]string{}
	for _, c := range s.Cells {
		row := []string{c.Cell.String()}
		for _, t := range s.Targets {
			row = append(row, c.show(t, func(t TargetSummary) string { return number(t.PerSecond.Median) }))
		}
		if compares {
			row = append(row, ratio(c.Best))
			for _, p := range peers {
				row = append(row, c.show(p, func(t TargetSummary) string { return ratio(t.Ratio) }))
			}
		}
		rows = append(rows, row)
	}
	b.WriteString("Operations per second, medians; ratios of the same round, median (least to most):\n\n")
	table(b, head, rows)

	b.WriteString("\nLatency p50 / p99 in ms, medians; then processor time for an operation in µs, nodes + load generator:\n\n")
	rows = rows[:0]
	for _, c := range s.Cells {
		row := []string{c.Cell.String()}
		for _, t := range s.Targets {
			row = append(row, c.show(t, func(t TargetSummary) string {
				return fmt.Sprintf("%s / %s; %s + %s", number(t.P50), number(t.P99), number(t.CPUNodes), number(t.CPULoad))
			}))
		}
		rows = append(rows, row)
	}
	table(b, append([]string{"cell"}, s.Targets...), rows)
	for _, c := range s.Cells {
		for _, t := range c.Targets {
			if t.Errors > 0 {
				fmt.Fprintf(b, "\n%s, %s: %d operations failed.\n", c.Cell, t.Target, t.Errors)
			}
		}
	}
}

// noise says what else used the machine during runs.
func (r *Records) noise(b *strings.Builder, runs []Run) {
	cores := 1
	if len(r.Environments) > 0 {
		cores = max(1, r.Environments[0].Cores)
	}
	var idle, foreign []float64
	for _, run := range runs {
		whole := max(run.Seconds, shortRun) * float64(cores)
		idle = append(idle, run.CPUIdle/whole)
		foreign = append(foreign, run.CPUForeign/whole)
	}
	fmt.Fprintf(b, "\nShare of the machine used by idle targets: median %s, at most %s; by anything else: median %s, at most %s.\n",
		percent(spread(idle).Median), percent(spread(idle).Max), percent(spread(foreign).Median), percent(spread(foreign).Max))
	if spread(foreign).Median > foreignShare {
		b.WriteString("**The machine was busy with something else: don't quote these figures.**\n")
	}
}

// String names a cell in a table.
func (c Cell) String() string {
	return fmt.Sprintf("%s × %d, %d B, %d keys", c.Op, c.Clients, c.Value, c.Keys)
}

// show formats one target of a cell.
func (c CellSummary) show(target string, format func(TargetSummary) string) string {
	i := slices.IndexFunc(c.Targets, func(t TargetSummary) bool { return t.Target == target })
	if i < 0 {
		return "–"
	}
	return format(c.Targets[i])
}

// sustained writes a table of long runs.
func (r *Records) sustained(b *strings.Builder) {
	var rows [][]string
	var runs []Run
	for _, s := range r.Sustained {
		runs = append(runs, s.Run)
		var speed []float64
		for _, n := range s.Series {
			speed = append(speed, float64(n))
		}
		var rss, anonymous, disk, journal int64
		for _, at := range s.Samples {
			for _, n := range at.Nodes {
				rss, anonymous = max(rss, n.Resident), max(anonymous, n.Anonymous)
				disk, journal = max(disk, n.Disk), max(journal, n.Journal)
			}
		}
		rows = append(rows, []string{
			s.Target, s.Cell.String(), number(s.PerSecond), number(spread(speed).Min), number(s.P50), number(s.P99), number(s.P999), number(s.Stall),
			megabytes(rss), megabytes(anonymous), megabytes(disk), megabytes(journal), strconv.FormatUint(s.Errors, 10),
		})
	}
	b.WriteString("Sustained writes, each target alone; memory and disk are the most that one node had, in MiB:\n\n")
	table(b, []string{"target", "cell", "writes/s", "worst second", "p50 ms", "p99 ms", "p99.9 ms", "longest stall ms", "RSS", "of it anonymous", "disk", "journal", "errors"}, rows)
	r.noise(b, runs)
}

func table(b *strings.Builder, head []string, rows [][]string) {
	b.WriteString("| " + strings.Join(head, " | ") + " |\n|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, r := range rows {
		b.WriteString("| " + strings.Join(r, " | ") + " |\n")
	}
}

func ratio(s Spread) string {
	if s.Count == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", s.Median, s.Min, s.Max)
}

func between(s Spread) string {
	if s.Count == 1 {
		return number(s.Median)
	}
	if s.Min < 0 {
		return fmt.Sprintf("%s (%s to %s)", number(s.Median), number(s.Min), number(s.Max))
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.Median), number(s.Min), number(s.Max))
}

// number has about three digits, and commas.
func number(f float64) string {
	switch {
	case f == 0:
		return "0"
	case math.Abs(f) < 10:
		return strconv.FormatFloat(f, 'f', 2, 64)
	case math.Abs(f) < 100:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return commas(strconv.FormatFloat(f, 'f', 0, 64))
}

// count is a whole number with commas.
func count[T int | uint64](n T) string { return commas(fmt.Sprint(n)) }

func commas(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func percent(f float64) string { return strconv.FormatFloat(100*f, 'f', 1, 64) + " %" }

func megabytes(bytes int64) string { return number(float64(bytes) / (1 << 20)) }
