package rambo_test

import (
	"fmt"
	"slices"
	"testing"

	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/repair"
	"atoll/sim"
)

func newReplica(t *testing.T, cfg rambo.Config, disk *sim.Disk) *rambo.Replica {
	t.Helper()
	r, err := repair.NewReplica(repair.Config{Self: cfg.Self, MaxValue: 100}, disk)
	if err != nil {
		t.Fatal(err)
	}
	n, err := rambo.NewReplica(cfg, disk, r)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func step(t *testing.T, r *rambo.Replica, from quorum.NodeID, m env.Message) env.Message {
	t.Helper()
	out, err := r.Step(env.Address{Node: from, Conversation: 1}, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out {
		if o.Mailbox == "" {
			return o.Message
		}
	}
	return nil
}

func configMap(t *testing.T, members ...quorum.NodeID) *quorum.Map {
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

func gossip(m *quorum.Map, members ...quorum.Member) *rambo.Gossip {
	return &rambo.Gossip{Knowledge: rambo.Knowledge{News: &quorum.News{Map: m, Members: members}}}
}

func knows(r *rambo.Replica, id quorum.NodeID) bool {
	news, _ := r.News()
	return slices.ContainsFunc(news.Members, func(m quorum.Member) bool { return m.ID == id })
}

// Hosts come and go, and a node knows a bounded number of them. Members, and who
// comes itself, find room.
func TestHostsThatCameAndWent(t *testing.T) {
	m := configMap(t, "a", "b")
	r := newReplica(t, rambo.Config{Self: "a", Genesis: &quorum.News{Map: m}, Own: quorum.Member{ID: "a", Addresses: []string{"h:1"}}}, sim.NewDisk())
	for i := range 2 * rambo.MaxKnown {
		step(t, r, "b", gossip(m, quorum.Member{ID: quorum.NodeID(fmt.Sprint("x", i)), Version: 1}))
	}
	if news, _ := r.News(); len(news.Members) != rambo.MaxKnown {
		t.Errorf("%d nodes are known, want %d", len(news.Members), rambo.MaxKnown)
	}
	step(t, r, "b", gossip(m, quorum.Member{ID: "b", Version: 1}))
	step(t, r, "y", gossip(nil, quorum.Member{ID: "y", Version: 1}))
	for _, id := range []quorum.NodeID{"a", "b", "y"} {
		if !knows(r, id) {
			t.Errorf("%s isn't known", id)
		}
	}
}

// A node says of itself what is true now, under a larger version than whatever it
// said before, also when it has forgotten that.
func TestAddressesHaveVersions(t *testing.T) {
	m := configMap(t, "a", "b")
	disk := sim.NewDisk()
	start := func(address string) *rambo.Replica {
		return newReplica(t, rambo.Config{Self: "a", Genesis: &quorum.News{Map: m}, Own: quorum.Member{ID: "a", Addresses: []string{address}},
			Sign: func(m quorum.Member) []byte { return []byte(fmt.Sprint(m.Addresses, m.Version)) }}, disk)
	}
	check := func(r *rambo.Replica, address string, version uint64) {
		t.Helper()
		news, _ := r.News()
		i := slices.IndexFunc(news.Members, func(m quorum.Member) bool { return m.ID == "a" })
		got := news.Members[i]
		want := fmt.Sprint([]string{address}, version)
		if got.Addresses[0] != address || got.Version != version || string(got.Proof) != want {
			t.Errorf("said %+v, want %s under %d, proof %s", got, address, version, want)
		}
	}
	check(start("h:1"), "h:1", 1)
	check(start("h:1"), "h:1", 1)
	check(start("h:2"), "h:2", 2)
	r := start("h:2")
	step(t, r, "b", gossip(m, quorum.Member{ID: "a", Addresses: []string{"old:1"}, Version: 9}))
	check(r, "h:2", 10)
	step(t, r, "b", gossip(m, quorum.Member{ID: "a", Addresses: []string{"old:1"}, Version: 9}))
	check(r, "h:2", 10)
}

// What nobody vouches for isn't believed.
func TestUnprovenMembers(t *testing.T) {
	m := configMap(t, "a", "b")
	verify := func(m quorum.Member) error {
		if string(m.Proof) != "proof" {
			return fmt.Errorf("no proof")
		}
		return nil
	}
	r := newReplica(t, rambo.Config{Self: "a", Genesis: &quorum.News{Map: m}, Verify: verify}, sim.NewDisk())
	step(t, r, "b", gossip(m, quorum.Member{ID: "x", Version: 1}, quorum.Member{ID: "y", Version: 1, Proof: []byte("proof")}))
	if knows(r, "x") || !knows(r, "y") {
		t.Errorf("x is known: %v, and y: %v", knows(r, "x"), knows(r, "y"))
	}
}

// Who says what was decided, without lives, teaches a node the configurations
// that follow its own, and not that one is installed (H5).
func TestAnnouncedIsNotInstalled(t *testing.T) {
	first := configMap(t, "a", "b")
	next, err := quorum.NewConfiguration(1, []quorum.NodeID{"b", "c"}, quorum.System{})
	if err != nil {
		t.Fatal(err)
	}
	both, err := first.Decide(next)
	if err != nil {
		t.Fatal(err)
	}
	installed, err := both.Install(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, said := range []*quorum.Map{both, installed} {
		r := newReplica(t, rambo.Config{Self: "a", Genesis: &quorum.News{Map: first}}, sim.NewDisk())
		step(t, r, "p", &rambo.Announce{News: &quorum.News{Map: said}})
		if got, want := r.Map().Horizon(), both.Horizon(); got != want {
			t.Errorf("told of %v the node knows %v, want %v", said.Horizon(), got, want)
		}
	}
	blank := newReplica(t, rambo.Config{Self: "c"}, sim.NewDisk())
	if refused, ok := step(t, blank, "p", &rambo.Announce{News: &quorum.News{Map: both}}).(*env.Refused); !ok || blank.Map() != nil {
		t.Errorf("a node that knows nothing answered %v, and knows %v", refused, blank.Map())
	}
}
