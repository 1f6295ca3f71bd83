package succession_test

import (
	"fmt"
	"slices"
	"testing"

	"atoll/env"
	"atoll/quorum"
	"atoll/sim/succession"
)

// TestJournal: what becomes durable together is told in the order in which it was
// stored, and what is lost isn't.
func TestJournal(t *testing.T) {
	c, err := quorum.NewConfiguration(0, []quorum.NodeID{"a"}, quorum.System{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := quorum.NewMap(c)
	if err != nil {
		t.Fatal(err)
	}
	var j succession.Journal[string]
	cell := func(at env.Position, name string) {
		if err := j.Cell(at, name, m.Append(nil)); err != nil {
			t.Error(err)
		}
	}
	var told []string
	durable := func(to env.Position) {
		j.Durable(to, func(r string) { told = append(told, r) }, func(m *quorum.Map) { told = append(told, fmt.Sprint(m)) })
	}
	j.Record(1, "before")
	cell(2, "another cell")
	cell(3, "rambo.map")
	j.Record(4, "behind")
	j.Record(5, "lost")
	durable(0)
	durable(4)
	j.Lose()
	durable(5)
	if want := []string{"before", fmt.Sprint(m), "behind"}; !slices.Equal(told, want) {
		t.Errorf("told is %q, want %q", told, want)
	}
	if j.Cell(6, "rambo.map", []byte("nonsense")) == nil {
		t.Error("a config map that makes no sense is no error")
	}
}
