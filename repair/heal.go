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
	if r.rules.HealInSameLife || r.rules.RenewOnce && r.standing.Life > 0 {
		return &renewed{r.standing.Life}, r.at, nil
	}
	s := r.standing
	s.Life++
	if err := r.note(s); err != nil {
		return nil, 0, err
	}
	return &renewed{s.Life}, r.at, nil
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

// attest notes that the node that asks is in a later life, and answers with
// what this node holds in a range (H4). Both are durable before the answer
// leaves. From the step on, every answer of this node tells of that life.
func (r *Replica) attest(from quorum.NodeID, m *Attest) (env.Message, env.Position, error) {
	if from == r.self || len(from) == 0 {
		return nil, 0, &env.Refused{Reason: env.ReasonBadRequest, Text: "a node attests for others only"}
	}
	if r.standing.Of(from) < m.Life && !r.rules.AttestUnsaved {
		s := r.standing.With(from, m.Life)
		if len(s.Others) > abd.MaxLives {
			return nil, 0, &env.Refused{Reason: env.ReasonFull, Text: "too many nodes are in a later life than their first"}
		}
		if err := r.note(s); err != nil {
			return nil, 0, err
		}
	}
	answer := &Attested{}
	var keys []abd.Key
	at, err := r.scan(m.Range, func(key abd.Key, _ tags.Tag, _ bool) bool {
		keys = append(keys, key)
		answer.Last = key
		answer.More = len(keys) == MaxEntries
		return !answer.More
	})
	if err != nil {
		return nil, 0, err
	}
	size := 0
	for i, key := range keys {
		// Here damage is fatal to the answer: to leave a key out would say
		// that it was never written.
		record, pos, err := r.load(key, true)
		if err != nil {
			return nil, 0, err
		}
		at = max(at, pos)
		answer.Entries = append(answer.Entries, Entry{key, record})
		if size += len(key) + len(record.Value); size >= MaxEntryBytes && i < len(keys)-1 {
			answer.More, answer.Last = true, key
			break
		}
	}
	return answer, max(at, r.at), nil
}

// mend takes over what a read quorum of others holds in a range.
func (r *Replica) mend(m *mend) (env.Message, env.Position, error) {
	if m.Life != r.standing.Life && !r.rules.RenewOnce {
		return nil, 0, &env.Refused{Reason: env.ReasonBadRequest, Text: "another life has begun since"}
	}
	var after env.Position
	for _, e := range m.Entries {
		if err := (&abd.Put{Key: e.Key, Record: e.Record}).Check(r.maxValue); err != nil {
			return nil, 0, err
		}
		old, _, err := r.load(e.Key, false)
		damaged := errors.Is(err, abd.ErrDamaged) || slices.Contains(m.Damaged, e.Key)
		switch {
		case damaged:
			after, err = r.heal(e.Key, e.Record)
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
		_, _, err := r.load(key, true)
		switch {
		case errors.Is(err, abd.ErrDamaged):
			if after, err = r.heal(key, abd.Record{}); err != nil {
				return nil, 0, err
			}
		case err != nil:
			return nil, 0, err
		}
		if i, known := slices.BinarySearch(r.ailing, key); known {
			r.ailing = slices.Delete(r.ailing, i, i+1)
		}
	}
	return &mended{}, after, nil
}

func (r *Replica) heal(key abd.Key, record abd.Record) (env.Position, error) {
	r.progress.Healed++
	if i, known := slices.BinarySearch(r.ailing, key); known {
		r.ailing = slices.Delete(r.ailing, i, i+1)
	}
	return r.view.Heal(key, record)
}
