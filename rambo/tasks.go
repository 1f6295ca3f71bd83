package rambo

import (
	"errors"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/repair"
)

// Pace says how fast a node does what it does beside answering. The zero value
// of a field stands for its default.
type Pace struct {
	// Gossip is how often a node exchanges what it knows with another one.
	// Default one second.
	Gossip time.Duration
	// Turn is how much longer each member waits than the one before, until it
	// drives an upgrade that isn't done yet. Default 300 ms.
	Turn time.Duration
	// Patience is how long new members may merge nothing more, before those that
	// stay are asked to merge as well. Default 30 seconds.
	Patience time.Duration
	// Finish is how long a vote on the next configuration may lie without a
	// decision before a node finds out what became of it. Default three seconds.
	Finish time.Duration
	// Silence is how long a node that is no member may say nothing until it is
	// forgotten. Default five minutes.
	Silence time.Duration
	// Again is the pause after something that has failed. Default 200 ms.
	Again time.Duration
	// Rate is how many bytes of records a node merges in a second. Default 64
	// MiB; below zero there is no limit.
	Rate int64
	// Page is how many records a node that merges asks for at once. Default, and
	// most, repair.LargestPage.
	Page int
}

// Defaults of Pace.
const (
	DefaultGossip   = time.Second
	DefaultTurn     = 300 * time.Millisecond
	DefaultPatience = 30 * time.Second
	DefaultFinish   = 3 * time.Second
	DefaultSilence  = 5 * time.Minute
	DefaultAgain    = 200 * time.Millisecond
	DefaultRate     = 64 << 20
)

func (p Pace) withDefaults() Pace {
	set := func(d *time.Duration, least time.Duration) {
		if *d <= 0 {
			*d = least
		}
	}
	set(&p.Gossip, DefaultGossip)
	set(&p.Turn, DefaultTurn)
	set(&p.Patience, DefaultPatience)
	set(&p.Finish, DefaultFinish)
	set(&p.Silence, DefaultSilence)
	set(&p.Again, DefaultAgain)
	if p.Rate == 0 {
		p.Rate = DefaultRate
	}
	if p.Page <= 0 || p.Page > repair.LargestPage {
		p.Page = repair.LargestPage
	}
	return p
}

// Tasks are what a node does about configurations beside answering. Its methods
// run until their scope ends.
type Tasks struct {
	Pace  Pace
	Rules Rules
}

// Known returns the config map of the node that e is on; nil if it knows none.
func Known(e env.Env) (*quorum.Map, error) {
	k, err := env.AskOne[*known](e, e.Self(), &know{})
	if err != nil || k.News == nil {
		return nil, err
	}
	return k.News.Map, nil
}

// Gossip exchanges what the node knows with others: with one of them every now
// and then. It counts the rounds in which nodes are silent, too.
func (t Tasks) Gossip(e env.Env) error {
	pace := t.Pace.withDefaults()
	round := e.Now()
	for {
		if err := t.gossip(e, pace.Gossip); err != nil {
			return err
		}
		if now := e.Now(); now-round >= pace.Silence/forgetAfter {
			if _, err := env.AskOne[*aged](e, e.Self(), &age{}); err != nil {
				return err
			}
			round = now
		}
	}
}

// gossip exchanges with one node what both know, and takes a while, whether it
// succeeds or not.
func (t Tasks) gossip(e env.Env, limit time.Duration) error {
	k, err := env.AskOne[*known](e, e.Self(), &know{})
	if err != nil {
		return err
	}
	if len(k.others) == 0 {
		return e.Sleep(limit)
	}
	peer := k.others[e.Rand()%uint64(len(k.others))]
	talk := e.Go("rambo.exchange", func(e env.Env) error { return exchange(e, k, peer) })
	err = e.Sleep(limit/2 + time.Duration(e.Rand()%uint64(limit)))
	talk.Cancel()
	_ = talk.Join() // the peer may be down: the next may not
	return err
}

