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

type bump struct {
	op tags.PID
	by int
}

type now struct{ value, watchers int }

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
	var value int
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
				e.Send(envelope.From, &now{value, len(watchers)})
			case *bump:
				if !counted[m.op] {
					counted[m.op] = true
					value += m.by
					for _, w := range watchers {
						e.Send(w, &now{value, len(watchers)})
					}
				}
				e.Send(envelope.From, &now{value, len(watchers)})
			default:
				return fmt.Errorf("the mailbox held a %T", m)
			}
		}
	}
}

// bumpBy adds to the number, and returns what it was told of it then.
func bumpBy(e env.Env, n int) (now, error) {
	var got now
	err := e.Ask([]quorum.NodeID{"a"}, &bump{e.ID(), n}, func(_ env.Conversation, _ quorum.NodeID, m env.Message) bool {
		got = *m.(*now)
		return true
	})
	return got, err
}

// watchUntil watches the number until enough says so.
func watchUntil(e env.Env, enough func(n int) bool) error {
	return e.Ask([]quorum.NodeID{"a"}, &watchFrom{}, func(_ env.Conversation, _ quorum.NodeID, m env.Message) bool {
		return enough(m.(*now).value)
	})
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
			return watchUntil(e, func(n int) bool {
				seen[i] = append(seen[i], n)
				return n >= end
			})
		})
	}
	err := run(c, "writer", func(e env.Env) error {
		for range end {
			if _, err := bumpBy(e, 1); err != nil {
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

// watched waits until n addresses watch the number: those of connections that
// have ended are among them.
func watched(c Cluster, n int) error {
	return until(c, "writer", func(e env.Env) (bool, error) {
		got, err := bumpBy(e, 0)
		return got.watchers >= n, err
	})
}

// leap is a number that the watched one reaches at once, and then only.
const leap = 1000

// untilLeap is a watch that ends with the leap.
func untilLeap(c Cluster, process quorum.NodeID) Scope {
	s := c.Scope(process, Patience)
	s.Start(func(e env.Env) error { return watchUntil(e, func(n int) bool { return n >= leap }) })
	return s
}

func takeLeap(c Cluster) error {
	return run(c, "writer", func(e env.Env) error {
		_, err := bumpBy(e, leap)
		return err
	})
}

// watchRestart: the node dies, and with it what it knew of its watchers. They
// come back by themselves, in the same Ask.
func watchRestart(c Cluster) error {
	c.Node("a", watchNode{})
	task := c.Scope("a", 0)
	task.Start(publish)
	watch := untilLeap(c, "p")
	if err := watched(c, 1); err != nil {
		return err
	}
	c.Restart("a", watchNode{})
	if err := task.Wait(); !errors.Is(err, env.ErrStopped) {
		return fmt.Errorf("the publisher ended with %v, want %v", err, env.ErrStopped)
	}
	task = c.Scope("a", 0)
	task.Start(publish)
	if err := first(watched(c, 1), takeLeap(c), watch.Wait()); err != nil {
		return err
	}
	task.Cancel()
	task.Wait()
	return nil
}

// watchBroken: the connection breaks, on the side of the watched and then on
// that of the watcher, with both alive.
func watchBroken(c Cluster) error {
	c.Node("a", watchNode{})
	task := c.Scope("a", 0)
	task.Start(publish)
	watch := untilLeap(c, "p")
	for i, process := range []quorum.NodeID{"a", "p"} {
		if err := watched(c, i+1); err != nil {
			return err
		}
		c.Cut(process)
		c.Heal(process)
	}
	if err := first(watched(c, 3), takeLeap(c), watch.Wait()); err != nil {
		return err
	}
	task.Cancel()
	task.Wait()
	return nil
}
