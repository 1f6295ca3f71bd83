package envtest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"atoll/env"
	"atoll/quorum"
)

// longAfter is a pause in which every kernel would have asked the spares.
const longAfter = 10 * time.Second

// askFor asks first, with spare, until as many nodes have answered.
func askFor(e env.Env, n, enough int, first, spare []quorum.NodeID) error {
	var heard []quorum.NodeID
	return e.AskSome(first, spare, &ping{n}, func(_ env.Conversation, from quorum.NodeID, _ env.Message) bool {
		if !slices.Contains(heard, from) {
			heard = append(heard, from)
		}
		return len(heard) == enough
	})
}

// notPinged returns an error if node has had a ping with the number n.
func notPinged(e env.Env, node quorum.NodeID, n int) error {
	got, err := ask(e, node, &tally{n})
	if err == nil && got.seen > 0 {
		err = fmt.Errorf("%s was asked %d times, want not at all", node, got.seen)
	}
	return err
}

// sparesAreLeft: those of first answer, each is done with that, and the spare
// is never asked, then or later.
func sparesAreLeft(c Cluster) error {
	for _, id := range []quorum.NodeID{"a", "b", "c"} {
		c.Node(id, newEcho())
	}
	return run(c, "p", func(e env.Env) error {
		for range 20 {
			if err := askFor(e, 1, 2, []quorum.NodeID{"a", "b"}, []quorum.NodeID{"c", "a"}); err != nil {
				return err
			}
		}
		if err := e.Sleep(longAfter); err != nil {
			return err
		}
		return notPinged(e, "c", 1)
	})
}

// sparesAreAsked: one of first is silent, and so the spares are asked. What is
// lost of that is sent again.
func sparesAreAsked(c Cluster) error {
	for _, id := range []quorum.NodeID{"a", "b", "c", "d"} {
		c.Node(id, newEcho())
	}
	toC := 0
	c.Faults(func(from, to quorum.NodeID, m env.Message) Fate {
		if _, ok := m.(*ping); ok && to == "c" {
			if toC++; toC == 1 {
				return Lose
			}
		}
		if to == "a" {
			return Lose
		}
		return Deliver
	})
	return run(c, "p", func(e env.Env) error {
		return askFor(e, 1, 3, []quorum.NodeID{"a", "b"}, []quorum.NodeID{"c", "d"})
	})
}

// sparesAtOnce: where one of first can't be reached, the spare is asked sooner
// than where it is silent.
func sparesAtOnce(c Cluster) error {
	for _, id := range []quorum.NodeID{"a", "b", "c"} {
		c.Node(id, newEcho())
	}
	took := func(process quorum.NodeID) (d time.Duration, err error) {
		err = run(c, process, func(e env.Env) error {
			began := e.Now()
			err := askFor(e, 1, 2, []quorum.NodeID{"a", "b"}, []quorum.NodeID{"c"})
			d = e.Now() - began
			return err
		})
		return d, err
	}
	c.Faults(func(_, to quorum.NodeID, _ env.Message) Fate {
		if to == "a" {
			return Lose
		}
		return Deliver
	})
	silent, err := took("p")
	if err != nil {
		return err
	}
	c.Cut("a")
	cut, err := took("q")
	if err == nil && cut >= silent {
		err = fmt.Errorf("it took %v with a node that is cut off, and %v with a silent one", cut, silent)
	}
	return err
}

