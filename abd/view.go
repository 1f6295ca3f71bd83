package abd

import (
	"errors"

	"atoll/env"
	"atoll/tags"
)

// View is what the replica step needs of a node's store. A read returns the
// record and the position in the journal at which it stands; what reveals the
// record must wait until the journal is durable up to there.
//
// An implementation returns ErrDamaged (wrapped, naming the place) for a
// record that it can't trust, and never a zero Record in its stead. Any other
// error but ErrFull means that the node can't go on.
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
	// passed to each.
	Scan(prefix, after Key, each func(key Key, tag tags.Tag, deleted bool) bool) (env.Position, error)
}

// Errors that a View returns.
var (
	// ErrDamaged: the record can't be trusted. Wrapped with where it stands.
	ErrDamaged = errors.New("damaged record")
	// ErrFull: there is no space for another record.
	ErrFull = errors.New("no space")
)
