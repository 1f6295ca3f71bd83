package rambo

import (
	"slices"

	"atoll/env"
	"atoll/quorum"
)

// maxWaiting is how many drivers wait for a node to have merged.
const maxWaiting = 32

// Install merges into the node what the configuration before its own holds, if
// the node is new in that, or was asked to; and answers who waits for it.
//
// A merge goes on while copies of a request arrive, and ends when the step does.
func (t Tasks) Install(e env.Env) error {
	pace := t.Pace.withDefaults()
	var waiting []env.Envelope
	var merging env.Task
	var into quorum.ConfigIndex
	stop := func() {
		if merging != nil {
			merging.Cancel()
			_ = merging.Join() // it was canceled, and goes on from where it stood
			merging = nil
		}
	}
	defer stop()
	for {
		k, err := env.AskOne[*known](e, e.Self(), &know{})
		if err != nil {
			return err
		}
		old, next, ok := k.step(t.Rules)
		waiting = answer(e, k, next, waiting)
		want := ok && !(k.merged.Done && k.merged.Index == next.Index()) && wanted(e.Self(), old, next, waiting)
		if !want || into != next.Index() {
			stop()
		}
		if want && merging == nil {
			m := merger{t, pace, old, next, k.Knowledge, k.merged}
			merging, into = e.Go("rambo.merger", func(e env.Env) error { return m.run(e) }), next.Index()
		}
		got, err := e.Receive(mailInstall)
		if err != nil {
			return err
		}
		for _, envelope := range got {
			if _, asked := envelope.Message.(*Install); asked {
				waiting = append(waiting, envelope)
			}
		}
		waiting = waiting[max(0, len(waiting)-maxWaiting):]
	}
}

// answer tells those who wait that the node has merged, and returns those who
// still wait. Next is the configuration that is to be installed, nil if there
// is none.
func answer(e env.Env, k *known, next *quorum.Configuration, waiting []env.Envelope) []env.Envelope {
	return slices.DeleteFunc(waiting, func(w env.Envelope) bool {
		index := w.Message.(*Install).Index
		done := index <= k.News.Map.Installed().Index() || k.merged.Done && k.merged.Index == index
		if done {
			e.Send(w.From, &Installed{index})
		}
		return done || next == nil || index != next.Index()
	})
}

// wanted reports whether a node should merge: as a new member always, and as one
// that stays when the new ones alone don't suffice, or somebody asks for it.
func wanted(self quorum.NodeID, old, next *quorum.Configuration, waiting []env.Envelope) bool {
	if _, member := next.Place(self); !member {
		return false
	}
	if _, stays := old.Place(self); !stays {
		return true
	}
	return len(waiting) > 0 || !old.Carries(next, func(n quorum.NodeID) bool {
		_, stays := old.Place(n)
		return !stays
	})
}
