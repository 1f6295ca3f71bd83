package envtest

import (
	"errors"
	"fmt"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/tags"
)

// forever waits for answers that never suffice.
func forever(e env.Env, to ...quorum.NodeID) error {
	return e.Ask(to, &ping{1}, func(env.Conversation, quorum.NodeID, env.Message) bool { return false })
}

// canceled: an Ask ends with an Unfinished that says of each target whether it
// was sent to and has answered, and what the transport knows. Afterwards every
// call on the Env returns the cause.
func canceled(c Cluster) error {
	for _, id := range []quorum.NodeID{"a", "silent", "cut"} {
		c.Node(id, newEcho())
	}
	c.Cut("cut")
	c.Faults(func(from, to quorum.NodeID, m env.Message) Fate {
		if to == "silent" {
			return Lose
		}
		return Deliver
	})
	s := c.Scope("p", Patience)
	s.Start(func(e env.Env) error {
		err := e.Ask([]quorum.NodeID{"silent", "cut", "a"}, &ping{1}, func(_ env.Conversation, from quorum.NodeID, _ env.Message) bool {
			if from == "a" {
				s.Cancel()
			}
			return false
		})
		if err := checkFacts(err); err != nil {
			return err
		}
		_, received := e.Receive("nothing")
		for i, err := range []error{e.Sleep(0), e.Sleep(time.Hour), forever(e, "a"), received, e.Go("late", func(e env.Env) error { return e.Sleep(0) }).Join()} {
			if !errors.Is(err, env.ErrCanceled) {
				return fmt.Errorf("call %d in a scope that was canceled returned %v", i, err)
			}
		}
		return nil
	})
	return s.Wait()
}

func checkFacts(err error) error {
	var u *env.Unfinished
	if !errors.As(err, &u) {
		return fmt.Errorf("an Ask ended with %v, want an *env.Unfinished", err)
	}
	if u.Cause != env.ErrCanceled {
		return fmt.Errorf("the cause is %v, want %v", u.Cause, env.ErrCanceled)
	}
	want := []struct {
		node                    quorum.NodeID
		sent, answered, trouble bool
	}{
		{"silent", true, false, false},
		{"cut", false, false, true},
		{"a", true, true, false},
	}
	if len(u.Targets) != len(want) {
		return fmt.Errorf("facts about %d targets, want %d: %v", len(u.Targets), len(want), u)
	}
	for i, w := range want {
		t := u.Targets[i]
		if t.Node != w.node || t.Sent != w.sent || t.Answered != w.answered || (t.Err != nil) != w.trouble {
			return fmt.Errorf("target %d is %+v, want %+v", i, t, w)
		}
	}
	return nil
}

// deadline: Ask, Sleep, Receive and what waits in a task end when the scope's
// time is over.
func deadline(c Cluster) error {
	c.Node("a", newEcho())
	const limit = 20 * time.Millisecond
	waits := []func(env.Env) error{
		func(e env.Env) error { return forever(e, "a") },
		func(e env.Env) error { return forever(e) },
		func(e env.Env) error { return e.Sleep(time.Hour) },
		func(e env.Env) error { _, err := e.Receive("nothing"); return err },
		func(e env.Env) error {
			return e.Go("outer", func(e env.Env) error {
				return e.Go("inner", func(e env.Env) error { return forever(e, "a") }).Join()
			}).Join()
		},
	}
	scopes := make([]Scope, len(waits))
	for i, wait := range waits {
		scopes[i] = c.Scope("a", limit)
		scopes[i].Start(wait)
	}
	for i, s := range scopes {
		if err := s.Wait(); !errors.Is(err, env.ErrDeadline) {
			return fmt.Errorf("wait %d ended with %v, want %v", i, err, env.ErrDeadline)
		}
	}
	return nil
}

// stopped: a client that is stopped ends its scopes, and its next life works.
func stopped(c Cluster) error {
	c.Node("a", newEcho())
	asking, sleeping := c.Scope("p", Patience), c.Scope("p", Patience)
	asking.Start(func(e env.Env) error { return forever(e, "a") })
	sleeping.Start(func(e env.Env) error { return e.Sleep(time.Hour) })
	if err := untilPinged(c, "a", 1); err != nil {
		return err
	}
	c.Stop("p")
	for i, s := range []Scope{asking, sleeping} {
		if err := s.Wait(); !errors.Is(err, env.ErrStopped) {
			return fmt.Errorf("wait %d ended with %v, want %v", i, err, env.ErrStopped)
		}
	}
	return run(c, "p", func(e env.Env) error {
		_, err := echo(e, "a", 2)
		return err
	})
}

// taskTree: tasks run at the same time and may start tasks; Join returns what
// the task returned, whenever it is called, and however often.
func taskTree(c Cluster) error {
	c.Node("a", newEcho())
	failed := errors.New("failed as it should")
	return run(c, "p", func(e env.Env) error {
		const width = 4
		var tasks [width]env.Task
		var got [width][width]int
		for i := range tasks {
			tasks[i] = e.Go("outer", func(e env.Env) error {
				var inner [width]env.Task
				for j := range inner {
					inner[j] = e.Go("inner", func(e env.Env) error {
						answer, err := echo(e, "a", i*width+j)
						got[i][j] = answer.n
						return err
					})
				}
				for j := range inner {
					if err := inner[j].Join(); err != nil {
						return err
					}
				}
				if i == width-1 {
					return failed
				}
				return nil
			})
		}
		for i, t := range tasks {
			want := error(nil)
			if i == width-1 {
				want = failed
			}
			if one, two := t.Join(), t.Join(); one != want || two != want {
				return fmt.Errorf("task %d ended with %v, then %v, want %v", i, one, two, want)
			}
			for j := range width {
				if got[i][j] != i*width+j {
					return fmt.Errorf("task %d.%d has result %d", i, j, got[i][j])
				}
			}
		}
		return nil
	})
}

