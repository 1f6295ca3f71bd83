package schedule

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Schedule is what a transcript says: what to do, what to check, and which
// mutants must fail.
type Schedule struct {
	Commands []string // blocks of lines
	Verdict  []string // the words behind the command
	Judged   bool     // there was a verdict
	Mutants  []string
}

// Test plays all transcripts in a folder, which are subtests, and compares what
// happens with what they say. The flag -rewrite makes them say that.
func Test(t *testing.T, folder string, vocabularies ...Vocabulary) {
	datadriven.Walk(t, folder, func(t *testing.T, path string) {
		r, err := New("", vocabularies...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		var s Schedule
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.Add(d)
			switch d.Cmd {
			case "mutant":
				return s.mutant(t, vocabularies)
			case "verdict":
				if bad := r.Judge(s.Verdict); bad != "" {
					t.Errorf("%s: the real code is %s", d.Pos, bad)
					return bad
				}
				return strings.Join(append([]string{r.praise()}, s.Verdict...), " ")
			}
			out := r.Do(s.Commands[len(s.Commands)-1])
			if strings.Contains(out, "error: ") {
				t.Errorf("%s: %s", d.Pos, out)
			}
			return out
		})
		if !s.Judged && r.used() {
			t.Errorf("%s has no verdict", path)
		}
	})
}

// Add takes one more command of a transcript.
func (s *Schedule) Add(d *datadriven.TestData) {
	switch d.Cmd {
	case "mutant":
		for _, a := range d.CmdArgs {
			s.Mutants = append(s.Mutants, a.Key)
		}
	case "verdict":
		s.Judged, s.Verdict = true, strings.Fields(d.FullCmd())[1:]
	default:
		s.Commands = append(s.Commands, d.FullCmd()+"\n"+d.Input)
	}
}

// mutant runs the last of the mutants.
func (s *Schedule) mutant(t *testing.T, vocabularies []Vocabulary) string {
	name := ""
	if len(s.Mutants) > 0 {
		name = s.Mutants[len(s.Mutants)-1]
	}
	ended, bad, err := s.Without(name, vocabularies...)
	if err != nil {
		t.Fatal(err)
	}
	if bad == "" {
		t.Errorf("mutant %s survives:\n%s", name, ended)
	}
	return ended + bad
}

// Without runs the commands without a rule. It returns how the operations
// ended, and what is wrong with that: nothing if the mutant survives.
func (s *Schedule) Without(rule string, vocabularies ...Vocabulary) (ended, bad string, err error) {
	r, err := New(rule, vocabularies...)
	if err != nil {
		return "", "", err
	}
	defer r.Close()
	for _, block := range s.Commands {
		for line := range strings.Lines(r.Do(block)) {
			if strings.HasPrefix(line, "done ") || strings.HasPrefix(line, "failed ") {
				ended += line
			}
		}
	}
	return ended, r.Judge(s.Verdict), nil
}
