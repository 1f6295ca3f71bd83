package reconfig_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"atoll/env"
	"atoll/quorum"
	"atoll/reconfig"
	"atoll/sim"
	"atoll/synod"
	"atoll/tags"
)

var caller = env.Address{Node: "p", Session: 1, Conversation: 1}

// news returns what is to be said of active configurations.
func news(t testing.TB, active ...*quorum.Configuration) *quorum.News {
	t.Helper()
	m, err := quorum.NewMap(active...)
	if err != nil {
		t.Fatal(err)
	}
	return &quorum.News{Map: m}
}

func newReplica(cells reconfig.Cells, self quorum.NodeID, rules reconfig.Rules) *reconfig.Replica {
	return reconfig.NewReplica(reconfig.Config{
		Cluster: "c1", Self: self, Rules: rules,
		Facts: func() reconfig.Facts { return reconfig.Facts{Build: "1.0", Wire: 1, Keys: 7} },
	}, cells)
}

// step has a replica act on m, and returns its only answer.
func step(t testing.TB, r *reconfig.Replica, m env.Message) env.Out {
	t.Helper()
	outs, err := r.Step(caller, m, nil)
	if err != nil || len(outs) != 1 || outs[0].To != caller {
		t.Fatalf("Step(%T) = %v, %v, want one answer", m, outs, err)
	}
	return outs[0]
}

// text puts an answer into words.
func text(m env.Message) string {
	switch m := m.(type) {
	case *reconfig.Readied:
		return fmt.Sprintf("%s is ready, %s, wire %d, %d keys", m.Node, m.Build, m.Wire, m.Keys)
	case *reconfig.Unready:
		return "unready: " + m.Text
	case *reconfig.Pending:
		s := fmt.Sprintf("index %d, promised %d", m.Index, m.Promised.Round)
		for _, c := range m.Ready {
			s += fmt.Sprintf(", ready for %v", c)
		}
		if m.Accepted != nil {
			s += fmt.Sprintf(", accepted %v under %d", m.Accepted, m.Ballot.Round)
		}
		return s
	case *synod.Promise:
		return fmt.Sprintf("promise %d", m.Ballot.Round)
	case *synod.Accepted:
		return fmt.Sprintf("accepted %d", m.Ballot.Round)
	case *synod.Closed:
		return fmt.Sprintf("closed, next %d", m.Horizon.Next)
	case *env.Refused:
		return m.Reason.String()
	}
	return fmt.Sprintf("%T", m)
}

func ballot(k quorum.ConfigIndex, round synod.Round) synod.Ballot {
	return synod.Ballot{Index: k, Round: round, ID: tags.NewPID(1, 0, 1)}
}