// taskCanceled: Cancel ends a task and those within it with ErrCanceled, whatever
// they wait for, and leaves who started it and its other tasks alone. A task
// that has returned doesn't mind, nor one that is canceled twice.
func taskCanceled(c Cluster) error {
	c.Node("a", newEcho())
	return run(c, "p", func(e env.Env) error {
		var within error
		waiting := e.Go("waiting", func(e env.Env) error {
			t := e.Go("within", func(e env.Env) error {
				within = forever(e, "a")
				return within
			})
			err := e.Sleep(time.Hour)
			return errors.Join(err, t.Join())
		})
		other := e.Go("other", func(e env.Env) error { return e.Sleep(10 * time.Millisecond) })
		if _, err := echo(e, "a", 1); err != nil {
			return err
		}
		waiting.Cancel()
		waiting.Cancel()
		if err := waiting.Join(); !errors.Is(err, env.ErrCanceled) || !errors.Is(within, env.ErrCanceled) {
			return fmt.Errorf("a task that was canceled ended with %v, and one within it with %v", err, within)
		}
		if err := other.Join(); err != nil {
			return fmt.Errorf("a task beside one that was canceled ended with %v", err)
		}
		other.Cancel()
		_, err := echo(e, "a", 2)
		return errors.Join(err, other.Join())
	})
}

// mailboxOwners: a mailbox is its task's until that ends, and nobody else's;
// then what waits in it is for the next.
func mailboxOwners(c Cluster) error {
	c.Node("a", watchNode{})
	mail := func(e env.Env, n int) { e.Tell([]quorum.NodeID{"a"}, &bump{by: n}) }
	receive := func(e env.Env, want int) error {
		got, err := e.Receive(numbers)
		if err == nil && (len(got) != 1 || got[0].Message.(*bump).by != want) {
			err = fmt.Errorf("received %d envelopes, want one with %d", len(got), want)
		}
		return err
	}
	second := func(e env.Env) (err error) {
		defer func() {
			if recover() == nil {
				err = errors.New("a second task could receive from a mailbox")
			}
		}()
		_, err = e.Receive(numbers)
		return err
	}
	err := run(c, "a", func(e env.Env) error {
		mail(e, 1)
		owner := e.Go("owner", func(e env.Env) error {
			if err := receive(e, 1); err != nil {
				return err
			}
			// It owns the mailbox though it doesn't wait for it.
			if err := e.Go("second", second).Join(); err != nil {
				return err
			}
			mail(e, 2)
			return e.Sleep(time.Millisecond)
		})
		if err := owner.Join(); err != nil {
			return err
		}
		if err := e.Sleep(time.Millisecond); err != nil { // nobody owns it
			return err
		}
		return e.Go("next", func(e env.Env) error { return receive(e, 2) }).Join()
	})
	if err != nil {
		return err
	}
	waiting := c.Scope("a", time.Millisecond)
	waiting.Start(func(e env.Env) error { return receive(e, 0) })
	if err := waiting.Wait(); !errors.Is(err, env.ErrDeadline) {
		return fmt.Errorf("a Receive ended with %v, want %v", err, env.ErrDeadline)
	}
	return run(c, "a", func(e env.Env) error {
		mail(e, 3)
		return receive(e, 3)
	})
}

// sleeping: Sleep takes at least as long as Now says, and Now never goes back.
func sleeping(c Cluster) error {
	return run(c, "p", func(e env.Env) error {
		for _, d := range []time.Duration{0, time.Microsecond, 3 * time.Millisecond} {
			before := e.Now()
			if err := e.Sleep(d); err != nil {
				return err
			}
			if passed := e.Now() - before; passed < d {
				return fmt.Errorf("slept %v, and only %v passed", d, passed)
			}
		}
		return nil
	})
}

// identities: no two operation ids are equal, in one task or several, in one
// process or several, in one life or the next; a client has no Self.
func identities(c Cluster) error {
	c.Node("a", newEcho())
	seen := make(map[tags.PID]bool)
	draw := func(e env.Env, ids *[]tags.PID) error {
		for range 20 {
			*ids = append(*ids, e.ID())
		}
		return nil
	}
	for _, process := range []quorum.NodeID{"a", "p", "q", "p"} {
		var ids, inTask []tags.PID
		err := run(c, process, func(e env.Env) error {
			if self := e.Self(); (self == "a") != (process == "a") || self != "a" && self != "" {
				return fmt.Errorf("on %s, Self is %q", process, self)
			}
			if one, two := e.Rand(), e.Rand(); one == two {
				return errors.New("a Rand returned the same number twice")
			}
			t := e.Go("draw", func(e env.Env) error { return draw(e, &inTask) })
			return first(draw(e, &ids), t.Join())
		})
		if err != nil {
			return err
		}
		if process != "a" {
			c.Stop(process)
		}
		for _, id := range append(ids, inTask...) {
			if id.IsZero() || seen[id] {
				return fmt.Errorf("%s drew the id %v, zero or drawn before", process, id)
			}
			seen[id] = true
		}
	}
	return nil
}
