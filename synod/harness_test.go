package synod_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"atoll/env"
	"atoll/quorum"
	"atoll/sim"
	"atoll/synod"
	"atoll/tags"
)

// instance is what the tests decide.
const instance synod.Instance = "recon/1"

// cells is a View over the cells of a simulated disk.
type cells struct{ *sim.Disk }

func (c cells) Load(i synod.Instance) ([]byte, env.Position) { return c.Cell("synod." + string(i)) }

func (c cells) Save(i synod.Instance, record []byte) (env.Position, error) {
	return c.SetCell("synod."+string(i), record)
}

func (cells) Scan(string, synod.Instance, func(synod.Instance) bool) {}

// memory is a View each of whose records has a position of its own.
type memory struct {
	records map[synod.Instance][]byte
	at      map[synod.Instance]env.Position
	end     env.Position
	err     error // of Save
}

func newMemory() *memory {
	return &memory{records: make(map[synod.Instance][]byte), at: make(map[synod.Instance]env.Position)}
}

func (m *memory) Load(i synod.Instance) ([]byte, env.Position) { return m.records[i], m.at[i] }

func (m *memory) Save(i synod.Instance, record []byte) (env.Position, error) {
	if m.err != nil {
		return 0, m.err
	}
	m.end += 10
	m.records[i], m.at[i] = slices.Clone(record), m.end
	return m.end, nil
}

func (m *memory) Scan(prefix string, after synod.Instance, each func(synod.Instance) bool) {
	for _, i := range slices.Sorted(maps.Keys(m.records)) {
		if i > after && strings.HasPrefix(string(i), prefix) && len(m.records[i]) > 0 && !each(i) {
			return
		}
	}
}

// guard votes under one configuration as long as it is open.
type guard struct {
	index  quorum.ConfigIndex
	closed bool
	news   *quorum.News
	at     env.Position
}

func (g *guard) Votes(_ synod.Instance, k quorum.ConfigIndex) bool { return k == g.index && !g.closed }

func (g *guard) Tell(asker quorum.Horizon) (synod.Told, env.Position) {
	if g.news == nil {
		return synod.Told{Horizon: quorum.Horizon{Installed: g.index, Next: g.index + 1}}, g.at
	}
	t := synod.Told{Horizon: g.news.Map.Horizon()}
	if asker.Behind(t.Horizon) {
		t.News = g.news
	}
	return t, g.at
}

// configuration makes a configuration that the test knows to be right.
func configuration(t testing.TB, index quorum.ConfigIndex, system string, members ...quorum.NodeID) *quorum.Configuration {
	t.Helper()
	s, err := quorum.ParseSystem(system)
	if err != nil {
		t.Fatal(err)
	}
	c, err := quorum.NewConfiguration(index, members, s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ballot returns the n-th round's ballot of a test's proposer.
func ballot(round synod.Round, proposer uint64) synod.Ballot {
	return synod.Ballot{Round: round, ID: tags.NewPID(proposer, 0, 1)}
}

// chosen is a twin of the protocol, as dumb as the definition: a value is chosen
// when all members of some write quorum have said that they accepted it under one
// ballot. It is told of every message that leaves a node, whoever gets it.
type chosen struct {
	configuration *quorum.Configuration
	proposed      map[synod.Ballot]string
	accepted      map[synod.Ballot]quorum.Set
	values        []string // that were chosen, each once
	wrong         string   // what can't be
}

func newChosen(c *quorum.Configuration) *chosen {
	return &chosen{configuration: c, proposed: make(map[synod.Ballot]string), accepted: make(map[synod.Ballot]quorum.Set)}
}

func (c *chosen) observe(o sim.Observation) {
	if o.What != sim.Sent {
		return
	}
	switch m := o.Message.(type) {
	case *synod.Accept:
		if old, ok := c.proposed[m.Ballot]; ok && old != string(m.Value) {
			c.wrong = fmt.Sprintf("%q and %q were proposed under one ballot", old, m.Value)
		}
		c.proposed[m.Ballot] = string(m.Value)
	case *synod.Accepted:
		place, ok := c.configuration.Place(o.From.ID())
		if !ok {
			c.wrong = fmt.Sprintf("%s accepted, and is no member", o.From.ID())
			return
		}
		set := c.accepted[m.Ballot].Add(place)
		c.accepted[m.Ballot] = set
		if v := c.proposed[m.Ballot]; c.configuration.IsWrite(set) && !slices.Contains(c.values, v) {
			c.values = append(c.values, v)
		}
	}
}

// judge returns what is wrong with what was chosen and with the results of
// proposers, or nothing.
func (c *chosen) judge(proposed, results []string) string {
	switch {
	case len(c.values) > 1:
		return fmt.Sprintf("chosen: %q", c.values)
	case c.wrong != "":
		return c.wrong
	}
	for _, r := range results {
		switch {
		case !slices.Contains(c.values, r):
			return fmt.Sprintf("a proposer was told %q, and chosen was %q", r, c.values)
		case !slices.Contains(proposed, r):
			return fmt.Sprintf("%q was decided, and nobody proposed it", r)
		}
	}
	return ""
}

// breakRule returns rules that lack the named one.
func breakRule(t testing.TB, name string) (rules synod.Rules, kernel sim.Rules) {
	t.Helper()
	if name == "" {
		return rules, kernel
	}
	for _, r := range []any{&rules, &kernel} {
		if f := reflect.ValueOf(r).Elem().FieldByName(name); f.IsValid() {
			f.SetBool(true)
			return rules, kernel
		}
	}
	t.Fatalf("there is no rule %q to break", name)
	return rules, kernel
}