func TestReady(t *testing.T) {
	disk := sim.NewDisk()
	r := newReplica(disk, "d", reconfig.Rules{})
	c4, c5 := configuration(t, 4, "majority", "a", "b", "c"), configuration(t, 5, "majority", "b", "c", "d")
	ask := func(c *quorum.Configuration) *reconfig.Ready {
		return &reconfig.Ready{Cluster: "c1", Configuration: c}
	}
	if got := text(step(t, r, ask(c5)).Message); got != "unready: the next configuration here is 0, not 5" {
		t.Errorf("a node that knows nothing: %s", got)
	}
	r.Stand(news(t, c4), 3)
	const ready = "d is ready, 1.0, wire 1, 7 keys"
	other := configuration(t, 5, "majority", "d")
	for _, c := range []struct {
		m     *reconfig.Ready
		want  string
		after env.Position
	}{
		{ask(configuration(t, 5, "majority", "a", "b", "c")), "not a member", 0},
		{&reconfig.Ready{Cluster: "c2", Configuration: c5}, "bad request", 0},
		{ask(configuration(t, 4, "majority", "d")), "unready: the next configuration here is 5, not 4", 3},
		{ask(configuration(t, 6, "majority", "d")), "unready: the next configuration here is 5, not 6", 3},
		{ask(c5), ready, 3}, // the note stands at 1
		{ask(c5), ready, 3},
		{ask(other), ready, 3},
	} {
		if out := step(t, r, c.m); text(out.Message) != c.want || out.After != c.after {
			t.Errorf("%v: %s after %d, want %s after %d", c.m.Configuration, text(out.Message), out.After, c.want, c.after)
		}
	}
	if appended, _ := disk.Positions(); appended != 2 {
		t.Errorf("%d records were written, want one for each configuration", appended)
	}
	want := "index 5, promised 0, ready for 5: majority of b c d, ready for 5: majority of d"
	if r.Stand(news(t, c4), 0); !r.Named() {
		t.Error("it was ready, and isn't named")
	}
	if out := step(t, r, &reconfig.Inquire{}); text(out.Message) != want || out.After != 2 {
		t.Errorf("pending: %s after %d, want %s", text(out.Message), out.After, want)
	}
	if out := step(t, r, ask(c5)); out.After != 2 {
		t.Errorf("ready once more, after %d: it must wait for the notes", out.After)
	}
	if r.Stand(news(t, c4, c5), 0); r.Named() {
		t.Error("it was ready for an index that is decided, and is named for the next")
	}
	if got := text(step(t, r, ask(configuration(t, 6, "majority", "d"))).Message); got != "unready: configuration 5 isn't installed here yet" {
		t.Errorf("during an upgrade: %s", got)
	}
	if got := text(step(t, r, &reconfig.Inquire{}).Message); got != "index 6, promised 0" {
		t.Errorf("pending at the next index: %s", got)
	}
}

// The last few are remembered, and those of an earlier index aren't.
func TestNotesAreBounded(t *testing.T) {
	r := newReplica(sim.NewDisk(), "a", reconfig.Rules{})
	c0 := configuration(t, 0, "majority", "a")
	r.Stand(news(t, c0), 0)
	for _, other := range []quorum.NodeID{"b", "c", "d", "e", "f"} {
		step(t, r, &reconfig.Ready{Cluster: "c1", Configuration: configuration(t, 1, "majority", "a", other)})
	}
	var others []string
	for _, c := range step(t, r, &reconfig.Inquire{}).Message.(*reconfig.Pending).Ready {
		others = append(others, string(c.Members()[1]))
	}
	if got := strings.Join(others, " "); got != "c d e f" {
		t.Errorf("ready for the configurations with %s", got)
	}
	big := largest(t)
	r = newReplica(sim.NewDisk(), big.Members()[0], reconfig.Rules{})
	r.Stand(news(t, configuration(t, 1<<64-2, "majority", "a")), 0)
	for _, c := range []*quorum.Configuration{configuration(t, big.Index(), "majority", big.Members()...), big} {
		step(t, r, &reconfig.Ready{Cluster: "c1", Configuration: c})
	}
	if got := step(t, r, &reconfig.Inquire{}).Message.(*reconfig.Pending).Ready; len(got) == 0 || !got[len(got)-1].Equal(big) {
		t.Errorf("ready for %d configurations, and not for the largest", len(got))
	}
}

// Notes that can't be read are none, and are replaced.
func TestDamagedNotes(t *testing.T) {
	disk := sim.NewDisk()
	r := newReplica(disk, "a", reconfig.Rules{})
	r.Stand(news(t, configuration(t, 0, "majority", "a")), 0)
	c1 := configuration(t, 1, "majority", "a", "b")
	step(t, r, &reconfig.Ready{Cluster: "c1", Configuration: c1})
	whole, _ := disk.Cell("recon.ready")
	whole = slices.Clone(whole)
	for i := range 8 * len(whole) {
		b := slices.Clone(whole)
		b[i/8] ^= 1 << (i % 8)
		if _, err := disk.SetCell("recon.ready", b); err != nil {
			t.Fatal(err)
		}
		if got := text(step(t, r, &reconfig.Inquire{}).Message); got != "index 1, promised 0" {
			t.Fatalf("bit %d: %s", i, got)
		}
	}
	step(t, r, &reconfig.Ready{Cluster: "c1", Configuration: c1})
	if got := len(step(t, r, &reconfig.Inquire{}).Message.(*reconfig.Pending).Ready); got != 1 {
		t.Errorf("ready for %d configurations after the notes were written anew", got)
	}
}

