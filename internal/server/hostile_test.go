package server_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/identity"
	"atoll/internal/wire"
)

// stream is a connection on which a test sends any bytes.
type stream struct {
	t testing.TB
	*quic.Stream
	conn *quic.Conn
}

// rawDial connects to the node without internal/transport, and says hello.
func (n node) rawDial() stream {
	n.t.Helper()
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		n.t.Fatal(err)
	}
	tr := &quic.Transport{Conn: udp}
	n.t.Cleanup(func() {
		if err := errors.Join(tr.Close(), udp.Close()); err != nil {
			n.t.Error(err)
		}
	})
	to, err := net.ResolveUDPAddr("udp4", n.address)
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	credentials := n.credentials()
	tls := credentials.ClientTLS()
	tls.NextProtos = []string{wire.ALPN}
	conn, err := tr.Dial(ctx, to, tls, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	opened, err := conn.OpenStream()
	if err != nil {
		n.t.Fatal(err)
	}
	s := stream{n.t, opened, conn}
	s.write(s.frame(0, &wire.Hello{Version: wire.Version, Cluster: credentials.Cluster()}))
	if _, m := s.read(); m == nil {
		n.t.Fatal("no hello")
	}
	return s
}

func (s stream) frame(conversation uint64, m env.Message) []byte {
	s.t.Helper()
	var e wire.Encoder
	b, err := e.AppendFrame(nil, conversation, m)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

func (s stream) write(b []byte) {
	s.t.Helper()
	if _, err := s.Write(b); err != nil {
		s.t.Fatal(err)
	}
}

// read returns the next message.
func (s stream) read() (conversation uint64, m env.Message) {
	s.t.Helper()
	var header [wire.HeaderSize]byte
	if _, err := io.ReadFull(s, header[:]); err != nil {
		s.t.Fatal(err)
	}
	size, err := wire.BodySize(header)
	if err != nil {
		s.t.Fatal(err)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(s, body); err != nil {
		s.t.Fatal(err)
	}
	if conversation, m, err = wire.DecodeFrame(body); err != nil {
		s.t.Fatal(err)
	}
	return conversation, m
}

// rawFrame is a frame with any body.
func rawFrame(body ...byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func TestAMessageOfANewerProtocolIsRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	n.start(n.config())
	s := n.rawDial()
	// An array of kind 999, conversation 7 and a body of a single nil.
	s.write(rawFrame(0x93, 0xcd, 0x03, 0xe7, 0x07, 0x91, 0xc0))
	conversation, m := s.read()
	refused, ok := m.(*env.Refused)
	if !ok || conversation != 7 || refused.Reason != env.ReasonBadRequest || !strings.Contains(refused.Text, "kind 999") {
		t.Errorf("answer %d: %v, want a refusal of kind 999", conversation, m)
	}
	s.write(s.frame(8, &abd.Get{Key: "k"}))
	if conversation, m := s.read(); conversation != 8 {
		t.Errorf("answer %d: %v, want one to the get", conversation, m)
	}
}

// TestGarbageEndsItsOwnSessionOnly sends what is no frame, and a put whose key
// or value is larger than any cluster allows.
func TestGarbageEndsItsOwnSessionOnly(t *testing.T) {
	t.Parallel()
	n := newNode(t, identity.Spec{})
	n.start(n.config())
	bystander := n.dial(nil)
	long := func(b []byte, n int) []byte { return append(b, make([]byte, n)...) }
	// Kind 18 (put), conversation 1, and a body that begins with the key.
	put := []byte{0x93, 0x12, 0x01, 0x92}
	for name, bytes := range map[string][]byte{
		"noise":               rawFrame([]byte("GET / HTTP/1.1\r\n")...),
		"a frame of 4 GiB":    {0xff, 0xff, 0xff, 0xff},
		"a key of 1025 bytes": rawFrame(long(append(put, 0xc5, 0x04, 0x01), 1025)...),
		"a key of 4 GiB":      rawFrame(append(put, 0xc6, 0xff, 0xff, 0xff, 0xff)...),
		"the begin of a put":  rawFrame(put...),
	} {
		var err error
		var closed *quic.ApplicationError
		// Why it is closed is said once, and the packet may be lost.
		for tries := 0; tries < 3 && closed == nil; tries++ {
			s := n.rawDial()
			s.write(bytes)
			receive(t, s.conn.Context().Done())
			err = context.Cause(s.conn.Context())
			errors.As(err, &closed)
		}
		if closed == nil || !closed.Remote || !strings.Contains(closed.ErrorMessage, "bad frame") {
			t.Errorf("%s: the session ended with %v, want that the node found a bad frame", name, err)
		}
		if _, ok := bystander.ask(putOf(name, "v")).(*abd.PutAck); !ok {
			t.Errorf("%s: a bystander's put wasn't acked", name)
		}
	}
}
