package envtest

import (
	"fmt"

	"atoll/env"
	"atoll/quorum"
	"atoll/tags"
)

// The toy register: a tag and a value on each of three nodes.

type query struct{}

type held struct {
	tag   tags.Tag
	value string
}

type store struct{ held }

type stored struct{}

func (*query) Message()  {}
func (*held) Message()   {}
func (*store) Message()  {}
func (*stored) Message() {}

// registerNode keeps the record with the largest tag.
type registerNode struct{ has held }

func (n *registerNode) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	switch m := m.(type) {
	case *query:
		answer := n.has
		return append(out, env.Out{To: from, Message: &answer}), nil
	case *store:
		if n.has.tag.Less(m.tag) {
			n.has = m.held
		}
		return append(out, env.Out{To: from, Message: &stored{}}), nil
	}
	return out, fmt.Errorf("unexpected %T", m)
}

// get returns the largest of what a read quorum holds.
func get(e env.Env, in quorum.Configurations) (held, error) {
	var t quorum.Tally
	t.Begin(in)
	var most held
	err := e.Ask(in.Members(), &query{}, func(_ env.Conversation, from quorum.NodeID, m env.Message) bool {
		h, ok := m.(*held)
		if !ok {
			return false
		}
		if most.tag.Less(h.tag) {
			most = *h
		}
		t.Add(from)
		return t.HasRead()
	})
	return most, err
}

// put stores h at a write quorum.
func put(e env.Env, in quorum.Configurations, h held) error {
	var t quorum.Tally
	t.Begin(in)
	return e.Ask(in.Members(), &store{h}, func(_ env.Conversation, from quorum.NodeID, m env.Message) bool {
		if _, ok := m.(*stored); ok {
			t.Add(from)
		}
		return t.HasWrite()
	})
}

func read(e env.Env, in quorum.Configurations) (held, error) {
	h, err := get(e, in)
	if err != nil {
		return h, err
	}
	return h, put(e, in, h)
}

func write(e env.Env, in quorum.Configurations, value string) (held, error) {
	h, err := get(e, in)
	if err != nil {
		return h, err
	}
	tag, err := h.tag.Next(e.ID())
	if err != nil {
		return h, err
	}
	h = held{tag: tag, value: value}
	return h, put(e, in, h)
}

// register: three clients write and read at the same time, while some
// messages are lost and some arrive twice. What each sees never goes back,
// and a tag names one value.
func register(c Cluster) error {
	in := majority("a", "b", "c")
	for _, id := range in.Members() {
		c.Node(id, &registerNode{})
	}
	passed := 0
	c.Faults(func(from, to quorum.NodeID, m env.Message) Fate {
		passed++
		switch {
		case passed%7 == 3:
			return Lose
		case passed%5 == 2:
			return Twice
		}
		return Deliver
	})

	const rounds = 8
	clients := []quorum.NodeID{"p", "q", "r"}
	seen := make([][]held, len(clients))
	scopes := make([]Scope, len(clients))
	for i, name := range clients {
		scopes[i] = c.Scope(name, Patience)
		scopes[i].Start(func(e env.Env) error {
			for round := range rounds {
				w, err := write(e, in, fmt.Sprintf("%s%d", name, round))
				if err != nil {
					return err
				}
				r, err := read(e, in)
				if err != nil {
					return err
				}
				seen[i] = append(seen[i], w, r)
			}
			return nil
		})
	}
	for _, s := range scopes {
		if err := s.Wait(); err != nil {
			return err
		}
	}
	values := make(map[tags.Tag]string)
	for i, name := range clients {
		if len(seen[i]) != 2*rounds {
			return fmt.Errorf("%s ended %d operations, want %d", name, len(seen[i]), 2*rounds)
		}
		var last tags.Tag
		for at, h := range seen[i] {
			isWrite := at%2 == 0
			if h.tag.Less(last) || isWrite && h.tag == last {
				return fmt.Errorf("%s: operation %d saw %v after %v", name, at, h.tag, last)
			}
			if v, ok := values[h.tag]; ok && v != h.value {
				return fmt.Errorf("tag %v names %q and %q", h.tag, v, h.value)
			}
			values[h.tag], last = h.value, h.tag
		}
	}
	return nil
}
