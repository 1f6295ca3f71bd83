package explore

import (
	"fmt"
	"slices"

	"atoll/sim/scenario"
)

// Options say how far an exploration goes.
type Options struct {
	// Rules are those that are broken, by name.
	Rules []string
	// MaxStates is the most states that are looked at; 0: no limit.
	MaxStates int
	// Stop, if set, is asked now and then whether that is enough.
	Stop func() bool
	// Awake: no move is left out because another order of the same has been
	// seen. It takes longer, and finds the same.
	Awake bool
}

// Report is what an exploration has found.
type Report struct {
	// States are how many different ones were seen, Moves how many moves were
	// made from one to another, and Replays how often that had to begin anew.
	States, Moves, Replays int
	// Depth is the most moves from the beginning.
	Depth int
	// Ends are how many states had no move.
	Ends int
	// Complete: all was seen that there is.
	Complete bool
	// Outcomes are the ways in which operations can end, each once, sorted.
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
	b, err := newBeginning(&scope, rules)
	if err != nil {
		return Report{}, err
	}
	s := &search{beginning: b, o: o, seen: make(map[uint64][]uint64), outcomes: make(map[string]bool)}
	err = s.run()
	if s.world != nil {
		s.world.w.Close()
	}
	return s.report, err
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
	b, err := newBeginning(&scope, mutants)
	if err != nil {
		return nil, nil, err
	}
	x, err := b.world(func(line string) { lines = append(lines, line) })
	if err != nil {
		return nil, nil, err
	}
	defer x.w.Close()
	for _, m := range p {
		if err := x.do(m); err != nil {
			return lines, nil, err
		}
	}
	if x.violation != nil {
		x.violation.Path = text
	}
	return lines, x.violation, nil
}

// search is an exploration under way: depth first.
//
// A world can't be copied, for its callers can't be. So there is one, which goes
// on from where it stands as long as it can, and begins anew and is brought back
// by the same moves where it can't.
type search struct {
	beginning *beginning
	o         Options

	world *world
	at    int // how many moves of the path the world has made, -1: none of use
	path  path
	stack []frame
	// seen are the states that were seen, and for each the moves that were left
	// asleep there, whenever it was seen: sorted.
	seen     map[uint64][]uint64
	outcomes map[string]bool
	report   Report
}

// frame is a state that the path leads to.
type frame struct {
	moves []move
	next  int
	// asleep are moves that needn't be made here: they were made before, from a
	// state on the path, and all that has happened since is independent of them.
	// So what they lead to has been seen, with the same moves in another order
	// (Godefroid, "Partial-order methods for the verification of concurrent
	// systems", 1996, chapter 5).
	asleep []asleep
}

// asleep is a move and what it did.
type asleep struct {
	move   move
	effect effect
}

// stopEvery is after how many moves Stop is asked.
const stopEvery = 256

func (s *search) run() error {
	if err := s.begin(); err != nil {
		return err
	}
	s.arrive(nil)
	for len(s.stack) > 0 {
		f := &s.stack[len(s.stack)-1]
		if f.next == len(f.moves) {
			s.stack = s.stack[:len(s.stack)-1]
			s.path = s.path[:max(0, len(s.stack)-1)]
			continue
		}
		if s.enough() {
			return nil
		}
		m := f.moves[f.next]
		f.next++
		if err := s.make(m); err != nil || s.report.Violation != nil {
			return err
		}
	}
	s.report.Complete = true
	return nil
}

// enough reports whether the search must end before it is complete.
func (s *search) enough() bool {
	if s.o.MaxStates > 0 && s.report.States >= s.o.MaxStates {
		return true
	}
	return s.report.Moves%stopEvery == 0 && s.o.Stop != nil && s.o.Stop()
}

// begin begins a world anew.
func (s *search) begin() error {
	if s.world != nil {
		s.world.w.Close()
	}
	var err error
	s.world, err = s.beginning.world(nil)
	s.at = 0
	return err
}

// bring brings the world to where the path leads.
func (s *search) bring() error {
	if s.at == len(s.path) {
		return nil
	}
	s.report.Replays++
	if err := s.begin(); err != nil {
		return err
	}
	for _, m := range s.path {
		if err := s.world.do(m); err != nil {
			return err
		}
	}
	s.at = len(s.path)
	return nil
}

