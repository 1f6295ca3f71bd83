package replica_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"atoll/abd"
	"atoll/env"
	"atoll/replica"
	"atoll/tags"
)

// step lets the node act on a message, and checks what it did.
func (s *sequence) step(m env.Message) (what string, err error) {
	what = fmt.Sprintf("step %#v", m)
	from := env.Address{Node: "client-1", Session: 1 + uint64(s.next()%3), Conversation: uint64(s.next())}
	if p, ok := m.(*abd.Put); ok {
		s.puts[p.Key] = append(s.puts[p.Key], p.Record)
	}
	before := maps.Clone(s.twin)
	outs, err := s.node.Step(from, m, nil)
	if err != nil {
		return what, fmt.Errorf("the store is fine, and the step failed: %w", err)
	}
	for _, o := range outs {
		if _, err := s.encoder.AppendFrame(nil, from.Conversation, o.Message); err != nil {
			return what, fmt.Errorf("an answer that can't be sent, %+v: %w", o.Message, err)
		}
		if end := s.disk.Cut(); o.After > end {
			return what, fmt.Errorf("%T waits for position %d, and the journal ends at %d: it never leaves", o.Message, o.After, end)
		}
		s.held = append(s.held, answer{request: m, out: o})
	}
	if err := s.answered(from, m, outs); err != nil {
		return what, err
	}
	if err := s.unchanged(m, before); err != nil {
		return what, err
	}
	return what, s.release()
}

// answered checks the answer to one message, and does to the twin what the
// message asked for.
func (s *sequence) answered(from env.Address, m env.Message, outs []env.Out) error {
	var answer env.Message
	switch m.(type) {
	case *abd.Confirm, *env.Refused:
		if _, confirm := m.(*abd.Confirm); len(outs) > 0 && (s.member || !confirm) {
			return fmt.Errorf("%d answers to what has none", len(outs))
		}
	default:
		if len(outs) != 1 || outs[0].To != from || outs[0].Mailbox != "" {
			return fmt.Errorf("answers %+v, want one to who asked", outs)
		}
		answer = outs[0].Message
	}
	refused, _ := answer.(*env.Refused)
	if !s.member && registers(m) {
		if _, moved := answer.(*abd.Moved); moved {
			return nil
		}
		if refused == nil && answer != nil || refused != nil && refused.Reason != env.ReasonNotMember {
			return fmt.Errorf("answer %+v of a node that is no member", answer)
		}
		return nil
	}
	switch m := m.(type) {
	case *abd.Get:
		return s.gotten(m, answer)
	case *abd.Put:
		return s.stored(m, answer)
	case *abd.List:
		return s.listed(m, answer)
	case *abd.Confirm:
		if !s.disk.Damaged(m.Key) && s.twin[m.Key].Tag == m.Tag {
			s.confirmed[m.Key] = append(s.confirmed[m.Key], m.Tag)
		}
		return nil
	case *replica.Describe:
		if d, ok := answer.(*replica.Description); !ok || d.Node != "a" {
			return fmt.Errorf("answer %+v", answer)
		}
	case *replica.StatusQuery:
		if d, ok := answer.(*replica.Status); !ok || d.Node != "a" {
			return fmt.Errorf("answer %+v", answer)
		}
	}
	return nil
}

// registers reports whether a message is one that only members act on.
func registers(m env.Message) bool {
	switch m.(type) {
	case *abd.Get, *abd.Put, *abd.List, *abd.Confirm:
		return true
	}
	return false
}

func refusedFor(answer env.Message, reason env.Reason) bool {
	r, ok := answer.(*env.Refused)
	return ok && r.Reason == reason
}

func same(a, b abd.Record) bool {
	return a.Tag == b.Tag && a.Deleted == b.Deleted && bytes.Equal(a.Value, b.Value)
}

func (s *sequence) gotten(m *abd.Get, answer env.Message) error {
	ack, ok := answer.(*abd.GetAck)
	switch {
	case m.Key.Check() != nil || s.disk.Damaged(m.Key):
		if _, refused := answer.(*env.Refused); !refused {
			return fmt.Errorf("answer %+v, want a refusal", answer)
		}
		return nil
	case !ok:
		return fmt.Errorf("answer %+v, want a GetAck", answer)
	}
	want := s.twin[m.Key]
	if m.TagOnly {
		want.Value = nil
	}
	if !same(ack.Record, want) {
		return fmt.Errorf("shown %+v, want %+v", ack.Record, want)
	}
	if ack.Confirmed && !slices.Contains(s.confirmed[m.Key], want.Tag) {
		return fmt.Errorf("%v is called confirmed, and nobody did", want.Tag)
	}
	return nil
}

