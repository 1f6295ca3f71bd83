package envtest

import (
	"errors"
	"fmt"
	"slices"

	"atoll/env"
	"atoll/quorum"
	"atoll/tags"
)

// The toy watch: a number on node a that only grows. A caller asks once, and
// is told of every change until it has seen enough.

type watchFrom struct{}

type bump struct{ op tags.PID }

type now struct{ value int }

func (*watchFrom) Message() {}
func (*bump) Message()      {}
func (*now) Message()       {}

const numbers env.Mailbox = "numbers"

// watchNode hands everything to the task.
type watchNode struct{}

func (watchNode) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	return append(out, env.Out{To: from, Mailbox: numbers, Message: m}), nil
}

// publish is the task: it owns the number, and remembers who watches.
func publish(e env.Env) error {
	value := 0
	var watchers []env.Address
	counted := make(map[tags.PID]bool)
	for {
		got, err := e.Receive(numbers)
		if err != nil {
			return err
		}
		for _, envelope := range got {
			switch m := envelope.Message.(type) {
			case *watchFrom:
				// Asked again, it answers again: the first answer may be lost.
				if !slices.Contains(watchers, envelope.From) {
					watchers = append(watchers, envelope.From)
				}
				e.Send(envelope.From, &now{value})
			case *bump:
				if !counted[m.op] {
					counted[m.op] = true
					value++
					for _, w := range watchers {
						e.Send(w, &now{value})
					}
				}
				e.Send(envelope.From, &now{value})
			default:
				return fmt.Errorf("the mailbox held a %T", m)
			}
		}
	}
}

// watch: one Ask of each watcher sees the number grow to the end. Who misses
// a push, as every third to one of them is lost, sees the next: that the last
// one arrives is what a real protocol would have to see to.
func watch(c Cluster) error {
	c.Node("a", watchNode{})
	const end = 10
	pushed := 0
	c.Faults(func(from, to quorum.NodeID, m env.Message) Fate {
		if n, ok := m.(*now); !ok || to != "unlucky" || n.value == end {
			return Deliver
		}
		if pushed++; pushed%3 == 0 {
			return Lose
		}
		return Deliver
	})
	task := c.Scope("a", 0)
	task.Start(publish)

	watchers := []quorum.NodeID{"lucky", "unlucky"}
	seen := make([][]int, len(watchers))
	scopes := make([]Scope, len(watchers))
	for i, name := range watchers {
		scopes[i] = c.Scope(name, Patience)
		scopes[i].Start(func(e env.Env) error {
			return e.Ask([]quorum.NodeID{"a"}, &watchFrom{}, func(_ env.Conversation, _ quorum.NodeID, m env.Message) bool {
				n := m.(*now).value
				seen[i] = append(seen[i], n)
				return n >= end
			})
		})
	}
	err := run(c, "writer", func(e env.Env) error {
		for range end {
			err := e.Ask([]quorum.NodeID{"a"}, &bump{e.ID()}, func(env.Conversation, quorum.NodeID, env.Message) bool { return true })
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err := first(err, scopes[0].Wait(), scopes[1].Wait()); err != nil {
		return err
	}
	task.Cancel()
	if err := task.Wait(); !errors.Is(err, env.ErrCanceled) {
		return fmt.Errorf("the publisher ended with %v, want %v", err, env.ErrCanceled)
	}
	for i, name := range watchers {
		if last := seen[i][len(seen[i])-1]; last != end {
			return fmt.Errorf("%s ended at %d, want %d (saw %v)", name, last, end, seen[i])
		}
	}
	return nil
}
