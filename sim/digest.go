package sim

import (
	"encoding/binary"

	"atoll/abd"
	"atoll/env"
	"atoll/synod"
	"atoll/tags"
)

// digest returns a hash of a message for the trace hash: of its type, and of
// what the protocols here put into it.
func (w *World) digest(m env.Message) uint64 {
	h := w.typeHash(m)
	switch m := m.(type) {
	case *abd.Get:
		h = foldString(h, string(m.Key))
	case *abd.GetAck:
		h = foldTag(h, m.Record.Tag)
	case *abd.Put:
		h = foldTag(foldString(h, string(m.Key)), m.Record.Tag)
	case *abd.Confirm:
		h = foldTag(foldString(h, string(m.Key)), m.Tag)
	case *abd.List:
		h = foldString(foldString(h, string(m.Prefix)), string(m.After))
	case *abd.Page:
		for _, item := range m.Items {
			h = foldTag(foldString(h, string(item.Key)), item.Tag)
		}
	case *synod.Prepare:
		h = foldBallot(foldString(h, string(m.Instance)), m.Ballot)
	case *synod.Promise:
		h = foldBallot(foldBallot(h, m.Ballot), m.Accepted.Ballot)
	case *synod.Accept:
		h = foldBallot(foldString(h, string(m.Instance)), m.Ballot)
	case *synod.Accepted:
		h = foldBallot(h, m.Ballot)
	case *synod.Rejected:
		h = foldBallot(foldBallot(h, m.Ballot), m.Promised)
	}
	return h
}

func foldBallot(h uint64, b synod.Ballot) uint64 {
	return foldTag(fold(h, uint64(b.Index)), tags.Tag{Seq: tags.Seq(b.Round), PID: b.ID})
}

func foldTag(h uint64, t tags.Tag) uint64 {
	id := t.PID.Bytes()
	h = fold(h, binary.BigEndian.Uint64(id[:8]))
	h = fold(h, binary.BigEndian.Uint64(id[8:]))
	return fold(fold(h, uint64(t.Seq)), uint64(t.RMW))
}
