package transport

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"github.com/quic-go/quic-go"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// packetConn is a UDP socket whose datagrams are read and written without Go's
// scheduler being told of the system calls.
//
// It is told of every other system call, in case that lasts. At the first one
// after a moment in which a process had nothing to do, it wakes the runtime's
// monitor, a thread that then looks every 20 µs whether a call does last, until
// all is idle again. Where messages come one at a time, that is one more thread
// to wake for each of them, and several of its looks: a third of all processor
// time that a get takes. A datagram is copied in microseconds, or not at all:
// these calls never wait (MSG_DONTWAIT), and waiting is the network poller's
// business, as it always is. What is lost is that during such a call nothing
// else runs in its place.
//
// Nothing else differs from net.UDPConn, which still answers for all that isn't
// overridden here, and for addresses with a zone.
type packetConn struct {
	*net.UDPConn
	raw    syscall.RawConn
	is4    bool
	reader packetReader
	// writers are of those that send at the same time.
	writers sync.Pool // of *packetWriter
}

// newPacketConn takes over a socket of one family.
func newPacketConn(udp *net.UDPConn, is4 bool) (quic.OOBCapablePacketConn, error) {
	raw, err := udp.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &packetConn{UDPConn: udp, raw: raw, is4: is4}
	c.reader.try = c.reader.receive
	c.writers.New = func() any {
		w := new(packetWriter)
		w.try = w.send
		return w
	}
	return c, nil
}

// mmsghdr is the kernel's struct mmsghdr.
type mmsghdr struct {
	head unix.Msghdr
	n    uint32 // bytes received
}

// A packetReader is one call of recvmmsg. quic-go reads on one goroutine only,
// so that a socket has one of them.
type packetReader struct {
	heads [packetBatch]mmsghdr
	parts [packetBatch]unix.Iovec
	names [packetBatch]sockaddr
	want  int
	got   int
	err   syscall.Errno
	try   func(fd uintptr) (done bool) // receive
}

// receive reports false when there is nothing to receive.
func (r *packetReader) receive(fd uintptr) (done bool) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&r.heads)), uintptr(r.want), unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		r.got, r.err = int(n), errno
		return errno != unix.EAGAIN
	}
}

// ReadBatch fills some of ms, at least one, and returns how many. quic-go calls
// it, with one buffer each and room for control messages.
func (c *packetConn) ReadBatch(ms []ipv4.Message, _ int) (int, error) {
	r := &c.reader
	r.want = min(len(ms), packetBatch)
	for i := range ms[:r.want] {
		m := &ms[i]
		r.parts[i].Base = unsafe.SliceData(m.Buffers[0])
		r.parts[i].SetLen(len(m.Buffers[0]))
		h := &r.heads[i].head
		*h = unix.Msghdr{Name: &r.names[i][0], Namelen: sockaddrSize, Iov: &r.parts[i], Control: unsafe.SliceData(m.OOB)}
		h.SetIovlen(1)
		h.SetControllen(len(m.OOB))
	}
	if err := c.raw.Read(r.try); err != nil {
		return 0, err
	}
	if r.err != 0 {
		return 0, c.failed("read", "recvmmsg", r.err)
	}
	for i := range r.got {
		h := &r.heads[i]
		ms[i].N, ms[i].NN, ms[i].Flags = int(h.n), int(h.head.Controllen), int(h.head.Flags)
		ms[i].Addr = r.names[i].addr()
	}
	return r.got, nil
}

// A packetWriter is one call of sendmsg. It is used again and again: what the
// kernel is given must be on the heap.
type packetWriter struct {
	head unix.Msghdr
	part unix.Iovec
	name sockaddr
	sent int
	err  syscall.Errno
	try  func(fd uintptr) (done bool) // send
}

// send reports false when there is no room.
func (w *packetWriter) send(fd uintptr) (done bool) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&w.head)), unix.MSG_DONTWAIT, 0, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		w.sent, w.err = int(n), errno
		return errno != unix.EAGAIN
	}
}

// WriteMsgUDP is that of net.UDPConn.
func (c *packetConn) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	w := c.writers.Get().(*packetWriter)
	defer c.writers.Put(w)
	size, ok := w.name.set(to, c.is4)
	if !ok {
		return c.UDPConn.WriteMsgUDP(b, oob, to)
	}
	w.part.Base = unsafe.SliceData(b)
	w.part.SetLen(len(b))
	w.head = unix.Msghdr{Name: &w.name[0], Namelen: size, Iov: &w.part, Control: unsafe.SliceData(oob)}
	w.head.SetIovlen(1)
	w.head.SetControllen(len(oob))
	err = c.raw.Write(w.try)
	w.head, w.part = unix.Msghdr{}, unix.Iovec{} // b and oob are the caller's again
	if err != nil {
		return 0, 0, err
	}
	if w.err != 0 {
		return 0, 0, c.failed("write", "sendmsg", w.err)
	}
	return w.sent, len(oob), nil
}

// failed is the error of net.UDPConn, by which quic-go knows some.
func (c *packetConn) failed(op, call string, errno syscall.Errno) error {
	return &net.OpError{Op: op, Net: "udp", Source: c.LocalAddr(), Err: os.NewSyscallError(call, errno)}
}

// sockaddr is the kernel's struct sockaddr_in or sockaddr_in6: family, port, and
// the former's address, or flow and the latter's address and scope.
type sockaddr [sockaddrSize]byte

const sockaddrSize = unix.SizeofSockaddrInet6

// set makes an address that is sent to from a socket of one family, and returns
// its size. It reports false about those that it leaves to package net.
func (s *sockaddr) set(to *net.UDPAddr, from4 bool) (size uint32, ok bool) {
	ip, ok := netip.AddrFromSlice(to.IP)
	if ip = ip.Unmap(); !ok || to.Zone != "" || ip.Is4() != from4 {
		return 0, false
	}
	*s = sockaddr{}
	binary.BigEndian.PutUint16(s[2:], uint16(to.Port))
	if from4 {
		binary.NativeEndian.PutUint16(s[0:], unix.AF_INET)
		copy(s[4:], ip.AsSlice())
		return unix.SizeofSockaddrInet4, true
	}
	binary.NativeEndian.PutUint16(s[0:], unix.AF_INET6)
	copy(s[8:], ip.AsSlice())
	return unix.SizeofSockaddrInet6, true
}

// addr is the address that a packet came from. A zone is the number of its
// interface, since to look up its name takes system calls.
func (s *sockaddr) addr() *net.UDPAddr {
	port := int(binary.BigEndian.Uint16(s[2:]))
	if binary.NativeEndian.Uint16(s[0:]) == unix.AF_INET {
		return &net.UDPAddr{IP: net.IPv4(s[4], s[5], s[6], s[7]).To4(), Port: port}
	}
	a := &net.UDPAddr{IP: append(net.IP(nil), s[8:24]...), Port: port}
	if scope := binary.NativeEndian.Uint32(s[24:]); scope != 0 {
		a.Zone = strconv.FormatUint(uint64(scope), 10)
	}
	return a
}
