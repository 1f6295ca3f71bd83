package replica

import (
	"atoll/abd"
	"atoll/env"
)

// Store is a node's durable state, as the node and whoever drives it see it:
// the views of its protocols, over one journal.
//
// Steps read and write through the views, from one goroutine. Commit makes
// what they wrote durable; it may run on another goroutine, at the same time
// as the next steps.
type Store interface {
	abd.View

	// Appended is the position behind the last record that a step wrote.
	Appended() env.Position

	// Commit makes every record durable that was appended before the call,
	// atomically for the records of one step, and returns the position that
	// the journal is then durable up to. An error is final: the node must
	// stop and never serve from this store again without reopening it (an
	// fsync that failed tells nothing about what is on the disk).
	Commit() (env.Position, error)

	// Usage says what the store holds.
	Usage() Usage

	// Close releases the store. What wasn't committed may be lost.
	Close() error
}

// Usage is what a store holds.
type Usage struct {
	Keys       int64 // registers that have a value
	Tombstones int64 // registers that were deleted
	Bytes      int64 // on disk, journal included
}
