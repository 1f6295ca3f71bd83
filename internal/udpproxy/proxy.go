package udpproxy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Config says what a Proxy stands in front of.
type Config struct {
	// Listen is where clients send to, "host:port". Default: any free port of
	// 127.0.0.1.
	Listen string
	// To is where the server listens, "host:port". Required.
	To string
	// Seed decides about every datagram that Faults leave to chance.
	Seed uint64
	// Faults hold in both directions until Set or SetWay is called.
	Faults Faults
}

// Proxy forwards datagrams. Its methods may be called by any goroutine.
type Proxy struct {
	seed   uint64
	to     *net.UDPAddr
	front  *net.UDPConn // where clients send to
	lanes  [ways]lane
	done   chan struct{} // closed by Close
	work   sync.WaitGroup
	closed sync.Once

	mu struct {
		sync.Mutex
		flows    map[netip.AddrPort]*flow // by client
		lastFlow uint64
		closed   bool
	}
}

// A flow is one client's way to the server.
type flow struct {
	proxy  *Proxy
	client netip.AddrPort
	back   *net.UDPConn // connected with the server
	random [ways]*rand.Rand
}

// New starts a proxy.
func New(c Config) (*Proxy, error) {
	if err := c.Faults.Validate(); err != nil {
		return nil, err
	}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	listen, err := net.ResolveUDPAddr("udp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("udpproxy: %w", err)
	}
	to, err := net.ResolveUDPAddr("udp", c.To)
	if err != nil {
		return nil, fmt.Errorf("udpproxy: %w", err)
	}
	front, err := net.ListenUDP("udp", listen)
	if err != nil {
		return nil, fmt.Errorf("udpproxy: %w", err)
	}
	p := &Proxy{seed: c.Seed, to: to, front: front, done: make(chan struct{})}
	p.mu.flows = make(map[netip.AddrPort]*flow)
	enlarge(front)
	p.lanes[ToServer].init((*flow).toServer)
	p.lanes[ToClient].init((*flow).toClient)
	p.store(c.Faults)
	for way := range ways {
		p.work.Go(func() { p.lanes[way].run(p.done) })
	}
	p.work.Go(p.fromClients)
	return p, nil
}

// Addr is where clients send to.
func (p *Proxy) Addr() netip.AddrPort {
	a := p.front.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// Set has faults hold in both directions from now on. It panics if they aren't
// valid: see Faults.Validate.
func (p *Proxy) Set(f Faults) {
	mustBeValid(f)
	p.store(f)
}

// SetWay is Set for one direction.
func (p *Proxy) SetWay(w Way, f Faults) {
	mustBeValid(f)
	p.lanes[w].faults.Store(&f)
}

func mustBeValid(f Faults) {
	if err := f.Validate(); err != nil {
		panic(err)
	}
}

func (p *Proxy) store(f Faults) {
	for way := range ways {
		p.lanes[way].faults.Store(&f)
	}
}

// Rebind gives every client another port towards the server, as an address
// translator does that has forgotten them. What the server sends to the old
// ports is lost.
func (p *Proxy) Rebind() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client, f := range p.mu.flows {
		delete(p.mu.flows, client)
		_ = f.back.Close() // nothing more is sent to it or comes from it
	}
}

// Stats counts datagrams in one direction since New.
type Stats struct {
	// Forwarded were sent on, each copy counted. Damaged were truncated or
	// corrupted.
	Forwarded, Damaged uint64
	// Lost were swallowed, Overflow found too much under way.
	Lost, Overflow uint64
}

// Stats returns the counts of one direction.
func (p *Proxy) Stats(w Way) Stats {
	s := &p.lanes[w].stats
	return Stats{Forwarded: s.forwarded.Load(), Damaged: s.damaged.Load(), Lost: s.lost.Load(), Overflow: s.overflow.Load()}
}

// Flows is how many clients there are.
func (p *Proxy) Flows() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.mu.flows)
}

// Close ends the proxy. What is under way is lost. A second call does nothing.
func (p *Proxy) Close() error {
	var err error
	p.closed.Do(func() {
		close(p.done)
		err = p.front.Close()
		p.mu.Lock()
		p.mu.closed = true
		for _, f := range p.mu.flows {
			err = errors.Join(err, f.back.Close())
		}
		clear(p.mu.flows)
		p.mu.Unlock()
		p.work.Wait()
	})
	return err
}

// fromClients carries what clients send, until the proxy is closed.
func (p *Proxy) fromClients() {
	buffer := make([]byte, MaxDatagram)
	for {
		n, client, err := p.front.ReadFromUDPAddrPort(buffer)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			continue // the system's word on what was sent before
		}
		if f := p.flowOf(client); f != nil {
			p.lanes[ToServer].carry(f, f.draw(ToServer), buffer[:n])
		} else {
			p.lanes[ToServer].stats.lost.Add(1)
		}
	}
}

// flowOf returns a client's flow, a new one if it has none; nil if there are
// too many.
func (p *Proxy) flowOf(client netip.AddrPort) *flow {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.mu.flows[client]; f != nil {
		return f
	}
	if p.mu.closed || len(p.mu.flows) >= MaxFlows {
		return nil
	}
	back, err := net.DialUDP("udp", nil, p.to)
	if err != nil {
		return nil // out of sockets: as good as too many
	}
	enlarge(back)
	f := &flow{proxy: p, client: client, back: back}
	for way := range ways {
		f.random[way] = source(p.seed, p.mu.lastFlow, way)
	}
	p.mu.lastFlow++
	p.mu.flows[client] = f
	p.work.Go(f.fromServer)
	return f
}

// forget ends a flow, unless another has taken its place.
func (p *Proxy) forget(f *flow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.flows[f.client] == f {
		delete(p.mu.flows, f.client)
		_ = f.back.Close() // nothing more is sent to it
	}
}

// fromServer carries what the server sends to one client, until the flow
// ends: when it was closed, or carries nothing any more.
func (f *flow) fromServer() {
	defer f.proxy.forget(f)
	buffer := make([]byte, MaxDatagram)
	for {
		if err := f.back.SetReadDeadline(time.Now().Add(FlowTimeout)); err != nil {
			return
		}
		n, err := f.back.Read(buffer)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			continue // nobody listens at the server's port, which a network doesn't tell either
		case err != nil:
			return
		}
		f.proxy.lanes[ToClient].carry(f, f.draw(ToClient), buffer[:n])
	}
}

// draw returns the random numbers of the next datagram in a direction. Each
// direction has one goroutine that reads, and so needs no lock.
func (f *flow) draw(w Way) draws { return draw(f.random[w]) }

func (f *flow) toClient(datagram []byte) error {
	_, err := f.proxy.front.WriteToUDPAddrPort(datagram, f.client)
	return err
}

func (f *flow) toServer(datagram []byte) error {
	_, err := f.back.Write(datagram)
	if errors.Is(err, syscall.ECONNREFUSED) { // about an earlier one, and this one wasn't sent
		_, err = f.back.Write(datagram)
	}
	return err
}

// enlarge asks the system for larger buffers. It is free to grant less, and
// bursts may lose datagrams then.
func enlarge(c *net.UDPConn) {
	_ = c.SetReadBuffer(socketBuffer)
	_ = c.SetWriteBuffer(socketBuffer)
}
