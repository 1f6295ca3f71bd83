package sim

import (
	"maps"
	"slices"

	"atoll/env"
)

// What an observer of a run needs at every message costs next to nothing
// here, so that checks can stay on.

// Index returns the place of the process in World.Processes.
func (p *Process) Index() int { return int(p.index) }

// Belongs reports whether a message with this number in its
// Transit.Conversation belongs to c. It is for the function given to Ask, which
// so learns whether the answer that it was called with was meant for it.
func Belongs(c env.Conversation, number uint64) bool {
	v, ok := c.(*conversation)
	return ok && number>>turnShift == v.turn && number%maxPlaces == uint64(v.place)
}

// Image returns a copy of the disk as a power cut at this moment would leave
// it.
func (d *Disk) Image() *Disk {
	image := *d
	image.records = maps.Clone(d.records)
	image.keys = slices.Clone(d.keys)
	image.damaged = maps.Clone(d.damaged)
	image.ghosts = maps.Clone(d.ghosts)
	image.rotten = maps.Clone(d.rotten)
	image.cells = maps.Clone(d.cells)
	image.undo = slices.Clone(d.undo)
	image.undoCells = slices.Clone(d.undoCells)
	image.groups = slices.Clone(d.groups)
	image.victim, image.strike = "", nil // the next write is no part of it
	image.LoseUnsynced(0)
	return &image
}
