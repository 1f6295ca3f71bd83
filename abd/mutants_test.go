package abd_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cockroachdb/datadriven"

	"atoll/abd"
	"atoll/repair"
	"atoll/replica"
	"atoll/sim"
)

// script is a schedule of testdata: what to do, what to check, and which
// mutants it kills.
type script struct {
	name              string
	commands, verdict []string
	mutants           []string
}

func scripts(t *testing.T) []script {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []script
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := script{name: strings.TrimSuffix(filepath.Base(file), ".txt")}
		datadriven.RunTestFromString(t, string(text), func(_ *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "mutant":
				s.mutants = append(s.mutants, d.CmdArgs[0].Key)
			case "verdict":
				s.verdict = strings.Fields(d.FullCmd())[1:]
			default:
				s.commands = append(s.commands, d.FullCmd()+"\n"+d.Input)
			}
			return d.Expected
		})
		all = append(all, s)
	}
	return all
}

// TestMutants breaks each rule of the protocol, of the node and of the kernel
// that can be broken, and shows which schedules notice: each must be killed by
// one that says so. It logs a table (go test ./abd -run TestMutants -v), which
// docs/SIMULATOR.md shows.
func TestMutants(t *testing.T) {
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "mutant\tkilled by\tin")
	all := scripts(t)
	killed := 0
	for _, rules := range []any{abd.Rules{}, repair.Rules{}, replica.Rules{}, sim.Rules{}} {
		ty := reflect.TypeOf(rules)
		for _, f := range reflect.VisibleFields(ty) {
			if f.Type.Kind() != reflect.Bool {
				continue
			}
			by := ""
			var took time.Duration
			for _, s := range all {
				for _, name := range s.mutants {
					if name != f.Name || by != "" {
						continue
					}
					began := time.Now()
					if _, bad := runMutant(t, name, s.commands, s.verdict); bad != "" {
						by, took = s.name+": "+bad, time.Since(began)
					}
				}
			}
			if by == "" {
				t.Errorf("no schedule kills the mutant %s of %s", f.Name, ty)
				continue
			}
			killed++
			fmt.Fprintf(table, "%s.%s\t%s\t%v\n", strings.TrimSuffix(ty.String(), ".Rules"), f.Name, by, took.Round(100*time.Microsecond))
		}
	}
	table.Flush()
	t.Logf("%d mutants were killed\n%s", killed, &out)
}
