package transport_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"atoll/internal/transport"
	"atoll/internal/wire"
)

// wantClosed waits until a server has closed a connection, for a reason.
func wantClosed(t *testing.T, conn *quic.Conn, code transport.Code, text string) {
	t.Helper()
	receive(t, conn.Context().Done())
	err := context.Cause(conn.Context())
	var closed *quic.ApplicationError
	if !errors.As(err, &closed) || !closed.Remote || closed.ErrorCode != quic.ApplicationErrorCode(code) || !strings.Contains(closed.ErrorMessage, text) {
		t.Errorf("closed with: %v; want code %d and %q", err, code, text)
	}
}

// TestHelloByTheByte: the time for a hello is that for all of it, however
// busily its bytes come.
func TestHelloByTheByte(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	server, address, _ := server(t, c)
	hello := frame(t, 0, &wire.Hello{Version: wire.Version, Cluster: c.ca.Cluster()})
	conn, stream := rawDial(t, c.client(), address, nil)
	tick := time.NewTicker(transport.HelloTimeout / 20)
	defer tick.Stop()
	// All but the last byte, over and over the time that there is.
	for sent := 0; conn.Context().Err() == nil && sent < len(hello)-1; sent++ {
		if _, err := stream.Write(hello[sent : sent+1]); err != nil {
			break // it is closed already
		}
		receive(t, tick.C)
	}
	wantClosed(t, conn, transport.CodeSilent, "no hello within")
	until(t, "no session is left", func() bool { return server.Stats().Sessions == 0 && server.Stats().Handshakes == 1 })
}

// TestNesting: the largest frame, which is nothing but arrays in arrays, is
// read without a stack of that depth, and what has no end is refused; and a
// frame of 20 MB isn't even taken.
func TestNesting(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, address, _ := server(t, c)
	deep := bytes.Repeat([]byte{0x91}, wire.MaxFrame)
	copy(deep, []byte{0x93, 0x13, 0x01, 0x95, 0x00, 0x90, 0x92, 0x00, 0x00, 0x90}) // a put-ack with one field more, which nobody knows
	for _, test := range []struct {
		name  string
		frame []byte
		text  string
	}{
		{"no end", raw(deep...), "bad frame"},
		{"20 MB", append(binary.BigEndian.AppendUint32(nil, 20<<20), deep...), "bad frame"},
	} {
		credentials := c.client()
		conn, stream := rawDial(t, credentials, address, nil)
		shake(t, credentials, stream)
		_, _ = stream.Write(test.frame) // it may be closed before the end
		wantClosed(t, conn, transport.CodeBadFrame, test.text)
	}
	// Well-formed, it is a message like any other.
	deep[len(deep)-1] = 0x90
	credentials := c.client()
	_, stream := rawDial(t, credentials, address, nil)
	shake(t, credentials, stream)
	if _, err := stream.Write(append(raw(deep...), frame(t, 7, put(10))...)); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Read(readFrame(t, stream)); err != nil {
		t.Error(err)
	}
}

// TestDatagramsAreRefused: nobody reads them, so none is taken.
func TestDatagramsAreRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	_, address, _ := server(t, c)
	credentials := c.client()
	conn, stream := rawDial(t, credentials, address, &quic.Config{EnableDatagrams: true})
	shake(t, credentials, stream)
	if err := conn.SendDatagram([]byte("x")); err == nil || conn.ConnectionState().SupportsDatagrams.Remote {
		t.Errorf("a datagram was sent: %v", err)
	}
}
