package rambo

import (
	"errors"
	"slices"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
)

// upgrade drives one step from a configuration to the next. It keeps nothing
// that another driver would need.
type upgrade struct {
	Tasks
	pace      Pace
	knowledge Knowledge
	old, next *quorum.Configuration
}

// run drives until the scope ends. That is when the node has learned that the
// next configuration is installed, by this or by another driver.
func (u upgrade) run(e env.Env) error {
	if err := e.Sleep(time.Duration(u.turn(e.Self())) * u.pace.Turn); err != nil {
		return err
	}
	for {
		err := u.once(e)
		if _, ended := errors.AsType[*env.Unfinished](err); ended {
			return err
		}
		// It has failed, as when too many have refused; or it is done, and the
		// node is about to say so.
		if err := e.Sleep(u.pace.Again); err != nil {
			return err
		}
	}
}

// turn is the place of a node in the order in which the members drive, another
// one in each step.
func (u upgrade) turn(self quorum.NodeID) int {
	all := quorum.Configurations{u.old, u.next}.Members()
	i, found := slices.BinarySearch(all, self)
	if !found {
		return len(all)
	}
	return (i + int(u.next.Index())) % len(all)
}

func (u upgrade) once(e env.Env) error {
	e.Trace(env.Event{Name: "rambo.fence"})
	lives, err := u.fence(e)
	if err != nil {
		return err
	}
	e.Trace(env.Event{Name: "rambo.install"})
	if err := u.install(e); err != nil {
		return err
	}
	e.Trace(env.Event{Name: "rambo.retire"})
	return u.retire(e, lives)
}

// retire marks the next configuration as installed.
func (u upgrade) retire(e env.Env, lives []abd.LifeOf) error {
	_, err := env.AskOne[*retired](e, e.Self(), &retire{u.next.Index(), lives})
	return err
}

// errFew: so many have refused that no quorum can be had from the others.
var errFew = errors.New("too many members refuse")

// fence asks all members of the old configuration to learn of the next, until
// those that durably have contain a read and a write quorum (R4.2). The write
// quorum meets every get that counts on the old configuration alone. The read
// quorum meets every put that does. It need not be complete before the pages of
// the merge are there, since those come from fenced members only (R4.3); but
// without it there would be none. It returns all lives that they know (H5).
func (u upgrade) fence(e env.Env) (lives []abd.LifeOf, err error) {
	in := quorum.Configurations{u.old}
	var fenced, refused quorum.Tally
	fenced.Begin(in)
	refused.Begin(in)
	hopeless := false
	var s abd.Standing
	err = e.Ask(u.old.Members(), &Fence{u.old.Index(), u.knowledge}, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		switch answer := answer.(type) {
		case *env.Refused:
			refused.Add(from)
			hopeless = !refused.LeavesRead() || !refused.LeavesWrite()
			return hopeless
		case *Fenced:
			if answer.Index != u.old.Index() {
				return false
			}
			fenced.Add(from)
			for _, l := range answer.Lives {
				s = s.With(l.Node, l.Life)
			}
		}
		return fenced.HasRead() && (fenced.HasWrite() || u.Rules.FenceReadQuorum)
	})
	switch {
	case err != nil:
		return nil, err
	case hopeless:
		return nil, errFew
	}
	return s.Others, nil
}

// install asks members of the next configuration to merge what a read quorum of
// the old one holds, until so many have that every read quorum of the next
// holds all of it (R4.3, R4.5). New members are asked first, and those that
// stay only if the others don't suffice or don't get on.
func (u upgrade) install(e env.Env) error {
	if u.carried(nil) {
		return nil
	}
	fresh := slices.DeleteFunc(slices.Clone(u.next.Members()), func(n quorum.NodeID) bool { return u.stays(n) })
	if u.carried(fresh) {
		merge := e.Go("rambo.merge", func(e env.Env) error { return u.merge(e, fresh) })
		patience := e.Go("rambo.patience", func(e env.Env) error {
			err := u.patience(e, fresh)
			if err == nil {
				merge.Cancel()
			}
			return err
		})
		err := merge.Join()
		patience.Cancel()
		late := patience.Join() == nil
		if err == nil || !late && !errors.Is(err, errFew) {
			return err
		}
	}
	return u.merge(e, u.next.Members())
}

func (u upgrade) stays(n quorum.NodeID) bool {
	_, stays := u.old.Place(n)
	return stays
}

// carried reports whether the next configuration is installed once some of its
// members have merged.
func (u upgrade) carried(merged []quorum.NodeID) bool {
	switch {
	case u.Rules.InstallTooFew:
		return len(merged) > 0
	case u.Rules.StayersHaveAll:
		return u.old.Carries(u.next, func(n quorum.NodeID) bool { return u.stays(n) || slices.Contains(merged, n) })
	}
	return u.old.Carries(u.next, func(n quorum.NodeID) bool { return slices.Contains(merged, n) })
}

// merge asks members to merge until enough have.
func (u upgrade) merge(e env.Env, members []quorum.NodeID) error {
	var merged, refused []quorum.NodeID
	few := false
	err := e.Ask(members, &Install{u.next.Index(), u.knowledge}, func(_ env.Conversation, from quorum.NodeID, answer env.Message) bool {
		switch answer := answer.(type) {
		case *env.Refused:
			refused = append(refused, from)
			left := slices.DeleteFunc(slices.Clone(members), func(n quorum.NodeID) bool { return slices.Contains(refused, n) })
			few = !u.carried(left)
			return few
		case *Installed:
			if answer.Index == u.next.Index() && !slices.Contains(merged, from) {
				merged = append(merged, from)
			}
		}
		return u.carried(merged)
	})
	if err == nil && few {
		err = errFew
	}
	return err
}
