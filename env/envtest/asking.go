package envtest

import (
	"fmt"
	"slices"
	"time"

	"atoll/env"
	"atoll/quorum"
)

// The toy echo: a node answers with the number that it was sent, and counts.

type ping struct{ n int }

type pong struct {
	n    int
	seen int // how many pings with this number the node has had
}

// tally asks for a pong without being a ping.
type tally struct{ n int }

func (*ping) Message()  {}
func (*pong) Message()  {}
func (*tally) Message() {}

type echoNode struct{ seen map[int]int }

func newEcho() *echoNode { return &echoNode{seen: make(map[int]int)} }

func (n *echoNode) Step(from env.Address, m env.Message, out []env.Out) ([]env.Out, error) {
	switch m := m.(type) {
	case *ping:
		n.seen[m.n]++
		return append(out, env.Out{To: from, Message: &pong{m.n, n.seen[m.n]}}), nil
	case *tally:
		return append(out, env.Out{To: from, Message: &pong{m.n, n.seen[m.n]}}), nil
	}
	return out, fmt.Errorf("unexpected %T", m)
}

// echo asks one node, and returns its first answer.
func echo(e env.Env, to quorum.NodeID, n int) (pong, error) {
	return ask(e, to, &ping{n})
}

func ask(e env.Env, to quorum.NodeID, m env.Message) (pong, error) {
	var answer pong
	err := e.Ask([]quorum.NodeID{to}, m, func(_ env.Conversation, _ quorum.NodeID, m env.Message) bool {
		answer = *m.(*pong)
		return true
	})
	return answer, err
}

// untilPinged waits until node has had a ping with the number n.
func untilPinged(c Cluster, node quorum.NodeID, n int) error {
	return until(c, "observer", func(e env.Env) (bool, error) {
		got, err := ask(e, node, &tally{n})
		return got.seen > 0, err
	})
}

// lateAnswers: b's answer to the first conversation arrives while the second
// one, which ends with b's answer only, is under way. It is not passed on.
func lateAnswers(c Cluster) error {
	c.Node("a", newEcho())
	c.Node("b", newEcho())
	c.Faults(func(from, to quorum.NodeID, m env.Message) Fate {
		p, ok := m.(*pong)
		switch {
		case ok && from == "b" && p.n%2 == 1:
			return Late
		case ok:
			return Twice
		}
		return Deliver
	})
	return run(c, "p", func(e env.Env) error {
		for n := 1; n <= 20; n++ {
			var wrong []int
			fromB := false
			err := e.Ask([]quorum.NodeID{"a", "b"}, &ping{n}, func(_ env.Conversation, from quorum.NodeID, m env.Message) bool {
				if got := m.(*pong).n; got != n {
					wrong = append(wrong, got)
				}
				fromB = fromB || from == "b"
				// Odd conversations end without b, whose answer stays behind.
				return fromB || n%2 == 1
			})
			if err != nil {
				return err
			}
			if len(wrong) > 0 {
				return fmt.Errorf("conversation %d was passed answers to %v", n, wrong)
			}
		}
		return nil
	})
}

// lostIsResent: the first request and the first two answers are lost. The
// conversation knows how many copies it took.
func lostIsResent(c Cluster) error {
	c.Node("a", newEcho())
	requests, answers := 0, 0
	c.Faults(func(from, to quorum.NodeID, m env.Message) Fate {
		if to == "a" {
			if requests++; requests == 1 {
				return Lose
			}
			return Deliver
		}
		if answers++; answers <= 2 {
			return Lose
		}
		return Deliver
	})
	return run(c, "p", func(e env.Env) error {
		arrived, sent := 0, 0
		err := e.Ask([]quorum.NodeID{"a"}, &ping{1}, func(c env.Conversation, _ quorum.NodeID, m env.Message) bool {
			arrived, sent = m.(*pong).seen, c.Sent("a")
			return true
		})
		if err == nil && (arrived < 3 || sent < arrived+1) {
			err = fmt.Errorf("%d requests were sent and %d arrived, want at least 4 and 3", sent, arrived)
		}
		return err
	})
}

// allAreAsked: each is done with the first answer, and yet the others are sent
// the request.
func allAreAsked(c Cluster) error {
	members := []quorum.NodeID{"a", "b", "c", "d", "e"}
	for _, id := range members {
		c.Node(id, newEcho())
	}
	err := run(c, "p", func(e env.Env) error {
		return e.Ask(members, &ping{1}, func(env.Conversation, quorum.NodeID, env.Message) bool { return true })
	})
	for _, id := range members {
		err = first(err, untilPinged(c, id, 1))
	}
	return err
}

