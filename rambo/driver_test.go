package rambo_test

import (
	"fmt"
	"testing"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/reconfig"
	"atoll/repair"
	"atoll/replica"
	"atoll/sim"
)

// exchange is a world of four nodes, a b c d, of which the first three are members,
// and an operator who puts others in their places.
type exchange struct {
	*sim.World
	t        *testing.T
	nodes    []*sim.Process
	operator *sim.Process
	proposer *reconfig.Proposer
}

func newExchange(t *testing.T, pace rambo.Pace) *exchange {
	t.Helper()
	return newExchangeWith(t, pace, func(_ quorum.NodeID, n *replica.Node) sim.Stepper { return n })
}

// newExchangeWith makes of each node what wrap returns.
func newExchangeWith(t *testing.T, pace rambo.Pace, wrap func(quorum.NodeID, *replica.Node) sim.Stepper) *exchange {
	t.Helper()
	x := &exchange{t: t, World: sim.New(sim.Config{
		Seed: 1,
		Link: func(_, _ quorum.NodeID) sim.Link { return sim.Link{Delay: sim.Table(time.Millisecond)} },
		Sync: func(quorum.NodeID) sim.Delay { return sim.Table(time.Millisecond) },
	})}
	t.Cleanup(x.Close)
	first, err := quorum.NewConfiguration(0, []quorum.NodeID{"a", "b", "c"}, quorum.System{})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []quorum.NodeID{"a", "b", "c", "d"} {
		p, err := x.AddNode(id, func(p *sim.Process) (sim.Stepper, error) {
			n, err := replica.New(replica.Config{
				Cluster: "one", Self: p.ID(), MaxValue: 1000, Configurations: quorum.Configurations{first},
				Members:         []quorum.Member{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}},
				Reconfiguration: pace,
			}, p.Disk())
			if err != nil {
				return nil, err
			}
			return wrap(p.ID(), n), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		x.nodes = append(x.nodes, p)
	}
	known, err := quorum.NewMap(first)
	if err != nil {
		t.Fatal(err)
	}
	x.operator = x.AddClient("operator")
	x.proposer = &reconfig.Proposer{Cluster: "one", Known: rambo.NewCMap(known)}
	return x
}

// do runs what the operator does until it is done.
func (x *exchange) do(what func(env.Env) error) {
	x.t.Helper()
	s := x.operator.Scope(0)
	s.Start(what)
	if err := x.Wait(time.Minute, s); err != nil || s.Err() != nil {
		x.t.Fatal(err, s.Err())
	}
}

// decide has the nodes agree on other members.
func (x *exchange) decide(members ...quorum.NodeID) {
	x.t.Helper()
	x.do(func(e env.Env) error {
		_, err := rambo.Recon(e, x.proposer, reconfig.Proposal{Members: members})
		return err
	})
}

// installed returns the newest configuration that all nodes know to be installed,
// and tells the operator of it.
func (x *exchange) installed() quorum.ConfigIndex {
	least := mapOn(x.nodes[0])
	for _, p := range x.nodes[1:] {
		if m := mapOn(p); m.Installed().Index() < least.Installed().Index() {
			least = m
		}
	}
	x.proposer.Known.Learn(&quorum.News{Map: least})
	return least.Installed().Index()
}

// fill writes keys whose records have 1,000 bytes each.
func (x *exchange) fill(keys int) { x.fillWith(keys, func(int) int { return 994 }) }

// fillWith writes keys with values of such sizes.
func (x *exchange) fillWith(keys int, size func(i int) int) {
	x.t.Helper()
	registers := &abd.Registers{Known: x.proposer.Known, MaxValue: 1000}
	x.do(func(e env.Env) error {
		for i := range keys {
			if _, err := registers.Write(e, abd.Operation{Key: abd.Key(fmt.Sprintf("key %2d", i)), Value: make([]byte, size(i))}); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestOneDriverIsEnough: one node takes another one's place and leaves it again,
// over and over, in a store that fits on a page. The member whose turn it is brings
// each step to its end; the next one's turn would be in an hour.
func TestOneDriverIsEnough(t *testing.T) {
	x := newExchange(t, rambo.Pace{Turn: time.Hour, Patience: time.Hour})
	for k := quorum.ConfigIndex(1); k <= 6; k++ {
		x.decide("a", "b", []quorum.NodeID{"c", "d"}[k%2])
		x.RunFor(40 * time.Millisecond) // sooner than what isn't answered is asked again
		if got := x.installed(); got != k {
			t.Fatalf("in the end configuration %d is installed, want %d", got, k)
		}
	}
}

// TestAMergeKeepsToItsRate: what a new member has to take over, 20,000 bytes, takes
// it two seconds at 10,000 bytes a second.
func TestAMergeKeepsToItsRate(t *testing.T) {
	x := newExchange(t, rambo.Pace{Rate: 10_000, Page: 1, Patience: time.Hour})
	x.fill(20)
	x.decide("a", "b", "d")
	x.RunFor(1500 * time.Millisecond)
	if got := x.installed(); got != 0 {
		t.Errorf("configuration %d is installed after a second and a half", got)
	}
	x.RunFor(1500 * time.Millisecond)
	if got := x.installed(); got != 1 {
		t.Errorf("configuration %d is installed after three seconds", got)
	}
}

// TestAMergeBringsEachRecordOnce: whatever the sizes of records, and wherever pages
// end because of them, a new member takes over each record, and once.
func TestAMergeBringsEachRecordOnce(t *testing.T) {
	for _, c := range []struct {
		name       string
		keys, page int
		size       func(i int) int
	}{
		{"equal", 1000, 100, func(int) int { return 10 }},
		{"nothing", 1000, 7, func(int) int { return 0 }},
		{"small among large", 3000, 0, func(i int) int { return 10 + i%7/6*980 }},
		// Pages are larger than what they were taken for.
		{"growing in the order of the keys", 6000, 0, func(i int) int {
			if fmt.Sprintf("key %2d", i) < "key 2" {
				return 10
			}
			return 990
		}},
	} {
		x := newExchange(t, rambo.Pace{Rate: -1, Page: c.page, Patience: time.Hour})
		x.fillWith(c.keys, c.size)
		x.decide("a", "b", "d")
		x.RunFor(5 * time.Second)
		if got := x.installed(); got != 1 {
			t.Fatalf("%s: configuration %d is installed", c.name, got)
		}
		if got := x.progress("d"); got.Keys != int64(c.keys) || !got.Done {
			t.Errorf("%s: d has taken over %d records of %d: %+v", c.name, got.Keys, c.keys, got)
		}
	}
}

// wayward is a node that answers some requests in its own way, and counts them.
type wayward struct {
	*replica.Node
	answer  func(env.Message) env.Message // nil: as a node does
	counted *int
}

func (n wayward) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	if own := n.answer(m); own != nil {
		*n.counted++
		return append(out, env.Out{To: from, Message: own}), nil
	}
	return n.Node.Step(from, m, out)
}

// newExchangeWithAWaywardB is newExchangeWith where b answers in its own way.
func newExchangeWithAWaywardB(t *testing.T, answer func(env.Message) env.Message, counted *int) *exchange {
	t.Helper()
	return newExchangeWith(t, rambo.Pace{Patience: time.Hour}, func(id quorum.NodeID, n *replica.Node) sim.Stepper {
		if id == "b" {
			return wayward{n, answer, counted}
		}
		return n
	})
}

// TestWhoStaysBehind: a member that was told of the new configuration and refuses
// its page nevertheless isn't asked over and over, and the others do without it.
func TestWhoStaysBehind(t *testing.T) {
	refused := 0
	x := newExchangeWithAWaywardB(t, func(m env.Message) env.Message {
		switch m.(type) {
		case *repair.Offer, *repair.Summarize: // it gives no page
			return &env.Refused{Reason: env.ReasonBehind}
		}
		return nil
	}, &refused)
	x.decide("a", "b", "d")
	x.nodes[2].Pause()
	x.RunFor(5 * time.Second)
	if refused == 0 || refused > 50 {
		t.Errorf("while nobody else can give the page b has refused it %d times in 5 s, want a few", refused)
	}
	x.nodes[2].Resume()
	x.RunFor(time.Second)
	if got := x.installed(); got != 1 {
		t.Errorf("when the third member is back configuration %d is installed, want 1", got)
	}
}

// TestASummaryThatNobodyAskedFor: a node comes back that lacks a few records, and asks
// others for what they have. One of them answers with a summary. It isn't asked over
// and over, nor does it count.
func TestASummaryThatNobodyAskedFor(t *testing.T) {
	asked := 0
	x := newExchangeWithAWaywardB(t, func(m env.Message) env.Message {
		if _, ok := m.(*repair.Offer); ok {
			return &repair.Summary{}
		}
		return nil
	}, &asked)
	x.fill(20)
	x.decide("a", "b", "d")
	x.RunFor(time.Second)
	if got := x.installed(); got != 1 {
		t.Fatalf("configuration %d is installed, want 1", got)
	}
	x.fill(3)
	x.nodes[3].Pause()
	asked = 0
	x.decide("a", "b", "c")
	x.RunFor(5 * time.Second)
	if merged := x.progress("c").Index == 2; merged || asked == 0 || asked > 50 {
		t.Errorf("while nobody else can say what it has, c has merged: %t; b was asked %d times in 5 s, want a few", merged, asked)
	}
	x.nodes[3].Resume()
	x.RunFor(time.Second)
	if got := x.installed(); got != 2 {
		t.Errorf("in the end configuration %d is installed, want 2", got)
	}
}

// TestAnswersThatMakeNoSense: a page whose end a member makes up, or that goes back, is
// asked of others, and nothing is left out.
func TestAnswersThatMakeNoSense(t *testing.T) {
	locates := func(answer repair.Summary) func(env.Message) env.Message {
		return func(m env.Message) env.Message {
			if s, ok := m.(*repair.Summarize); ok && s.Cut {
				return &answer
			}
			return nil
		}
	}
	for name, answer := range map[string]func(env.Message) env.Message{
		"the page ends before it begins": locates(repair.Summary{Keys: 1, Last: "!"}),
		"it has more than it may":        locates(repair.Summary{Keys: 1 << 30, Last: "~"}),
		"its records end before they begin": func(m env.Message) env.Message {
			if o, ok := m.(*repair.Offer); ok && o.After != "" {
				return &repair.Missing{Records: repair.Records{More: true, Last: "!"}}
			}
			return nil
		},
	} {
		answers := 0
		once := func(m env.Message) env.Message { // of whoever is asked first
			if answers > 0 {
				return nil
			}
			return answer(m)
		}
		x := newExchangeWith(t, rambo.Pace{Page: 4, Patience: time.Hour}, func(_ quorum.NodeID, n *replica.Node) sim.Stepper {
			return wayward{n, once, &answers}
		})
		x.fill(40)
		x.decide("a", "b", "d")
		x.RunFor(10 * time.Second)
		if got, p := x.installed(), x.progress("d"); answers != 1 || got != 1 || p.Keys != 40 || !p.Done {
			t.Errorf("%s: after %d such answers configuration %d is installed, and d has merged %+v", name, answers, got, p)
		}
	}
}

// TestAMergeGoesOnAfterACrash: a new member that loses power in the middle of a merge has
// not merged all when it is back, and goes on behind what it has.
func TestAMergeGoesOnAfterACrash(t *testing.T) {
	x := newExchange(t, rambo.Pace{Rate: 10_000, Page: 1, Patience: time.Hour})
	x.fill(20)
	x.decide("a", "b", "d")
	x.RunFor(time.Second)
	for range 3 {
		x.nodes[3].PowerLoss(0)
		if err := x.nodes[3].Restart(); err != nil {
			t.Fatal(err)
		}
		x.RunFor(100 * time.Millisecond)
		if p := x.progress("d"); x.installed() != 0 || p.Done || p.Keys < 5 || p.Keys > 15 {
			t.Fatalf("half of the records are there when d comes back, and it has merged %+v", p)
		}
	}
	x.RunFor(3 * time.Second)
	if got, p := x.installed(), x.progress("d"); got != 1 || p.Keys != 20 || !p.Done {
		t.Errorf("in the end configuration %d is installed, and d has merged %+v", got, p)
	}
}

// TestWhoHasMergedMergesAgain: a member that has merged all for the configuration by which
// it came, and lacks what was written since, isn't through with the next one.
func TestWhoHasMergedMergesAgain(t *testing.T) {
	x := newExchange(t, rambo.Pace{Rate: 10_000, Page: 1, Patience: time.Hour})
	x.fill(20)
	x.decide("a", "b", "d")
	x.RunFor(5 * time.Second)
	if got, p := x.installed(), x.progress("d"); got != 1 || !p.Done {
		t.Fatalf("configuration %d is installed, and d has merged %+v", got, p)
	}
	x.nodes[3].Crash()
	x.do(func(e env.Env) error {
		_, err := (&abd.Registers{Known: x.proposer.Known, MaxValue: 1000}).Write(e, abd.Operation{Key: "late", Value: []byte("x")})
		return err
	})
	if err := x.nodes[3].Restart(); err != nil {
		t.Fatal(err)
	}
	x.do(func(e env.Env) error {
		_, err := rambo.Recon(e, x.proposer, reconfig.Proposal{Members: []quorum.NodeID{"d"}, Force: true})
		return err
	})
	for x.installed() != 2 && x.Now() < time.Minute {
		x.RunFor(time.Millisecond)
	}
	if r, _, err := x.nodes[3].Disk().Load("late", true); x.installed() != 2 || err != nil || string(r.Value) != "x" {
		t.Errorf("configuration %d is installed, and d, alone in it, has %q, %v", x.installed(), r.Value, err)
	}
}

// TestWhoKnowsOfNoCut: a member of an older version that is asked where a page ends hashes
// one key more than it was asked for, and says nothing of what it has behind. It doesn't
// count, though another one has no more than those keys.
func TestWhoKnowsOfNoCut(t *testing.T) {
	for lacks := range 2 { // a or b; the other one may be asked where the page ends
		asked := 0
		x := newExchangeWith(t, rambo.Pace{Page: 8, Patience: time.Hour}, func(id quorum.NodeID, n *replica.Node) sim.Stepper {
			return wayward{n, func(m env.Message) env.Message {
				if s, ok := m.(*repair.Summarize); ok && s.Cut {
					s.Cut = false
					asked++
				}
				return nil
			}, new(int)}
		})
		x.fill(23) // two pages, and one key more than a page has of which its end is asked for
		x.nodes[lacks].Crash()
		x.do(func(e env.Env) error {
			_, err := (&abd.Registers{Known: x.proposer.Known, MaxValue: 1000}).Write(e, abd.Operation{Key: "last", Value: []byte("x")})
			return err
		})
		x.nodes[2].Pause()
		if err := x.nodes[lacks].Restart(); err != nil {
			t.Fatal(err)
		}
		x.decide("a", "b", "d")
		x.RunFor(5 * time.Second)
		if p := x.progress("d"); asked == 0 || p.Keys != 24 || !p.Done {
			t.Errorf("%d lacks a key: asked %d times where a page ends, d has merged %+v, want 24 keys", lacks, asked, p)
		}
	}
}

// progress returns how far a node has come with merging.
func (x *exchange) progress(node quorum.NodeID) (p rambo.Progress) {
	x.t.Helper()
	x.do(func(e env.Env) error {
		answer, err := env.AskOne[*rambo.SoFar](e, node, &rambo.HowFar{})
		if err == nil {
			p = answer.Progress
		}
		return err
	})
	return p
}

// TestAMergeThatGetsOnIsWaitedFor: a new member merges 20,000 bytes at 1,000 bytes a
// second, and nobody who stays does it in its place, though the driver has patience
// for two seconds. When the new one dies in the middle, those who stay do.
func TestAMergeThatGetsOnIsWaitedFor(t *testing.T) {
	for _, dies := range []bool{false, true} {
		x := newExchange(t, rambo.Pace{Rate: 1000, Page: 1, Patience: 2 * time.Second})
		x.fill(20)
		x.decide("a", "b", "d")
		x.RunFor(10 * time.Second)
		if got := x.installed(); got != 0 {
			t.Errorf("configuration %d is installed after half of the time that the new one needs", got)
		}
		if dies {
			x.nodes[3].Crash()
			x.nodes = x.nodes[:3]
		}
		x.RunFor(15 * time.Second)
		if got := x.installed(); got != 1 {
			t.Errorf("it dies: %t; configuration %d is installed in the end", dies, got)
		}
		for _, p := range x.nodes[:2] {
			if merged := x.progress(p.ID()).Index == 1; merged != dies {
				t.Errorf("the new one dies: %t; %s, which stays, has merged: %t", dies, p.ID(), merged)
			}
		}
	}
}
