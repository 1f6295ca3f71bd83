package simreal_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/replica"
	"atoll/sim/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setting is a cluster and an algorithm.
type setting struct {
	algorithm scenario.Algorithm
	members   int
	quorum    string
}

func settings() []setting {
	all := []setting{
		{scenario.ABD{}, 3, "get=1,put=3"},
		{scenario.ABD{}, 4, "get=3,put=2"},
		{scenario.ABD{}, 4, "grid=2x2"},
	}
	for _, a := range scenario.Algorithms() {
		all = append(all, setting{a, 3, "majority"})
	}
	return all
}

func (s setting) String() string {
	return fmt.Sprintf("%s of %d, %s", s.algorithm.Name(), s.members, s.quorum)
}

// world is where a workload runs.
type world interface {
	// run runs f for a client, and returns when the cluster has fallen silent.
	run(client int, f func(env.Env, scenario.Client) error) error
	// counts is what the workload has taken so far.
	counts() *counts
}

// clients is how many clients share the work.
const clients = 2

// step is one operation of the workload.
type step struct {
	name   string
	client int
	run    func(env.Env, scenario.Client) error
}

func read(client int, key abd.Key, want string) step {
	return step{fmt.Sprintf("client %d reads %s", client, key), client, func(e env.Env, c scenario.Client) error {
		r, err := c.Read(e, key)
		if err == nil && (r.Absent() != (want == "") || string(r.Value) != want) {
			err = fmt.Errorf("read %.20q (absent: %v), want %.20q", r.Value, r.Absent(), want)
		}
		return err
	}}
}

func write(client int, key abd.Key, value string) step {
	op := abd.Operation{Key: key, Value: []byte(value), Delete: value == ""}
	return step{fmt.Sprintf("client %d writes %.20q to %s", client, value, key), client, func(e env.Env, c scenario.Client) error {
		_, err := c.Write(e, op)
		return err
	}}
}

func list(client int, want ...abd.Key) step {
	return step{fmt.Sprintf("client %d lists", client), client, func(e env.Env, c scenario.Client) error {
		l, ok := c.(scenario.Lister)
		if !ok {
			return nil
		}
		listed, _, more, err := l.List(e, "", "", abd.MaxPage)
		if err != nil {
			return err
		}
		var got []abd.Key
		for _, k := range listed {
			got = append(got, k.Key)
		}
		if !slices.Equal(got, want) || more {
			return fmt.Errorf("listed %v (more: %v), want %v", got, more, want)
		}
		return nil
	}}
}

// large is a value that one member sends.
var large = strings.Repeat("v", abd.DefaultInline+1)

// workload is what is run in both worlds. Each key has one writer, so that
// every algorithm can run it.
func workload() []step {
	return []step{
		read(0, "a", ""),
		list(0),
		write(0, "a", "one"),
		read(0, "a", "one"),
		read(1, "a", "one"),
		write(1, "b", "two"),
		write(1, "b", "three"),
		read(0, "b", "three"),
		list(1, "a", "b"),
		write(0, "a", ""),
		read(1, "a", ""),
		list(0, "b"),
		write(0, "a", "four"),
		write(0, "c", "five"),
		list(1, "a", "b", "c"),
		read(1, "c", "five"),
		read(1, "d", ""),
		write(1, "e", large),
		read(0, "e", large),
	}
}

// counts is what was sent and what has come, each message once however often
// it was sent again.
type counts struct {
	mu       sync.Mutex
	rounds   int
	messages map[string]int // by type
	seen     map[exchange]bool
	told     int
	asked    int // that want an answer
	answered int
	change   chan struct{} // closed when answered changes
}

// exchange is one message between a client and a node.
type exchange struct {
	client       int
	node         quorum.NodeID
	conversation uint64
	answer       bool
	told         int // tells apart what has no conversation
}

func newCounts() *counts {
	return &counts{messages: make(map[string]int), seen: make(map[exchange]bool), change: make(chan struct{})}
}

func (c *counts) round() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rounds++
}

func (c *counts) count(x exchange, m env.Message) {
	switch m.(type) {
	case *replica.StatusQuery, *replica.Status:
		return // not the workload's
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.conversation == 0 {
		c.told++ // it is never sent again
		x.told = c.told
	}
	if c.seen[x] {
		return
	}
	c.seen[x] = true
	c.messages[name(m)]++
	switch {
	case x.answer:
		c.answered++
		close(c.change)
		c.change = make(chan struct{})
	case x.conversation != 0:
		c.asked++
	}
}

// silent reports whether everything was answered, and what is closed when that
// may have changed.
func (c *counts) silent() (bool, chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked == c.answered, c.change
}

func name(m env.Message) string { return strings.TrimPrefix(fmt.Sprintf("%T", m), "*abd.") }

// take returns what was counted since the last take.
func (c *counts) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%d rounds", c.rounds)
	for _, kind := range slices.Sorted(maps.Keys(c.messages)) {
		fmt.Fprintf(&b, ", %d %s", c.messages[kind], kind)
	}
	c.rounds = 0
	clear(c.messages)
	return b.String()
}

// counting is an Env that counts rounds.
type counting struct {
	env.Env
	counts *counts
}

// Ask implements env.Env.
func (c *counting) Ask(to []quorum.NodeID, req env.Message, each func(env.Conversation, quorum.NodeID, env.Message) bool) error {
	return c.AskSome(to, nil, req, each)
}

// AskSome implements env.Env.
func (c *counting) AskSome(first, spare []quorum.NodeID, req env.Message, each func(env.Conversation, quorum.NodeID, env.Message) bool) error {
	c.counts.round()
	return c.Env.AskSome(first, spare, req, each)
}

// measure runs the workload, and returns what each step took.
func measure(t *testing.T, w world) []string {
	t.Helper()
	var took []string
	for _, s := range workload() {
		if err := w.run(s.client, s.run); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		took = append(took, fmt.Sprintf("%s: %s", s.name, w.counts().take()))
	}
	return took
}

func TestSimulatedAndRealTakeTheSame(t *testing.T) {
	for _, s := range settings() {
		t.Run(s.String(), func(t *testing.T) {
			simulated, real := measure(t, newSimulated(t, s)), measure(t, newReal(t, s))
			for i := range simulated {
				if simulated[i] != real[i] {
					t.Errorf("simulated: %s\n      real: %s", simulated[i], real[i])
				}
				t.Log(simulated[i])
			}
		})
	}
}
