package abd

import "atoll/env"

// Read returns the record of a key: a get phase, and unless its value is
// settled already a put phase that writes it back. What it returns, no later
// read goes behind.
//
// A register that was never written or that was deleted yields a record whose
// Absent is true. A read that fails has had no effect that a caller could
// tell from another's read.
func (r *Registers) Read(e env.Env, key Key) (Record, error) {
	if err := key.Check(); err != nil {
		return Record{}, err
	}
	f, err := r.get(e, key, false)
	if err != nil {
		return Record{}, err
	}
	if f.settled || r.Rules.NoWriteBack {
		return f.record, nil
	}
	// The write-back. Without it, two reads one after the other can see a
	// write that is still under way and then not see it (schedule 1).
	if _, err := r.put(e, key, f.record); err != nil {
		return Record{}, err
	}
	return f.record, nil
}
