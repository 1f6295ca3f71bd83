package scenario

// million is what chances are counted in.
const million = 1_000_000

// Draw returns the plan of a seed: it draws which kinds of faults exist in it,
// and then each of them. The same scenario and seed give the same plan.
func (s Scenario) Draw(seed uint64) Plan {
	return Plan{Seed: seed, Scenario: s}
}
