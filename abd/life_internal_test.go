package abd

import (
	"slices"
	"testing"

	"atoll/quorum"
)

// told is an answer of a node: the life that it is in, and which it tells of
// others.
type told struct {
	from quorum.NodeID
	s    Standing
}

func in(from quorum.NodeID, life Life, others ...LifeOf) told {
	return told{from, Standing{Life: life, Others: others}}
}

// TestLearn: which answers count, and which do no more, by what was told before
// (H3). Each line is a phase; of its last answer it says what follows.
func TestLearn(t *testing.T) {
	for _, c := range []struct {
		what    string
		before  []told
		last    told
		void    []quorum.NodeID
		refused bool
	}{
		{"nobody ever healed", []told{in("a", 0), in("b", 0)}, in("c", 0), nil, false},
		{"told after it has answered", []told{in("a", 0)}, in("b", 0, LifeOf{"a", 1}), []quorum.NodeID{"a"}, false},
		{"told before it answers", []told{in("b", 0, LifeOf{"a", 1})}, in("a", 0), nil, true},
		{"asked again, it answers in that life", []told{in("b", 0, LifeOf{"a", 1}), in("a", 0)}, in("a", 1), nil, false},
		{"in a later one", []told{in("b", 0, LifeOf{"a", 1})}, in("a", 2), nil, false},
		{"told of the life that it has answered in", []told{in("a", 1)}, in("b", 0, LifeOf{"a", 1}), nil, false},
		{"told of an earlier one", []told{in("a", 2)}, in("b", 0, LifeOf{"a", 1}), nil, false},
		{"told of a later one", []told{in("a", 1)}, in("b", 0, LifeOf{"a", 2}), []quorum.NodeID{"a"}, false},
		{"told twice", []told{in("a", 0), in("b", 0, LifeOf{"a", 1})}, in("c", 0, LifeOf{"a", 1}), nil, false},
		{"its own answer of before comes late", []told{in("a", 1)}, in("a", 0), nil, true},
		{"a late answer tells of others", []told{in("b", 0, LifeOf{"a", 1}), in("c", 0)}, in("a", 0, LifeOf{"c", 1}), []quorum.NodeID{"c"}, true},
		{"two at once", []told{in("a", 0), in("b", 0)}, in("c", 0, LifeOf{"a", 1}, LifeOf{"b", 1}), []quorum.NodeID{"a", "b"}, false},
		{"of one who hasn't answered", nil, in("b", 0, LifeOf{"a", 1}), []quorum.NodeID{"a"}, false},
	} {
		var l lives
		for _, m := range c.before {
			l.learn(m.from, &m.s)
		}
		void, counts := l.learn(c.last.from, &c.last.s)
		if !slices.Equal(void, c.void) || counts == c.refused {
			t.Errorf("%s: %q count no more, and the answer counts: %t; want %q and %t", c.what, void, counts, c.void, !c.refused)
		}
	}
}

// TestStandingIsImmutable: what was told stays as it was told.
func TestStandingIsImmutable(t *testing.T) {
	first := Standing{}.With("b", 1).With("d", 1)
	second := first.With("b", 2).With("c", 1)
	if first.Of("b") != 1 || first.Of("c") != 0 || second.Of("b") != 2 || second.Of("c") != 1 || second.Of("d") != 1 {
		t.Errorf("%+v became %+v", first, second)
	}
	if third := second.With("b", 1); third.Of("b") != 2 {
		t.Errorf("a life went back: %+v", third)
	}
}
