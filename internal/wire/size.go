package wire

import (
	"atoll/abd"
	"atoll/env"
	"atoll/repair"
)

// frameOverhead is more than what stands around the value in a frame with one,
// in bytes, its key aside; and entryOverhead the same for each of many records.
const (
	frameOverhead = 128
	entryOverhead = 64
)

// ValueSize returns how many bytes of values a message holds: what makes its
// frame a large one. It costs next to nothing, unlike encoding the message.
func ValueSize(m env.Message) (size int) {
	switch m := m.(type) {
	case *abd.Put:
		return len(m.Record.Value)
	case *abd.GetAck:
		return len(m.Record.Value)
	case *repair.Missing:
		for i := range m.Entries {
			size += len(m.Entries[i].Record.Value)
		}
	}
	return size
}

// FrameRoom returns how many bytes to keep ready for the frame of a message
// with values, so that it is encoded without growing the buffer.
func FrameRoom(m env.Message) int {
	room := HeaderSize + frameOverhead + ValueSize(m)
	switch m := m.(type) {
	case *abd.Put:
		room += len(m.Key)
	case *repair.Missing:
		room += len(m.Last) + len(m.Others)*entryOverhead
		for i := range m.Entries {
			room += entryOverhead + len(m.Entries[i].Key)
		}
		for i := range m.Votes {
			room += 2*entryOverhead + len(m.Votes[i].Instance) + len(m.Votes[i].Vote.Value)
		}
	}
	return room
}