// spareIsAdded: an answer of a adds one of the spares, which is enough. The
// other is left. Who was added is passed on like any other.
func spareIsAdded(c Cluster) error {
	for _, id := range []quorum.NodeID{"a", "b", "c"} {
		c.Node(id, newEcho())
	}
	return run(c, "p", func(e env.Env) error {
		before, after := -1, 0
		err := e.AskSome([]quorum.NodeID{"a"}, []quorum.NodeID{"b", "c"}, &ping{1}, func(c env.Conversation, from quorum.NodeID, _ env.Message) bool {
			if before < 0 {
				before = c.Sent("b")
			}
			c.Add("b", "a")
			after = c.Sent("a")
			return from == "b"
		})
		if err == nil && (before != 0 || after != 1) {
			err = fmt.Errorf("b was sent %d copies before it was added, and a %d in all, want 0 and 1", before, after)
		}
		if err != nil {
			return err
		}
		if err := e.Sleep(longAfter); err != nil {
			return err
		}
		return notPinged(e, "c", 1)
	})
}

// spareIsRedirected: a spare that is redirected is asked that, and nothing
// else.
func spareIsRedirected(c Cluster) error {
	c.Node("a", newEcho())
	c.Node("b", newEcho())
	return run(c, "p", func(e env.Env) error {
		var heard []string
		end := e.Now() + longAfter
		err := e.AskSome([]quorum.NodeID{"a"}, []quorum.NodeID{"b"}, &ping{1}, func(c env.Conversation, from quorum.NodeID, m env.Message) bool {
			n := m.(*pong).n
			if said := fmt.Sprintf("%s%d", from, n); !slices.Contains(heard, said) {
				heard = append(heard, said)
			}
			if from == "a" {
				c.Redirect("b", &ping{2})
			}
			return from == "b"
		})
		if err != nil {
			return err
		}
		if got, want := fmt.Sprint(heard), "[a1 b2]"; got != want {
			return fmt.Errorf("heard %s, want %s", got, want)
		}
		if err := e.Sleep(end - e.Now()); err != nil {
			return err
		}
		return notPinged(e, "b", 1)
	})
}

// sparesAreNamed: an Ask that ends before its spares were asked says so.
func sparesAreNamed(c Cluster) error {
	c.Node("a", newEcho())
	c.Node("b", newEcho())
	s := c.Scope("p", Patience)
	s.Start(func(e env.Env) error {
		err := e.AskSome([]quorum.NodeID{"a"}, []quorum.NodeID{"b"}, &ping{1}, func(env.Conversation, quorum.NodeID, env.Message) bool {
			s.Cancel()
			return false
		})
		u, ok := errors.AsType[*env.Unfinished](err)
		if !ok {
			return fmt.Errorf("it ended with %v, want an *env.Unfinished", err)
		}
		want := []env.Target{{Node: "a", Sent: true, Answered: true}, {Node: "b"}}
		if !slices.Equal(u.Targets, want) {
			return fmt.Errorf("targets %+v, want %+v", u.Targets, want)
		}
		// And one that comes too late names them all.
		u, ok = errors.AsType[*env.Unfinished](askFor(e, 2, 1, []quorum.NodeID{"a"}, []quorum.NodeID{"b"}))
		if want := []env.Target{{Node: "a"}, {Node: "b"}}; !ok || !slices.Equal(u.Targets, want) {
			return fmt.Errorf("in a scope that was canceled: %v, want targets %+v", u, want)
		}
		return nil
	})
	return s.Wait()
}

// nearest: the order has every node once, whatever is known of them.
func nearest(c Cluster) error {
	members := []quorum.NodeID{"a", "b", "c", "d", "e"}
	for _, id := range members {
		c.Node(id, newEcho())
	}
	c.Cut("b")
	return run(c, "p", func(e env.Env) error {
		for n := range 40 {
			for k := range len(members) + 1 {
				some := slices.Clone(members[:k])
				order := e.Nearest(some)
				if !slices.Equal(some, members[:k]) {
					return fmt.Errorf("the argument of Nearest was changed to %v", some)
				}
				if got := slices.Sorted(slices.Values(order)); !slices.Equal(got, some) {
					return fmt.Errorf("the order of %v is %v", some, order)
				}
			}
			order := e.Nearest(members)
			if err := askFor(e, n, 3, order[:3], order[3:]); err != nil {
				return err
			}
		}
		return nil
	})
}