// make makes a move from the last state of the stack.
func (s *search) make(m move) error {
	if err := s.bring(); err != nil {
		return err
	}
	s.report.Moves++
	if err := s.world.do(m); err != nil {
		return err
	}
	e := s.world.effect
	depth := len(s.path) + 1
	s.report.Depth = max(s.report.Depth, depth)
	f := &s.stack[len(s.stack)-1]
	if v := s.world.violation; v != nil {
		v.Path = append(slices.Clone(s.path), m).String()
		s.report.Violation = v
		return nil
	}
	var sleeping []asleep
	for _, a := range f.asleep {
		if !s.o.Awake && independent(a, asleep{m, e}) {
			sleeping = append(sleeping, a)
		}
	}
	for _, v := range s.world.variants(m, e) {
		if !has(f.moves, v.label) {
			f.moves = append(f.moves, v)
		}
	}
	f.asleep = append(f.asleep, asleep{m, e})
	s.path = append(s.path, m)
	s.at = depth
	if !s.arrive(sleeping) {
		s.path = s.path[:len(s.path)-1]
		s.at = -1
	}
	return nil
}

// arrive looks at the state in which the world is. It reports whether there is
// more to see from there.
func (s *search) arrive(sleeping []asleep) bool {
	x := s.world
	state := x.state()
	left, seen := s.seen[state]
	all := x.moves()
	for _, a := range sleeping { // those that are known to be more than they look
		for _, v := range x.variants(a.move, a.effect) {
			if !slices.ContainsFunc(sleeping, func(b asleep) bool { return b.move.label == v.label }) {
				if i := slices.IndexFunc(all, func(m move) bool { return m.label == a.move.label }); i >= 0 {
					v.at = all[i].at
					all = append(all, v)
				}
			}
		}
	}
	awake := func(label uint64) bool {
		return !slices.ContainsFunc(sleeping, func(a asleep) bool { return a.move.label == label })
	}
	switch {
	case !seen:
		s.report.States++
		if len(all) == 0 {
			s.ends()
		}
		all = slices.DeleteFunc(all, func(m move) bool { return !awake(m.label) })
		var labels []uint64
		for _, a := range sleeping {
			labels = append(labels, a.move.label)
		}
		slices.Sort(labels)
		s.seen[state] = labels
	default:
		// What was left out then, and mustn't be now.
		all = slices.DeleteFunc(all, func(m move) bool {
			_, was := slices.BinarySearch(left, m.label)
			return !was || !awake(m.label)
		})
		if len(all) > 0 {
			s.seen[state] = slices.DeleteFunc(slices.Clone(left), awake)
		}
	}
	if len(all) == 0 {
		return false
	}
	s.stack = append(s.stack, frame{moves: all, asleep: sleeping})
	return true
}

// ends takes down how operations have ended, where nothing is left to happen. All
// must have, since nobody stays dead.
func (s *search) ends() {
	s.report.Ends++
	text := ""
	for i := range s.world.operations {
		o := &s.world.operations[i]
		switch {
		case !o.over():
			s.report.Violation = &Violation{Rule: "liveness", Text: fmt.Sprintf("nothing is left to happen, and %v hasn't ended", o), Path: s.path.String()}
		case o.ended:
			text += fmt.Sprintf("%v: %d after %b; ", o, o.result, o.before)
		}
	}
	if !s.outcomes[text] {
		s.outcomes[text] = true
		s.report.Outcomes = append(s.report.Outcomes, text)
		slices.Sort(s.report.Outcomes)
	}
}

// independent reports whether two moves come to the same in either order, and
// neither makes the other impossible: they happen to other processes, what one
// of them shows doesn't depend on the other, and nobody dies.
func independent(a, b asleep) bool {
	for _, m := range []move{a.move, b.move} {
		if m.kind == hangs || m.kind == dies || m.kind == passes {
			return false
		}
	}
	if a.move.kind == unheard && b.move.kind == unheard {
		return false // one of them may be the last
	}
	x, y := a.effect, b.effect
	apart := x.touched&(y.touched|y.looked) == 0 && x.looked&y.touched == 0
	return apart && !(x.seen && (y.seen || y.stored)) && !(y.seen && x.stored)
}
