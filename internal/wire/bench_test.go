package wire_test

import (
	"fmt"
	"testing"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/wire"
	"atoll/reconfig"
	"atoll/replica"
	"atoll/tags"
)

// Encoding into a buffer that has room allocates nothing. (A Description, a
// Ready and a Pending are not here: they are rare, and format quorum systems.)
func TestEncodingDoesNotAllocate(t *testing.T) {
	var e wire.Encoder
	buffer := make([]byte, 0, 64<<10)
	for _, s := range samples() {
		switch s.message.(type) {
		case *replica.Description, *reconfig.Ready, *reconfig.Pending:
			continue
		}
		n := testing.AllocsPerRun(100, func() {
			if _, err := e.AppendFrame(buffer, s.conversation, s.message); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", s.name, n)
		}
	}
}

// Decoding allocates the message and its key, whatever the size of the value.
func TestDecodingAllocatesTheMessageAndItsKey(t *testing.T) {
	for _, size := range []int{100, 1 << 20} {
		for _, c := range benchMessages(size) {
			want := map[string]float64{"Get": 2, "GetAck": 1, "Put": 2, "PutAck": 0}[c.name]
			var e wire.Encoder
			frame, err := e.AppendFrame(nil, 1, c.message)
			if err != nil {
				t.Fatal(err)
			}
			var d wire.Decoder
			b := body(t, frame)
			n := testing.AllocsPerRun(100, func() {
				if _, _, err := d.DecodeFrame(b); err != nil {
					t.Fatal(err)
				}
			})
			if n > want {
				t.Errorf("%s with %d bytes: %v allocations, want at most %v", c.name, size, n, want)
			}
		}
	}
}

type benchMessage struct {
	name    string
	message env.Message
}

func benchMessages(value int) []benchMessage {
	record := abd.Record{Tag: tags.Tag{Seq: 70000, PID: tags.NewPID(1<<63, 2, 3)}, Value: make([]byte, value)}
	const key = "user/0000004711"
	return []benchMessage{
		{"Get", &abd.Get{Key: key}},
		{"GetAck", &abd.GetAck{Record: record}},
		{"Put", &abd.Put{Key: key, Record: record}},
		{"PutAck", &abd.PutAck{}},
	}
}

func BenchmarkEncode(b *testing.B) {
	forEachMessage(b, func(b *testing.B, m env.Message, _ []byte) {
		var e wire.Encoder
		buffer := make([]byte, 0, 4096)
		for b.Loop() {
			if _, err := e.AppendFrame(buffer, 1<<20, m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	forEachMessage(b, func(b *testing.B, _ env.Message, body []byte) {
		var d wire.Decoder
		for b.Loop() {
			if _, _, err := d.DecodeFrame(body); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func forEachMessage(b *testing.B, run func(b *testing.B, m env.Message, body []byte)) {
	for _, size := range []int{100, 1024} {
		for _, c := range benchMessages(size) {
			var e wire.Encoder
			frame, err := e.AppendFrame(nil, 1<<20, c.message)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/%d", c.name, size), func(b *testing.B) {
				b.ReportAllocs()
				run(b, c.message, frame[wire.HeaderSize:])
			})
		}
	}
}
