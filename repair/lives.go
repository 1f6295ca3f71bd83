package repair

import (
	"encoding/binary"
	"errors"

	"atoll/abd"
	"atoll/quorum"
)

// cellLives names the cell in which a node keeps its own life and what it knows
// of others'.
const cellLives = "repair.lives"

// livesFormat is the first byte of that cell. Then follow, as unsigned varints
// and strings with their length before them: the node's own life; how many
// others; and for each its id and its life.
const livesFormat = 1

var errLives = errors.New("the record of the nodes' lives makes no sense")

func encodeLives(s abd.Standing) []byte {
	b := []byte{livesFormat}
	b = binary.AppendUvarint(b, uint64(s.Life))
	b = binary.AppendUvarint(b, uint64(len(s.Others)))
	for _, o := range s.Others {
		b = binary.AppendUvarint(b, uint64(len(o.Node)))
		b = append(b, o.Node...)
		b = binary.AppendUvarint(b, uint64(o.Life))
	}
	return b
}

func decodeLives(b []byte) (s abd.Standing, err error) {
	if len(b) == 0 {
		return s, nil // it was never written: the first life of all
	}
	r := livesReader{b: b[1:], ok: b[0] == livesFormat}
	s.Life = abd.Life(r.number())
	for n := r.number(); n > 0 && r.ok; n-- {
		node := quorum.NodeID(r.bytes(r.number()))
		s = s.With(node, abd.Life(r.number()))
	}
	if !r.ok || len(r.b) > 0 {
		return abd.Standing{}, errLives
	}
	return s, nil
}

type livesReader struct {
	b  []byte
	ok bool
}

func (r *livesReader) number() uint64 {
	n, size := binary.Uvarint(r.b)
	if r.ok = r.ok && size > 0; !r.ok {
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *livesReader) bytes(n uint64) []byte {
	if r.ok = r.ok && n <= uint64(len(r.b)); !r.ok {
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}
