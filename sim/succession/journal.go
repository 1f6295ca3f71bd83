package succession

import (
	"fmt"

	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
)

// Journal is what a node has stored, but hasn't made durable yet: config maps, and
// what a record is to who watches. What becomes durable together is told in the order
// in which it was stored: a record behind a config map was acknowledged with word of
// that, and isn't part of a page that was given before. The zero Journal is empty.
type Journal[Record any] struct{ stored []stored[Record] }

type stored[Record any] struct {
	at     env.Position
	m      *quorum.Map // nil: it is a record
	record Record
}

// Record is told that the node has stored a record, up to a position.
func (j *Journal[Record]) Record(at env.Position, r Record) {
	j.stored = append(j.stored, stored[Record]{at: at, record: r})
}

// Cell is told that the node has stored a cell, up to a position. It takes note if that
// holds a config map, and returns an error if that makes no sense.
func (j *Journal[Record]) Cell(at env.Position, name string, value []byte) error {
	m, err := rambo.MapOf(one{name, value})
	if err != nil {
		return fmt.Errorf("it stores a config map that makes no sense: %v", err)
	}
	if m != nil {
		j.stored = append(j.stored, stored[Record]{at: at, m: m})
	}
	return nil
}

// one shows a single cell.
type one struct {
	name  string
	value []byte
}

func (o one) Cell(name string) ([]byte, env.Position) {
	if name == o.name {
		return o.value, 0
	}
	return nil, 0
}

// Durable is told that all up to a position is durable. Holds and learns are called for
// what that is.
func (j *Journal[Record]) Durable(position env.Position, holds func(Record), learns func(*quorum.Map)) {
	i := 0
	for ; i < len(j.stored) && j.stored[i].at <= position; i++ {
		if s := &j.stored[i]; s.m != nil {
			learns(s.m)
		} else {
			holds(s.record)
		}
	}
	j.stored = append(j.stored[:0], j.stored[i:]...)
}

// Lose is told that the rest is lost.
func (j *Journal[Record]) Lose() { j.stored = j.stored[:0] }
