package load

import (
	"sync/atomic"
	"time"
)

// Stalls measures the longest times in which nothing was done, in periods that
// [Stalls.Cut] ends. It errs upwards, by as long as a goroutine waits between
// the end of an operation and its call of Done.
type Stalls struct {
	begin   time.Time
	over    int64         // ns since the begin
	done    atomic.Uint64 // operations of this period
	anybody pulse
	clients []pulse
}

// NewStalls returns one for so many clients.
func NewStalls(clients int) *Stalls { return &Stalls{clients: make([]pulse, clients)} }

// Begin starts the first period. It is called before any other method. Clients
// start no operation after over: that none is done then is nobody's stall.
func (s *Stalls) Begin(begin, over time.Time) { s.begin, s.over = begin, int64(over.Sub(begin)) }

// Done says that an operation of client i was done at t. It is safe for
// concurrent use by different clients.
func (s *Stalls) Done(i int, t time.Time) {
	now := int64(t.Sub(s.begin))
	s.done.Add(1)
	s.anybody.beat(min(now, s.over))
	s.clients[i].beat(now)
}

// Cut ends a period and starts the next. It returns the longest time of the
// period in which no operation of any client was done, the longest in which
// none of a single client was, and the number of operations. A stall that
// lasts while Cut is called belongs, from its beginning, to the next period.
func (s *Stalls) Cut() (anybody, client time.Duration, done uint64) {
	anybody = s.anybody.cut()
	for i := range s.clients {
		client = max(client, s.clients[i].cut())
	}
	return anybody, client, s.done.Swap(0)
}

// End ends the last period, when no operation is in flight any more. A stall
// that lasted until the clients stopped counts.
func (s *Stalls) End() (anybody, client time.Duration, done uint64) {
	s.anybody.beat(s.over)
	for i := range s.clients {
		s.clients[i].beat(s.over)
	}
	return s.Cut()
}

// pulse finds the longest gap between its beats, and between the begin and the
// first.
type pulse struct {
	last    atomic.Int64 // ns since the begin
	longest atomic.Int64 // ns
}

func (p *pulse) beat(now int64) {
	for {
		last := p.last.Load()
		if now <= last {
			return // another was done later, and has said so already
		}
		if p.last.CompareAndSwap(last, now) {
			p.widen(now - last)
			return
		}
	}
}

func (p *pulse) widen(gap int64) {
	for old := p.longest.Load(); gap > old; old = p.longest.Load() {
		if p.longest.CompareAndSwap(old, gap) {
			return
		}
	}
}

func (p *pulse) cut() time.Duration { return time.Duration(p.longest.Swap(0)) }
