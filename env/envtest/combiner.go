package envtest

import (
	"errors"
	"fmt"
	"slices"

	"atoll/env"
	"atoll/quorum"
	"atoll/tags"
)

// The toy combiner: callers submit values to node a, where a task decides
// their order, makes each batch known to a write quorum, and tells each caller
// at which place of the log its value stands.

// submit asks for a place in the log.
type submit struct {
	op    tags.PID
	value string
}

type placed struct{ at int }

// extend replaces everything from place at on.
type extend struct {
	at     int
	values []string
}

type extended struct{ length int }

// counting asks how many submissions node a has put into its mailbox.
type counting struct{}

type count struct{ distinct int }

func (*submit) Message()   {}
func (*placed) Message()   {}
func (*extend) Message()   {}
func (*extended) Message() {}
func (*counting) Message() {}
func (*count) Message()    {}

const submissions env.Mailbox = "submissions"

type combinerNode struct {
	log       []string
	submitted map[tags.PID]bool
}

func (n *combinerNode) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	switch m := m.(type) {
	case *submit:
		n.submitted[m.op] = true
		return append(out, env.Out{To: from, Mailbox: submissions, Message: m}), nil
	case *extend:
		if m.at > len(n.log) {
			return out, nil // a gap: silence, until what is missing comes
		}
		// A duplicate that comes late must not take anything back.
		if end := m.at + len(m.values); end > len(n.log) {
			n.log = append(n.log[:m.at:m.at], m.values...)
		}
		return append(out, env.Out{To: from, Message: &extended{len(n.log)}}), nil
	case *counting:
		return append(out, env.Out{To: from, Message: &count{len(n.submitted)}}), nil
	}
	return out, fmt.Errorf("unexpected %T", m)
}

// combine is the task. batches gets the number of new values of each batch.
func combine(e env.Env, in quorum.Configurations, batches *[]int) error {
	var log []string
	places := make(map[tags.PID]int)
	for {
		got, err := e.Receive(submissions)
		if err != nil {
			return err
		}
		if len(got) == 0 {
			return fmt.Errorf("a Receive returned nothing, and no error")
		}
		before := len(log)
		for _, envelope := range got {
			s, ok := envelope.Message.(*submit)
			if !ok {
				return fmt.Errorf("the mailbox held a %T", envelope.Message)
			}
			if _, known := places[s.op]; !known {
				places[s.op] = len(log)
				log = append(log, s.value)
			}
		}
		if len(log) > before {
			*batches = append(*batches, len(log)-before)
			// The whole log goes along: a node that missed a batch catches up.
			if err := extendAt(e, in, &extend{0, slices.Clone(log)}); err != nil {
				return err
			}
		}
		for _, envelope := range got {
			e.Send(envelope.From, &placed{places[envelope.Message.(*submit).op]})
		}
	}
}

func extendAt(e env.Env, in quorum.Configurations, m *extend) error {
	var t quorum.Tally
	t.Begin(in)
	return e.Ask(in.Members(), m, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		if a, ok := answer.(*extended); ok && a.length >= len(m.values) {
			t.Add(from)
		}
		return t.HasWrite()
	})
}

// submitTo asks the combiner on node to for a place.
func submitTo(e env.Env, to quorum.NodeID, value string) (int, error) {
	at := -1
	err := e.Ask([]quorum.NodeID{to}, &submit{e.ID(), value}, func(_ env.Conversation, _ quorum.NodeID, m env.Message) bool {
		p, ok := m.(*placed)
		if ok {
			at = p.at
		}
		return ok
	})
	return at, err
}

// combiner: what waits in a mailbox is received at once and decided as one
// batch; then values are submitted while others are being decided, one of
// them from a task on another node; each gets a place of its own.
func combiner(c Cluster) error {
	in := majority("a", "b", "c")
	for _, id := range in.Members() {
		c.Node(id, &combinerNode{submitted: make(map[tags.PID]bool)})
	}
	const callers, rounds = 12, 3
	places := make([][]int, callers)
	scopes := make([]Scope, callers)
	for i := range scopes {
		process := quorum.NodeID(fmt.Sprintf("p%d", i))
		if i == 0 {
			process = "b"
		}
		scopes[i] = c.Scope(process, Patience)
		scopes[i].Start(func(e env.Env) error {
			for round := range rounds {
				at, err := submitTo(e, "a", fmt.Sprintf("%d.%d", i, round))
				if err != nil {
					return err
				}
				places[i] = append(places[i], at)
			}
			return nil
		})
	}
	// No task has the mailbox yet, so all first submissions come to wait.
	err := until(c, "observer", func(e env.Env) (bool, error) {
		waiting := 0
		err := e.Ask([]quorum.NodeID{"a"}, &counting{}, func(_ env.Conversation, _ quorum.NodeID, m env.Message) bool {
			n, ok := m.(*count)
			if ok {
				waiting = n.distinct
			}
			return ok
		})
		return waiting == callers, err
	})
	if err != nil {
		return err
	}
	var batches []int
	task := c.Scope("a", 0)
	task.Start(func(e env.Env) error { return combine(e, in, &batches) })
	for i, s := range scopes {
		if err := s.Wait(); err != nil {
			return fmt.Errorf("caller %d: %w", i, err)
		}
	}
	task.Cancel()
	if err := task.Wait(); !errors.Is(err, env.ErrCanceled) {
		return fmt.Errorf("the combiner ended with %v, want %v", err, env.ErrCanceled)
	}

	if batches[0] != callers {
		return fmt.Errorf("the first batch had %d values, but %d were waiting", batches[0], callers)
	}
	all := slices.Sorted(slices.Values(slices.Concat(places...)))
	for i, at := range all {
		if at != i || len(all) != callers*rounds {
			return fmt.Errorf("places %v: want 0 to %d, once each", all, callers*rounds-1)
		}
	}
	return nil
}
