package sim

import (
	"encoding/binary"
	"fmt"
	"strings"

	"atoll/abd"
	"atoll/env"
	"atoll/synod"
	"atoll/tags"
)

// Describe puts a message into words for a transcript. The first word is the
// name of the message.
func (w *World) Describe(m env.Message) string {
	switch m := m.(type) {
	case *abd.Get:
		if m.TagOnly {
			return fmt.Sprintf("get-tag %s", m.Key)
		}
		if m.AnswerBytes() > 0 {
			return fmt.Sprintf("get-value %s", m.Key)
		}
		return fmt.Sprintf("get %s", m.Key)
	case *abd.GetAck:
		if m.Confirmed {
			return fmt.Sprintf("get-ack %s%s confirmed", w.RecordText(m.Record), omitted(m))
		}
		return fmt.Sprintf("get-ack %s%s", w.RecordText(m.Record), omitted(m))
	case *abd.Put:
		return fmt.Sprintf("put %s %s", m.Key, w.RecordText(m.Record))
	case *abd.PutAck:
		return "put-ack"
	case *abd.Confirm:
		return fmt.Sprintf("confirm %s %s", m.Key, w.TagText(m.Tag))
	case *abd.List:
		return fmt.Sprintf("list %s* after %q limit %d", m.Prefix, m.After, m.Limit)
	case *abd.Page:
		var b strings.Builder
		b.WriteString("page")
		for _, item := range m.Items {
			fmt.Fprintf(&b, " %s:%s", item.Key, w.RecordText(abd.Record{Tag: item.Tag, Deleted: item.Deleted}))
			if item.Confirmed {
				b.WriteString("(confirmed)")
			}
		}
		if m.More {
			b.WriteString(" and more")
		}
		return b.String()
	case *env.Refused:
		return fmt.Sprintf("refused %v", m)
	case *synod.Prepare:
		return "prepare " + w.BallotText(m.Ballot)
	case *synod.Promise:
		if m.Accepted.IsZero() {
			return "promise " + w.BallotText(m.Ballot)
		}
		return fmt.Sprintf("promise %s, accepted under %s was %q", w.BallotText(m.Ballot), w.BallotText(m.Accepted.Ballot), m.Accepted.Value)
	case *synod.Accept:
		return fmt.Sprintf("accept %s %q", w.BallotText(m.Ballot), m.Value)
	case *synod.Accepted:
		return "accepted " + w.BallotText(m.Ballot)
	case *synod.Rejected:
		return fmt.Sprintf("rejected %s, promised %s", w.BallotText(m.Ballot), w.BallotText(m.Promised))
	}
	name := fmt.Sprintf("%T", m)
	return strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
}

// omitted says how large a value is that was left out.
func omitted(m *abd.GetAck) string {
	if m.Omitted == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d bytes)", m.Omitted)
}

// RecordText returns a record as "tag=value", "tag deleted", or "0" when the
// register was never written.
func (w *World) RecordText(r abd.Record) string {
	switch {
	case r.Deleted:
		return w.TagText(r.Tag) + " deleted"
	case len(r.Value) > 0:
		return fmt.Sprintf("%s=%s", w.TagText(r.Tag), r.Value)
	}
	return w.TagText(r.Tag)
}

// TagText returns a tag as "seq@p.n": the n-th operation of process p, of
// which each life after the first adds a prime to the name; "+k" stands for k
// updates. The zero tag is "0".
func (w *World) TagText(t tags.Tag) string {
	if t.IsZero() {
		return "0"
	}
	text := fmt.Sprintf("%d@%s", t.Seq, w.idText(t.PID))
	if t.RMW > 0 {
		text += fmt.Sprintf("+%d", t.RMW)
	}
	return text
}

// BallotText returns a ballot as "round@p.n", as TagText does, with "k:" in front
// if it is of a later configuration than 0.
func (w *World) BallotText(b synod.Ballot) string {
	if b.IsZero() {
		return "0"
	}
	text := fmt.Sprintf("%d@%s", b.Round, w.idText(b.ID))
	if b.Index > 0 {
		text = fmt.Sprintf("%d:%s", b.Index, text)
	}
	return text
}

func (w *World) idText(id tags.PID) string {
	b := id.Bytes()
	count := binary.BigEndian.Uint64(b[8:]) & tags.MaxCount
	for _, p := range w.processes {
		for life := uint64(1); life <= p.life; life++ {
			high, low := p.identity(life)
			if id == tags.NewPID(high, low, count) {
				return fmt.Sprintf("%s%s.%d", p.id, strings.Repeat("'", int(life-1)), count)
			}
		}
	}
	return id.String()
}

// disk prints the record of a key on a node's disk.
func (s *Script) disk(p *Process, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want a key")
	}
	key := abd.Key(args[0])
	r, _, err := p.disk.Load(key, true)
	if err != nil {
		s.print("disk    %s: %s: %v", p.id, key, err)
		return nil
	}
	now, durable := s.World.RecordText(r), s.World.RecordText(p.disk.Durable(key))
	if now == durable {
		s.print("disk    %s: %s %s", p.id, key, now)
	} else {
		s.print("disk    %s: %s %s, not durable (%s is)", p.id, key, now, durable)
	}
	return nil
}
