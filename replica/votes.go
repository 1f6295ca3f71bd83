package replica

import (
	"strings"

	"atoll/env"
	"atoll/quorum"
	"atoll/synod"
)

// cellVotes begins the names of the cells in which a node keeps what its acceptor
// knows of instances that travel: the rest is the instance.
const cellVotes = "vote."

// ballotBox is a synod.View over a node's cells, for instances that travel.
type ballotBox struct{ Store }

// Load implements synod.View.
func (b ballotBox) Load(i synod.Instance) ([]byte, env.Position) {
	return b.Cell(cellVotes + string(i))
}

// Save implements synod.View.
func (b ballotBox) Save(i synod.Instance, record []byte) (env.Position, error) {
	return b.SetCell(cellVotes+string(i), record)
}

// Scan implements synod.View.
func (b ballotBox) Scan(prefix string, after synod.Instance, each func(synod.Instance) bool) {
	for _, name := range b.Cells(cellVotes + prefix) {
		if i := synod.Instance(strings.TrimPrefix(name, cellVotes)); i > after && !each(i) {
			return
		}
	}
}

// Votes implements synod.Guard: the node votes on a key in configuration k, as a
// member, while that is installed and nothing is known of what follows it. Who
// learns of the next one is sealed (R3, R4.2).
func (n *Node) Votes(i synod.Instance, k quorum.ConfigIndex) bool {
	m := n.rambo.Map()
	if m == nil || !i.Travels() {
		return false
	}
	present := m.Installed()
	_, member := present.Place(n.cfg.Self)
	return member && present.Index() == k && m.Horizon().Next == k+1
}

// Tell implements synod.Guard.
func (n *Node) Tell(asker quorum.Horizon) (synod.Told, env.Position) {
	news, at := n.rambo.News()
	told := synod.Told{Horizon: n.rambo.Map().Horizon()}
	if asker.Behind(told.Horizon) {
		told.News = news
	}
	return told, at
}

// travels reports whether m is a request about an instance that travels.
func travels(m env.Message) bool {
	switch m := m.(type) {
	case *synod.Prepare:
		return m.Instance.Travels()
	case *synod.Accept:
		return m.Instance.Travels()
	}
	return false
}

// VoteOf returns the vote on an instance that travels which a node has on its disk:
// for those who look at a cluster from outside.
func VoteOf(store Store, i synod.Instance) (synod.Vote, error) {
	r, _, err := synod.NewAcceptor(ballotBox{store}, nil, synod.Rules{}).Record(i)
	return r.Accepted, err
}
