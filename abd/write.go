package abd

import (
	"errors"

	"atoll/env"
	"atoll/tags"
)

// Operation is a write or a delete, and the handle under which it can be
// tried again. It is a value: Write returns it with what it has learned.
type Operation struct {
	// ID names the operation. Zero: Write draws one.
	ID    tags.PID
	Key   Key
	Value []byte
	// Delete writes a tombstone in place of Value.
	Delete bool
	// Tag is the tag that the operation has chosen, zero before. It never
	// chooses another: a retry under a larger tag would be a second write,
	// and could undo what others wrote in between (schedule 5).
	Tag tags.Tag
	// Sent: some member may have stored the operation's record already.
	Sent bool
}

// Write runs op: a get phase for the largest tag, then a put phase with a
// larger one. It returns op with its id and its tag.
//
// On a *QuorumError, Effect says whether op may have taken effect. An op of
// unknown outcome may be handed to Write again, as it was returned, as often
// as one likes and by whoever holds it, one at a time.
func (r *Registers) Write(e env.Env, op Operation) (Operation, error) {
	if err := op.Key.Check(); err != nil {
		return op, err
	}
	if err := CheckValue(op.Value, r.MaxValue); err != nil {
		return op, err
	}
	if op.ID.IsZero() {
		op.ID = e.ID()
	}
	if op.Tag.IsZero() || r.Rules.NewTagOnRetry {
		f, err := r.get(e, op.Key, true)
		if err != nil {
			return op, op.outcome(err)
		}
		if r.Rules.TagFromClock {
			f.record.Tag.Seq = tags.Seq(e.Now())
		}
		if op.Tag, err = f.record.Tag.Next(op.ID); err != nil {
			return op, err
		}
		e.Trace(env.Event{Name: "abd.tag-chosen", Op: op.ID, Key: string(op.Key), Tag: op.Tag})
	}
	record := Record{Tag: op.Tag, Deleted: op.Delete}
	if !op.Delete {
		record.Value = op.Value
	}
	sent, err := r.put(e, op.Key, record)
	op.Sent = op.Sent || sent
	return op, op.outcome(err)
}

// outcome says in err whether op may have taken effect: whether any copy of
// its record was sent to a member that didn't refuse it, now or in an earlier
// try.
func (op *Operation) outcome(err error) error {
	if q, ok := errors.AsType[*QuorumError](err); ok && op.Sent {
		q.Effect = Unknown
	}
	return err
}
