package repair

import (
	"errors"
	"slices"

	"atoll/abd"
	"atoll/env"
	"atoll/quorum"
	"atoll/tags"
)

// renew begins another life (H2). Whoever asks has noticed the damage that it
// is about before: an acknowledgement that the node gives from now on doesn't
// rest on a damaged record, since on that it abstains.
func (r *Replica) renew() (env.Message, env.Position, error) {
	if r.standing.Life == 0 && len(r.standing.Others) >= MaxHealed {
		return nil, 0, errTooManyLives
	}
	if !r.rules.HealInSameLife && (!r.rules.RenewOnce || r.standing.Life == 0) {
		s := r.standing
		s.Life++
		if err := r.note(s); err != nil {
			return nil, 0, err
		}
	}
	// One life is enough for all damage that is known when it begins.
	for i := range r.ailing {
		r.ailing[i].begun, r.ailing[i].life = true, r.standing.Life
	}
	return &renewed{r.standing.Life}, r.at, nil
}

// note makes a standing the node's own.
func (r *Replica) note(s abd.Standing) error {
	at, err := r.view.SetCell(cellLives, encodeLives(s))
	if err != nil {
		return err
	}
	r.standing, r.at = s, at
	return nil
}

// Learn notes lives that others have told of. What the node knows already costs
// nothing.
func (r *Replica) Learn(lives []abd.LifeOf) error {
	s := r.standing
	for _, l := range lives {
		if l.Node != r.self && s.Of(l.Node) < l.Life {
			s = s.With(l.Node, l.Life)
		}
	}
	switch {
	case len(s.Others) >= abd.MaxLives: // the node's own is one
		return errTooManyLives
	case len(s.Others) == len(r.standing.Others) && slices.Equal(s.Others, r.standing.Others):
		return nil
	}
	return r.note(s)
}

// Drop forgets the lives of nodes that keep doesn't name. It is for a mutant: they
// must not be forgotten (H6).
func (r *Replica) Drop(keep func(quorum.NodeID) bool) error {
	s := r.standing
	s.Others = slices.DeleteFunc(slices.Clone(s.Others), func(l abd.LifeOf) bool { return !keep(l.Node) })
	return r.note(s)
}

var errTooManyLives = &env.Refused{Reason: env.ReasonFull,
	Text: "as many nodes as can have healed a damaged record: of one that hasn't, a new node has to take its place"}

// attest notes that the node that asks is in a later life, and answers with
// what this node holds in a range (H4). Both are durable before the answer
// leaves. From the step on, every answer of this node tells of that life.
func (r *Replica) attest(from quorum.NodeID, m *Attest) (env.Message, env.Position, error) {
	if from == r.self || len(from) == 0 {
		return nil, 0, &env.Refused{Reason: env.ReasonBadRequest, Text: "a node attests for others only"}
	}
	if r.standing.Of(from) < m.Life && !r.rules.AttestUnsaved {
		s := r.standing.With(from, m.Life)
		if len(s.Others) > MaxHealed && r.standing.Of(from) == 0 {
			return nil, 0, errTooManyLives
		}
		if err := r.note(s); err != nil {
			return nil, 0, err
		}
	}
	// Damage is fatal to the answer: to leave a key out would say that it was
	// never written.
	c := collection{replica: r, limit: MaxEntries}
	at, err := r.walk(m.After, m.has, func(key abd.Key, tag tags.Tag, deleted bool, value func() ([]byte, error)) bool {
		if c.records.More = c.taken == c.limit; c.records.More || !c.take(key, tag, deleted, value) {
			return false
		}
		c.pass(key)
		return true
	})
	answer := &Attested{}
	if answer.Records, err = c.end(err); err != nil {
		return nil, 0, err
	}
	return answer, max(at, r.at), nil
}

// mend takes over what a read quorum of others holds in a range.
//
// It replaces the damaged records that the life was begun for, and no others: of
// one that was damaged since, or noticed since, acknowledgements may have been
// given in this very life.
func (r *Replica) mend(m *mend) (env.Message, env.Position, error) {
	for _, key := range m.Damaged {
		if err := r.covered(key, m.Life); err != nil {
			return nil, 0, err
		}
	}
	var after env.Position
	for _, e := range m.Entries {
		if err := (&abd.Put{Key: e.Key, Record: e.Record}).Check(r.maxValue); err != nil {
			return nil, 0, err
		}
		old, _, err := r.view.Load(e.Key, true)
		damage, damaged := errors.AsType[*abd.DamagedRecord](err)
		switch {
		case damaged && slices.Contains(m.Damaged, damage.Key):
			after, err = r.heal(e.Key, e.Record)
		case damaged:
			r.ail(damage.Key) // and the rest of the gap waits for its life, too
		case err == nil && old.Tag.Less(e.Record.Tag):
			after, err = r.view.Store(e.Key, e.Record)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	if !m.Done {
		return &mended{}, after, nil
	}
	// What is left was never written, as far as a read quorum knows, or was a
	// key that damage has made of another one, which is there again by now.
	for _, key := range m.Damaged {
		_, _, err := r.view.Load(key, true)
		switch damage, damaged := errors.AsType[*abd.DamagedRecord](err); {
		case damaged && slices.Contains(m.Damaged, damage.Key):
			if after, err = r.heal(key, abd.Record{}); err != nil {
				return nil, 0, err
			}
		case damaged:
			r.ail(damage.Key)
			return nil, 0, err
		case err != nil:
			return nil, 0, err
		}
		r.healed(key)
	}
	return &mended{}, after, nil
}

// covered returns an error if a record is damaged that a life wasn't begun for. It
// may be sound by now: an earlier part has healed it.
func (r *Replica) covered(key abd.Key, life abd.Life) error {
	i, known := r.find(key)
	if known && r.ailing[i].begun && r.ailing[i].life <= life {
		return nil
	}
	if _, _, err := r.view.Load(key, true); err == nil && !known {
		return nil
	}
	r.ail(key)
	return &env.Refused{Reason: env.ReasonBadRequest, Text: "that isn't what this life was begun for"}
}

func (r *Replica) heal(key abd.Key, record abd.Record) (env.Position, error) {
	r.healed(key)
	return r.view.Heal(key, record)
}

// healed forgets that a record is damaged, and counts it. A damaged key is one
// damage, and takes two changes: it goes, and the right one comes, which nobody had
// missed under its name.
func (r *Replica) healed(key abd.Key) {
	if r.recovered(key) {
		r.progress.Healed++
	}
}
