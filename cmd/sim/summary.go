package main

import (
	"fmt"

	"atoll/sim/scenario"
	"atoll/sim/stat"
)

// summary is what the runs of all seeds say together.
type summary struct {
	title    string // the scenario
	seeds    seedRange
	sides    []side
	figures  []figure
	totals   totals
	samples  [][]stat.Sample // by side and figure
	pairs    []stat.Pairs    // by figure, when there are two sides
	count    []kindCounts    // by side
	first    *record         // the first with a violation
	replay   string          // runs that again
	complete bool            // no seed is missing
	done     uint64          // seeds that were run
	vacuous  uint64          // runs that kept all promises, and in which nothing ended well
	nothing  uint64          // the seed of the first of these
}

// kindCounts counts operations that ended well by kind.
type kindCounts [4]uint64

func newSummary(title string, seeds seedRange, sides []side, all []figure) *summary {
	s := &summary{title: title, seeds: seeds, sides: sides, figures: all, count: make([]kindCounts, len(sides))}
	for range sides {
		s.samples = append(s.samples, make([]stat.Sample, len(all)))
	}
	if len(sides) > 1 {
		s.pairs = make([]stat.Pairs, len(all))
	}
	return s
}

// add takes the records of one seed, one of each side. Seeds must come in
// their order: sums of floating-point numbers depend on it. The means are over
// runs that kept all promises.
func (s *summary) add(records []record, replay func(seed uint64) string) {
	s.done++
	for i := range records {
		r := &records[i]
		s.totals.add(r)
		if r.violation != nil && s.first == nil {
			s.first, s.replay = r, replay(r.seed)
		}
		for kind, n := range r.count {
			s.count[i][kind] += n
		}
		if r.violation == nil && r.operations() == 0 {
			if s.vacuous == 0 {
				s.nothing = r.seed
			}
			s.vacuous++
		}
		if r.violation != nil {
			continue // it was cut short, and its figures are those of no run
		}
		for j, v := range r.values {
			if v.ok {
				s.samples[i][j].Add(v.value)
			}
		}
	}
	for j := range s.pairs {
		base, other := records[0].values[j], records[1].values[j]
		if base.ok && other.ok && records[0].violation == nil && records[1].violation == nil {
			s.pairs[j].Add(base.value, other.value)
		}
	}
}

// warning says of how many runs it means nothing that no promise was broken:
// where nothing ended, there was none to break.
func (s *summary) warning() string {
	if s.totals.runs == 1 {
		return "no operation ended well: that no promise was broken says nothing"
	}
	return fmt.Sprintf("in %s of %s runs no operation ended well: that they broke no promise says nothing; the first is that of seed %d",
		grouped(s.vacuous), grouped(s.totals.runs), s.nothing)
}

// kinds returns the kinds of operations that some side did.
func (s *summary) kinds() []scenario.Kind {
	var kinds []scenario.Kind
	for _, kind := range scenario.Kinds() {
		for i := range s.count {
			if s.count[i][kind] > 0 {
				kinds = append(kinds, kind)
				break
			}
		}
	}
	return kinds
}

// sample returns the sample of a figure by its kind and name.
func (s *summary) sample(side int, kind scenario.Kind, name string) *stat.Sample {
	for j := range s.figures {
		if s.figures[j].kind == kind && s.figures[j].name == name {
			return &s.samples[side][j]
		}
	}
	return &stat.Sample{}
}
