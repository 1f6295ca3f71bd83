package scenario

import "atoll/quorum"

type tally struct {
	quorum.Tally
	c    *quorum.Configuration
	seen quorum.Set
}

func (t *tally) begin(c *quorum.Configuration) {
	t.c = c
	t.Begin(quorum.Configurations{c})
}

func (t *tally) add(name string) bool {
	i, ok := t.c.Place(quorum.NodeID(name))
	if !ok || t.seen.Has(i) {
		return false
	}
	t.seen = t.seen.Add(i)
	t.Add(quorum.NodeID(name))
	return true
}
