package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"atoll/abd"
	"atoll/env"
	"atoll/replica"
)

// diskCell is a cell of a Disk. One that was never set is the zero diskCell.
type diskCell struct {
	value []byte // not nil if it was set
	at    env.Position
}

// replacedCell is what a cell was before it was set.
type replacedCell struct {
	name string
	at   env.Position // of the cell that replaced it
	old  diskCell
}

func (c diskCell) size(name string) int64 {
	if c.value == nil {
		return 0
	}
	return int64(len(name)+len(c.value)) + recordOverhead
}

// Cell implements replica.Store.
func (d *Disk) Cell(name string) (value []byte, at env.Position) {
	c := d.cells[name]
	return c.value, c.at
}

// Cells implements replica.Store.
func (d *Disk) Cells(prefix string) []string {
	names := slices.Sorted(maps.Keys(d.cells))
	return slices.DeleteFunc(names, func(name string) bool { return d.cells[name].value == nil || !strings.HasPrefix(name, prefix) })
}

// SetCell implements replica.Store.
func (d *Disk) SetCell(name string, value []byte) (env.Position, error) {
	if err := replica.CheckCell(name, value); err != nil {
		return 0, err
	}
	old, known := d.cells[name]
	if !known && len(d.cells) == replica.MaxCells {
		return 0, fmt.Errorf("%w: cell %q, and there are %d", replica.ErrCells, name, replica.MaxCells)
	}
	now := diskCell{append([]byte{}, value...), d.appended + 1}
	if err := d.room(now.size(name)); err != nil {
		return 0, err
	}
	d.appended++
	d.undoCells = append(d.undoCells, replacedCell{name, d.appended, old})
	d.putCell(name, now)
	return d.appended, nil
}

// putCell puts a cell in the place of another.
func (d *Disk) putCell(name string, now diskCell) {
	d.usage.Bytes += now.size(name) - d.cells[name].size(name)
	if now.value == nil {
		delete(d.cells, name)
		return
	}
	d.cells[name] = now
	if name == d.spoiled {
		d.spoiled = ""
	}
}

// loseCells takes the cells back to a position.
func (d *Disk) loseCells(to env.Position) {
	for i := len(d.undoCells) - 1; i >= 0 && d.undoCells[i].at > to; i-- {
		d.putCell(d.undoCells[i].name, d.undoCells[i].old)
		d.undoCells = d.undoCells[:i]
	}
}

// damagedRecord is the error of a record that can't be read.
func damagedRecord(key abd.Key) error {
	return fmt.Errorf("%w of a simulated disk", &abd.DamagedRecord{Key: key})
}
