package quorum_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atoll/quorum"
)

// TestSystemText: what people may write, and how it is written back.
func TestSystemText(t *testing.T) {
	for _, test := range []struct {
		text string
		want quorum.System
		back string // empty: text
	}{
		{"majority", quorum.System{}, ""},
		{"get=2,put=4", quorum.System{Kind: quorum.Threshold, Get: 2, Put: 4}, ""},
		{"get=1,put=256", quorum.System{Kind: quorum.Threshold, Get: 1, Put: 256}, ""},
		{"grid=3x3", quorum.System{Kind: quorum.Grid, Rows: 3, Columns: 3}, ""},
		{"grid=1x256", quorum.System{Kind: quorum.Grid, Rows: 1, Columns: 256}, ""},
		{"weights=a:3,b:1,c:0", quorum.System{Kind: quorum.Weighted, Weights: []quorum.Weight{{"a", 3}, {"b", 1}, {"c", 0}}}, ""},
		{"weights=n-2:4294967295,0:1", quorum.System{Kind: quorum.Weighted, Weights: []quorum.Weight{{"0", 1}, {"n-2", 1<<32 - 1}}}, "weights=0:1,n-2:4294967295"},
	} {
		got, err := quorum.ParseSystem(test.text)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("ParseSystem(%q) = %+v, %v; want %+v", test.text, got, err, test.want)
			continue
		}
		if test.back == "" {
			test.back = test.text
		}
		if got.String() != test.back {
			t.Errorf("%q is written back as %q, want %q", test.text, got, test.back)
		}
	}
	if got := (quorum.System{Kind: 9}).String(); got != "unknown kind 9" {
		t.Errorf("a system of no known kind calls itself %q", got)
	}
}

func TestParseSystemRefuses(t *testing.T) {
	long := strings.Repeat("a", 65)
	for _, test := range []struct{ text, why string }{
		{"", "unknown kind"},
		{"Majority", "unknown kind"},
		{" majority", "unknown kind"},
		{"majority ", "unknown kind"},
		{"majority=", "majority takes no value"},
		{"majority=3", "majority takes no value"},
		{"get", "both sizes must be given, as numbers from 1 to 256"},
		{"get=2", "both sizes must be given"},
		{"get=2,put=", "both sizes must be given"},
		{"get=,put=2", "both sizes must be given"},
		{"get=2, put=2", "both sizes must be given"},
		{"get=0,put=3", "numbers from 1 to 256"},
		{"get=2,put=257", "numbers from 1 to 256"},
		{"get=02,put=3", "numbers from 1 to 256"},
		{"get=+2,put=3", "numbers from 1 to 256"},
		{"get=2,put=99999999999999999999", "numbers from 1 to 256"},
		{"get=2,put=3,put=3", "numbers from 1 to 256"},
		{"put=3,get=2", "unknown kind"},
		{"grid", "rows and columns must be given, as numbers from 1 to 256"},
		{"grid=3", "rows and columns must be given"},
		{"grid=3x", "rows and columns must be given"},
		{"grid=3X3", "rows and columns must be given"},
		{"grid=0x3", "numbers from 1 to 256"},
		{"grid=3x3x3", "numbers from 1 to 256"},
		{"weights", `"" is not a node and its weight, node:number`},
		{"weights=", `"" is not a node and its weight`},
		{"weights=a", `"a" is not a node and its weight`},
		{"weights=a:1,", `"" is not a node and its weight`},
		{"weights=:1", "a node id has 1 to 64 characters"},
		{"weights=A:1", `"A" is not a node id`},
		{"weights=-a:1", `"-a" is not a node id`},
		{"weights=ä:1", `"ä" is not a node id`},
		{"weights=" + long + ":1", "a node id has 1 to 64 characters"},
		{"weights=a:", `the weight of "a" must be a number from 0 to 4294967295`},
		{"weights=a:-1", `the weight of "a" must be`},
		{"weights=a:01", `the weight of "a" must be`},
		{"weights=a:1:1", `the weight of "a" must be`},
		{"weights=a:4294967296", `the weight of "a" must be`},
		{"weights=a:1,b:2,a:1", `"a" has two weights`},
		{"weights=" + strings.Repeat("a:1,", 1<<16), "65537 weights, but a configuration has at most 256 members"},
		{strings.Repeat("x", 1<<16), "unknown kind"},
	} {
		got, err := quorum.ParseSystem(test.text)
		if err == nil {
			t.Errorf("ParseSystem(%.60q) = %v, want an error", test.text, got)
			continue
		}
		if !strings.Contains(err.Error(), test.why) || !strings.Contains(err.Error(), "is not a quorum system: ") {
			t.Errorf("ParseSystem(%.60q): %q doesn't say %q", test.text, err, test.why)
		}
		if len(err.Error()) > 800 {
			t.Errorf("ParseSystem of %d bytes: an error of %d bytes", len(test.text), len(err.Error()))
		}
		if !reflect.DeepEqual(got, quorum.System{}) {
			t.Errorf("ParseSystem(%.60q) returned %v with an error", test.text, got)
		}
	}
}

