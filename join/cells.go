package join

import (
	"errors"
	"fmt"

	"atoll/env"
	"atoll/internal/cells"
	"atoll/quorum"
)

// Cells are the cells of a node's store, as replica.Store has them.
type Cells interface {
	Cell(name string) (value []byte, at env.Position)
	SetCell(name string, value []byte) (env.Position, error)
}

// The cells. Each begins with a format byte; then come unsigned varints, and
// strings with their lengths before them.
//
//	join.self   format starts flags
//	join.nodes  format n (id instance greeted starts run position)…
const (
	cellSelf  = "join.self"
	cellNodes = "join.nodes"

	cellFormat = 1

	flagJoined = 1 << 0 // it has joined
	flagMember = 1 << 1 // a configuration has named it once
)

var errCell = errors.New("it makes no sense")

// load reads what an earlier life has noted.
func (r *Replica) load() error {
	for _, c := range []struct {
		name string
		read func([]byte) error
	}{{cellSelf, r.loadSelf}, {cellNodes, r.loadNodes}} {
		value, at := r.cells.Cell(c.name)
		if len(value) == 0 {
			continue
		}
		if err := c.read(value); err != nil {
			return fmt.Errorf("join: the cell %q: %w", c.name, err)
		}
		r.at = max(r.at, at)
	}
	return nil
}

func (r *Replica) loadSelf(b []byte) error {
	p := cells.Read(b)
	p.Format(cellFormat)
	r.starts = p.Any()
	r.flags = p.Any()
	return end(&p)
}

func (r *Replica) saveSelf(starts, flags uint64) error {
	b := cells.AppendNumber([]byte{cellFormat}, starts)
	b = cells.AppendNumber(b, flags)
	at, err := r.cells.SetCell(cellSelf, b)
	if err != nil {
		return err
	}
	r.at, r.starts, r.flags = max(r.at, at), starts, flags
	return nil
}

func (r *Replica) loadNodes(b []byte) error {
	p := cells.Read(b)
	p.Format(cellFormat)
	for n := p.Number(MaxNodes); n > 0 && p.OK(); n-- {
		e := entry{node: quorum.NodeID(p.Bytes(quorum.MaxNodeID))}
		e.saved.Instance = readInstance(&p)
		e.greeted = p.Any() == 1
		e.saved.Starts, e.saved.Run, e.saved.Position = p.Any(), p.Any(), env.Position(p.Any())
		e.life = e.saved
		if _, err := quorum.ParseNodeID(string(e.node)); err != nil {
			p.Fail()
		}
		r.nodes = append(r.nodes, e)
	}
	return end(&p)
}

func (r *Replica) saveNodes(nodes []entry) error {
	b := cells.AppendNumber([]byte{cellFormat}, uint64(len(nodes)))
	for _, e := range nodes {
		b = cells.AppendBytes(b, e.node)
		b = append(b, e.life.Instance[:]...)
		b = cells.AppendBool(b, e.greeted)
		for _, n := range []uint64{e.life.Starts, e.life.Run, uint64(e.life.Position)} {
			b = cells.AppendNumber(b, n)
		}
	}
	at, err := r.cells.SetCell(cellNodes, b)
	if err != nil {
		return err
	}
	for i := range nodes {
		nodes[i].saved = nodes[i].life
	}
	r.nodes, r.at = nodes, max(r.at, at)
	return nil
}

func readInstance(r *cells.Reader) (i Instance) {
	copy(i[:], r.Take(uint64(len(i))))
	return i
}

// end returns an error if the cell makes no sense, or more of it is left.
func end(r *cells.Reader) error {
	if !r.Done() {
		return errCell
	}
	return nil
}
