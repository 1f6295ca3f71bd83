package history

import "time"

// Recorder writes down the operations of clients that share one clock and one
// thread, such as those of a simulation. The zero Recorder is ready.
//
// It sees the order in which operations begin and end, also of those at the
// same instant. An oracle that looks at times alone would take them for
// concurrent and would miss violations, so a Recorder moves such times apart,
// by a nanosecond each.
type Recorder struct {
	history History
	last    time.Duration
	begun   bool
}

// Began writes down that an operation began, and returns its place in the
// history. Client, Key, Kind and, of a write, Value are taken from op. Until
// it ends, its outcome is unknown.
func (r *Recorder) Began(now time.Duration, op Operation) int {
	op.Outcome, op.Found = Unknown, false
	op.Call = r.tick(now)
	op.Return = op.Call
	r.history = append(r.history, op)
	return len(r.history) - 1
}

// Ended writes down the outcome of an operation other than a read that found
// something.
func (r *Recorder) Ended(now time.Duration, at int, outcome Outcome) {
	op := &r.history[at]
	op.Return, op.Outcome = r.tick(now), outcome
}

// Found writes down that a read found a value.
func (r *Recorder) Found(now time.Duration, at int, value string) {
	r.Ended(now, at, OK)
	r.history[at].Found, r.history[at].Value = true, value
}

// History returns what was written down so far. It is the Recorder's own:
// the next call may change it.
func (r *Recorder) History() History { return r.history }

// tick returns now, or the least time after the last that it returned.
func (r *Recorder) tick(now time.Duration) time.Duration {
	if r.begun && now <= r.last {
		now = r.last + 1
	}
	r.last, r.begun = now, true
	return now
}
