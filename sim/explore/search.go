package explore

import (
	"atoll/sim/scenario"
)

// Options say how far an exploration goes.
type Options struct {
	// Rules are those that are broken, by name.
	Rules []string
	// MaxStates is about how many states are looked at, at most; 0: no limit.
	MaxStates int
	// Stop, if set, is asked now and then whether that is enough.
	Stop func() bool
	// Workers is how many goroutines search; 0: one. With several, which of two
	// violations is found that lie equally deep isn't said.
	Workers int
	// Plain: no state is left out because what can happen there can happen in
	// another one, too, or taken for another one because what they differ in is of no
	// use any more. It takes longer, and finds the same.
	Plain bool
}

// Report is what an exploration has found.
type Report struct {
	// States are how many different ones were seen, and Moves how many moves were
	// made from one to another.
	States, Moves int
	// Local is in how many states single processes were seen.
	Local int
	// Depth is the most moves from the beginning that a state needs.
	Depth int
	// Ends are how many states had no move.
	Ends int
	// Complete: all was seen that there is.
	Complete bool
	// Outcomes are the ways in which operations can begin and end, each once,
	// sorted.
	Outcomes []string
	// Violation is nil if every promise was kept.
	Violation *Violation
}

// Violation is a promise that was broken.
type Violation struct {
	Rule, Text string
	// Path leads there, from the beginning.
	Path string
}

// Explore looks at every state of a scope.
func Explore(scope Scope, o Options) (Report, error) {
	rules, err := scenario.Break(o.Rules...)
	if err != nil {
		return Report{}, err
	}
	b, err := newBeginning(&scope, rules, o.Plain)
	if err != nil {
		return Report{}, err
	}
	c, err := newCast(b)
	if err != nil {
		return Report{}, err
	}
	return search(c, o)
}

// Replay makes the moves of a path from a scope's beginning, and returns what
// happened, line by line, and what is wrong with it, if anything.
func Replay(scope Scope, rules []string, text string) (lines []string, v *Violation, err error) {
	p, err := parsePath(text)
	if err != nil {
		return nil, nil, err
	}
	mutants, err := scenario.Break(rules...)
	if err != nil {
		return nil, nil, err
	}
	b, err := newBeginning(&scope, mutants, false)
	if err != nil {
		return nil, nil, err
	}
	x, err := b.worldAfter(p, func(line string) { lines = append(lines, line) })
	if err != nil {
		return lines, nil, err
	}
	defer x.w.Close()
	if v = x.judge.violation; v != nil {
		v.Path = text
	}
	return lines, v, nil
}
