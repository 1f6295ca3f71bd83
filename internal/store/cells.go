package store

import (
	"fmt"
	"slices"
	"strings"

	"atoll/env"
	"atoll/replica"
)

// A cell is a small value of the node's own. All of them are in memory.
type cell struct {
	value    []byte // of its blob; not nil
	position env.Position
}

// cellOf returns the cell that a checked blob holds.
func cellOf(blob []byte, position env.Position) cell {
	return cell{value: blob[blobValue:len(blob):len(blob)], position: position}
}

// Cell returns the value of a cell and its position, nil and 0 if it was never
// set. The value must not be changed.
func (s *Store) Cell(name string) (value []byte, at env.Position) {
	c := s.cells[name]
	return c.value, c.position
}

// Cells returns the names of the cells that were set and begin with prefix, sorted.
func (s *Store) Cells(prefix string) []string {
	var names []string
	for name := range s.cells {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// SetCell appends a cell's new value and returns the position behind it. See
// replica.Store for the limits and the errors.
func (s *Store) SetCell(name string, value []byte) (env.Position, error) {
	if err := replica.CheckCell(name, value); err != nil {
		return 0, err
	}
	if _, known := s.cells[name]; !known && len(s.cells) >= replica.MaxCells {
		return 0, fmt.Errorf("%w: cell %q, and there are %d", replica.ErrCells, name, len(s.cells))
	}
	size := int64(2 + len(name) + blobValue + len(value))
	if err := s.admit(size); err != nil {
		return 0, err
	}
	blob := encodeBlob(kindCell, name, value)
	s.group = appendSpecial(s.group, name, blob)
	s.appended++
	s.cells[name] = cellOf(blob, s.appended)
	s.active.putCell(name, blob)
	s.count(size)
	return s.appended, nil
}
