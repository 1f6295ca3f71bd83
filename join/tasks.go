package join

import (
	"slices"
	"time"

	"atoll/env"
	"atoll/quorum"
	"atoll/rambo"
)

// Tasks are what a node does to be known. Its methods run until they are done, or
// their scope ends.
type Tasks struct {
	// Pace is how often the node greets others. Default: DefaultPace.
	Pace  time.Duration
	Rules Rules
}

// Hello greets all nodes that are known, and waits for the first of them to
// answer.
func (t Tasks) Hello(e env.Env) error {
	k, err := env.AskOne[*known](e, e.Self(), &know{})
	if err != nil || len(k.others) == 0 || k.mute || !k.joined {
		return err
	}
	var first hear
	err = e.Ask(k.others, &k.Greet, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		g, ok := answer.(*Greeted)
		first = hear{from, g}
		return ok
	})
	if err != nil {
		return err
	}
	_, err = env.AskOne[*done](e, e.Self(), &first)
	return err
}

// Greet greets all nodes that are known, again and again.
func (t Tasks) Greet(e env.Env) error {
	pace := t.Pace
	if pace <= 0 {
		pace = DefaultPace
	}
	for {
		if err := t.round(e, pace); err != nil {
			return err
		}
	}
}

// round greets all once, and takes as long as the pace says. Who has answered by
// then is heard.
func (t Tasks) round(e env.Env, pace time.Duration) error {
	k, err := env.AskOne[*known](e, e.Self(), &know{})
	if err != nil {
		return err
	}
	var answers []*hear
	asking := e.Go("join.asking", func(e env.Env) error {
		if len(k.others) == 0 || k.mute || !k.joined {
			return nil
		}
		return e.Ask(k.others, &k.Greet, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
			if g, ok := answer.(*Greeted); ok {
				answers = append(answers, &hear{from, g})
			}
			return len(answers) >= len(k.others)
		})
	})
	ended := e.Sleep(pace)
	asking.Cancel()
	_ = asking.Join() // some of them are down
	if ended != nil {
		return ended
	}
	for _, a := range answers {
		if _, err := env.AskOne[*done](e, e.Self(), a); err != nil {
			return err
		}
	}
	return nil
}

// Join makes the node known to the cluster, which it finds through contacts. It
// returns nil when members that contain a read and a write quorum of the newest
// configuration durably know it (J2), and a *RefusedError when they won't.
func (t Tasks) Join(e env.Env, contacts []quorum.NodeID) error {
	for {
		k, err := env.AskOne[*known](e, e.Self(), &know{})
		if err != nil || k.joined {
			return err
		}
		if k.news == nil || k.news.Map == nil {
			if err := learnFrom(e, contacts); err != nil {
				return err
			}
			continue
		}
		outdated, err := t.ask(e, k)
		if err != nil {
			return err
		}
		if len(outdated) > 0 {
			if err := learnFrom(e, outdated); err != nil {
				return err
			}
		}
	}
}

// learnFrom takes over what the first of some nodes to answer knows of the
// configurations. Of itself it says nothing yet: it may be the second use of a
// ticket. When none has answered after a while it returns nil, too: the node may
// know by then, or another question may do.
func learnFrom(e env.Env, nodes []quorum.NodeID) error {
	var learned *rambo.Gossiped
	asking := e.Go("join.learn", func(e env.Env) error {
		return e.Ask(nodes, &rambo.Gossip{}, func(_ env.Conversation, _ quorum.NodeID, answer env.Message) bool {
			g, ok := answer.(*rambo.Gossiped)
			if ok && g.News != nil {
				learned = g
			}
			return learned != nil
		})
	})
	err := within(e, asking, JoinPause)
	if err != nil || learned == nil {
		return err
	}
	_, err = env.AskOne[*rambo.Gossiped](e, e.Self(), &rambo.Gossip{Knowledge: learned.Knowledge})
	return err
}

// within waits for a task to end, and no longer than it may: then it is canceled.
// The error is that of e's own end.
func within(e env.Env, task env.Task, limit time.Duration) error {
	timer := e.Go("join.limit", func(e env.Env) error {
		if err := e.Sleep(limit); err != nil {
			return err
		}
		task.Cancel()
		return nil
	})
	_ = task.Join()
	timer.Cancel()
	_ = timer.Join()
	return e.Sleep(0)
}

// ask asks the members of the newest configuration to let the node in. outdated
// are those that know a newer one. It may end without a result when the node has
// learned of a newer one otherwise: those that it asks may be switched off.
func (t Tasks) ask(e env.Env, k *known) (outdated []quorum.NodeID, err error) {
	c := k.news.Map.Newest()
	var in, out quorum.Set
	var refused RefusedError
	var seen []Seen
	enough := func(s quorum.Set) bool { return c.IsRead(s) && c.IsWrite(s) || t.Rules.OneIsEnough && s.Len() > 0 }
	m := &Join{Instance: k.Life.Instance, Member: k.Member, Grant: k.grant, Horizon: k.horizon()}
	woken := false
	err = e.Ask(c.Members(), m, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		if _, woken = answer.(env.Woken); woken {
			return true
		}
		i, member := c.Place(from)
		if !member {
			return false
		}
		switch answer := answer.(type) {
		case *Joined:
			if k.horizon().Behind(answer.Horizon) {
				outdated = append(outdated, from)
				return true
			}
			in = in.Add(i)
			seen = append(seen, answer.Seen...)
		case *env.Refused:
			out = out.Add(i)
			if text := answer.Text; !slices.Contains(refused.Texts, text) {
				refused.Texts = append(refused.Texts, text)
			}
		}
		rest := quorum.Set{}
		for j := range c.Members() {
			if !out.Has(j) {
				rest = rest.Add(j)
			}
		}
		return enough(in) || !enough(rest)
	})
	switch {
	case err != nil && len(refused.Texts) > 0:
		return nil, &RefusedError{refused.Texts}
	case err != nil || len(outdated) > 0 || woken:
		return outdated, err
	case !enough(in):
		return nil, &refused
	}
	_, err = env.AskOne[*done](e, e.Self(), &enter{seen})
	return nil, err
}
