package replica_test

import (
	"testing"

	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
	"atoll/replica"
	"atoll/sim"
)

// TestWhatIsSaidOfConfigurationsIsDurable: a node that tells somebody from outside
// that a configuration is installed remembers it in its next life. Members of the
// one before are switched off on its word.
func TestWhatIsSaidOfConfigurationsIsDurable(t *testing.T) {
	row := make([]*quorum.Configuration, 2)
	for i := range row {
		c, err := quorum.NewConfiguration(quorum.ConfigIndex(i), []quorum.NodeID{"a"}, quorum.System{})
		if err != nil {
			t.Fatal(err)
		}
		row[i] = c
	}
	disk := sim.NewDisk()
	n, err := replica.New(replica.Config{Cluster: "c1", Self: "a", Configurations: row[:1], MaxValue: maxValue}, disk)
	if err != nil {
		t.Fatal(err)
	}
	installed, err := quorum.NewMap(row[1])
	if err != nil {
		t.Fatal(err)
	}
	from := env.Address{Node: "client", Conversation: 1}
	step := func(m env.Message) env.Out {
		t.Helper()
		out, err := n.Step(from, m, nil)
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	told := step(&rambo.Gossip{Knowledge: rambo.Knowledge{News: &quorum.News{Map: installed}}}).After
	if told == 0 {
		t.Fatal("the news was not written")
	}
	for _, m := range []env.Message{&replica.Describe{}, &replica.StatusQuery{}} {
		if out := step(m); out.After < told {
			t.Errorf("%T leaves at position %d, and what it says stands at %d", out.Message, out.After, told)
		}
	}
}
