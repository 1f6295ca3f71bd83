package scenario

import (
	"fmt"
	"strings"
)

// GoTest returns the source of a Go test of that name, "TestX", that runs the
// plan and fails as long as it breaks a promise.
func (p Plan) GoTest(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `package scenario_test

import (
	"strings"
	"testing"

	"atoll/sim/scenario"
)

// %s runs a plan that was shrunk from seed %d of scenario %q.
func %s(t *testing.T) {
	plan, err := scenario.ParsePlan(strings.NewReader(`+"`%s`"+`))
	if err != nil {
		t.Fatal(err)
	}
	result, err := scenario.Run(plan, scenario.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if result.Violation != nil {
		t.Error(result.Violation)
	}
}
`, name, p.Seed, p.Scenario.Name, name, strings.ReplaceAll(string(p.JSON()), "`", "'"))
	return b.String()
}