// stored is the rule for a put: what is larger replaces what is there.
func (s *sequence) stored(m *abd.Put, answer env.Message) error {
	_, acked := answer.(*abd.PutAck)
	bad := m.Key.Check() != nil || len(m.Record.Value) > maxValue || m.Record.Tag.IsZero() || m.Record.Deleted && len(m.Record.Value) > 0
	larger := s.twin[m.Key].Tag.Less(m.Record.Tag)
	switch {
	case bad || s.disk.Damaged(m.Key):
		if acked {
			return fmt.Errorf("acked, want a refusal")
		}
	case refusedFor(answer, env.ReasonFull) && s.disk.Limit > 0 && larger:
	case !acked:
		return fmt.Errorf("answer %+v, want an ack", answer)
	case larger:
		s.twin[m.Key] = m.Record
	}
	return nil
}

func (s *sequence) listed(m *abd.List, answer env.Message) error {
	if m.Limit < 1 || m.Limit > abd.MaxPage || len(m.Prefix) > abd.MaxKey || len(m.After) > abd.MaxKey {
		if !refusedFor(answer, env.ReasonBadRequest) {
			return fmt.Errorf("answer %+v, want a refusal", answer)
		}
		return nil
	}
	var want []abd.Key
	for _, key := range slices.Sorted(maps.Keys(s.twin)) {
		if !strings.HasPrefix(string(key), string(m.Prefix)) || m.After != "" && key <= m.After ||
			s.twin[key].Tag.IsZero() || len(want) == m.Limit {
			continue
		}
		if s.disk.Damaged(key) {
			if !refusedFor(answer, env.ReasonDamaged) {
				return fmt.Errorf("answer %+v, and key %q is damaged", answer, key)
			}
			return nil
		}
		want = append(want, key)
	}
	page, ok := answer.(*abd.Page)
	if !ok || len(page.Items) != len(want) || !page.More && len(want) == m.Limit {
		return fmt.Errorf("answer %+v, want the keys %q", answer, want)
	}
	for i, item := range page.Items {
		r := s.twin[item.Key]
		if item.Key != want[i] || item.Tag != r.Tag || item.Deleted != r.Deleted {
			return fmt.Errorf("item %+v, want key %q with %+v", item, want[i], r)
		}
		if item.Confirmed && !slices.Contains(s.confirmed[item.Key], item.Tag) {
			return fmt.Errorf("%v of key %q is called confirmed, and nobody did", item.Tag, item.Key)
		}
	}
	return nil
}

// unchanged checks that the disk holds what the twin does. A message whose rule
// this test doesn't know may have changed a record, but never to a smaller one.
func (s *sequence) unchanged(m env.Message, before map[abd.Key]abd.Record) error {
	for key := range s.puts {
		r, _, err := s.disk.Load(key, true)
		if err != nil {
			continue // damaged
		}
		if r.Tag.Less(before[key].Tag) {
			return fmt.Errorf("key %q went from %v back to %v", key, before[key].Tag, r.Tag)
		}
		if !registers(m) {
			s.twin[key] = r
		}
		if !same(r, s.twin[key]) {
			return fmt.Errorf("key %q is %+v on the disk, want %+v", key, r, s.twin[key])
		}
	}
	return nil
}

// release lets what may leave do so. A power cut at this moment would leave
// Disk.Durable: whatever a message shows or acknowledges must be in it.
func (s *sequence) release() error {
	stay := s.held[:0]
	for _, a := range s.held {
		if a.out.After > s.durable {
			stay = append(stay, a)
			continue
		}
		if err := s.leave(a); err != nil {
			return err
		}
	}
	s.held = stay
	return nil
}

func (s *sequence) leave(a answer) error {
	switch m := a.out.Message.(type) {
	case *abd.PutAck:
		if put, ok := a.request.(*abd.Put); ok {
			return s.promise("acknowledges", put.Key, put.Record.Tag)
		}
	case *abd.GetAck:
		if get, ok := a.request.(*abd.Get); ok {
			return s.promise("shows", get.Key, m.Record.Tag)
		}
	case *abd.Page:
		for _, item := range m.Items {
			if err := s.promise("shows", item.Key, item.Tag); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sequence) promise(verb string, key abd.Key, tag tags.Tag) error {
	if r := s.disk.Durable(key); r.Tag.Less(tag) {
		return fmt.Errorf("a message left that %s %v of key %q, and %v is durable", verb, tag, key, r.Tag)
	}
	if s.promised[key].Less(tag) {
		s.promised[key] = tag
	}
	return nil
}

// restarted boots the node again, and takes what the disk kept for the twin:
// nothing that a message promised is gone, and nothing is there that nobody
// put.
func (s *sequence) restarted() error {
	for key, all := range s.puts {
		r := s.disk.Durable(key)
		if r.Tag.Less(s.promised[key]) {
			return fmt.Errorf("key %q was promised to hold %v and holds %v", key, s.promised[key], r.Tag)
		}
		if !r.Tag.IsZero() && !slices.ContainsFunc(all, func(p abd.Record) bool { return same(p, r) }) {
			return fmt.Errorf("key %q holds %+v, which nobody put", key, r)
		}
		s.twin[key] = r
	}
	return s.boot()
}