// answeredIsLeft: a has answered, and so isn't asked again when b is.
func answeredIsLeft(c Cluster) error {
	c.Node("a", newEcho())
	c.Node("b", newEcho())
	toB := 0
	c.Faults(func(from, to quorum.NodeID, m env.Message) Fate {
		if to == "b" {
			if toB++; toB <= 3 {
				return Lose
			}
		}
		return Deliver
	})
	return run(c, "p", func(e env.Env) error {
		var before, after, b int
		err := e.Ask([]quorum.NodeID{"a", "b"}, &ping{1}, func(c env.Conversation, from quorum.NodeID, _ env.Message) bool {
			if from == "a" && before == 0 {
				before = c.Sent("a")
			}
			after, b = c.Sent("a"), c.Sent("b")
			return from == "b"
		})
		if err == nil && (before != after || b < 4) {
			err = fmt.Errorf("a was sent %d copies until it answered, then %d more, and b %d in all, want none more and at least 4", before, after-before, b)
		}
		return err
	})
}

// othersAreLeft: b, which has answered, is asked again after it was restarted,
// and a isn't.
func othersAreLeft(c Cluster) error {
	c.Node("a", newEcho())
	c.Node("b", newEcho())
	const restarted = 100
	asking := c.Scope("p", Patience)
	asking.Start(func(e env.Env) error {
		before, after := 0, 0
		again := false
		err := e.Ask([]quorum.NodeID{"a", "b"}, &ping{1}, func(c env.Conversation, from quorum.NodeID, m env.Message) bool {
			if from == "a" && before == 0 {
				before = c.Sent("a")
			}
			after = c.Sent("a")
			again = again || m.(*pong).seen > restarted
			return again && before > 0
		})
		if err == nil && before != after {
			err = fmt.Errorf("a was sent %d copies until it answered, and %d more when b's connection was another", before, after-before)
		}
		return err
	})
	err := first(untilPinged(c, "a", 1), untilPinged(c, "b", 1))
	c.Restart("b", &echoNode{map[int]int{1: restarted}})
	return first(err, asking.Wait())
}

// healedIsAsked: b can't be reached when it is asked, and comes back.
func healedIsAsked(c Cluster) error {
	c.Node("a", newEcho())
	c.Node("b", newEcho())
	c.Cut("b")
	asking := c.Scope("p", Patience)
	asking.Start(func(e env.Env) error {
		var heard [2]bool
		return e.Ask([]quorum.NodeID{"a", "b"}, &ping{1}, func(_ env.Conversation, from quorum.NodeID, _ env.Message) bool {
			heard[from[0]-'a'] = true
			return heard[0] && heard[1]
		})
	})
	err := untilPinged(c, "a", 1)
	c.Heal("b")
	return first(err, asking.Wait())
}

// eachInOrder: answers come one at a time, name who answered, and none comes
// after each has returned true, though every answer arrives twice.
func eachInOrder(c Cluster) error {
	members := []quorum.NodeID{"a", "b", "c", "d", "e"}
	for _, id := range members {
		c.Node(id, newEcho())
	}
	c.Faults(func(quorum.NodeID, quorum.NodeID, env.Message) Fate { return Twice })
	return run(c, "p", func(e env.Env) error {
		for n := range 20 {
			inside, done, bad := 0, false, ""
			var heard []quorum.NodeID
			err := e.Ask(members, &ping{n}, func(_ env.Conversation, from quorum.NodeID, m env.Message) bool {
				if inside++; inside != 1 || done {
					bad = "called while it ran, or after it had returned true"
				}
				defer func() { inside-- }()
				if m.(*pong).n != n || !slices.Contains(members, from) {
					bad = fmt.Sprintf("got answer %d from %q", m.(*pong).n, from)
				}
				if !slices.Contains(heard, from) {
					heard = append(heard, from)
				}
				done = len(heard) == 3
				return done
			})
			// Another conversation gives what is still on its way time to come.
			if _, err2 := echo(e, "a", -1); err2 != nil || err != nil {
				return first(err, err2)
			}
			if bad != "" {
				return fmt.Errorf("each was %s", bad)
			}
		}
		return nil
	})
}

