package join

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/tags"
)

// store is the cells of a node, and a directory of its own.
type store struct {
	cells    map[string][]byte
	position env.Position
	full     bool
	m        *quorum.Map
	heard    map[quorum.NodeID]quorum.Member
	members  []quorum.Member
	deaf     bool
}

func newStore(m *quorum.Map) *store {
	return &store{cells: map[string][]byte{}, m: m, heard: map[quorum.NodeID]quorum.Member{}}
}

func (s *store) Cell(name string) ([]byte, env.Position) { return s.cells[name], s.position }

func (s *store) SetCell(name string, value []byte) (env.Position, error) {
	if s.full {
		return 0, fmt.Errorf("cell %q: %w", name, abd.ErrFull)
	}
	s.cells[name] = value
	s.position++
	return s.position, nil
}

func (s *store) Map() *quorum.Map { return s.m }

func (s *store) News() (*quorum.News, env.Position) {
	if s.m == nil {
		return nil, 0
	}
	return &quorum.News{Map: s.m, Members: s.members}, 0
}

func (s *store) Own() quorum.Member { return quorum.Member{ID: "n0"} }

func (s *store) Hear(m quorum.Member) (bool, env.Position, error) {
	if s.deaf {
		return false, 0, nil
	}
	s.heard[m.ID] = m
	return true, 0, nil
}

