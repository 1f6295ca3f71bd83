package sim

import (
	"time"

	"atoll/env"
)

// kind is what an event is. Of two events at the same time the one with the
// smaller kind comes first, and of two of the same kind the one that was
// scheduled first.
type kind uint8

const (
	canceledEvent kind = iota // was taken back, and waits to be thrown away
	callEvent                 // a function of the driver's
	syncEvent                 // a commit has reached the disk
	messageEvent              // a message arrives
	timerEvent                // a caller's timer
)

// event is one entry of the schedule: a value, not a closure, so that a
// message in flight costs no allocation of its own.
type event struct {
	kind kind

	// messageEvent
	link    *link
	answer  bool        // to a conversation of the receiver
	asker   env.Address // whom to answer, or who is being answered
	session uint64      // of the receiver, when the message was sent
	message env.Message

	// syncEvent
	process *Process
	commit  uint64 // its number, of all that the process began

	// timerEvent
	caller *caller

	// callEvent
	call func()
}

// party returns the process to which the event happens, nil for the driver's.
func (e *event) party() *Process {
	switch e.kind {
	case syncEvent:
		return e.process
	case timerEvent:
		return e.caller.p
	case messageEvent:
		if e.link != nil {
			return e.link.to
		}
	}
	return nil
}

// key is where an event stands in the schedule.
type key struct {
	at   time.Duration
	rank uint64 // kind, then the number of the event
	slot int32
}

func (k key) before(l key) bool { return k.at < l.at || k.at == l.at && k.rank < l.rank }

// schedule is a heap of events: four children to a node, small keys in the
// heap, the events themselves in slots that stay where they are.
type schedule struct {
	keys     []key
	slots    []event
	free     []int32
	number   uint64
	canceled int
}

const (
	children  = 4
	kindShift = 56
)

// add schedules e and returns its slot, under which it can be canceled as
// long as it wasn't taken out.
func (s *schedule) add(at time.Duration, e event) int32 {
	var slot int32
	if n := len(s.free); n > 0 {
		slot = s.free[n-1]
		s.free = s.free[:n-1]
	} else {
		slot = int32(len(s.slots))
		s.slots = append(s.slots, event{})
	}
	s.slots[slot] = e
	s.number++
	s.keys = append(s.keys, key{at, uint64(e.kind)<<kindShift | s.number, slot})
	s.up(len(s.keys) - 1)
	return slot
}

// cancel takes an event back. Its key stays until it comes up or until such
// keys outnumber the others.
func (s *schedule) cancel(slot int32) {
	s.slots[slot] = event{kind: canceledEvent}
	s.canceled++
	if s.canceled > len(s.keys)/2 && s.canceled > 64 {
		s.sweep()
	}
}

// sweep throws canceled events away. The order of the others doesn't change:
// it doesn't depend on the shape of the heap.
func (s *schedule) sweep() {
	live := s.keys[:0]
	for _, k := range s.keys {
		if s.slots[k.slot].kind == canceledEvent {
			s.free = append(s.free, k.slot)
		} else {
			live = append(live, k)
		}
	}
	s.keys = live
	s.canceled = 0
	for i := len(s.keys)/children + 1; i >= 0; i-- {
		s.down(i)
	}
}

// next returns the time of the next event.
func (s *schedule) next() (time.Duration, bool) {
	for len(s.keys) > 0 {
		k := s.keys[0]
		if s.slots[k.slot].kind != canceledEvent {
			return k.at, true
		}
		s.canceled--
		s.pop()
	}
	return 0, false
}

// pop takes the first key out, and its event.
func (s *schedule) pop() (key, event) {
	k := s.keys[0]
	last := len(s.keys) - 1
	s.keys[0] = s.keys[last]
	s.keys = s.keys[:last]
	s.down(0)
	e := s.slots[k.slot]
	s.slots[k.slot] = event{} // keep nothing alive
	s.free = append(s.free, k.slot)
	return k, e
}

func (s *schedule) up(i int) {
	k := s.keys[i]
	for i > 0 {
		parent := (i - 1) / children
		if !k.before(s.keys[parent]) {
			break
		}
		s.keys[i] = s.keys[parent]
		i = parent
	}
	s.keys[i] = k
}

func (s *schedule) down(i int) {
	n := len(s.keys)
	if i >= n {
		return
	}
	k := s.keys[i]
	for {
		first := i*children + 1
		if first >= n {
			break
		}
		least := first
		for c := first + 1; c < min(first+children, n); c++ {
			if s.keys[c].before(s.keys[least]) {
				least = c
			}
		}
		if !s.keys[least].before(k) {
			break
		}
		s.keys[i] = s.keys[least]
		i = least
	}
	s.keys[i] = k
}
