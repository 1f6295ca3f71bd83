package history

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// String returns the violation as a page for people: the rule, the detail,
// and the history of the key in the order of calls, drawn in time. A star
// marks what belongs to the proof. Of a long history only what is near the
// proof is shown.
func (v *Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "key %s: %s\n%s\n", quote(v.Key), v.Rule, v.Detail)
	shown := v.shown()
	var origin time.Duration
	if start := v.Register[0].Call; start > maxPlainTime || start < -maxPlainTime {
		origin = start
		fmt.Fprintf(&b, "times since %d\n", int64(origin))
	}
	bars := drawing(v.Register, shown)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "\n\t#\tclient\toperation\tcall\treturn\t\n")
	next := 0
	for n, i := range shown {
		gap(table, i-next)
		next = i + 1
		op := v.Register[i]
		mark, end := "", (op.Return - origin).String()
		if _, ok := slices.BinarySearch(v.proof, i); ok {
			mark = "*"
		}
		if op.Outcome == Unknown {
			end = "?"
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%v\t%v\t%s\t%s\n", mark, i+1, cut(op.Client), op, op.Call-origin, end, bars[n])
	}
	gap(table, len(v.Register)-next)
	table.Flush()
	var page strings.Builder
	for line := range strings.Lines(b.String()) {
		page.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return page.String()
}

// gap says that n operations aren't shown.
func gap(table *tabwriter.Writer, n int) {
	if n > 0 {
		fmt.Fprintf(table, "\t…\t\t%d more\t\t\t\n", n)
	}
}

// shown returns the indices of the operations to print: those of the proof
// and their neighbours, as many as there is room for.
func (v *Violation) shown() []int {
	if len(v.proof) >= maxShown {
		return v.proof[:maxShown]
	}
	shown := slices.Clone(v.proof)
	for distance := 1; len(shown) < min(maxShown, len(v.Register)); distance++ {
		for _, at := range v.proof {
			for _, i := range []int{at - distance, at + distance} {
				if len(shown) < maxShown && i >= 0 && i < len(v.Register) && !slices.Contains(shown, i) {
					shown = append(shown, i)
				}
			}
		}
	}
	slices.Sort(shown)
	return shown
}

// drawing returns a bar for each shown operation. The order of beginnings and
// ends is drawn, not how long it was between them, or a slow operation would
// hide the others.
func drawing(register []Operation, shown []int) []string {
	var times []time.Duration
	for _, i := range shown {
		times = append(times, register[i].Call)
		if register[i].Outcome != Unknown {
			times = append(times, register[i].Return)
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	// Unknown operations have an end beyond all times.
	width := min(barWidth, 2*len(times)+1)
	column := func(t time.Duration) int {
		rank, _ := slices.BinarySearch(times, t)
		return rank * (width - 1) / len(times)
	}
	bars := make([]string, len(shown))
	for n, i := range shown {
		op := register[i]
		from, tip := column(op.Call), "|"
		to := width - 1
		if op.Outcome == Unknown {
			tip = ">"
		} else {
			to = column(op.Return)
		}
		bar := "|"
		if to > from {
			bar += strings.Repeat("-", to-from-1) + tip
		}
		bars[n] = strings.Repeat(" ", from) + bar
	}
	return bars
}

// quote returns text for people: long ones are cut.
func quote(text string) string {
	if short := cut(text); short != text {
		return fmt.Sprintf("%q…", text[:maxShownText])
	}
	return fmt.Sprintf("%q", text)
}

// cut returns the beginning of a long text.
func cut(text string) string {
	if len(text) <= maxShownText {
		return text
	}
	return text[:maxShownText] + "…"
}
