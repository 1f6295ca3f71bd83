package wire

import (
	"atoll/abd"
	"atoll/env"
)

// frameOverhead is more than what stands around the value in a frame with one,
// in bytes, its key aside.
const frameOverhead = 128

// ValueSize returns how many bytes of values a message holds: what makes its
// frame a large one. It costs nothing, unlike encoding the message.
func ValueSize(m env.Message) int {
	switch m := m.(type) {
	case *abd.Put:
		return len(m.Record.Value)
	case *abd.GetAck:
		return len(m.Record.Value)
	}
	return 0
}

// FrameRoom returns how many bytes to keep ready for the frame of a message
// with a value, so that it is encoded without growing the buffer.
func FrameRoom(m env.Message) int {
	room := HeaderSize + frameOverhead + ValueSize(m)
	if p, ok := m.(*abd.Put); ok {
		room += len(p.Key)
	}
	return room
}
