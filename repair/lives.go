package repair

import (
	"errors"

	"atoll/abd"
	"atoll/internal/cells"
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
	b = cells.AppendNumber(b, uint64(s.Life))
	b = cells.AppendNumber(b, uint64(len(s.Others)))
	for _, o := range s.Others {
		b = cells.AppendBytes(b, o.Node)
		b = cells.AppendNumber(b, uint64(o.Life))
	}
	return b
}

func decodeLives(b []byte) (s abd.Standing, err error) {
	if len(b) == 0 {
		return s, nil // it was never written: the first life of all
	}
	r := cells.Read(b)
	r.Format(livesFormat)
	s.Life = abd.Life(r.Any())
	for n := r.Any(); n > 0 && r.OK(); n-- {
		node := quorum.NodeID(r.String())
		s = s.With(node, abd.Life(r.Any()))
	}
	if !r.Done() {
		return abd.Standing{}, errLives
	}
	return s, nil
}
