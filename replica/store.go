package replica

import (
	"atoll/abd"
	"atoll/env"
)

// Store is a node's durable state, as the node and whoever drives it see it:
// the views of its protocols, over one journal.
//
// Steps read and write through the views, and Cut, on one goroutine. Commit
// makes what they wrote durable on another goroutine, at the same time as the
// next steps. A store copies the values that it is given, and those that it
// returns nobody may change, which abd.View says of either.
type Store interface {
	abd.View

	// Cut ends a group of records: those appended since the last Cut become
	// durable together or not at all. It returns the position behind them.
	// The goroutine that steps calls it, after each step or several.
	Cut() env.Position

	// Commit makes every group durable that was cut before the call, and
	// returns the position that the journal is then durable up to. An error
	// is final: the node must stop, and never serve from this store again
	// without reopening it (an fsync that failed tells nothing about what is
	// on the disk).
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
