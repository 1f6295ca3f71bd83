package load

import (
	"sync/atomic"
	"time"

	"atoll/internal/pulse"
)

// Stalls measures the longest times in which nothing was done, in periods that
// [Stalls.Cut] ends. It errs upwards, by as long as a goroutine waits between
// the end of an operation and its call of Done.
type Stalls struct {
	begin   time.Time
	over    time.Duration // since the begin
	done    atomic.Uint64 // operations of this period
	anybody pulse.Pulse
	clients []pulse.Pulse
}

// NewStalls returns one for so many clients.
func NewStalls(clients int) *Stalls { return &Stalls{clients: make([]pulse.Pulse, clients)} }

// Begin starts the first period. It is called before any other method. Clients
// start no operation after over: that none is done then is nobody's stall.
func (s *Stalls) Begin(begin, over time.Time) { s.begin, s.over = begin, over.Sub(begin) }

// Done says that an operation of client i was done at t. It is safe for
// concurrent use by different clients.
func (s *Stalls) Done(i int, t time.Time) {
	now := t.Sub(s.begin)
	s.done.Add(1)
	s.anybody.Beat(min(now, s.over))
	s.clients[i].Beat(now)
}

// Cut ends a period and starts the next. It returns the longest time of the
// period in which no operation of any client was done, the longest in which
// none of a single client was, and the number of operations. A stall that
// lasts while Cut is called belongs, from its beginning, to the next period.
func (s *Stalls) Cut() (anybody, client time.Duration, done uint64) {
	anybody = s.anybody.Cut()
	for i := range s.clients {
		client = max(client, s.clients[i].Cut())
	}
	return anybody, client, s.done.Swap(0)
}

// End ends the last period, when no operation is in flight any more. A stall
// that lasted until the clients stopped counts.
func (s *Stalls) End() (anybody, client time.Duration, done uint64) {
	s.anybody.Beat(s.over)
	for i := range s.clients {
		s.clients[i].Beat(s.over)
	}
	return s.Cut()
}
