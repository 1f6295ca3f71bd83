package wire_test

import (
	"bytes"
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/wire"
)

// TestFrameRoom: the room is enough for every message with a value, and not
// much more.
func TestFrameRoom(t *testing.T) {
	for _, s := range samples() {
		size := wire.ValueSize(s.message)
		frame := encode(t, s.conversation, s.message)
		if room := wire.FrameRoom(s.message); size > 0 && len(frame) > room {
			t.Errorf("%s: a frame of %d bytes, room for %d", s.name, len(frame), room)
		}
	}
	value := bytes.Repeat([]byte("v"), 1<<20)
	key := abd.Key(bytes.Repeat([]byte("k"), abd.MaxKey))
	for _, m := range []env.Message{
		&abd.Put{Key: key, Record: abd.Record{Value: value}},
		&abd.GetAck{Record: abd.Record{Value: value}},
	} {
		if size := wire.ValueSize(m); size != len(value) {
			t.Errorf("%T: %d bytes of values, want %d", m, size, len(value))
		}
		frame := encode(t, 1<<64-1, m)
		if room := wire.FrameRoom(m); len(frame) > room || room > len(frame)+256 {
			t.Errorf("%T: a frame of %d bytes, room for %d", m, len(frame), room)
		}
	}
}

func encode(t *testing.T, conversation uint64, m env.Message) []byte {
	t.Helper()
	var e wire.Encoder
	frame, err := e.AppendFrame(nil, conversation, m)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}