// FuzzParseNodeID: whatever is accepted is a node id in the one form of its
// characters.
func FuzzParseNodeID(f *testing.F) {
	for _, s := range []string{"a", "n1", "-", "n" + strings.Repeat("a", quorum.MaxNodeID), "\xff", "ü"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := quorum.ParseNodeID(text)
		plain := strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && !strings.HasPrefix(text, "-")
		if good := plain && text != "" && len(text) <= quorum.MaxNodeID; good != (err == nil) || good && string(id) != text {
			t.Errorf("ParseNodeID(%q) = %q, %v", text, id, err)
		}
	})
}

// FuzzParseSystem: whatever is accepted has one text form, which means the
// same, and laying it over any members returns instead of panicking.
func FuzzParseSystem(f *testing.F) {
	for _, s := range []string{"majority", "get=2,put=4", "weights=a:3,b:1,c:0", "weights=b:1,a:1", "grid=2x2", "grid=256x256"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := quorum.ParseSystem(text)
		if err != nil {
			return
		}
		again, err := quorum.ParseSystem(s.String())
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%q is written as %q, and that read as %v, %v", text, s, again, err)
		}
		if s.Kind != quorum.Weighted && s.String() != text {
			t.Fatalf("%q was accepted as another text of %q", text, s)
		}
		var members []quorum.NodeID
		switch s.Kind {
		case quorum.Weighted:
			for _, w := range s.Weights {
				members = append(members, w.Node)
			}
		case quorum.Grid:
			members = many(min(s.Rows*s.Columns, quorum.MaxMembers))
		default:
			members = many(5)
		}
		c, err := quorum.NewConfiguration(0, members, s)
		if err != nil {
			return
		}
		for _, d := range []quorum.Deaths{c.Tolerance().Reads, c.Tolerance().Writes} {
			if d.Any < 0 || d.Any > d.Best || d.Best >= len(members) {
				t.Fatalf("%v tolerates %+v", c, d)
			}
		}
	})
}

func TestNodeIDs(t *testing.T) {
	for _, s := range []string{"a", "0", "n-1", "a-", strings.Repeat("z", quorum.MaxNodeID)} {
		if id, err := quorum.ParseNodeID(s); err != nil || string(id) != s {
			t.Errorf("ParseNodeID(%q) = %q, %v", s, id, err)
		}
	}
	for _, test := range []struct{ text, why string }{
		{"", "1 to 64 characters"},
		{strings.Repeat("a", quorum.MaxNodeID+1), "1 to 64 characters"},
		{strings.Repeat("a", 1<<16), "1 to 64 characters"},
		{"-", "only a-z, 0-9 and, not in front, - are allowed"},
		{"A", "only a-z"}, {"a b", "only a-z"}, {"a.b", "only a-z"}, {"a:1", "only a-z"}, {"a\x00", "only a-z"}, {"\xff", "only a-z"},
	} {
		id, err := quorum.ParseNodeID(test.text)
		if err == nil || id != "" || !strings.Contains(err.Error(), test.why) || len(err.Error()) > 300 {
			t.Errorf("ParseNodeID(%.60q) = %q, %v; want a short error that says %q", test.text, id, err, test.why)
		}
	}
}

