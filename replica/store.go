package replica

import (
	"errors"
	"fmt"
	"iter"

	"atoll/abd"
	"atoll/env"
	"atoll/tags"
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

	// Walk is Scan behind a key, for those who look at many records and want
	// the values of some. What each is given is good until it returns, and it
	// must not use the store. value returns the record's value; its error wraps
	// abd.ErrDamaged and names a *abd.DamagedRecord if nothing but the value
	// can't be trusted, and is else nil.
	Walk(after abd.Key, each func(key abd.Key, tag tags.Tag, deleted bool, value func() ([]byte, error)) bool) (env.Position, error)

	// Expect says which keys will be loaded and stored next, many, for the sake of
	// speed alone: it changes nothing.
	Expect(keys iter.Seq[abd.Key])

	// Heal puts r in the place of the record of a key, as Store does, and
	// also where the old record is damaged. The zero Record removes the key,
	// as if it had never been written. From then on the old record's damage
	// is in nobody's way: not in that of Load, of Scan, or of the proof that
	// a neighbour is absent.
	//
	// A damaged record may be that of another key, whose bytes have changed
	// into those that are read. Whoever removes it removes the only trace of
	// that other key, and must know from others what the keys around it hold,
	// and heal these in the same group or before.
	//
	// An error that wraps abd.ErrDamaged means that the place of key can't be
	// told for certain, because of the record that the error names: if that
	// is another one, heal it first. The other errors are those of Store.
	Heal(key abd.Key, r abd.Record) (env.Position, error)

	// Suspects returns the keys of the records that were found damaged when
	// the store was opened, if it looked. Others may be found at any time.
	Suspects() []abd.Key

	// Gap returns where a damaged record stands: the nearest keys on either
	// side whose records are sound, empty where there is none, and all records
	// in between that aren't, sorted. It may return a wider gap than there is.
	// Nobody can have stored a key into the gap since the damage was there: it
	// couldn't be proved absent. If the record of key is sound, damaged is
	// empty.
	Gap(key abd.Key) (after, to abd.Key, damaged []abd.Key, err error)

	// Cell returns the value of a cell, and the position it stands at: what
	// reveals it must wait until the journal is durable up to there. A cell
	// that was never set has a nil value; one that was set to nothing hasn't.
	// The value must not be changed.
	//
	// Cells are small named values that belong to the node itself, and not
	// to a register: no Scan shows them, no count includes them.
	Cell(name string) (value []byte, at env.Position)

	// Cells returns the names of the cells that were set and begin with prefix,
	// sorted.
	Cells(prefix string) []string

	// SetCell changes a cell. It is appended to the journal like a record, as
	// a part of the group that Cut ends, and visible at once. The value is
	// copied. Errors: those of CheckCell, ErrCells, and abd.ErrFull (wrapped)
	// as for Store.
	SetCell(name string, value []byte) (env.Position, error)

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
	Bytes      int64 // on disk, journal and reserved space included
}

// Limits of a store's cells. The values of all are kept in memory.
const (
	MaxCells     = 4096
	MaxCellName  = 255      // bytes
	MaxCellBytes = 64 << 10 // of one value
)

// ErrCells: the store has MaxCells cells, and the one to be set isn't among
// them.
var ErrCells = errors.New("too many cells")

// CheckCell returns a *abd.SizeError when a cell's name is empty or too long,
// or its value too large.
func CheckCell(name string, value []byte) error {
	if len(name) == 0 || len(name) > MaxCellName {
		return &abd.SizeError{What: "name of a cell", Size: len(name), Min: 1, Max: MaxCellName}
	}
	if len(value) > MaxCellBytes {
		return fmt.Errorf("cell %q: %w", name, &abd.SizeError{What: "value", Size: len(value), Max: MaxCellBytes})
	}
	return nil
}
