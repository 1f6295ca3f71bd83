package synod_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
	"atoll/synod"
)

// fixture is a world of acceptors a, b and c, whose guards a test can change.
type fixture struct {
	*sim.World
	t        *testing.T
	guards   map[quorum.NodeID]*guard
	config   *quorum.Configuration
	proposer synod.Proposer
}

func newFixture(t *testing.T, index quorum.ConfigIndex) *fixture {
	f := &fixture{World: sim.New(sim.Config{Seed: 1}), t: t, guards: make(map[quorum.NodeID]*guard), config: configuration(t, index, "majority", "a", "b", "c")}
	t.Cleanup(f.Close)
	f.proposer.Configuration = f.config
	for _, id := range f.config.Members() {
		f.guards[id] = &guard{index: index}
		if _, err := f.AddNode(id, func(p *sim.Process) (sim.Stepper, error) {
			return synod.NewAcceptor(cells{p.Disk()}, f.guards[id], synod.Rules{}), nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	f.AddClient("p")
	return f
}

// run runs an operation of p to its end, for a second at most.
func (f *fixture) run(op func(e env.Env) ([]byte, error)) (got string, err error) {
	f.t.Helper()
	scope := f.Process("p").Scope(time.Second)
	scope.Start(func(e env.Env) error {
		b, err := op(e)
		got = string(b)
		return err
	})
	if err := f.Wait(time.Minute, scope); err != nil {
		f.t.Fatal(err)
	}
	return got, scope.Err()
}

func (f *fixture) propose(value string) (string, error) {
	return f.run(func(e env.Env) ([]byte, error) { return f.proposer.Propose(e, instance, []byte(value)) })
}

func (f *fixture) learn() (string, error) {
	return f.run(func(e env.Env) ([]byte, error) { return f.proposer.Learn(e, instance) })
}

func TestProposeAndLearn(t *testing.T) {
	f := newFixture(t, 0)
	if got, err := f.learn(); got != "" || err != synod.ErrNothing {
		t.Errorf("learned %q, %v, and nothing was proposed", got, err)
	}
	if got, err := f.propose("x"); got != "x" || err != nil {
		t.Errorf("proposed x: %q, %v", got, err)
	}
	if got, err := f.propose("y"); got != "x" || err != nil {
		t.Errorf("proposed y: %q, %v", got, err)
	}
	if got, err := f.learn(); got != "x" || err != nil {
		t.Errorf("learned %q, %v", got, err)
	}
}

// What a single member has accepted isn't chosen yet. Whoever learns makes it so.
func TestLearnFinishesWhatWasBegun(t *testing.T) {
	f := newFixture(t, 0)
	scope := f.Process("p").Scope(0)
	scope.Start(func(e env.Env) error {
		return e.Ask([]quorum.NodeID{"b"}, accept(ballot(1, 9), "begun"), func(_ env.Conversation, _ quorum.NodeID, answer env.Message) bool { return true })
	})
	if err := f.Wait(time.Second, scope); err != nil {
		t.Fatal(err)
	}
	f.Process("a").Crash()
	if got, err := f.learn(); got != "begun" || err != nil {
		t.Errorf("learned %q, %v", got, err)
	}
	if err := f.Process("a").Restart(); err != nil {
		t.Fatal(err)
	}
	f.Process("b").Crash()
	if got, err := f.propose("x"); got != "begun" || err != nil {
		t.Errorf("without who accepted it first: %q, %v", got, err)
	}
}

// The next configuration is known: nobody votes, and the proposer is told which
// it is.
func TestClosed(t *testing.T) {
	f := newFixture(t, 0)
	next := configuration(t, 1, "majority", "d")
	m, err := quorum.NewMap(f.config, next)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := quorum.NewMap(f.config)
	if err != nil {
		t.Fatal(err)
	}
	known := &configurationsKnown{mine}
	f.proposer.Known = known
	*f.guards["c"] = guard{closed: true, news: &quorum.News{Map: m}}
	f.Process("a").Crash()
	_, err = f.propose("x")
	if closed, ok := errors.AsType[*synod.ClosedError](err); !ok || closed.Index != 0 || closed.Horizon.Next != 2 || !strings.Contains(err.Error(), "configuration 1") {
		t.Errorf("got %v", err)
	}
	if c, ok := known.m.Find(1); !ok || !c.Equal(next) {
		t.Errorf("the proposer knows %v", known.m)
	}
}

// Members that lag are waited for, and named when the time is over. Those that
// can't vote aren't waited for.
func TestWhoDoesntVote(t *testing.T) {
	f := newFixture(t, 7)
	f.guards["a"].index, f.guards["b"].index = 6, 6
	_, err := f.propose("x")
	q, ok := errors.AsType[*abd.QuorumError](err)
	if !ok || q.Effect != abd.NotApplied || !errors.Is(err, env.ErrDeadline) || len(q.Nodes) != 2 || q.Nodes[0].Node != "a" || !strings.Contains(q.Nodes[1].Text, "isn't installed there yet") {
		t.Errorf("lagging members: %v, want a and b named", err)
	}
	f.At(300*time.Millisecond, func() { f.guards["b"].index = 7 })
	if got, err := f.propose("x"); got != "x" || err != nil {
		t.Errorf("the last of them has caught up: %q, %v", got, err)
	}
	f.guards["a"].index = 7
	for _, id := range []quorum.NodeID{"b", "c"} {
		if _, err := f.Process(id).Disk().SetCell("synod."+string(instance), []byte("damaged")); err != nil {
			t.Fatal(err)
		}
	}
	before := f.Now()
	_, err = f.propose("y")
	if q, ok := errors.AsType[*abd.QuorumError](err); !ok || !errors.Is(err, abd.ErrRefused) || len(q.Nodes) < 2 || f.Now()-before > 500*time.Millisecond {
		t.Errorf("damaged: %v, after %v", err, f.Now()-before)
	}
}

func TestProposeChecksFirst(t *testing.T) {
	f := newFixture(t, 0)
	for _, value := range []string{"", strings.Repeat("v", synod.MaxValue+1)} {
		if _, err := f.propose(value); !isSize(err) {
			t.Errorf("a value of %d bytes: %v", len(value), err)
		}
	}
	_, err := f.run(func(e env.Env) ([]byte, error) { return f.proposer.Learn(e, "") })
	if !isSize(err) {
		t.Errorf("an instance without a name: %v", err)
	}
}

func isSize(err error) bool {
	_, ok := errors.AsType[*abd.SizeError](err)
	return ok
}

// A promise of the largest round leaves nothing to try.
func TestTheLastRound(t *testing.T) {
	f := newFixture(t, 0)
	scope := f.Process("p").Scope(0)
	scope.Start(func(e env.Env) error {
		return e.Ask(f.config.Members(), prepare(ballot(1<<64-1, 9)), func(_ env.Conversation, from quorum.NodeID, _ env.Message) bool { return from == "c" })
	})
	if err := f.Wait(time.Second, scope); err != nil {
		t.Fatal(err)
	}
	if _, err := f.propose("x"); err == nil || !strings.Contains(err.Error(), "no larger round") {
		t.Errorf("got %v", err)
	}
}
