package schedule_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cockroachdb/datadriven"

	"atoll/join"
	"atoll/replica"
	"atoll/sim"
	"atoll/sim/schedule"
)

// folders have schedules, beside the code that they are about, and play them with
// these words.
var folders = []struct {
	path  string // from the module's root
	words []schedule.Vocabulary
}{
	{"abd/testdata", []schedule.Vocabulary{schedule.Registers}},
	{"repair/testdata", []schedule.Vocabulary{schedule.Registers, schedule.Repair}},
	{"rambo/testdata", []schedule.Vocabulary{schedule.Registers, schedule.Repair, schedule.Rambo}},
	{"join/testdata", []schedule.Vocabulary{schedule.Registers, schedule.Joining}},
}

// elsewhere are the packages whose own TestMutants demands a test for each rule:
// what they promise isn't seen in registers.
var elsewhere = []string{"synod", "reconfig"}

// root is the module's root, from here.
const root = "../.."

// written is a schedule of some folder.
type written struct {
	schedule.Schedule
	name  string
	words []schedule.Vocabulary
}

func schedules(t *testing.T) []written {
	var all []written
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(root, folder.path, "*.txt"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder.path, "has no schedules", err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := written{name: strings.TrimSuffix(filepath.Base(file), ".txt"), words: folder.words}
			datadriven.RunTestFromString(t, string(text), func(_ *testing.T, d *datadriven.TestData) string {
				s.Add(d)
				return d.Expected
			})
			all = append(all, s)
		}
	}
	return all
}

// TestMutants breaks each rule of the node, of its protocols and of the kernel
// that can be broken, and shows which schedules notice: each must be killed by
// one that says so. It logs a table (go test ./sim/schedule -run TestMutants -v),
// which docs/SIMULATOR.md shows.
func TestMutants(t *testing.T) {
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "mutant\tkilled by\tin")
	all := schedules(t)
	killed := 0
	for _, rule := range schedule.RuleNames(replica.Rules{}, join.Rules{}, sim.Rules{}) {
		if pkg, _, _ := strings.Cut(rule, "."); slices.Contains(elsewhere, pkg) {
			continue
		}
		by, took := kill(t, rule, all)
		if by == "" {
			t.Errorf("no schedule kills the mutant %s", rule)
			continue
		}
		killed++
		fmt.Fprintf(table, "%s\t%s\t%v\n", rule, by, took.Round(100*time.Microsecond))
	}
	table.Flush()
	t.Logf("%d mutants were killed\n%s", killed, &out)
}

// kill runs the schedules that say that they kill a mutant, until one does.
func kill(t *testing.T, rule string, all []written) (by string, took time.Duration) {
	for _, s := range all {
		for _, name := range s.Mutants {
			if !schedule.MatchRule(rule, name) {
				continue
			}
			began := time.Now()
			_, bad, err := s.Without(rule, s.words...)
			if err != nil {
				t.Fatal(err)
			}
			if bad != "" {
				return s.name + ": " + bad, time.Since(began)
			}
		}
	}
	return "", 0
}
