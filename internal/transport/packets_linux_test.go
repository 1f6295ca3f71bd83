package transport

import (
	"bytes"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// batcher is what quic-go reads from.
type batcher interface {
	ReadBatch(ms []ipv4.Message, flags int) (int, error)
}

// packetPatience is how long a test waits for a datagram on loopback.
const packetPatience = time.Minute

// packetPair makes two sockets of a family on loopback.
func packetPair(t *testing.T, network string, ip net.IP) (a, b quic.OOBCapablePacketConn) {
	t.Helper()
	one := func() quic.OOBCapablePacketConn {
		udp, err := net.ListenUDP(network, &net.UDPAddr{IP: ip})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := udp.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		})
		c, err := newPacketConn(udp, ip.To4() != nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Now().Add(packetPatience)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	return one(), one()
}

func messages(n int) []ipv4.Message {
	ms := make([]ipv4.Message, n)
	for i := range ms {
		ms[i].Buffers, ms[i].OOB = [][]byte{make([]byte, 2000)}, make([]byte, 128)
	}
	return ms
}

// readAll reads n datagrams.
func readAll(t *testing.T, c any, n int) (all []ipv4.Message) {
	t.Helper()
	for len(all) < n {
		ms := messages(packetBatch + 2)
		got, err := c.(batcher).ReadBatch(ms, 0)
		if err != nil || got < 1 || got > packetBatch {
			t.Fatalf("read %d: %v", got, err)
		}
		all = append(all, ms[:got]...)
	}
	return all
}

// TestPackets: what is written is read, with its address and control messages,
// in batches and one by one, empty or not, from 127.0.0.1 and ::1.
func TestPackets(t *testing.T) {
	t.Parallel()
	for network, ip := range map[string]net.IP{"udp4": net.IPv4(127, 0, 0, 1), "udp6": net.IPv6loopback} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			a, b := packetPair(t, network, ip)
			if network == "udp4" { // asks for what ECN hangs on
				raw, err := b.SyscallConn()
				if err != nil {
					t.Fatal(err)
				}
				var set error
				if err := errors.Join(raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVTOS, 1) }), set); err != nil {
					t.Fatal(err)
				}
			}
			const n = 20
			for i := range n {
				text := bytes.Repeat([]byte{byte(i)}, i*50)
				if sent, _, err := a.WriteMsgUDP(text, nil, b.LocalAddr().(*net.UDPAddr)); err != nil || sent != len(text) {
					t.Fatalf("wrote %d: %v", sent, err)
				}
			}
			for i, m := range readAll(t, b, n) {
				from := m.Addr.(*net.UDPAddr)
				if want := bytes.Repeat([]byte{byte(i)}, i*50); !bytes.Equal(m.Buffers[0][:m.N], want) {
					t.Errorf("datagram %d has %d bytes, want %d", i, m.N, len(want))
				}
				if from.String() != a.LocalAddr().String() {
					t.Errorf("datagram %d is from %v, want %v", i, from, a.LocalAddr())
				}
				if control := m.NN > 0; control != (network == "udp4") {
					t.Errorf("datagram %d has %d bytes of control messages", i, m.NN)
				}
			}
			// A mapped address is one of IPv4, and the reader waits for what is to come.
			var got []ipv4.Message
			read := make(chan struct{})
			go func() {
				defer close(read)
				got = readAll(t, a, 1)
			}()
			to := *a.LocalAddr().(*net.UDPAddr)
			to.IP = to.IP.To16()
			if _, _, err := b.WriteMsgUDP([]byte("late"), nil, &to); err != nil {
				t.Fatal(err)
			}
			<-read
			if m := got[0]; string(m.Buffers[0][:m.N]) != "late" {
				t.Errorf("got %q", m.Buffers[0][:m.N])
			}
		})
	}
}

// TestPacketErrors are those that quic-go goes by.
func TestPacketErrors(t *testing.T) {
	t.Parallel()
	a, b := packetPair(t, "udp4", net.IPv4(127, 0, 0, 1))
	to := b.LocalAddr().(*net.UDPAddr)
	_, _, err := a.WriteMsgUDP(make([]byte, 70_000), nil, to)
	if call, ok := errors.AsType[*os.SyscallError](err); !ok || call.Syscall != "sendmsg" || !errors.Is(err, syscall.EMSGSIZE) {
		t.Errorf("too large: %v", err)
	}
	if _, _, err := a.WriteMsgUDP([]byte("x"), nil, &net.UDPAddr{IP: net.IPv6loopback, Port: to.Port}); err == nil {
		t.Error("an address of another family: no error")
	}
	if err := b.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.(batcher).ReadBatch(messages(1), 0); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	// Close ends the waiting.
	waited := make(chan error)
	go func() {
		_, err := a.(batcher).ReadBatch(messages(1), 0)
		waited <- err
	}()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; !errors.Is(err, net.ErrClosed) {
		t.Errorf("reading while it is closed: %v", err)
	}
	if _, _, err := a.WriteMsgUDP([]byte("x"), nil, to); !errors.Is(err, net.ErrClosed) {
		t.Errorf("writing after: %v", err)
	}
}

// TestPacketsFromMany: those who write at the same time don't get into each
// other's way.
func TestPacketsFromMany(t *testing.T) {
	t.Parallel()
	const writers, each = 4, 50
	a, b := packetPair(t, "udp4", net.IPv4(127, 0, 0, 1))
	var writing sync.WaitGroup
	for w := range byte(writers) {
		writing.Go(func() {
			for range each {
				if _, _, err := a.WriteMsgUDP(bytes.Repeat([]byte{w}, 100+int(w)), nil, b.LocalAddr().(*net.UDPAddr)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var seen [writers]int
	for _, m := range readAll(t, b, writers*each) {
		text := m.Buffers[0][:m.N]
		w := text[0]
		if !bytes.Equal(text, bytes.Repeat([]byte{w}, 100+int(w))) {
			t.Fatalf("a datagram of %d bytes isn't what %d wrote", len(text), w)
		}
		seen[w]++
	}
	writing.Wait()
	if seen != [writers]int{each, each, each, each} {
		t.Errorf("seen of each: %v", seen)
	}
}

// TestSockaddr: addresses as the kernel has them, there and back, with a zone
// that comes as a number and is left to package net when it is sent to.
func TestSockaddr(t *testing.T) {
	t.Parallel()
	var s sockaddr
	for _, text := range []string{"127.0.0.1:1", "10.1.2.3:65535", "[::1]:7400", "[2001:db8::1]:443"} {
		want, err := net.ResolveUDPAddr("udp", text)
		if err != nil {
			t.Fatal(err)
		}
		is4 := want.IP.To4() != nil
		if _, ok := s.set(want, !is4); ok {
			t.Errorf("%s fits a socket of the other family", text)
		}
		if _, ok := s.set(want, is4); !ok || s.addr().String() != text {
			t.Errorf("%s became %v, %v", text, s.addr(), ok)
		}
	}
	s[24], s[25], s[26], s[27] = 3, 3, 3, 3 // the same in both orders of bytes
	if got, want := s.addr().Zone, "50529027"; got != want {
		t.Errorf("zone %q, want %q", got, want)
	}
	if _, ok := s.set(&net.UDPAddr{IP: net.ParseIP("fe80::1"), Zone: "3"}, false); ok {
		t.Error("an address with a zone isn't left to package net")
	}
	if _, ok := s.set(&net.UDPAddr{}, true); ok {
		t.Error("no address isn't left to package net")
	}
}
