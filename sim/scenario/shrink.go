package scenario

import (
	"slices"
	"strings"
	"time"
)

// DefaultShrinkRuns is how many runs Shrink tries at most unless told
// otherwise.
const DefaultShrinkRuns = 600

// ShrinkOptions bound the work of Shrink.
type ShrinkOptions struct {
	// Runs is the most runs to try. Default DefaultShrinkRuns.
	Runs int
	// Tried, when set, is called after each run with how many there were, and
	// the smallest plan so far.
	Tried func(runs int, smallest Plan)
	// Options of the runs.
	Options Options
}

// Shrink takes out of a plan what its violation doesn't need: decisions,
// clients, keys, operations, time, clusters and nodes, as long as a run of
// what is left breaks the same rule. It returns the smallest plan that it
// found, and what a run of it gives. A plan without a violation is returned as
// it is.
//
// It is delta debugging: halves first, then smaller parts, round after round
// until nothing more can go. Since no draw hangs on another, most of a run
// stays as it was when something is taken out of its plan.
func Shrink(p Plan, o ShrinkOptions) (Plan, Result, error) {
	p.Scenario = p.Scenario.WithDefaults()
	p.Scenario.Faults = Faults{}
	r, err := Run(p, o.Options)
	if err != nil || r.Violation == nil {
		return p, r, err
	}
	if o.Runs == 0 {
		o.Runs = DefaultShrinkRuns
	}
	s := &shrinking{o: o, rule: r.Violation.Rule, plan: p, result: r, runs: 1}
	for changed := true; changed && s.runs < o.Runs; {
		changed = false
		for _, step := range []func() bool{s.time, s.decisions, s.healing, s.clients, s.keys, s.operations, s.shape, s.ends} {
			changed = step() || changed
		}
	}
	s.tidy()
	return s.plan, s.result, nil
}

// tidy takes out what says nothing any more.
func (s *shrinking) tidy() {
	p := s.plan
	p.Scenario.About = ""
	p.Skip = slices.DeleteFunc(slices.Clone(p.Skip), func(name string) bool {
		client, _, _ := strings.Cut(name, "/")
		return slices.Contains(p.Idle, client)
	})
	slices.Sort(p.Idle)
	slices.Sort(p.Skip)
	s.runs = min(s.runs, s.o.Runs-1) // one more
	s.try(p)
}

// shrinking is a Shrink under way.
type shrinking struct {
	o      ShrinkOptions
	rule   string
	plan   Plan // the smallest that breaks the rule
	result Result
	runs   int
}

// try runs a plan, and keeps it if it breaks the rule.
func (s *shrinking) try(p Plan) bool {
	if s.runs >= s.o.Runs {
		return false
	}
	s.runs++
	r, err := Run(p, s.o.Options)
	ok := err == nil && r.Violation != nil && r.Violation.Rule == s.rule
	if ok {
		s.plan, s.result = p, r
	}
	if s.o.Tried != nil {
		s.o.Tried(s.runs, s.plan)
	}
	return ok
}

// minimize takes out of a list what isn't needed: as large a part as can be,
// down to single things. It reports whether anything could go.
func minimize[T any](all []T, try func([]T) bool) (changed bool) {
	for size := (len(all) + 1) / 2; size >= 1 && len(all) > 0; {
		removed := false
		for at := 0; at < len(all); {
			rest := slices.Concat(all[:at], all[min(at+size, len(all)):])
			if try(rest) {
				all, removed, changed = rest, true, true
			} else {
				at += size
			}
		}
		if size == 1 && !removed {
			break
		}
		if !removed || size > len(all) {
			size = max(min(size, len(all))/2, 1)
		}
	}
	return changed
}

// time ends the run where the violation shows.
func (s *shrinking) time() bool {
	p := s.plan
	end := Duration(s.result.Violation.At+time.Millisecond) / Duration(time.Millisecond) * Duration(time.Millisecond)
	if end >= p.Scenario.Duration {
		return false
	}
	p.Scenario.Duration = end
	p.Decisions = slices.DeleteFunc(slices.Clone(p.Decisions), func(d Decision) bool { return d.At > end })
	return s.try(p)
}

func (s *shrinking) decisions() bool {
	return minimize(s.plan.Decisions, func(rest []Decision) bool {
		p := s.plan
		p.Decisions = rest
		return s.try(p)
	})
}

func (s *shrinking) healing() bool {
	return minimize(s.plan.Healing, func(rest []Healing) bool {
		p := s.plan
		p.Healing = rest
		return s.try(p)
	})
}

