package reconfig_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/reconfig"
	"atoll/sim"
	"atoll/synod"
)

// threeNodes is a fixture whose present members are a, b and c.
func threeNodes(t testing.TB, cfg sim.Config) *fixture {
	f := newFixture(t, cfg, reconfig.Rules{}, configuration(t, 0, "majority", "a", "b", "c"))
	f.AddClient("p")
	f.AddClient("q")
	return f
}

func TestRecon(t *testing.T) {
	f := threeNodes(t, sim.Config{})
	p := f.proposer()
	d, err := f.recon(p, "p", "b", "c", "d")
	want := configuration(t, 1, "majority", "b", "c", "d")
	if err != nil || !d.Proposed || !d.Configuration.Equal(want) {
		t.Fatalf("%v, proposed here: %v, %v", d.Configuration, d.Proposed, err)
	}
	facts := ""
	for _, r := range d.Ready {
		facts += fmt.Sprintf("%s %s %d; ", r.Node, r.Build, r.Keys)
	}
	if !strings.Contains(facts, "d 1.0 7; ") || len(d.Ready) < 2 {
		t.Errorf("ready: %s", facts)
	}
	// Another one comes too late, and is told.
	d, err = f.recon(f.proposer(), "q", "a", "b", "e")
	if err != nil || d.Proposed || !d.Configuration.Equal(want) {
		t.Errorf("the second: %v, proposed here: %v, %v", d.Configuration, d.Proposed, err)
	}
	// The same once more finds its own.
	d, err = f.recon(f.proposer(), "q", "b", "c", "d")
	if err != nil || !d.Proposed {
		t.Errorf("the same once more: %v, proposed here: %v, %v", d.Configuration, d.Proposed, err)
	}
	if bad := f.twin.judge([]*quorum.Configuration{want}); bad != "" {
		t.Error(bad)
	}
}

// Members that have heard of the decision close the door, and say what is behind
// it.
func TestReconThatIsKnown(t *testing.T) {
	c1 := func(f *fixture) *quorum.Configuration { return configuration(f.t, 1, "majority", "b", "c", "d") }
	c2 := func(f *fixture) *quorum.Configuration { return configuration(f.t, 2, "majority", "d") }
	for _, c := range []struct {
		name string
		news func(f *fixture) *quorum.News
		on   []quorum.NodeID // who knows
		who  []quorum.NodeID // is proposed
		want string
	}{
		{"another, known to who would be ready", func(f *fixture) *quorum.News { return news(f.t, f.present, c1(f)) }, nodes, []quorum.NodeID{"a", "b", "e"}, "other"},
		{"the same", func(f *fixture) *quorum.News { return news(f.t, f.present, c1(f)) }, nodes, []quorum.NodeID{"b", "c", "d"}, "own"},
		{"another, known to members alone", func(f *fixture) *quorum.News { return news(f.t, f.present, c1(f)) }, nodes[:3], []quorum.NodeID{"d", "e"}, "other"},
		{"out already", func(f *fixture) *quorum.News { return news(f.t, c2(f)) }, nodes, []quorum.NodeID{"a", "b", "e"}, "past"},
		{"out already, known to members alone", func(f *fixture) *quorum.News { return news(f.t, c2(f)) }, nodes[:3], []quorum.NodeID{"d", "e"}, "past"},
	} {
		f := threeNodes(t, sim.Config{})
		for _, id := range c.on {
			f.news[id] = c.news(f)
		}
		p := f.proposer()
		var d reconfig.Decision
		err := f.run("p", time.Second, func(e env.Env) (err error) {
			d, err = p.Recon(e, reconfig.Proposal{Members: c.who, Force: true})
			return err
		})
		got := fmt.Sprint(err)
		past, isPast := errors.AsType[*reconfig.PastError](err)
		switch {
		case err == nil && d.Configuration.Equal(c1(f)) && d.Proposed:
			got = "own"
		case err == nil && d.Configuration.Equal(c1(f)):
			got = "other"
		case isPast && past.Index == 1 && past.Installed.Equal(c2(f)):
			got = "past"
		}
		if got != c.want {
			t.Errorf("%s: %s (%v), want %s", c.name, got, d.Configuration, c.want)
		}
		// What it has learned it goes by the next time.
		if c.want == "past" {
			continue
		}
		if d, err := f.recon(p, "p", "b", "c", "d"); err != nil || !d.Proposed {
			t.Errorf("%s: its own proposal is decided: %v, %v", c.name, d.Configuration, err)
		}
		_, err = f.recon(p, "p", "a", "b", "e")
		if busy, ok := errors.AsType[*reconfig.BusyError](err); !ok || !busy.Decided.Equal(c1(f)) {
			t.Errorf("%s: another proposal: %v", c.name, err)
		}
	}
}

