package abd

import (
	"errors"
	"fmt"

	"atoll/env"
	"atoll/tags"
)

// View is what the replica step needs of a node's store. A read returns the
// record and the position in the journal at which it stands; what reveals the
// record must wait until the journal is durable up to there.
//
// An implementation returns a *DamagedRecord (wrapped, naming the place) for a
// record that it can't trust, and never a zero Record in its stead. It wraps
// ErrDamaged. Any other error but ErrFull means that the node can't go on.
type View interface {
	// Load returns the record of a key, the zero Record if there is none.
	// withValue false allows it to leave the value out. The value must not be
	// changed, by anybody: it may be the store's own.
	Load(key Key, withValue bool) (Record, env.Position, error)

	// Store appends a record and returns the position behind it. It sees to
	// nothing but the append: whether the tag is larger is the caller's rule.
	// The record is visible to Load at once, and durable when the journal is.
	// The value is copied: an implementation keeps no reference to it, as it
	// may be part of a buffer that is used again.
	Store(key Key, r Record) (env.Position, error)

	// Scan calls each, in order of the keys, with the tag of every key that
	// begins with prefix and comes after the key after, tombstones included,
	// until each returns false. The position is the highest of all records
	// passed to each, and of what removed a record in between.
	Scan(prefix, after Key, each func(key Key, tag tags.Tag, deleted bool) bool) (env.Position, error)
}

// Errors that a View returns.
var (
	// ErrDamaged: the record can't be trusted. Always as a *DamagedRecord.
	ErrDamaged = errors.New("damaged record")
	// ErrFull: there is no space for another record.
	ErrFull = errors.New("no space")
)

// DamagedRecord says which record can't be trusted. It wraps ErrDamaged, and
// is to be found in every error of a View that does.
type DamagedRecord struct {
	// Key is what the damaged record stands under. That needn't be the key
	// that was asked for: a key can't be proved absent beside a record whose
	// own key may be the damaged part. Nor need it be a key that was ever
	// stored, for the same reason.
	Key Key
	// Detail says what is wrong, and which key was asked for if another one.
	// It may be empty.
	Detail string
}

// Error names the key and what is wrong.
func (e *DamagedRecord) Error() string {
	text := fmt.Sprintf("%v: key %q", ErrDamaged, string(e.Key))
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap returns ErrDamaged.
func (e *DamagedRecord) Unwrap() error { return ErrDamaged }
