package report

import (
	"fmt"
	"slices"
	"strings"
)

// gaps writes a table of what deaths did: of a target whose nodes are killed in
// turn, a row for each node and one for all.
func gaps(b *strings.Builder, all []Gap) {
	var rows [][]string
	for _, t := range distinct(all, func(g Gap) string { return g.label() }) {
		of := matching(all, func(g Gap) bool { return g.label() == t })
		var nodes []string
		if !slices.ContainsFunc(of, func(g Gap) bool { return g.Leader }) {
			nodes = distinct(of, func(g Gap) string { return g.Killed })
			slices.Sort(nodes)
		}
		if len(nodes) > 1 {
			for _, n := range nodes {
				rows = append(rows, gapRow(t, n, matching(of, func(g Gap) bool { return g.Killed == n })))
			}
		}
		who := strings.Join(nodes, ", ")
		if nodes == nil {
			who = "the leader"
		}
		rows = append(rows, gapRow(t, who, of))
	}
	b.WriteString("Longest stall of writes in ms, median (least to most) of the deaths: of all clients, then of one client; and by how much the kill made it longer; writes per second, medians:\n\n")
	table(b, []string{"target", "killed", "deaths", "all, before", "all, after", "difference", "one, before", "one, after", "difference", "writes/s before", "after"}, rows)
}

// label names the target, and what was done if it isn't a kill.
func (g Gap) label() string {
	if g.Stopped {
		return g.Target + ", stopped"
	}
	return g.Target
}

func gapRow(target, killed string, of []Gap) []string {
	over := func(f func(Gap) float64) string { return between(spread(each(of, f))) }
	return []string{
		target, killed, fmt.Sprint(len(of)),
		over(func(g Gap) float64 { return g.StallBefore }), over(func(g Gap) float64 { return g.StallAfter }),
		over(func(g Gap) float64 { return g.StallAfter - g.StallBefore }),
		over(func(g Gap) float64 { return g.ClientBefore }), over(func(g Gap) float64 { return g.ClientAfter }),
		over(func(g Gap) float64 { return g.ClientAfter - g.ClientBefore }),
		number(spread(each(of, func(g Gap) float64 { return g.Before })).Median),
		number(spread(each(of, func(g Gap) float64 { return g.After })).Median),
	}
}

// silences writes a table of what a replica in trouble did to its clients.
func silences(b *strings.Builder, all []Silence) {
	var rows [][]string
	for _, cell := range distinct(all, Silence.cell) {
		of := matching(all, func(s Silence) bool { return s.cell() == cell })
		var errors uint64
		for _, s := range of {
			errors += s.Before.Errors + s.During.Errors + s.After.Errors
		}
		phases := func(f func(Phase) float64) string {
			var texts []string
			for _, phase := range []func(Silence) Phase{
				func(s Silence) Phase { return s.Before }, func(s Silence) Phase { return s.During }, func(s Silence) Phase { return s.After },
			} {
				texts = append(texts, number(spread(each(of, func(s Silence) float64 { return f(phase(s)) })).Median))
			}
			return strings.Join(texts, " / ")
		}
		rows = append(rows, []string{
			cell, fmt.Sprint(len(of)), phases(func(p Phase) float64 { return p.PerSecond }), phases(func(p Phase) float64 { return p.P50 }),
			phases(func(p Phase) float64 { return p.P99 }), ratio(spread(quotients(of))), phases(func(p Phase) float64 { return p.Max }),
			phases(func(p Phase) float64 { return p.Stall }), fmt.Sprint(errors),
		})
	}
	b.WriteString("One replica of three in trouble: before / while / after, medians of the rounds; p99 while it lasts divided by that before, of the same round, median (least to most). `nothing` is what the machine does by itself:\n\n")
	table(b, []string{"trouble, operation × clients", "rounds", "ops/s", "p50 ms", "p99 ms", "p99 while / before", "longest operation ms", "longest stall ms", "errors"}, rows)
}

func (s Silence) cell() string {
	return fmt.Sprintf("%s, %s × %d, %d B", s.Mode, s.Op, s.Clients, s.Value)
}

func quotients(of []Silence) []float64 {
	var all []float64
	for _, s := range of {
		if s.Before.P99 > 0 && s.During.P99 > 0 {
			all = append(all, s.During.P99/s.Before.P99)
		}
	}
	return all
}

// changing writes a table of what changes of the members do to clients.
func changing(b *strings.Builder, all []Changing) {
	var rows [][]string
	cell := func(c Changing) string {
		return fmt.Sprintf("%s × %d, %d B, %d keys", c.Op, c.Clients, c.Value, c.Keys)
	}
	for _, name := range distinct(all, cell) {
		of := matching(all, func(c Changing) bool { return cell(c) == name })
		over := func(f func(Changing) float64) Spread { return spread(each(of, f)) }
		both := func(f func(Stretch) float64) string {
			return number(over(func(c Changing) float64 { return f(c.Alone) }).Median) + " → " + number(over(func(c Changing) float64 { return f(c.Meanwhile) }).Median)
		}
		var errors uint64
		for _, c := range of {
			errors += c.Alone.Errors + c.Meanwhile.Errors
		}
		rows = append(rows, []string{
			name, fmt.Sprint(len(of)), number(over(func(c Changing) float64 { return c.PerSecond }).Median),
			number(over(func(c Changing) float64 { return c.P50 }).Median), number(over(func(c Changing) float64 { return c.Max }).Max),
			both(func(s Stretch) float64 { return s.PerSecond }), ratio(over(func(c Changing) float64 { return c.Meanwhile.PerSecond / max(1, c.Alone.PerSecond) })),
			both(func(s Stretch) float64 { return s.P50 }), both(func(s Stretch) float64 { return s.P99 }),
			number(over(func(c Changing) float64 { return c.Alone.Stall }).Max) + " → " + number(over(func(c Changing) float64 { return c.Meanwhile.Stall }).Max),
			both(func(s Stretch) float64 { return s.CPUNodes }), both(func(s Stretch) float64 { return s.CPULoad }), fmt.Sprint(errors),
			number(over(func(c Changing) float64 { return c.IdleP50 }).Median), number(over(func(c Changing) float64 { return c.CostNodes }).Median), number(over(func(c Changing) float64 { return c.CostChanger }).Median),
		})
	}
	b.WriteString("Without changes of the members → with them, medians of the rounds; the ratio of operations a second is that of the same round, median (least to most); the longest stall is that of all rounds; processor time is that of an operation, and of a change without load:\n\n")
	table(b, []string{"operation × clients", "rounds", "changes/s", "a change, p50 ms", "longest", "ops/s", "ratio", "p50 ms", "p99 ms", "longest stall ms", "nodes, µs", "load, µs", "errors", "a change without load, p50 ms", "nodes, ms", "changer, ms"}, rows)
}

// distinct returns the different names of values, in order of appearance.
func distinct[T any](all []T, name func(T) string) []string {
	var names []string
	for _, v := range all {
		if n := name(v); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

func matching[T any](all []T, is func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(v T) bool { return !is(v) })
}

func each[T any](all []T, f func(T) float64) []float64 {
	out := make([]float64, len(all))
	for i, v := range all {
		out[i] = f(v)
	}
	return out
}
