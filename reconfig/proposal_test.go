package reconfig_test

import (
	"errors"
	"strings"
	"testing"

	"atoll/quorum"
	"atoll/reconfig"
)

// TestWhatIsRefused: a target in which there are more members without whom it
// doesn't go on than there are now must be forced.
func TestWhatIsRefused(t *testing.T) {
	for _, c := range []struct {
		from, to string // a system and members
		fragile  bool
	}{
		{"majority a", "majority a b", true},
		{"majority a", "majority a b c", false},
		{"majority a", "majority b", false}, // it is as it was
		{"majority a", "weights=a:1,b:0,c:0 a b c", false},
		{"majority a b", "majority a b c", false},
		{"majority a b", "majority a", false},
		{"majority a b", "majority a c", false},
		{"majority a b c", "majority a b", true},
		{"majority a b c", "majority a", true},
		{"majority a b c", "majority d e f", false},
		{"majority a b c", "get=1,put=3 a b c", true},
		{"majority a b c", "get=3,put=1 a b c", true},
		{"get=1,put=3 a b c", "get=1,put=3 a b d", false},
		{"get=1,put=3 a b c", "get=1,put=4 a b c d", true},
		{"get=1,put=3 a b c", "get=1,put=2 a b", false},
		{"get=1,put=3 a b c", "majority a b c", false},
		{"majority a b c d e", "grid=2x2 a b c d", false},
		{"majority a b c d e", "grid=1x4 a b c d", true},
	} {
		from, to := strings.Fields(c.from), strings.Fields(c.to)
		p := reconfig.Proposal{}
		for _, m := range to[1:] {
			p.Members = append(p.Members, quorum.NodeID(m))
		}
		var members []quorum.NodeID
		for _, m := range from[1:] {
			members = append(members, quorum.NodeID(m))
		}
		present := configuration(t, 4, from[0], members...)
		var err error
		if p.System, err = quorum.ParseSystem(to[0]); err != nil {
			t.Fatal(err)
		}
		_, err = p.Target(present)
		fragile, is := errors.AsType[*reconfig.FragileError](err)
		if is != c.fragile || !is && err != nil {
			t.Errorf("%s to %s: %v, want refused: %v", c.from, c.to, err, c.fragile)
			continue
		}
		if is && (fragile.Target.Index() != 5 || !strings.Contains(err.Error(), "any 0 of") || !strings.Contains(err.Error(), fragile.Present.String())) {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
		p.Force = true
		if target, err := p.Target(present); err != nil || target.Index() != 5 {
			t.Errorf("%s to %s, forced: %v, %v", c.from, c.to, target, err)
		}
	}
	present := configuration(t, 4, "majority", "a")
	for _, p := range []reconfig.Proposal{
		{Force: true},
		{Members: []quorum.NodeID{"a", "a"}, Force: true},
		{Members: []quorum.NodeID{"a", "b", "c"}, System: quorum.System{Kind: quorum.Threshold, Get: 1, Put: 1}, Force: true},
	} {
		if target, err := p.Target(present); err == nil {
			t.Errorf("%+v: %v", p, target)
		}
	}
}