// TestWoken: those that it asks are switched off, since what is to be decided was
// decided, and is out, too. The proposer learns that otherwise, and ends.
func TestWoken(t *testing.T) {
	proposal := reconfig.Proposal{Members: nodes[2:]}
	for name, op := range map[string]func(p *reconfig.Proposer, e env.Env) error{
		"ready": func(p *reconfig.Proposer, e env.Env) error { _, err := p.Recon(e, proposal); return err },
		"prepare": func(p *reconfig.Proposer, e env.Env) error {
			p.Rules.ProposeUnready = true
			_, err := p.Recon(e, proposal)
			return err
		},
		"inquire": func(p *reconfig.Proposer, e env.Env) error { _, err := p.Pending(e); return err },
	} {
		f := threeNodes(t, sim.Config{})
		for _, id := range nodes {
			f.Process(id).Crash()
		}
		p := f.proposer()
		scope := f.Process("p").Scope(time.Minute)
		scope.Start(func(e env.Env) error { return op(p, e) })
		f.RunFor(time.Second)
		if scope.Done() {
			t.Fatalf("%s: %v", name, scope.Err())
		}
		p.Known.Learn(news(t, configuration(t, 2, "majority", "d", "e")))
		f.Process("p").Wake()
		f.RunFor(time.Second)
		if _, past := errors.AsType[*reconfig.PastError](scope.Err()); !past {
			t.Errorf("%s: done: %v, %v", name, scope.Done(), scope.Err())
		}
	}
}

// What is missing is named: silence and refusals, apart from those that aren't
// needed.
func TestNotReady(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(f *fixture)
		who     []quorum.NodeID
		cause   error // nil: it is decided
		missing string
	}{
		{"a new member is down", func(f *fixture) { f.Process("d").Crash() }, []quorum.NodeID{"b", "c", "d"}, env.ErrDeadline, "d"},
		{"all that stay are down but one", func(f *fixture) { f.Process("b").Crash() }, []quorum.NodeID{"a", "b", "d"}, nil, ""},
		{"a dead one is removed", func(f *fixture) { f.Process("a").Crash() }, []quorum.NodeID{"b", "c", "d"}, nil, ""},
		{"a dead one is removed, another dead one kept", func(f *fixture) { f.Process("c").Crash() }, []quorum.NodeID{"a", "b", "c", "d", "e"}, nil, ""},
		{"too few stay", func(f *fixture) { f.Process("b").Crash(); f.Process("c").Crash() }, []quorum.NodeID{"a", "b", "c"}, env.ErrDeadline, "b c"},
		{"nobody of that name", func(*fixture) {}, []quorum.NodeID{"b", "c", "x"}, env.ErrDeadline, "x"},
	} {
		f := threeNodes(t, sim.Config{})
		c.prepare(f)
		_, err := f.recon(f.proposer(), "p", c.who...)
		if c.cause == nil {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		notReady, ok := errors.AsType[*reconfig.NotReadyError](err)
		var missing []string
		if ok {
			for _, n := range notReady.Missing {
				missing = append(missing, string(n.Node))
			}
		}
		if !ok || !errors.Is(err, c.cause) || strings.Join(missing, " ") != c.missing || len(f.twin.proposed) != 0 {
			t.Errorf("%s: %v, want %s missing", c.name, err, c.missing)
		}
	}
}