// clients lets clients be idle.
func (s *shrinking) clients() bool {
	var busy []string
	for _, name := range s.plan.Scenario.census().names {
		if isClient(name) && !slices.Contains(s.plan.Idle, name) {
			busy = append(busy, name)
		}
	}
	idle := s.plan.Idle
	return minimize(busy, func(rest []string) bool {
		p := s.plan
		p.Idle = slices.Clone(idle)
		for _, name := range busy {
			if !slices.Contains(rest, name) {
				p.Idle = append(p.Idle, name)
			}
		}
		return s.try(p)
	})
}

// keys leaves out the operations on other keys than the one that went wrong.
func (s *shrinking) keys() bool {
	key := s.result.Violation.Key
	if key == "" || slices.Equal(s.plan.Keys, []string{key}) {
		return false
	}
	p := s.plan
	p.Keys = []string{key}
	return s.try(p)
}

// operations leaves out single operations, once there are few.
func (s *shrinking) operations() bool {
	var done []string
	o := s.o.Options
	o.begun = func(name string) { done = append(done, name) }
	if _, err := Run(s.plan, o); err != nil || len(done) > s.o.Runs {
		return false
	}
	skip := s.plan.Skip
	return minimize(done, func(rest []string) bool {
		p := s.plan
		p.Skip = slices.Clone(skip)
		for _, name := range done {
			if !slices.Contains(rest, name) {
				p.Skip = append(p.Skip, name)
			}
		}
		return s.try(p)
	})
}

// shape takes away clusters, nodes, clients and keys from the end, and what is
// random about the network.
func (s *shrinking) shape() bool {
	changed := false
	for _, less := range []func(*Scenario) bool{
		func(c *Scenario) bool { c.Clusters--; return c.Clusters >= 1 },
		func(c *Scenario) bool { c.Nodes--; return c.Nodes >= 1 },
		func(c *Scenario) bool { c.Membership.Blank--; return c.Membership.Blank >= 0 },
		func(c *Scenario) bool { c.Clients--; return c.Clients >= 1 },
		func(c *Scenario) bool { c.Keys--; return c.Keys >= 1 },
		func(c *Scenario) bool { ok := c.Network.Loss > 0; c.Network.Loss = 0; return ok },
		func(c *Scenario) bool { ok := c.Network.Duplicate > 0; c.Network.Duplicate = 0; return ok },
		func(c *Scenario) bool { ok := c.Think > 0; c.Think = 0; return ok },
		func(c *Scenario) bool { ok := c.Retry > 0; c.Retry = 0; return ok },
		func(c *Scenario) bool { ok := c.Quorum != "majority"; c.Quorum = "majority"; return ok },
	} {
		for {
			p := s.plan
			if !less(&p.Scenario) || !s.try(p.within()) {
				break
			}
			changed = true
		}
	}
	return changed
}

// within drops of a plan what is about processes that its scenario no longer
// has.
func (p Plan) within() Plan {
	c := p.Scenario.census()
	gone := func(name string) bool { return len(c.named(name)) == 0 }
	var decisions []Decision
	for _, d := range p.Decisions {
		d.On = slices.DeleteFunc(slices.Clone(d.On), gone)
		to := slices.DeleteFunc(slices.Clone(d.To), gone)
		if len(d.On) > 0 && (len(to) > 0 || len(d.To) == 0) {
			d.To = to
			decisions = append(decisions, d)
		}
	}
	p.Decisions = decisions
	var healing []Healing
	for _, h := range p.Healing {
		h.Dead = slices.DeleteFunc(slices.Clone(h.Dead), gone)
		h.Deaf = slices.DeleteFunc(slices.Clone(h.Deaf), gone)
		h.Mute = slices.DeleteFunc(slices.Clone(h.Mute), gone)
		if h.Cluster <= p.Scenario.Clusters && len(h.rest()) > 0 {
			healing = append(healing, h)
		}
	}
	p.Healing = healing
	p.Idle = slices.DeleteFunc(slices.Clone(p.Idle), gone)
	return p
}

// ends takes single processes out of decisions.
func (s *shrinking) ends() bool {
	changed := false
	for i := 0; i < len(s.plan.Decisions); i++ {
		for _, side := range []func(d *Decision) *[]string{
			func(d *Decision) *[]string { return &d.On },
			func(d *Decision) *[]string { return &d.To },
		} {
			at := i
			all := *side(&s.plan.Decisions[at])
			if len(all) < 2 {
				continue
			}
			changed = minimize(all, func(rest []string) bool {
				if len(rest) == 0 {
					return false
				}
				p := s.plan
				p.Decisions = slices.Clone(p.Decisions)
				*side(&p.Decisions[at]) = rest
				return s.try(p)
			}) || changed
		}
	}
	return changed
}
