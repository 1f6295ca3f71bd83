package repair

import (
	"math/rand/v2"
	"testing"

	"atoll/abd"
	"atoll/tags"
)

// TestDigestSet: a set has what was put into it and nothing else, also where the low
// bits of many are the same.
func TestDigestSet(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 3, 1000} {
		var in, out []uint64
		for range n {
			in, out = append(in, random.Uint64()|1), append(out, random.Uint64()&^1)
			in, out = append(in, random.Uint64()<<32|1), append(out, random.Uint64()<<32|2)
		}
		set := newDigestSet(append(in, 0))
		for _, d := range append(in, 0) {
			if !set.has(d) {
				t.Errorf("of %d digests: %#x is missing", len(in), d)
			}
		}
		for _, d := range out {
			if set.has(d) {
				t.Errorf("of %d digests: %#x was never put in", len(in), d)
			}
		}
	}
}

// TestSketch: a sketch tells keys from keys, tags from tags, and what was given from
// what wasn't; one of too many tags leaves some out, and makes up none.
func TestSketch(t *testing.T) {
	tag := func(seq int) tags.Tag { return tags.Tag{Seq: tags.Seq(seq), PID: tags.NewPID(1, 2, 3)} }
	items := []abd.Item{{Key: "a", Tag: tag(1)}, {Key: "b", Tag: tag(2)}}
	given := []Entry{{Key: "b", Record: abd.Record{Tag: tag(3)}}}
	lacks := (&Offer{Sketch: SketchOf(7, items, given)}).lacks(Rules{})
	for _, c := range []struct {
		key  abd.Key
		seq  int
		want bool
	}{{"a", 1, false}, {"a", 2, true}, {"ab", 1, true}, {"b", 1, true}, {"b", 2, false}, {"b", 3, false}, {"c", 3, true}} {
		if got := lacks(c.key, tag(c.seq)); got != c.want {
			t.Errorf("lacks %s with %d: %v", c.key, c.seq, got)
		}
	}
	many := make([]abd.Item, MaxDigests-1)
	if s := SketchOf(7, many, append(given, given...)); len(s.Digests) != MaxDigests {
		t.Errorf("%d digests, at most %d are sent", len(s.Digests), MaxDigests)
	}
}
