package scenario_test

import (
	"errors"
	"strings"
	"testing"

	"atoll/sim/scenario"
)

func TestWhatIsWrongWithAFile(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"empty", "", "line 1: the file is empty: a JSON object, {…}, is wanted"},
		{"blank", "\n\n", "line 3: the file is empty: a JSON object, {…}, is wanted"},
		{"no object", "\n[1]", "line 2: a JSON object, {…}, is wanted"},
		{"no JSON", "{\n  name: \"x\"\n}", "line 2: invalid character 'n'"},
		{"ends", "{\n  \"name\": \"x\",\n", "line 3: the file ends too early"},
		{"more", "{\n  \"name\": \"x\"\n}\n{}", "line 4: something comes behind the object"},
		{"no field", "{\n  \"name\": \"x\",\n  \"nodez\": 3\n}", "line 3: nodez: there is no such field"},
		{"no field inside", "{\n  \"name\": \"x\",\n  \"network\": {\n    \"lossy\": 3\n  }\n}", "line 4: network.lossy: there is no such field"},
		{"twice", "{\n  \"name\": \"x\",\n  \"nodes\": 3,\n  \"nodes\": 4\n}", "line 4: nodes: it is there twice"},
		{"case", "{\n  \"name\": \"x\",\n  \"Nodes\": 3\n}", "line 3: Nodes: there is no such field; names are in lower case"},
		{"type", "{\n  \"name\": \"x\",\n  \"nodes\": \"three\"\n}", "line 3: nodes: a string can't be a value of type int"},
		{"type inside", "{\n  \"name\": \"x\",\n  \"faults\": {\n    \"kinds\": [\n      1]\n  }\n}", "line 5: faults.kinds: a number can't be a value of type string"},
		{"fraction", "{\n  \"name\": \"x\",\n  \"nodes\": 1.5\n}", "line 3: nodes: a number 1.5 can't be a value of type int"},
		{"duration", "{\n  \"name\": \"long\",\n  \"duration\": \"for ever\"\n}", `line 3: duration: "for ever" is not a duration with its unit`},
		{"duration without unit", "{\n  \"name\": \"x\",\n  \"network\": {\"resend_first\": \"20\"}\n}", `line 3: network.resend_first: "20" is not a duration with its unit`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := scenario.Parse(strings.NewReader(c.file))
			if e, ok := errors.AsType[*scenario.FileError](err); !ok || !strings.HasPrefix(e.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// FuzzParse: whatever a file holds, it is read or refused, and what is read is
// written and read again.
func FuzzParse(f *testing.F) {
	f.Add(`{"name": "x", "network": {"delay": "uniform 1ms 2ms"}, "faults": {"kinds": ["crash"], "every": "1s"}}`)
	f.Add(`{"name": "x", "nodes": 3, "quorum": "get=2,put=2", "mix": {"read": 1}}`)
	f.Add(`{"a":[{"b":"c"}],"a":1}`)
	f.Add("{]")
	f.Fuzz(func(t *testing.T, file string) {
		s, err := scenario.Parse(strings.NewReader(file))
		if err != nil {
			return
		}
		again, err := scenario.Parse(strings.NewReader(string(s.JSON())))
		if err != nil || string(again.JSON()) != string(s.JSON()) {
			t.Errorf("%q is written as %s and read as %s, %v", file, s.JSON(), again.JSON(), err)
		}
	})
}

// FuzzPlan: whatever a plan file holds, it is read or refused, and what is read
// is written and read again.
func FuzzPlan(f *testing.F) {
	f.Add(`{"scenario": {"name": "x", "nodes": 3, "quorum": "majority"}, "seed": 1}`)
	f.Add(`{"scenario": {"name": "x"}, "decisions": [{"at": "1s", "do": "crash", "on": ["n1"]}], "healing": [{"cluster": 1, "dead": ["n1"]}], "idle": ["p1"], "keys": ["k1"], "skip": ["p1/3"]}`)
	f.Fuzz(func(t *testing.T, file string) {
		p, err := scenario.ParsePlan(strings.NewReader(file))
		if err != nil {
			return
		}
		again, err := scenario.ParsePlan(strings.NewReader(string(p.JSON())))
		if err != nil || string(again.JSON()) != string(p.JSON()) {
			t.Errorf("%q is written as %s and read as %s, %v", file, p.JSON(), again.JSON(), err)
		}
	})
}
