package reconfig

import (
	"fmt"

	"atoll/env"
	"atoll/quorum"
	"atoll/synod"
)

// Cells are the cells of a node's store, as replica.Store has them.
type Cells interface {
	Cell(name string) (value []byte, at env.Position)
	SetCell(name string, value []byte) (env.Position, error)
}

// cellNotes names the cell of what the node was ready for.
const cellNotes = "recon.ready"

// ring is a synod.View that keeps the records of a few indices in cells that
// take turns, because a cell is never removed.
//
// A record that can't be read may be of any index that has its turn there.
// Then the acceptor abstains on all of them, until the cell is emptied.
type ring struct{ Cells }

func slot(k quorum.ConfigIndex) string { return fmt.Sprintf("recon.vote.%d", k%slots) }

// Load implements synod.View. What an earlier index has left in the cell is
// nothing.
func (r ring) Load(i synod.Instance) ([]byte, env.Position) {
	k, ok := IndexOf(i)
	if !ok {
		return nil, 0
	}
	value, at := r.Cell(slot(k))
	if of, err := synod.InstanceOf(value); err == nil {
		if earlier, ok := IndexOf(of); ok && earlier < k {
			return nil, at
		}
	}
	return value, at
}

// Save implements synod.View.
func (r ring) Save(i synod.Instance, record []byte) (env.Position, error) {
	k, ok := IndexOf(i)
	if !ok {
		return 0, &env.Refused{Reason: env.ReasonBadRequest, Text: fmt.Sprintf("%q decides no configuration", string(i))}
	}
	return r.SetCell(slot(k), record)
}

// Scan implements synod.View: votes on configurations don't travel.
func (ring) Scan(string, synod.Instance, func(synod.Instance) bool) {}
