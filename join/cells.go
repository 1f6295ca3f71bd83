package join

import (
	"encoding/binary"
	"errors"
	"fmt"

	"atoll/env"
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
	p := reader{b: b}
	p.format()
	r.starts = p.number()
	r.flags = p.number()
	return p.end()
}

func (r *Replica) saveSelf(starts, flags uint64) error {
	b := binary.AppendUvarint([]byte{cellFormat}, starts)
	b = binary.AppendUvarint(b, flags)
	at, err := r.cells.SetCell(cellSelf, b)
	if err != nil {
		return err
	}
	r.at, r.starts, r.flags = max(r.at, at), starts, flags
	return nil
}

func (r *Replica) loadNodes(b []byte) error {
	p := reader{b: b}
	p.format()
	n := p.number()
	if n > MaxNodes {
		p.fail()
	}
	for ; n > 0 && p.err == nil; n-- {
		e := entry{node: quorum.NodeID(p.text(quorum.MaxNodeID))}
		e.saved.Instance = p.instance()
		e.greeted = p.number() == 1
		e.saved.Starts, e.saved.Run, e.saved.Position = p.number(), p.number(), env.Position(p.number())
		e.life = e.saved
		if _, err := quorum.ParseNodeID(string(e.node)); err != nil {
			p.fail()
		}
		r.nodes = append(r.nodes, e)
	}
	return p.end()
}

func (r *Replica) saveNodes(nodes []entry) error {
	b := binary.AppendUvarint([]byte{cellFormat}, uint64(len(nodes)))
	for _, e := range nodes {
		b = append(binary.AppendUvarint(b, uint64(len(e.node))), e.node...)
		b = append(b, e.life.Instance[:]...)
		greeted := uint64(0)
		if e.greeted {
			greeted = 1
		}
		for _, n := range []uint64{greeted, e.life.Starts, e.life.Run, uint64(e.life.Position)} {
			b = binary.AppendUvarint(b, n)
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

// reader reads a cell. Its first error stays.
type reader struct {
	b   []byte
	err error
}

func (p *reader) fail() { p.b, p.err = nil, errCell }

func (p *reader) format() {
	if len(p.b) == 0 || p.b[0] != cellFormat {
		p.fail()
		return
	}
	p.b = p.b[1:]
}

func (p *reader) number() uint64 {
	n, size := binary.Uvarint(p.b)
	if size <= 0 {
		p.fail()
		return 0
	}
	p.b = p.b[size:]
	return n
}

func (p *reader) take(n uint64) []byte {
	if n > uint64(len(p.b)) {
		p.fail()
		return nil
	}
	b := p.b[:n]
	p.b = p.b[n:]
	return b
}

func (p *reader) text(most uint64) string {
	n := p.number()
	if n > most {
		p.fail()
		return ""
	}
	return string(p.take(n))
}

func (p *reader) instance() (i Instance) {
	copy(i[:], p.take(uint64(len(i))))
	return i
}

func (p *reader) end() error {
	if len(p.b) > 0 {
		p.fail()
	}
	return p.err
}