// addAndRedirect: a's answer adds b, whose answer redirects a to another
// request, which is then the one that is sent again when it is lost. Adding
// who is asked already changes nothing.
func addAndRedirect(c Cluster) error {
	c.Node("a", newEcho())
	c.Node("b", newEcho())
	lost, toB := 0, 0
	c.Faults(func(from, to quorum.NodeID, m env.Message) Fate {
		p, ok := m.(*ping)
		if ok && to == "b" {
			toB++
		}
		if ok && p.n == 2 {
			if lost++; lost <= 2 {
				return Lose
			}
		}
		return Deliver
	})
	var heard []string
	err := run(c, "p", func(e env.Env) error {
		return e.Ask([]quorum.NodeID{"a"}, &ping{1}, func(c env.Conversation, from quorum.NodeID, m env.Message) bool {
			n := m.(*pong).n
			said := fmt.Sprintf("%s%d", from, n)
			if slices.Contains(heard, said) {
				return false // an answer to a request that was sent again
			}
			heard = append(heard, said)
			switch said {
			case "a1":
				c.Add("a", "b")
			case "b1":
				c.Redirect("a", &ping{2})
			}
			return n == 2
		})
	})
	if err != nil {
		return err
	}
	c.Faults(nil) // from here on lost and toB stay as they are
	if got, want := fmt.Sprint(heard), "[a1 b1 a2]"; got != want {
		return fmt.Errorf("heard %s, want %s", got, want)
	}
	if toB == 0 || lost < 3 {
		return fmt.Errorf("%d requests went to b, and %d redirected ones to a", toB, lost)
	}
	return nil
}

// redirectIsLost: the node's answer to the request before the redirect arrives
// once more while the redirected one gets lost. It is passed on, and doesn't
// keep the redirected one from being sent again.
func redirectIsLost(c Cluster) error {
	c.Node("a", newEcho())
	c.Node("b", newEcho())
	answers, lost, released := 0, 0, false
	c.Faults(func(from, to quorum.NodeID, m env.Message) Fate {
		switch m := m.(type) {
		case *ping:
			switch {
			case m.n == 1 && to == "a":
				return Twice
			case m.n == 2 && (!released || lost < 2):
				// Once more after the release, so that the late answer is
				// there well before the next copy.
				if released {
					lost++
				}
				return Lose
			}
		case *pong:
			if m.n == 1 && from == "a" && to == "p" {
				if answers++; answers == 2 {
					return Late
				}
			}
			released = released || m.n == 3
		}
		return Deliver
	})
	var heard []int
	asking := c.Scope("p", Patience)
	asking.Start(func(e env.Env) error {
		return e.Ask([]quorum.NodeID{"a"}, &ping{1}, func(c env.Conversation, from quorum.NodeID, m env.Message) bool {
			n := m.(*pong).n
			if from == "b" {
				return false
			}
			if heard = append(heard, n); len(heard) == 1 {
				c.Redirect("a", &ping{2})
				c.Add("b") // which shows to others that a was redirected
			}
			return n == 2
		})
	})
	err := first(untilPinged(c, "b", 1), until(c, "observer", func(e env.Env) (bool, error) {
		got, err := ask(e, "a", &tally{1})
		return got.seen >= 2, err // and so the second answer is held
	}))
	if err == nil {
		err = run(c, "p", func(e env.Env) error { // which releases it
			_, err := echo(e, "a", 3)
			return err
		})
	}
	if err := first(err, asking.Wait()); err != nil {
		return err
	}
	if got, want := fmt.Sprint(heard), "[1 1 2]"; got != want {
		return fmt.Errorf("heard %s, want %s", got, want)
	}
	return nil
}

// tell: a message that is told arrives; the answer to it goes nowhere, and
// never into a conversation of the same process.
func tell(c Cluster) error {
	c.Node("a", newEcho())
	return run(c, "p", func(e env.Env) error {
		e.Tell([]quorum.NodeID{"a"}, &ping{7})
		for {
			got, err := echo(e, "a", 8)
			if err != nil {
				return err
			}
			if got.n != 8 {
				return fmt.Errorf("a conversation was passed the answer to a Tell")
			}
			if got, err = ask(e, "a", &tally{7}); err != nil {
				return err
			}
			if got.seen > 0 {
				return nil
			}
			if err := e.Sleep(time.Millisecond); err != nil {
				return err
			}
		}
	})
}