func TestNewConfigurationRefuses(t *testing.T) {
	abc := []quorum.NodeID{"a", "b", "c"}
	threshold := func(get, put int) quorum.System {
		return quorum.System{Kind: quorum.Threshold, Get: get, Put: put}
	}
	grid := func(rows, columns int) quorum.System {
		return quorum.System{Kind: quorum.Grid, Rows: rows, Columns: columns}
	}
	weights := func(ws ...quorum.Weight) quorum.System {
		return quorum.System{Kind: quorum.Weighted, Weights: ws}
	}
	for _, test := range []struct {
		members []quorum.NodeID
		system  quorum.System
		why     string
	}{
		{nil, quorum.System{}, "a configuration has 1 to 256 members, not 0"},
		{many(257), quorum.System{}, "a configuration has 1 to 256 members, not 257"},
		{[]quorum.NodeID{"b", "a", "b"}, quorum.System{}, `member "b" is named twice`},
		{[]quorum.NodeID{"a", "B"}, quorum.System{}, `"B" is not a node id`},
		{[]quorum.NodeID{"a", ""}, quorum.System{}, "a node id has 1 to 64 characters"},
		{abc, quorum.System{Kind: 77}, "unknown kind of quorum system 77"},
		{abc, threshold(1, 2), "get=1,put=2: a get quorum of 1 and a put quorum of 2 out of 3 members need not intersect; get+put must exceed 3"},
		{abc, threshold(0, 3), "get=0,put=3: both sizes must be from 1 to the number of members, 3"},
		{abc, threshold(-1, 5), "both sizes must be from 1"},
		{abc, threshold(4, 1), "both sizes must be from 1"},
		{abc, threshold(1, 4), "both sizes must be from 1"},
		{abc, grid(2, 2), "grid=2x2 doesn't fit 3 members: rows times columns must be that number"},
		{abc, grid(0, 0), "grid=0x0 doesn't fit 3 members"},
		{abc, grid(-1, -3), "doesn't fit 3 members"},
		{abc, grid(1<<32, 1<<32), "doesn't fit 3 members"},                              // the product overflows to 0
		{abc, grid(3, 1<<63/3*2+1), "doesn't fit 3 members"},                            // the product overflows
		{abc, weights(), `weights for 3 members`},                                       // none
		{abc, weights(quorum.Weight{"a", 1}, quorum.Weight{"b", 1}), "2 weights for 3"}, // one short
		{abc, weights(quorum.Weight{"a", 1}, quorum.Weight{"b", 1}, quorum.Weight{"d", 1}), `"d" is not a member`},
		{abc, weights(quorum.Weight{"a", 1}, quorum.Weight{"b", 1}, quorum.Weight{"a", 1}), `"a" has two weights`},
		{abc, weights(quorum.Weight{"a", 0}, quorum.Weight{"b", 0}, quorum.Weight{"c", 0}), "all weights are zero"},
	} {
		c, err := quorum.NewConfiguration(0, test.members, test.system)
		if err == nil {
			t.Errorf("%v of %v was accepted", test.system, test.members)
			continue
		}
		if c != nil || !strings.Contains(err.Error(), test.why) || !strings.HasPrefix(err.Error(), "quorum: ") {
			t.Errorf("%v of %.80v: %v, %q doesn't say %q", test.system, test.members, c, err, test.why)
		}
	}
}

// TestConfigurationIsItsOwn: nothing that the caller passed in and changes
// later changes a configuration.
func TestConfigurationIsItsOwn(t *testing.T) {
	members := []quorum.NodeID{"c", "a", "b"}
	system := quorum.System{Kind: quorum.Weighted, Weights: []quorum.Weight{{"c", 1}, {"b", 1}, {"a", 3}}}
	c := newConfiguration(t, members, system)
	members[0], system.Weights[0].Value = "z", 99
	if got, want := c.String(), "0: weights=a:3,b:1,c:1 of a b c"; got != want {
		t.Errorf("the configuration is %q, want %q", got, want)
	}
	if system.Weights[1].Node != "b" {
		t.Errorf("NewConfiguration changed what it was given: %v", system)
	}
	if p, ok := c.Place("b"); !ok || p != 1 {
		t.Errorf("Place(b) = %d, %v; want 1", p, ok)
	}
	if _, ok := c.Place("z"); ok {
		t.Error("z has a place and is no member")
	}
}

// TestSet compares a Set of up to MaxMembers with the obvious one.
func TestSet(t *testing.T) {
	place := rapid.OneOf(rapid.IntRange(0, quorum.MaxMembers-1), rapid.SampledFrom([]int{0, 63, 64, 127, 128, 191, 192, 255}))
	build := func(places []int) quorum.Set {
		var s quorum.Set
		for _, i := range places {
			s = s.Add(i)
		}
		return s
	}
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfDistinct(place, rapid.ID).Draw(t, "a")
		b := rapid.SliceOfDistinct(place, rapid.ID).Draw(t, "b")
		s, u := build(append(a, a...)), build(b) // twice: adding again changes nothing
		if got, want := slices.Collect(s.All()), slices.Sorted(slices.Values(a)); !slices.Equal(got, want) || s.Len() != len(want) {
			t.Fatalf("All() = %v, Len() = %d, want %v", got, s.Len(), want)
		}
		contains, meets := true, false
		for _, i := range b {
			if s.Has(i) != slices.Contains(a, i) {
				t.Fatalf("%v: Has(%d) = %v", a, i, s.Has(i))
			}
			contains, meets = contains && slices.Contains(a, i), meets || slices.Contains(a, i)
		}
		if s.Contains(u) != contains || s.Meets(u) != meets {
			t.Fatalf("%v and %v: Contains = %v, Meets = %v", a, b, s.Contains(u), s.Meets(u))
		}
		left := slices.DeleteFunc(slices.Clone(a), func(i int) bool { return slices.Contains(b, i) })
		if s.Minus(u) != build(left) {
			t.Fatalf("%v minus %v = %v", a, b, slices.Collect(s.Minus(u).All()))
		}
		for i := range s.All() { // leaving early is allowed
			if i != slices.Min(a) {
				t.Fatalf("All() of %v begins with %d", a, i)
			}
			break
		}
	})
}