// A refusal of one that is needed ends it at once.
func TestRefusalsAreNamed(t *testing.T) {
	f := threeNodes(t, sim.Config{})
	p := f.proposer()
	p.Cluster = "c2"
	before := f.Now()
	_, err := f.recon(p, "p", "b", "c", "d")
	notReady, ok := errors.AsType[*reconfig.NotReadyError](err)
	if !ok || !errors.Is(err, abd.ErrRefused) || f.Now()-before > 500*time.Millisecond {
		t.Fatalf("%v, after %v", err, f.Now()-before)
	}
	if said := notReady.Missing[0]; said.Refused == nil || !strings.Contains(said.Text, `cluster "c1"`) {
		t.Errorf("%+v", said)
	}
	// A new member that is an index behind is waited for.
	f = newFixture(t, sim.Config{}, reconfig.Rules{}, configuration(t, 1, "majority", "a", "b", "c"))
	f.AddClient("p")
	f.news["d"] = news(t, configuration(t, 0, "majority", "a"))
	_, err = f.recon(f.proposer(), "p", "b", "c", "d")
	if !errors.Is(err, env.ErrDeadline) || !strings.Contains(err.Error(), "d: the next configuration here is 1, not 2") {
		t.Errorf("a member that lags: %v", err)
	}
	f.At(500*time.Millisecond, func() { f.news["d"] = nil })
	if d, err := f.recon(f.proposer(), "p", "b", "c", "d"); err != nil || !d.Proposed || len(d.Ready) < 2 {
		t.Errorf("a member that has caught up: %+v, %v", d, err)
	}
}

// Growing from one to two when the second dies right after it said that it is
// ready: it is decided, or not, and whoever comes next is told the same.
func TestTheSecondDiesWhenItIsReady(t *testing.T) {
	var f *fixture
	f = newFixture(t, sim.Config{Observe: func(o sim.Observation) {
		if _, ok := o.Message.(*reconfig.Readied); ok && o.What == sim.Sent && o.From.ID() == "b" {
			f.At(0, func() { f.Process("b").PowerLoss(0) })
		}
	}}, reconfig.Rules{}, configuration(t, 0, "majority", "a"))
	f.AddClient("p")
	err := f.run("p", time.Second, func(e env.Env) error {
		_, err := f.proposer().Recon(e, reconfig.Proposal{Members: []quorum.NodeID{"a", "b"}})
		return err
	})
	if fragile, ok := errors.AsType[*reconfig.FragileError](err); !ok || fragile.Tolerance.Writes.Any != 0 {
		t.Errorf("not forced: %v", err)
	}
	var d reconfig.Decision
	if err := f.run("p", time.Second, func(e env.Env) (err error) {
		d, err = f.proposer().Recon(e, reconfig.Proposal{Members: []quorum.NodeID{"a", "b"}, Force: true})
		return err
	}); err != nil || !d.Proposed {
		t.Errorf("%v, %v", d.Configuration, err)
	}
	if err := f.Process("b").Restart(); err != nil {
		t.Fatal(err)
	}
	var state *reconfig.Pending
	if err := f.run("p", time.Second, func(e env.Env) error {
		return e.Ask([]quorum.NodeID{"b"}, &reconfig.Inquire{}, func(_ env.Conversation, _ quorum.NodeID, answer env.Message) bool {
			state = answer.(*reconfig.Pending)
			return true
		})
	}); err != nil || len(state.Ready) != 1 || !state.Ready[0].Equal(d.Configuration) {
		t.Errorf("after a power cut b says it was ready for %v, %v", state, err)
	}
}

// acceptAt has one node accept a configuration, as a proposer does that dies
// then.
func (f *fixture) acceptAt(id quorum.NodeID, c *quorum.Configuration) {
	f.t.Helper()
	req := &synod.Accept{Instance: reconfig.Instance(c.Index()), Ballot: ballot(c.Index()-1, 1), Value: c.Append(nil)}
	f.twin.ready[c.String()] = c.Members()
	if err := f.run("p", time.Second, func(e env.Env) error {
		return e.Ask([]quorum.NodeID{id}, req, func(_ env.Conversation, _ quorum.NodeID, answer env.Message) bool {
			_, ok := answer.(*synod.Accepted)
			return ok
		})
	}); err != nil {
		f.t.Fatal(err)
	}
}