// A node that is new learns from who asks it.
func TestReadyTellsWhatIsNew(t *testing.T) {
	var r *reconfig.Replica
	learned := 0
	r = reconfig.NewReplica(reconfig.Config{
		Cluster: "c1", Self: "d", Facts: func() reconfig.Facts { return reconfig.Facts{} },
		Learn: func(n *quorum.News) error { learned++; r.Stand(n, 50); return nil },
	}, sim.NewDisk())
	r.Stand(news(t, configuration(t, 0, "majority", "a")), 0)
	m := &reconfig.Ready{Cluster: "c1", Configuration: configuration(t, 5, "majority", "d"), News: news(t, configuration(t, 4, "majority", "b"))}
	for range 2 {
		out := step(t, r, m)
		if _, ok := out.Message.(*reconfig.Readied); !ok || learned != 1 || out.After != 50 {
			t.Errorf("%s after %d, learned %d times", text(out.Message), out.After, learned)
		}
	}
}

// Who votes on what: members of the installed configuration, on the one that
// follows, while it isn't known.
func TestVotes(t *testing.T) {
	c4, c5 := configuration(t, 4, "majority", "a", "b", "c"), configuration(t, 5, "majority", "b", "c", "d")
	for _, c := range []struct {
		name  string
		self  quorum.NodeID
		news  *quorum.News
		index quorum.ConfigIndex // that is decided
		under quorum.ConfigIndex // of the ballot
		want  string
	}{
		{"as it should be", "a", news(t, c4), 5, 4, "promise 1"},
		{"a node that knows nothing", "a", nil, 5, 4, "closed, next 0"},
		{"no member", "d", news(t, c4), 5, 4, "closed, next 5"},
		{"the next is known", "b", news(t, c4, c5), 5, 4, "closed, next 6"},
		{"the next isn't installed", "b", news(t, c4, c5), 6, 5, "closed, next 6"},
		{"the next is installed", "b", news(t, c5), 6, 5, "promise 1"},
		{"out", "b", news(t, c5), 5, 4, "closed, next 6"},
		{"too early", "a", news(t, c4), 6, 5, "closed, next 5"},
		{"a ballot of another configuration", "a", news(t, c4), 5, 5, "closed, next 5"},
		{"a ballot of an earlier configuration", "a", news(t, c4), 5, 3, "closed, next 5"},
		{"an index that was decided", "a", news(t, c4), 4, 4, "closed, next 5"},
	} {
		r := newReplica(sim.NewDisk(), c.self, reconfig.Rules{})
		r.Stand(c.news, 0)
		m := &synod.Prepare{Instance: reconfig.Instance(c.index), Ballot: ballot(c.under, 1)}
		if got := text(step(t, r, m).Message); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// What is no configuration of that index isn't accepted.
func TestOnlyConfigurationsAreAccepted(t *testing.T) {
	r := newReplica(sim.NewDisk(), "a", reconfig.Rules{})
	r.Stand(news(t, configuration(t, 4, "majority", "a")), 0)
	c5 := configuration(t, 5, "majority", "b")
	for _, c := range []struct {
		value []byte
		want  string
	}{
		{[]byte("nonsense"), "bad request"},
		{configuration(t, 6, "majority", "b").Append(nil), "bad request"},
		{c5.Append(nil), "accepted 2"},
	} {
		m := &synod.Accept{Instance: reconfig.Instance(5), Ballot: ballot(4, 2), Value: c.value}
		if got := text(step(t, r, m).Message); got != c.want {
			t.Errorf("%q: %s, want %s", c.value, got, c.want)
		}
	}
	if got, want := text(step(t, r, &reconfig.Inquire{}).Message), "index 5, promised 2, accepted 5: majority of b under 2"; got != want {
		t.Errorf("pending: %s, want %s", got, want)
	}
	for m, want := range map[env.Message]bool{
		&reconfig.Ready{}: true, &reconfig.Inquire{}: true, &reconfig.Pending{}: false,
		&synod.Prepare{Instance: "recon/5"}: true, &synod.Accept{Instance: "recon/5"}: true,
		&synod.Prepare{Instance: "key/5"}: false, &synod.Accept{Instance: "key/5"}: false, &synod.Promise{}: false,
	} {
		if got := reconfig.Takes(m); got != want {
			t.Errorf("%T %+v: taken: %v", m, m, got)
		}
	}
}

// A flipped bit in the acceptor's record: the node abstains and names what it
// abstains on, until a later configuration is installed. What was promised there isn't
// forgotten before.
func TestADamagedVote(t *testing.T) {
	disk := sim.NewDisk()
	r := newReplica(disk, "a", reconfig.Rules{})
	r.Stand(news(t, configuration(t, 4, "majority", "a")), 0)
	step(t, r, &synod.Prepare{Instance: reconfig.Instance(5), Ballot: ballot(4, 9)})
	record, _ := disk.Cell("recon.vote.5")
	record = slices.Clone(record)
	record[7] ^= 1
	if _, err := disk.SetCell("recon.vote.5", record); err != nil {
		t.Fatal(err)
	}
	for range 2 { // in this life, and in the next one
		for _, m := range []env.Message{&synod.Prepare{Instance: reconfig.Instance(5), Ballot: ballot(4, 10)}, &reconfig.Inquire{}} {
			refused, ok := step(t, r, m).Message.(*env.Refused)
			if !ok || refused.Reason != env.ReasonDamaged || !strings.Contains(refused.Text, "recon/5") {
				t.Errorf("%T was answered by %+v", m, refused)
			}
		}
		r = newReplica(disk, "a", reconfig.Rules{})
		r.Stand(news(t, configuration(t, 4, "majority", "a")), 0)
	}
	r.Stand(news(t, configuration(t, 5, "majority", "a")), 0)
	if got := text(step(t, r, &synod.Prepare{Instance: reconfig.Instance(6), Ballot: ballot(5, 1)}).Message); got != "promise 1" {
		t.Errorf("in the next configuration: %s", got)
	}
	if value, _ := disk.Cell("recon.vote.5"); len(value) != 0 {
		t.Error("what was damaged is kept for ever")
	}
}

// Records of many indices take turns in a few cells, whatever was left out.
func TestCellsTakeTurns(t *testing.T) {
	disk := sim.NewDisk()
	r := newReplica(disk, "a", reconfig.Rules{})
	for k := quorum.ConfigIndex(1); k < 200; k += 1 + k%3 {
		r.Stand(news(t, configuration(t, k-1, "majority", "a")), 0)
		prepare := &synod.Prepare{Instance: reconfig.Instance(k), Ballot: ballot(k-1, 3)}
		if got := text(step(t, r, prepare).Message); got != "promise 3" {
			t.Fatalf("index %d: %s", k, got)
		}
		if got := text(step(t, r, &reconfig.Inquire{}).Message); got != fmt.Sprintf("index %d, promised 3", k) {
			t.Fatalf("index %d: %s", k, got)
		}
		full := 0
		for i := range 64 {
			if value, _ := disk.Cell(fmt.Sprintf("recon.vote.%d", i)); len(value) > 0 {
				full++
			}
		}
		if full != 1 {
			t.Fatalf("index %d: %d records are kept", k, full)
		}
		if k%5 == 0 {
			r = newReplica(disk, "a", reconfig.Rules{})
		}
	}
}