func TestToleranceText(t *testing.T) {
	for _, test := range []struct {
		system string
		n      int
		text   string
	}{
		{"majority", 1, "reads: any 0 of 1; writes: any 0 of 1"},
		{"majority", 3, "reads: any 1 of 3; writes: any 1 of 3"},
		{"majority", 4, "reads: any 1 of 4; writes: any 1 of 4"},
		{"get=1,put=3", 3, "reads of confirmed values: any 2 of 3; writes: any 0 of 3"},
		{"weights=a:3,b:1,c:1", 3, "reads: any 0 of 3, at best 2 (stopped by a); writes: any 0 of 3, at best 2 (stopped by a)"},
		{"weights=a:1,b:1,c:1", 3, "reads: any 1 of 3; writes: any 1 of 3"},
		{"weights=a:1,b:0", 2, "reads: any 0 of 2, at best 1 (stopped by a); writes: any 0 of 2, at best 1 (stopped by a)"},
		{"grid=2x2", 4, "reads of confirmed values: any 1 of 4, at best 2 (stopped by a+c, a+d, b+c, b+d); writes: any 1 of 4, at best 2 (stopped by a+b, a+d, b+c, c+d)"},
		{"grid=2x3", 6, "reads of confirmed values: any 1 of 6, at best 3 (stopped by a+d, a+e, a+f, b+d, b+e, b+f and 3 other sets); " +
			"writes: any 2 of 6, at best 4 (stopped by a+b+c, a+b+f, a+c+e, a+e+f, b+c+d, b+d+f and 2 other sets)"},
		{"grid=1x3", 3, "reads: any 0 of 3; writes: any 2 of 3"},
		{"grid=3x6", 18, "reads of confirmed values: any 2 of 18, at best 12 (stopped by any of more than 128 sets); writes: any 5 of 18, at best 15 (stopped by any of more than 128 sets)"},
	} {
		s, err := quorum.ParseSystem(test.system)
		if err != nil {
			t.Fatal(err)
		}
		members := make([]quorum.NodeID, test.n)
		for i := range members {
			members[i] = quorum.NodeID(rune('a' + i))
		}
		if got := newConfiguration(t, members, s).Tolerance().String(); got != test.text {
			t.Errorf("%s of %d tolerates\n%s, want\n%s", test.system, test.n, got, test.text)
		}
	}
}

// TestToleranceJSON pins the names that scripts read.
func TestToleranceJSON(t *testing.T) {
	members := []quorum.NodeID{"a", "b", "c"}
	for _, test := range []struct {
		system quorum.System
		want   string
	}{
		{quorum.System{}, `{"members":3,"reads":{"any":1,"best":1},"writes":{"any":1,"best":1}}`},
		{quorum.System{Kind: quorum.Threshold, Get: 1, Put: 3}, `{"members":3,"reads":{"any":2,"best":2},"writes":{"any":0,"best":0},"confirmed_reads":true}`},
		{weighted(members, 3, 1, 1), `{"members":3,"reads":{"any":0,"best":2,"blocking":[["a"]]},"writes":{"any":0,"best":2,"blocking":[["a"]]}}`},
	} {
		got, err := json.Marshal(newConfiguration(t, members, test.system).Tolerance())
		if err != nil || string(got) != test.want {
			t.Errorf("%v tolerates %s, %v; want %s", test.system, got, err, test.want)
		}
	}
	omitted, err := json.Marshal(quorum.Deaths{Any: 1, Best: 2, Omitted: true})
	if want := `{"any":1,"best":2,"omitted":true}`; err != nil || string(omitted) != want {
		t.Errorf("got %s, %v; want %s", omitted, err, want)
	}
}

func TestGoneSince(t *testing.T) {
	c, err := quorum.NewConfiguration(0, []quorum.NodeID{"a", "b"}, quorum.System{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := quorum.NewMap(c)
	if err != nil {
		t.Fatal(err)
	}
	old := &quorum.News{Map: m, Members: []quorum.Member{{ID: "a"}, {ID: "b"}, {ID: "x"}, {ID: "y"}}}
	if gone := quorum.GoneSince(old, &quorum.News{Map: m, Members: []quorum.Member{{ID: "b"}, {ID: "y"}, {ID: "z"}}}); !slices.Equal(gone, []quorum.NodeID{"x"}) {
		t.Errorf("gone are %v, want x", gone) // a is a member
	}
	if gone := quorum.GoneSince(nil, old); gone != nil {
		t.Errorf("gone since nothing: %v", gone)
	}
}
