package udpproxy

import (
	"container/heap"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A lane is one direction of a proxy: its faults, and what is under way.
type lane struct {
	send   func(f *flow, datagram []byte) error // out of the proxy
	faults atomic.Pointer[Faults]
	stats  struct{ forwarded, lost, overflow, damaged atomic.Uint64 }

	mu struct {
		sync.Mutex
		waiting   parcels
		bytes     int    // of them
		lastOrder uint64 // of parcels that are due at the same moment
		free      time.Time
	}
	kick chan struct{} // holds a token when another parcel is the next
}

// A parcel is a datagram under way.
type parcel struct {
	due      time.Time
	order    uint64
	flow     *flow
	datagram []byte
}

// parcels is a heap, the next in front.
type parcels []parcel

func (p parcels) Len() int { return len(p) }
func (p parcels) Less(i, j int) bool {
	if !p[i].due.Equal(p[j].due) {
		return p[i].due.Before(p[j].due)
	}
	return p[i].order < p[j].order
}
func (p parcels) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *parcels) Push(x any)   { *p = append(*p, x.(parcel)) }
func (p *parcels) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	(*p)[last] = parcel{} // let go of the datagram
	*p = (*p)[:last]
	return x
}

func (l *lane) init(send func(*flow, []byte) error) {
	l.send = send
	l.faults.Store(&Faults{})
	l.kick = make(chan struct{}, 1)
}

// carry decides about a datagram that has come from one end of f, by the
// numbers drawn for it, and sends it to the other end, now or later.
func (l *lane) carry(f *flow, d draws, datagram []byte) {
	faults := l.faults.Load()
	decided := faults.decide(datagram, d)
	if decided.copies == 0 {
		l.stats.lost.Add(1)
	}
	if decided.damaged {
		l.stats.damaged.Add(1)
	}
	for range decided.copies {
		if decided.delay == 0 && faults.Rate == 0 {
			l.deliver(f, decided.datagram)
			continue
		}
		l.post(f, decided, faults.Rate)
	}
}

// post puts a datagram under way.
func (l *lane) post(f *flow, decided fate, rate int) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.bytes+len(decided.datagram) > MaxWaiting {
		l.stats.overflow.Add(1)
		return
	}
	leaves := now
	if rate > 0 {
		if l.mu.free.After(now) {
			leaves = l.mu.free
		}
		leaves = leaves.Add(time.Duration(len(decided.datagram)) * time.Second / time.Duration(rate))
		l.mu.free = leaves
	}
	l.mu.lastOrder++
	l.mu.bytes += len(decided.datagram)
	heap.Push(&l.mu.waiting, parcel{
		due: leaves.Add(decided.delay), order: l.mu.lastOrder, flow: f, datagram: slices.Clone(decided.datagram),
	})
	if l.mu.waiting[0].order == l.mu.lastOrder {
		select {
		case l.kick <- struct{}{}:
		default:
		}
	}
}

// next returns the parcel that is due, or how long until one is; never, if
// nothing is under way.
func (l *lane) next() (p parcel, ok bool, wait time.Duration) {
	const never = time.Hour
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.waiting) == 0 {
		return parcel{}, false, never
	}
	if wait = time.Until(l.mu.waiting[0].due); wait > 0 {
		return parcel{}, false, wait
	}
	p = heap.Pop(&l.mu.waiting).(parcel)
	l.mu.bytes -= len(p.datagram)
	return p, true, 0
}

// run delivers what was delayed, until done.
func (l *lane) run(done <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p, ok, wait := l.next()
		if ok {
			if l.faults.Load().Blackhole {
				l.stats.lost.Add(1)
			} else {
				l.deliver(p.flow, p.datagram)
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-l.kick:
		case <-done:
			return
		}
	}
}

// deliver sends a datagram out of the proxy. What the system doesn't take is
// lost, as datagrams may be.
func (l *lane) deliver(f *flow, datagram []byte) {
	if err := l.send(f, datagram); err != nil {
		l.stats.lost.Add(1)
		return
	}
	l.stats.forwarded.Add(1)
}
