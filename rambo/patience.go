package rambo

import (
	"slices"
	"time"

	"atoll/env"
	"atoll/quorum"
)

// looks is how often in the time that it has patience a driver asks new members
// how far they are.
const looks = 4

// watched is how far a new member has been at most.
type watched struct {
	Progress
	since time.Duration // when it got there; if it is through, when it last said so
}

// hear takes in how far the member is now, on its way to the next configuration. One
// that was further before has started anew, and forgotten some empty pages: to do that
// over and over is no progress.
func (w *watched) hear(p Progress, next quorum.ConfigIndex, now time.Duration) {
	if p.Index == next && (w.Index != next || p.Done || p.After > w.After) {
		*w = watched{p, now}
	}
}

// getsOn reports whether the member was further than before not long ago, or has said that
// it is through: one that was, and has died since, tells nobody that asks it to install.
func (w *watched) getsOn(now, patience time.Duration) bool { return now-w.since < patience }

// patience returns nil when those of the fresh members that still get on aren't
// enough: the others have stood where they are for as long as the pace has patience.
// One that can't say how far it is, as one of an older version, stands still.
func (u upgrade) patience(e env.Env, fresh []quorum.NodeID) error {
	all := make([]watched, len(fresh))
	for i := range all {
		all[i].since = e.Now()
	}
	// Mostly they are through before the first look.
	if err := e.Sleep(u.between()); err != nil {
		return err
	}
	for {
		if err := u.look(e, fresh, all); err != nil {
			return err
		}
		var getOn []quorum.NodeID
		for i := range all {
			if all[i].getsOn(e.Now(), u.pace.Patience) {
				getOn = append(getOn, fresh[i])
			}
		}
		if !u.carried(getOn) {
			return nil
		}
	}
}

// look asks the fresh members how far they are, and takes as long as is between two
// looks.
func (u upgrade) look(e env.Env, fresh []quorum.NodeID, all []watched) error {
	heard := make([]bool, len(fresh))
	asking := e.Go("rambo.look", func(e env.Env) error {
		return e.Ask(fresh, &HowFar{}, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
			i := slices.Index(fresh, from)
			switch answer := answer.(type) {
			case *SoFar:
				heard[i] = true
				all[i].hear(answer.Progress, u.next.Index(), e.Now())
			case *env.Refused:
				heard[i] = true
			}
			return !slices.Contains(heard, false)
		})
	})
	err := e.Sleep(u.between())
	asking.Cancel()
	_ = asking.Join() // some of them are silent
	return err
}

// between is the time between two looks.
func (u upgrade) between() time.Duration { return max(1, u.pace.Patience/looks) }