func mapOf(t *testing.T, members ...quorum.NodeID) *quorum.Map {
	t.Helper()
	c, err := quorum.NewConfiguration(0, members, quorum.System{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := quorum.NewMap(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// start starts a node of the first configuration over s.
func start(t *testing.T, s *store, rules Rules) *Replica {
	t.Helper()
	r, err := NewReplica(Config{Self: "n1", Instance: Instance{1}, Run: 1, First: true, Rules: rules, Admit: func(m *Join) error {
		if m.Grant.Name == "expired" {
			return errors.New("the ticket has expired")
		}
		return nil
	}}, s, s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ask steps r and returns its only answer, and after what that may leave.
func ask(t *testing.T, r *Replica, from quorum.NodeID, m env.Message) (env.Message, env.Position) {
	t.Helper()
	out, err := r.Step(env.Address{Node: from}, m, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != 1 {
		t.Fatalf("%d answers to %T", len(out), m)
	}
	return out[0].Message, out[0].After
}

func joining(id quorum.NodeID, instance byte) *Join {
	return &Join{Instance: Instance{instance}, Member: quorum.Member{ID: id, Name: "d"}, Horizon: quorum.Horizon{Next: 1}}
}

// The first instance of a node that comes is noted, on disk before anything is
// said, and no other one gets in (J1).
func TestJoin(t *testing.T) {
	s := newStore(mapOf(t, "n1"))
	r := start(t, s, Rules{})
	before := s.position
	if m, after := ask(t, r, "n5", joining("n5", 1)); !reflect.DeepEqual(m, &Joined{Horizon: quorum.Horizon{Next: 1}, Seen: []Seen{{"n1", Instance{1}}}}) || after <= before {
		t.Errorf("got %+v after %d, there were %d records before", m, after, before)
	}
	if s.heard["n5"].Name != "d" {
		t.Error("it isn't known where the node is")
	}
	r = start(t, s, Rules{}) // after a restart, too
	for _, c := range []struct {
		name string
		from quorum.NodeID
		m    *Join
		want string // of a refusal
	}{
		{"again", "n5", joining("n5", 1), ""},
		{"again, after its end", "n5", &Join{Instance: Instance{1}, Member: quorum.Member{ID: "n5"}, Horizon: quorum.Horizon{Next: 1}, Grant: Grant{Name: "expired"}}, ""},
		{"another instance", "n5", joining("n5", 2), "used already"},
		{"for somebody else", "n6", joining("n5", 1), "asks for node n5"},
		{"expired", "n6", &Join{Instance: Instance{3}, Member: quorum.Member{ID: "n6"}, Horizon: quorum.Horizon{Next: 1}, Grant: Grant{Name: "expired"}}, "has expired"},
		{"without an instance", "n6", joining("n6", 0), "bad request"},
	} {
		m, _ := ask(t, r, c.from, c.m)
		refused, _ := m.(*env.Refused)
		if (refused == nil) != (c.want == "") || refused != nil && !strings.Contains(refused.Error(), c.want) {
			t.Errorf("%s: got %+v, want %q", c.name, m, c.want)
		}
	}
	behind := joining("n7", 1)
	behind.Horizon = quorum.Horizon{}
	if m, _ := ask(t, r, "n7", behind); m.(*Joined).Horizon.Next != 1 || s.heard["n7"].ID != "" {
		t.Errorf("of somebody who knows less: %+v", m)
	}
	s.deaf = true
	if m, _ := ask(t, r, "n8", joining("n8", 1)); m.(*env.Refused).Reason != env.ReasonFull {
		t.Errorf("without room: %+v", m)
	}
	s.m = mapOf(t, "n2")
	if m, _ := ask(t, r, "n9", joining("n9", 1)); m.(*env.Refused).Reason != env.ReasonNotMember {
		t.Errorf("by a node that is no member: %+v", m)
	}
}

// Each rule that is broken shows.
func TestJoinMutants(t *testing.T) {
	s := newStore(mapOf(t, "n1"))
	r := start(t, s, Rules{AnyInstance: true})
	ask(t, r, "n5", joining("n5", 1))
	if m, _ := ask(t, r, "n5", joining("n5", 2)); reflect.TypeOf(m) == reflect.TypeFor[*env.Refused]() {
		t.Error("AnyInstance refuses another instance: TestJoin doesn't kill it")
	}
	r = start(t, newStore(mapOf(t, "n1")), Rules{AnswerUnsaved: true})
	if _, after := ask(t, r, "n5", joining("n5", 1)); after != 0 {
		t.Error("AnswerUnsaved waits: TestJoin doesn't kill it")
	}
	r = start(t, newStore(mapOf(t, "n1")), Rules{AnyPosition: true})
	ask(t, r, "n5", greeting(1, 5, 1, 100))
	if m, _ := ask(t, r, "n5", greeting(1, 4, 1, 100)); m.(*Greeted).Verdict != Welcome {
		t.Error("AnyPosition notices: TestGreet doesn't kill it")
	}
}

func greeting(instance byte, starts, run uint64, position env.Position) *Greet {
	return &Greet{Life: Life{Instance{instance}, starts, run, position}, Member: quorum.Member{ID: "n5"}}
}

// A life that can't follow what is known is told (J3), and what is known is the
// largest.
func TestGreet(t *testing.T) {
	s := newStore(mapOf(t, "n1"))
	r := start(t, s, Rules{})
	for i, c := range []struct {
		m    *Greet
		want Verdict
	}{
		{greeting(1, 5, 1, 100), Welcome},
		{greeting(1, 5, 1, 90), Welcome},       // the same process: an older message came later
		{greeting(1, 6, 2, 100), OlderCopy},    // and the 90 hasn't made that forgotten; the start itself is the 101st
		{greeting(1, 4, 1, 200), OlderCopy},    // fewer starts
		{greeting(1, 5, 2, 200), SecondCopy},   // another process in the same start
		{greeting(2, 9, 1, 900), OtherStore},   // another store
		{greeting(1, 6, 2, 101), Welcome},      // the next life
		{greeting(1, 6, 2, 102), Welcome},      // goes on
		{greeting(1, 7, 3, 102), OlderCopy},    // 102 counts, though it isn't on disk
		{greeting(1, 6, 2, 10_000), Welcome},   // far: it is
		{greeting(1, 8, 4, 10_001), OlderCopy}, // two starts are two records
		{greeting(1, 8, 4, 10_002), Welcome},   // nothing written in between
		{greeting(1, 8, 4, 10_002-1), Welcome}, // an older message
		{greeting(1, 9, 5, 10_002), OlderCopy},
	} {
		m, after := ask(t, r, "n5", c.m)
		if g := m.(*Greeted); g.Verdict != c.want || after == 0 {
			t.Errorf("%d: %+v is told %v, want %v", i, c.m.Life, g.Verdict, c.want)
		}
	}
	if m, _ := ask(t, r, "n6", greeting(1, 5, 1, 100)); m.(*env.Refused).Reason != env.ReasonBadRequest {
		t.Errorf("in another's name: %+v", m)
	}
	r = start(t, s, Rules{})
	if m, _ := ask(t, r, "n5", greeting(1, 7, 3, 10_000)); m.(*Greeted).Verdict != OlderCopy {
		t.Errorf("after a restart: %+v", m)
	}
	// Of two uses of a ticket, the one that has got in elsewhere is right.
	ask(t, r, "n6", joining("n6", 1))
	m := greeting(2, 1, 1, 1)
	m.Member.ID = "n6"
	if got, _ := ask(t, r, "n6", m); got.(*Greeted).Verdict != Welcome {
		t.Errorf("the one that joined: %+v", got)
	}
	m.Life.Instance = Instance{1}
	if got, _ := ask(t, r, "n6", m); got.(*Greeted).Verdict != OtherStore {
		t.Errorf("the other one: %+v", got)
	}
}

// What a greeting costs the disk is bounded: positions alone are written seldom.
func TestGreetingsAreSeldomWritten(t *testing.T) {
	s := newStore(mapOf(t, "n1"))
	r := start(t, s, Rules{})
	ask(t, r, "n5", greeting(1, 1, 1, 0))
	before := s.position
	for p := range 10 * positionStep {
		ask(t, r, "n5", greeting(1, 1, 1, env.Position(p)))
	}
	if n := s.position - before; n != 9 {
		t.Errorf("%d writes", n)
	}
}

// Starts are counted on disk, also of a node that can't write: it is mute then.
func TestStarts(t *testing.T) {
	s := newStore(mapOf(t, "n1"))
	for want := range uint64(3) {
		r := start(t, s, Rules{})
		if k, _ := ask(t, r, "n1", &know{}); k.(*known).Life.Starts != want+1 || k.(*known).mute {
			t.Errorf("start %d: %+v", want+1, k)
		}
	}
	s.full = true
	if k, _ := ask(t, start(t, s, Rules{}), "n1", &know{}); !k.(*known).mute {
		t.Error("it greets with a start that isn't on disk")
	}
}

// What others say about dialing the node is one line, until they take it back or are
// forgotten; a greeting is answered with what is known of who greets.
func TestUnreached(t *testing.T) {
	s := newStore(mapOf(t, "n1", "n2", "n3"))
	s.members = []quorum.Member{{ID: "n2", Name: "b"}, {ID: "n9"}}
	r := start(t, s, Rules{})
	r.cfg.Probe = func(m quorum.Member) string { return "not at " + m.Addresses[0] }
	hello := greeting(1, 1, 1, 0)
	hello.Member.Addresses = []string{"h:1"}
	if m, _ := ask(t, r, "n5", hello); m.(*Greeted).Unreached != "not at h:1" {
		t.Errorf("greeted: %+v", m)
	}
	hears := func(from quorum.NodeID, text string) string {
		ask(t, r, "n1", &hear{from, &Greeted{Unreached: text}})
		return r.Unreached()
	}
	if got := hears("n2", ""); got != "" {
		t.Errorf("nobody complains: %s", got)
	}
	hears("n9", "h:2: no such host")
	hears("n2", "h:2: no answer")
	got := hears("n3", "h:2: no answer")
	if !strings.Contains(got, "--advertise") || !strings.HasSuffix(got, "(b, n3: h:2: no answer; n9: h:2: no such host)") {
		t.Errorf("three complain: %s", got)
	}
	s.members = s.members[:1]
	hears("n3", "")
	if got := hears("n2", "h:2: refused"); !strings.HasSuffix(got, "(b: h:2: refused)") {
		t.Errorf("one does: %s", got)
	}
	if got := hears("n2", ""); got != "" {
		t.Errorf("nobody any more: %s", got)
	}
}

// A bad verdict ends the node, in words that say what to do.
func TestHear(t *testing.T) {
	r := start(t, newStore(mapOf(t, "n1", "n2")), Rules{})
	for v, want := range map[Verdict]string{OtherStore: "another store", OlderCopy: "an older copy", SecondCopy: "is a copy"} {
		_, err := r.Step(env.Address{Node: "n1"}, &hear{"n2", &Greeted{Verdict: v, Life: Life{Starts: 9, Position: 70}}}, 5, nil)
		out, ok := errors.AsType[*OutcastError](err)
		if !ok || out.Verdict != v || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "client member ticket") {
			t.Errorf("%v: %v", v, err)
		}
	}
	for _, v := range []Verdict{Welcome, SecondCopy + 1} {
		ask(t, r, "n1", &hear{"n2", &Greeted{Verdict: v, Seen: []Seen{{"n7", Instance{7}}, {"n1", Instance{8}}}}})
	}
	// What others know of instances is known here from then on.
	if m, _ := ask(t, r, "n7", joining("n7", 8)); reflect.TypeOf(m) != reflect.TypeFor[*env.Refused]() {
		t.Errorf("a second instance: %+v", m)
	}
}

// When there are too many, those of whom nobody speaks any more make room.
func TestManyNodes(t *testing.T) {
	s := newStore(mapOf(t, "n1", "n5"))
	r := start(t, s, Rules{})
	ask(t, r, "n5", greeting(1, 5, 1, 100))
	for i := range MaxNodes + 20 {
		id := quorum.NodeID(fmt.Sprintf("m%03d", i))
		if m, _ := ask(t, r, id, joining(id, 1)); reflect.TypeOf(m) != reflect.TypeFor[*Joined]() {
			t.Fatalf("node %d: %+v", i, m)
		}
	}
	if len(r.nodes) != MaxNodes || !slices.IsSortedFunc(r.nodes, func(a, b entry) int { return strings.Compare(string(a.node), string(b.node)) }) {
		t.Errorf("%d nodes, or out of order", len(r.nodes))
	}
	if m, _ := ask(t, r, "n5", greeting(1, 4, 1, 100)); m.(*Greeted).Verdict != OlderCopy {
		t.Error("a member was forgotten")
	}
}

// What is in the cells stays readable, and what makes no sense is an error.
func TestCells(t *testing.T) {
	s := newStore(mapOf(t, "n1"))
	r := start(t, s, Rules{})
	ask(t, r, "n5", greeting(1, 300, 7, 70_000))
	ask(t, r, "n6", joining("n6", 2))
	const self, nodes = "01" + "01" + "02", "01" + "02" + "026e35" + "01000000000000000000000000000000" + "01" + "ac02" + "07" + "f0a204" +
		"026e36" + "02000000000000000000000000000000" + "00" + "00" + "00" + "00"
	if got := fmt.Sprintf("%x", s.cells[cellSelf]); got != self {
		t.Errorf("self: %s, want %s", got, self)
	}
	if got := fmt.Sprintf("%x", s.cells[cellNodes]); got != nodes {
		t.Errorf("nodes: %s, want %s", got, nodes)
	}
	for _, name := range []string{cellSelf, cellNodes} {
		whole := s.cells[name]
		for n := 1; n < len(whole); n++ {
			s.cells[name] = whole[:n]
			if _, err := NewReplica(Config{Self: "n1"}, s, s); err == nil {
				t.Errorf("%s, %d of %d bytes: no error", name, n, len(whole))
			}
		}
		s.cells[name] = whole
	}
}

func FuzzCells(f *testing.F) {
	f.Add([]byte{1, 1, 2}, []byte{1, 0})
	f.Add([]byte{1, 1}, []byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, self, nodes []byte) {
		s := newStore(nil)
		s.cells[cellSelf], s.cells[cellNodes] = self, nodes
		r, err := NewReplica(Config{Self: "n1"}, s, s)
		if err == nil && len(r.nodes) > MaxNodes {
			t.Errorf("%d nodes", len(r.nodes))
		}
	})
}

// world is an Env whose nodes answer at once. Tasks run when they are started.
type world struct {
	env.Env
	answer func(to quorum.NodeID, m env.Message) env.Message // nil: it is silent
}

type ran struct{ err error }

func (r ran) Join() error { return r.err }
func (ran) Cancel()       {}

func (w world) Self() quorum.NodeID                         { return "n0" }
func (w world) Sleep(time.Duration) error                   { return nil }
func (w world) ID() tags.PID                                { return tags.PID{} }
func (w world) Go(_ string, f func(env.Env) error) env.Task { return ran{f(w)} }

func (w world) Ask(to []quorum.NodeID, req env.Message, each func(env.Conversation, quorum.NodeID, env.Message) bool) error {
	ended := false
	for _, id := range to {
		if m := w.answer(id, req); m != nil && !ended {
			ended = each(nil, id, m)
		}
	}
	if ended {
		return nil
	}
	return &env.Unfinished{Cause: env.ErrDeadline}
}

// A node is in when a read and a write quorum know it, and not before (J2); what
// members refuse is told when no quorum is left.
func TestJoinTask(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers map[quorum.NodeID]string // of members: "in", "no", nothing
		rules   Rules
		in      bool
		refused string
	}{
		{"all", map[quorum.NodeID]string{"n1": "in", "n2": "in", "n3": "in"}, Rules{}, true, ""},
		{"a quorum", map[quorum.NodeID]string{"n1": "in", "n3": "in"}, Rules{}, true, ""},
		{"a quorum, and a refusal", map[quorum.NodeID]string{"n1": "no", "n2": "in", "n3": "in"}, Rules{}, true, ""},
		{"one", map[quorum.NodeID]string{"n1": "in"}, Rules{}, false, ""},
		{"one and a refusal", map[quorum.NodeID]string{"n1": "in", "n2": "no"}, Rules{}, false, "used already"},
		{"refused", map[quorum.NodeID]string{"n1": "no", "n2": "no"}, Rules{}, false, "used already"},
		{"OneIsEnough", map[quorum.NodeID]string{"n1": "in"}, Rules{OneIsEnough: true}, true, ""}, // what "one" kills
	} {
		s := newStore(mapOf(t, "n1", "n2", "n3"))
		own, err := NewReplica(Config{Self: "n0", Instance: Instance{9}}, s, s)
		if err != nil {
			t.Fatal(err)
		}
		w := world{answer: func(to quorum.NodeID, m env.Message) env.Message {
			if to == "n0" {
				answer, _ := ask(t, own, "n0", m)
				return answer
			}
			switch c.answers[to] {
			case "in":
				return &Joined{Horizon: quorum.Horizon{Next: 1}}
			case "no":
				return &env.Refused{Reason: env.ReasonDenied, Text: "used already"}
			}
			return nil
		}}
		err = Tasks{Rules: c.rules}.Join(w, nil)
		refused, _ := errors.AsType[*RefusedError](err)
		if own.Joined() != c.in || (err == nil) != c.in || (refused != nil) != (c.refused != "") || refused != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: in: %v, %v", c.name, own.Joined(), err)
		}
	}
}
