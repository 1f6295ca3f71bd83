package scenario_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim"
	"atoll/sim/scenario"
)

// sloppy is an algorithm that is wrong: it reads from whoever answers first,
// and, if it is untagged, says nothing of tags.
type sloppy struct {
	scenario.ABD
	traits scenario.Traits
}

func (sloppy) Name() string              { return "sloppy" }
func (s sloppy) Traits() scenario.Traits { return s.traits }
func (s sloppy) Client(c scenario.Cluster) scenario.Client {
	return &sloppyClient{Client: s.ABD.Client(c), members: c.Configurations.Members()}
}

type sloppyClient struct {
	scenario.Client
	members []quorum.NodeID
}

func (c *sloppyClient) Read(e env.Env, key abd.Key) (abd.Record, error) {
	var found abd.Record
	err := e.Ask(c.members, &abd.Get{Key: key}, func(_ env.Conversation, _ quorum.NodeID, answer env.Message) bool {
		ack, ok := answer.(*abd.GetAck)
		if ok {
			found = ack.Record
		}
		return ok
	})
	return found, err
}

// A wrong algorithm is found out by each kind of check alone.
func TestAWrongAlgorithm(t *testing.T) {
	for _, c := range []struct {
		name   string
		traits scenario.Traits
		want   string
	}{
		{"by its history", scenario.Traits{}, "linearizable"},
		{"by its tags", scenario.Traits{Tags: true}, "tag-order"},
		{"by its quorums", scenario.Traits{Needs: scenario.ABD{}.Traits().Needs}, "quorum"},
		{"by what is durable", scenario.Traits{Tags: true, Settles: true}, "durable-on-quorum"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := builtin(t, "quiet")
			for seed := range uint64(40) {
				r := mustRun(t, s.Draw(seed), scenario.Options{Algorithm: sloppy{traits: c.traits}})
				if r.Violation == nil {
					continue
				}
				if r.Violation.Rule != c.want {
					t.Errorf("got %v, want rule %q", r.Violation, c.want)
				}
				if v := r.Violation; v.Key == "" || !strings.Contains(v.Error(), "read") {
					t.Errorf("the violation doesn't show the key's history: %v", v)
				}
				return
			}
			t.Error("it wasn't found out")
		})
	}
}

// stuck is an algorithm that is right, and not wait-free: it panics or hangs.
type stuck struct {
	scenario.ABD
	read func(e env.Env) error
}

func (s stuck) Client(c scenario.Cluster) scenario.Client {
	return &stuckClient{s.ABD.Client(c), s.read}
}

type stuckClient struct {
	scenario.Client
	read func(e env.Env) error
}

func (c *stuckClient) Read(e env.Env, _ abd.Key) (abd.Record, error) { return abd.Record{}, c.read(e) }

func TestViolationsThatAreNoHistories(t *testing.T) {
	for _, c := range []struct {
		name string
		read func(e env.Env) error
		want string
	}{
		{"it waits for ever", func(e env.Env) error { return e.Sleep(time.Hour) }, "liveness"},
		{"it panics", func(env.Env) error { panic("so it goes") }, "panic"},
		{"it takes many rounds", func(e env.Env) error {
			for range 3 {
				if err := e.Ask([]quorum.NodeID{"n1"}, &replica.StatusQuery{}, func(env.Conversation, quorum.NodeID, env.Message) bool { return true }); err != nil {
					return err
				}
			}
			return nil
		}, "rounds"},
		{"it fails at last", func(env.Env) error { return errors.New("I can't read") }, "liveness"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := builtin(t, "quiet")
			s.Operations, s.Clients, s.Mix = 5, 1, scenario.Mix{Read: 1}
			r := mustRun(t, s.Draw(1), scenario.Options{Algorithm: stuck{read: c.read}})
			if r.Violation == nil || r.Violation.Rule != c.want {
				t.Errorf("got %v, want rule %q", r.Violation, c.want)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		name, want string
		set        func(b *scenario.Bounds)
	}{
		{"rounds", "rounds", func(b *scenario.Bounds) { b.WriteRounds = 1 }},
		{"messages", "messages", func(b *scenario.Bounds) { b.Messages = 12 }},
		{"none", "", func(b *scenario.Bounds) { b.Messages = 60 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := builtin(t, "quiet")
			c.set(&s.Bounds)
			r := mustRun(t, s.Draw(1), scenario.Options{})
			got := ""
			if r.Violation != nil {
				got = r.Violation.Rule
			}
			if got != c.want {
				t.Errorf("got %v, want %q", r.Violation, c.want)
			}
		})
	}
}

// A client that lets no time pass ends its run, however it does that.
func TestNoProgress(t *testing.T) {
	for _, c := range []struct {
		name string
		read func(e env.Env) error
	}{
		{"it sleeps for no time", func(e env.Env) error {
			for {
				if err := e.Sleep(0); err != nil {
					return err
				}
			}
		}},
		{"it doesn't notice that it is over", func(e env.Env) error {
			for {
				_ = e.Sleep(time.Hour)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := builtin(t, "quiet")
			s.Clients, s.Think, s.Mix, s.Timeout = 1, 0, scenario.Mix{Read: 1}, scenario.Duration(100*time.Millisecond)
			r := mustRun(t, s.Draw(7), scenario.Options{Algorithm: stuck{read: c.read}})
			if r.Violation == nil || r.Violation.Rule != "no-progress" {
				t.Fatalf("got %v, want rule no-progress", r.Violation)
			}
			for _, want := range []string{"seed 7", `"p1"`} {
				if !strings.Contains(r.Violation.Text, want) {
					t.Errorf("%q doesn't say %s", r.Violation.Text, want)
				}
			}
		})
	}
}

// fragile is an algorithm whose nodes panic.
type fragile struct{ scenario.ABD }

func (fragile) Node(scenario.Cluster, quorum.NodeID, replica.Store) (sim.Stepper, error) {
	return fragileNode{}, nil
}

type fragileNode struct{}

func (fragileNode) Step(env.Address, env.Message, []env.Out) ([]env.Out, error) {
	panic("so it goes")
}

func TestAPanicInAStep(t *testing.T) {
	s := builtin(t, "quiet")
	s.Nodes = 1
	r := mustRun(t, s.Draw(1), scenario.Options{Algorithm: fragile{}})
	if r.Violation == nil || r.Violation.Rule != "panic" {
		t.Fatalf("got %v, want rule panic", r.Violation)
	}
	for _, want := range []string{"so it goes", "on n1, with a *abd.Get", "fragileNode.Step"} {
		if !strings.Contains(r.Violation.Text, want) {
			t.Errorf("%q doesn't say %s", r.Violation.Text, want)
		}
	}
}

func TestTraitsThatContradict(t *testing.T) {
	_, err := scenario.Run(builtin(t, "quiet").Draw(1), scenario.Options{Algorithm: sloppy{traits: scenario.Traits{Settles: true}}})
	if err == nil || !strings.Contains(err.Error(), "Settles") || !strings.Contains(err.Error(), "sloppy") {
		t.Errorf("got %v, want an error about Settles of sloppy", err)
	}
}
