package report

import (
	"fmt"
	"strconv"
	"strings"
)

// campaigns writes a table of campaigns of killing.
func campaigns(b *strings.Builder, all []Chaos) {
	var rows [][]string
	for _, c := range all {
		rows = append(rows, []string{
			strconv.FormatUint(c.Seed, 10), number(c.Seconds),
			fmt.Sprintf("%d: one %d, two %d, all %d, while starting %d", c.One+c.Two+c.All+c.Starting, c.One, c.Two, c.All, c.Starting),
			strconv.Itoa(c.Processes), strconv.Itoa(c.Stopped), strconv.Itoa(c.Twins), number(c.SlowestStart),
			fmt.Sprintf("%s: puts %s, gets %s, deletes %s", count(c.Operations), count(c.Puts), count(c.Gets), count(c.Deletes)),
			fmt.Sprintf("%s (%s more once resumed)", count(c.Unknown), count(c.Resumed)),
			fmt.Sprintf("%s (%d with a quorum)", count(c.Failed), c.Surprising),
			fmt.Sprintf("%s of %s", count(c.OnceAcked), count(c.Keys)),
			c.verdict(),
		})
	}
	b.WriteString("Campaigns; kills are moments, processes what was killed at them. Failed operations certainly had no effect; unknown ones may have. The last column is the verdict on all operations, the tags, and each of the acknowledged writes to keys that were written once:\n\n")
	table(b, []string{"seed", "s", "kills", "processes", "stopped", "twins refused", "slowest start ms", "operations", "unknown", "failed", "written once, of all keys", "wrong"}, rows)
}

// verdict says what went wrong.
func (c Chaos) verdict() string {
	var wrong []string
	if c.Violation != "" {
		wrong = append(wrong, c.Violation)
	}
	if c.Complaints > 0 {
		wrong = append(wrong, fmt.Sprintf("%d complaints", c.Complaints))
	}
	if c.Error != "" {
		wrong = append(wrong, c.Error)
	}
	if len(wrong) == 0 {
		return "nothing"
	}
	return strings.Join(wrong, "; ")
}
