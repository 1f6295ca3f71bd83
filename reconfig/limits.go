package reconfig

import "atoll/synod"

// Limits.
const (
	// MaxNotes is how many different configurations a node remembers that it was
	// ready for, under one index: racing proposals, mostly one. The oldest makes
	// room for a new one.
	MaxNotes = 4
	// maxNotesBytes is how many bytes all of them have at most. The largest
	// configuration fits.
	maxNotesBytes = synod.MaxValue
	// slots is how many cells the acceptor's records take turns in. There is one
	// that matters, that of the next index; the others are emptied as soon as
	// the node steps a message of this package.
	slots = 32
)