func TestPending(t *testing.T) {
	f := threeNodes(t, sim.Config{})
	pending := func() (r *reconfig.Report, err error) {
		err = f.run("q", time.Second, func(e env.Env) (err error) {
			r, err = f.proposer().Pending(e)
			return err
		})
		return r, err
	}
	if r, err := pending(); err != nil || !r.Nothing() || r.Index != 1 {
		t.Errorf("nothing was begun: %+v, %v", r, err)
	}
	c1, other := configuration(t, 1, "majority", "b", "c", "d"), configuration(t, 1, "majority", "a", "b", "e")
	f.Process("d").Crash()
	_, err := f.recon(f.proposer(), "p", "b", "c", "d")
	if _, ok := errors.AsType[*reconfig.NotReadyError](err); !ok {
		t.Fatal(err)
	}
	if r, err := pending(); err != nil || r.Nothing() || len(r.Ready) != 1 || !r.Ready[0].Configuration.Equal(c1) || len(r.Accepted) != 0 {
		t.Errorf("some are ready: %+v, %v", r, err)
	}
	f.acceptAt("a", other)
	f.Process("c").Crash()
	r, err := pending()
	if err != nil || len(r.Accepted) != 1 || !r.Accepted[0].Configuration.Equal(other) || fmt.Sprint(r.Accepted[0].Nodes) != "[a]" || r.Promised.Round != 1 {
		t.Errorf("a has accepted: %+v, %v", r, err)
	}
	f.Process("b").Crash()
	if _, err := pending(); !errors.Is(err, env.ErrDeadline) || !strings.Contains(err.Error(), "; c: ") {
		t.Errorf("no read quorum: %v", err)
	}
	for _, id := range []quorum.NodeID{"b", "c"} {
		if err := f.Process(id).Restart(); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Process(id).Disk().SetCell("recon.vote.1", []byte("damaged")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pending(); !errors.Is(err, abd.ErrRefused) || !strings.Contains(err.Error(), "recon/1") {
		t.Errorf("damaged: %v", err)
	}
	f.news["a"] = news(t, f.present, c1)
	_, err = pending()
	if busy, ok := errors.AsType[*reconfig.BusyError](err); !ok || !busy.Decided.Equal(c1) {
		t.Errorf("it is decided: %v", err)
	}
}

func TestAbort(t *testing.T) {
	f := threeNodes(t, sim.Config{})
	abort := func() (c *quorum.Configuration, err error) {
		err = f.run("q", time.Second, func(e env.Env) (err error) {
			c, err = f.proposer().Abort(e)
			return err
		})
		return c, err
	}
	if c, err := abort(); err != reconfig.ErrNothingPending {
		t.Errorf("nothing is pending: %v, %v", c, err)
	}
	f.Process("d").Crash()
	if _, err := f.recon(f.proposer(), "p", "b", "c", "d"); err == nil {
		t.Fatal("decided without d")
	}
	again := configuration(t, 1, "majority", "a", "b", "c")
	for range 2 { // and once more, by who doesn't know
		if c, err := abort(); err != nil || !c.Equal(again) {
			t.Errorf("%v, %v, want the present members once more", c, err)
		}
	}
	if d, err := f.recon(f.proposer(), "p", "b", "c", "e"); err != nil || d.Proposed || !d.Configuration.Equal(again) {
		t.Errorf("proposed after the abort: %+v, %v", d, err)
	}
	for _, id := range []quorum.NodeID{"a", "b", "c"} {
		f.news[id] = news(t, f.present, again)
	}
	if c, err := abort(); err != nil || !c.Equal(again) {
		t.Errorf("aborted already, not installed yet: %v, %v", c, err)
	}
	if bad := f.twin.judge([]*quorum.Configuration{again}); bad != "" {
		t.Error(bad)
	}

	// Somebody has accepted it: nobody knows whether it is decided, so it must be.
	f = threeNodes(t, sim.Config{})
	c1 := configuration(t, 1, "majority", "b", "c", "d")
	f.acceptAt("b", c1)
	f.Process("a").Crash()
	_, err := abort()
	if late, ok := errors.AsType[*reconfig.TooLateError](err); !ok || !late.Decided.Equal(c1) {
		t.Errorf("accepted already: %v", err)
	}
	f.news["b"], f.news["c"] = news(t, f.present, c1), news(t, f.present, c1)
	_, err = abort()
	if late, ok := errors.AsType[*reconfig.TooLateError](err); !ok || !late.Decided.Equal(c1) {
		t.Errorf("decided and known: %v", err)
	}
	if bad := f.twin.judge([]*quorum.Configuration{c1}); bad != "" {
		t.Error(bad)
	}
}

// finish runs Finish on a node for some time.
func (f *fixture) finish(on quorum.NodeID, pause, limit time.Duration) (c *quorum.Configuration, err error) {
	f.t.Helper()
	err = f.run(on, limit, func(e env.Env) (err error) {
		c, err = f.proposer().Finish(e, pause)
		return err
	})
	return c, err
}

func TestFinish(t *testing.T) {
	f := threeNodes(t, sim.Config{})
	if c, err := f.finish("a", time.Second, 10*time.Second); !errors.Is(err, env.ErrDeadline) {
		t.Errorf("nothing was proposed: %v, %v", c, err)
	}
	c1 := configuration(t, 1, "majority", "b", "c", "d")
	f.acceptAt("a", c1)
	// b and c know nothing of it, and are a read quorum: it decides nothing.
	f.Cut(f.Process("a"), f.Process("b"))
	f.Cut(f.Process("a"), f.Process("c"))
	if c, err := f.finish("a", time.Second, 10*time.Second); !errors.Is(err, env.ErrDeadline) {
		t.Errorf("alone: %v, %v", c, err)
	}
	f.Mend(f.Process("a"), f.Process("b"))
	began := f.Now()
	c, err := f.finish("a", time.Second, 10*time.Second)
	if err != nil || !c.Equal(c1) || f.Now()-began < time.Second {
		t.Errorf("%v, %v, after %v", c, err, f.Now()-began)
	}
	// Meanwhile it is known.
	f.news["b"], f.news["c"] = news(t, f.present, c1), news(t, f.present, c1)
	if c, err := f.finish("a", time.Second, 10*time.Second); err != nil || !c.Equal(c1) {
		t.Errorf("known elsewhere: %v, %v", c, err)
	}
	if bad := f.twin.judge([]*quorum.Configuration{c1}); bad != "" {
		t.Error(bad)
	}
	f.news["a"] = news(t, f.present, c1)
	if c, err := f.finish("a", time.Second, 10*time.Second); !errors.Is(err, env.ErrDeadline) {
		t.Errorf("known here: %v, %v", c, err)
	}
}

// A vote that a read quorum knows nothing of is left alone, and so is whoever
// proposes something else: it is looked into once.
func TestFinishLeavesOrphansAlone(t *testing.T) {
	f := newFixture(t, sim.Config{Sync: func(id quorum.NodeID) sim.Delay {
		if id == "a" {
			return sim.Constant(50 * time.Millisecond) // so that b, a read quorum alone, promises first
		}
		return sim.Constant(time.Millisecond)
	}}, reconfig.Rules{}, configuration(t, 0, "get=1,put=3", "a", "b", "c"))
	f.AddClient("p")
	f.acceptAt("a", configuration(t, 1, "majority", "b", "c", "d"))
	asked := 0
	f.Narrow(func(_ *sim.Process, req env.Message) (quorum.Configurations, sim.Need) {
		if _, ok := req.(*synod.Prepare); ok {
			asked++
		}
		return nil, sim.NeedNothing
	})
	if c, err := f.finish("a", time.Second, time.Minute); !errors.Is(err, env.ErrDeadline) || asked != 1 {
		t.Errorf("%v, %v, asked %d times", c, err, asked)
	}
}
