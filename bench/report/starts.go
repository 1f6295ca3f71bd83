package report

import (
	"fmt"
	"strings"
)

// starts writes tables of starts: how long they take, and the memory.
func starts(b *strings.Builder, all []Start) {
	var times, memory [][]string
	for _, cell := range distinct(all, Start.cell) {
		of := matching(all, func(s Start) bool { return s.cell() == cell })
		over := func(f func(Start) float64) string { return between(spread(each(of, f))) }
		middle := func(f func(Start) float64) string { return number(spread(each(of, f)).Median) }
		times = append(times, []string{
			cell, fmt.Sprint(len(of)),
			middle(func(s Start) float64 { return float64(s.Disk) / (1 << 20) }),
			middle(func(s Start) float64 { return float64(s.Journal) / (1 << 20) }),
			middle(func(s Start) float64 { return float64(s.Unapplied) }),
			over(func(s Start) float64 { return s.Ready }), over(func(s Start) float64 { return s.First }),
			middle(func(s Start) float64 { return s.CPU }),
			middle(func(s Start) float64 { return s.Ready / 1000 / (float64(s.Disk) / (1 << 30)) }),
			middle(func(s Start) float64 { return s.perGigabyteOfJournal() }),
		})
		row := []string{
			cell, middle(func(s Start) float64 { return mebibytes(s.Resident) }), middle(func(s Start) float64 { return mebibytes(s.Anonymous) }),
		}
		// Not every start is followed by a load.
		of = matching(of, func(s Start) bool { return s.Loaded > 0 })
		memory = append(memory, append(row,
			middle(func(s Start) float64 { return mebibytes(s.LoadedResident) }), middle(func(s Start) float64 { return mebibytes(s.LoadedAnonymous) }),
			middle(func(s Start) float64 { return mebibytes(s.LoadedResident) * 1e6 / float64(s.Keys) }),
			middle(func(s Start) float64 { return mebibytes(s.LoadedAnonymous) * 1e6 / float64(s.Keys) }),
			middle(func(s Start) float64 { return s.LoadedPerSecond }),
		))
	}
	b.WriteString("Start of one replica, from the start of the process until it serves, and until a client that was there all along has an answer; medians (least to most) of the rounds. what is in the journal hasn't been applied, and the start reads it from there:\n\n")
	table(b, []string{"keys", "rounds", "disk MiB", "journal MiB", "records in it", "serves after ms", "first answer after ms", "processor s", "s for a GiB of disk", "s for a GiB of journal"}, times)
	b.WriteString("\nMemory of that replica in MiB, when it serves and after reads and writes of all keys at random; anonymous memory isn't backed by files:\n\n")
	table(b, []string{"keys", "RSS", "of it anonymous", "RSS, loaded", "of it anonymous", "RSS, a million keys", "of it anonymous", "ops/s"}, memory)
}

// perGigabyteOfJournal is how many seconds a GiB of journal takes to be read
// back; 0 if there was none to read.
func (s Start) perGigabyteOfJournal() float64 {
	if s.Unapplied == 0 || s.Journal == 0 {
		return 0
	}
	return s.Ready / 1000 / (float64(s.Journal) / (1 << 30))
}

func (s Start) cell() string {
	where := "all applied"
	if s.Killed {
		where = fmt.Sprintf("killed under writes with %d MiB of journal", s.Asked)
	} else if s.Asked > 0 {
		where = fmt.Sprintf("%d MiB in the journal", s.Asked)
	}
	return fmt.Sprintf("%s of %d B, %s", count(s.Keys), s.Value, where)
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// connections writes a table of runs whose clients have connections of their
// own.
func (r *Records) connections(b *strings.Builder) {
	var runs []Run
	for _, c := range r.Connections {
		runs = append(runs, c.Run)
	}
	var rows [][]string
	for _, cell := range distinct(r.Connections, Connections.label) {
		of := matching(r.Connections, func(c Connections) bool { return c.label() == cell })
		for _, t := range distinct(of, func(c Connections) string { return c.Target }) {
			own := matching(of, func(c Connections) bool { return c.Target == t })
			middle := func(f func(Connections) float64) string { return number(spread(each(own, f)).Median) }
			var all []Run
			var errors uint64
			for _, c := range of {
				all = append(all, c.Run)
			}
			for _, c := range own {
				errors += c.Errors
			}
			compared := "–"
			if t != Subject {
				compared = ratio(spread(ratios(all, func(peer string) bool { return peer == t })))
			}
			rows = append(rows, []string{
				cell, t, middle(func(c Connections) float64 { return c.PerSecond }), compared,
				middle(func(c Connections) float64 { return c.P50 }), middle(func(c Connections) float64 { return c.P99 }), middle(func(c Connections) float64 { return c.Max }),
				middle(func(c Connections) float64 { return c.Connecting }), middle(func(c Connections) float64 { return mebibytes(c.Resident - c.Empty) }), fmt.Sprint(errors),
			})
		}
	}
	b.WriteString("Clients with connections of their own, in processes of their own; medians. Memory is what all nodes of the target together have more than before the clients came:\n\n")
	table(b, []string{"cell", "target", "ops/s", Subject + " / it", "p50 ms", "p99 ms", "longest operation ms", "connected after s", "memory MiB", "errors"}, rows)
	r.noise(b, runs)
}

func (c Connections) label() string {
	if c.Shared {
		return fmt.Sprintf("%s, %d processes with one connection each", c.Cell, c.Processes)
	}
	return fmt.Sprintf("%s, %d processes", c.Cell, c.Processes)
}
