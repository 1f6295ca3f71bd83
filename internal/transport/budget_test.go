package transport_test

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"atoll/internal/logtest"
	"atoll/internal/transport"
	"atoll/internal/wire"
)

// TestAllConnectionsShareABudget: clients begin frames of 8 MiB on many
// connections, and ask for large answers that they don't read, with which they
// would take many times the budget. It holds, those that have the most are told
// why they are closed, and another client and another node are served.
func TestAllConnectionsShareABudget(t *testing.T) {
	t.Parallel()
	const (
		memory  = 16 << 20
		clients = 12
	)
	for _, test := range []struct {
		name  string
		flood func(t *testing.T, stream *quic.Stream)
	}{
		{"frames that don't end", func(t *testing.T, stream *quic.Stream) {
			begun := append(binary.BigEndian.AppendUint32(nil, wire.MaxFrame), make([]byte, 3<<20)...)
			_, _ = stream.Write(begun) // as much as is taken
		}},
		{"answers that nobody reads", func(t *testing.T, stream *quic.Stream) {
			for i := range 6 {
				if _, err := stream.Write(frame(t, uint64(i+1), put(500_000))); err != nil {
					return
				}
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			var book logtest.Book
			server := open(t, transport.Config{
				Credentials: c.node(), Listen: []string{"127.0.0.1:0"}, Handler: newHandler(t, echo), Memory: memory, Log: book.Log(slog.LevelWarn),
			})
			address := server.Addrs()[0].String()
			got, collect := answers()
			bystander := dial(t, open(t, transport.Config{Credentials: c.client(), Handler: newHandler(t, collect)}), address)
			node := dial(t, open(t, transport.Config{Credentials: c.node(), Handler: newHandler(t, collect)}), address)
			var conns []*quic.Conn
			for range clients {
				credentials := c.client()
				conn, stream := rawDial(t, credentials, address, nil)
				shakeBulk(t, credentials, stream)
				conns = append(conns, conn)
				if err := stream.SetWriteDeadline(time.Now().Add(patience)); err != nil {
					t.Fatal(err)
				}
				go test.flood(t, stream)
			}
			// Until some had to go, the others are served; and afterwards.
			asked := uint64(0)
			served := func() {
				for _, s := range []*transport.Session{bystander, node} {
					asked++
					send(t, s, asked, put(1000))
					if in := receive(t, got); in.Conversation != asked {
						t.Errorf("an answer to %d, want one to %d", in.Conversation, asked)
					}
				}
			}
			until(t, "connections are closed to make room", func() bool {
				served()
				if s := server.Stats(); s.Memory > memory {
					t.Errorf("%d bytes are counted, %d may be", s.Memory, memory)
				}
				return server.Stats().Evicted > 0 || told(conns) > 0
			})
			until(t, "it is told why", func() bool { return told(conns) > 0 })
			served()
			if s := server.Stats(); s.Memory > memory || s.OverBudget+s.Evicted == 0 {
				t.Errorf("in the end: %+v", s)
			}
			until(t, "the log says so, if any", func() bool {
				return server.Stats().Evicted == 0 || book.Contains("there is no memory left for all of them")
			})
			for _, conn := range conns {
				_ = conn.CloseWithError(0, "") // some are closed
			}
			until(t, "what they had is free again", func() bool {
				s := server.Stats()
				return s.Sessions == 2 && s.MemoryClients < 2<<20
			})
		})
	}
}

// told is how many connections were closed because there was no memory left.
func told(conns []*quic.Conn) (n int) {
	for _, conn := range conns {
		var closed *quic.ApplicationError
		if errors.As(context.Cause(conn.Context()), &closed) && closed.Remote && closed.ErrorCode == quic.ApplicationErrorCode(transport.CodeOverBudget) {
			n++
		}
	}
	return n
}