// Exchange exchanges with a node what both know, once.
func (t Tasks) Exchange(e env.Env, peer quorum.NodeID) error {
	k, err := env.AskOne[*known](e, e.Self(), &know{})
	if err != nil {
		return err
	}
	return exchange(e, k, peer)
}

func exchange(e env.Env, k *known, peer quorum.NodeID) error {
	answer, err := env.AskOne[*Gossiped](e, peer, &Gossip{k.Knowledge})
	if err != nil {
		return err
	}
	_, err = env.AskOne[*Gossiped](e, e.Self(), &Gossip{answer.Knowledge})
	return err
}

// Tell tells all others when the node has retired a configuration. What was
// decided whoever decided it says to all members (Announce), and the driver again,
// with each step; if it stops in the middle, gossip goes on. Were everybody to tell
// everybody what he has heard, a change would cost as many messages as the square of
// the nodes.
func (t Tasks) Tell(e env.Env) error {
	for {
		if _, err := e.Receive(mailTell); err != nil {
			return err
		}
		k, err := env.AskOne[*known](e, e.Self(), &know{})
		if err != nil {
			return err
		}
		e.Tell(k.others, &Gossip{k.Knowledge})
	}
}

// step returns the configuration that is to be fenced and the one that is to be
// installed, if there are any.
func (k *known) step(rules Rules) (old, next *quorum.Configuration, ok bool) {
	if k.News == nil {
		return nil, nil, false
	}
	active := k.News.Map.Active()
	if len(active) < 2 {
		return nil, nil, false
	}
	if rules.FenceTooEarly { // the last two, whatever is before them
		active = active[len(active)-2:]
	}
	return active[0], active[1], true
}

// Drive brings about that a configuration whose successor is known goes out. The
// members take turns: mostly the first of them does it and the others see that
// it is done.
func (t Tasks) Drive(e env.Env) error {
	for {
		u, err := t.next(e)
		if err != nil && err != errNoStep {
			return err
		}
		var driver env.Task
		if err == nil {
			driver = e.Go("rambo.upgrade", func(e env.Env) error { return u.run(e) })
		}
		_, err = e.Receive(mailDrive)
		if driver != nil {
			driver.Cancel()
			_ = driver.Join() // it was canceled
		}
		if err != nil {
			return err
		}
	}
}

// errNoStep: all configurations but the newest are out already.
var errNoStep = errors.New("no configuration is to go out")

// next returns the step that is to be taken, or errNoStep.
func (t Tasks) next(e env.Env) (upgrade, error) {
	k, err := env.AskOne[*known](e, e.Self(), &know{})
	if err != nil {
		return upgrade{}, err
	}
	old, next, ok := k.step(t.Rules)
	if !ok {
		return upgrade{}, errNoStep
	}
	return upgrade{t, t.Pace.withDefaults(), k.Knowledge, old, next}, nil
}

// Fence does the first part of a step from the node's configuration to the next,
// once. It returns the lives that Retire needs.
func (t Tasks) Fence(e env.Env) ([]abd.LifeOf, error) {
	u, err := t.next(e)
	if err != nil {
		return nil, err
	}
	return u.fence(e)
}

// Carry does the second part, once: it waits until enough members of the next
// configuration have merged.
func (t Tasks) Carry(e env.Env) error {
	u, err := t.next(e)
	if err != nil {
		return err
	}
	return u.install(e)
}

// Merge merges into the node what the configuration that is to go out holds.
func (t Tasks) Merge(e env.Env) error {
	k, err := env.AskOne[*known](e, e.Self(), &know{})
	if err != nil {
		return err
	}
	old, next, ok := k.step(t.Rules)
	if !ok {
		return errNoStep
	}
	return merger{t, t.Pace.withDefaults(), old, next, k.Knowledge, k.merged}.run(e)
}

// Retire does the last part: from then on the next configuration is installed.
// Whoever calls it has seen Fence and Carry succeed.
func (t Tasks) Retire(e env.Env, lives []abd.LifeOf) error {
	u, err := t.next(e)
	if err != nil {
		return err
	}
	return u.retire(e, lives)
}
