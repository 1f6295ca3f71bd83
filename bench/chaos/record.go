package chaos

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"atoll/client"
	"atoll/sim/history"
	"atoll/tags"
)

// record is what clients saw. It is safe for concurrent use: its lock makes the
// order of beginnings and ends that the oracle judges.
type record struct {
	begin time.Time

	mu struct {
		sync.Mutex
		recorder history.Recorder
		keys     map[string]state
		counts   Counts
		outages  []outage
		// complaints are what went wrong but for the oracle's verdict;
		// complained is how many there were.
		complaints []string
		complained int
	}
}

// state is what is known for sure of a key.
type state struct {
	// tag is the largest that any operation that has ended had, and label that
	// of its value, "" of a deletion.
	tag   tags.Tag
	label string
}

// Counts is what came of operations.
type Counts struct {
	Puts, Gets, Deletes uint64 // that were done
	Failed              uint64 // definitely not done
	Unknown             uint64 // still unknown at the end
	Resumed             uint64 // unknown at first, and done when resumed
	// Surprising are those that failed, or were unknown at first, though they
	// had their full time, nobody closed their library, and a quorum was there
	// all along.
	Surprising uint64
}

// outage is a time without a quorum. It has no end while it lasts.
type outage struct{ from, to time.Duration }

func newRecord() *record {
	r := &record{begin: time.Now()}
	r.mu.keys = make(map[string]state)
	return r
}

// operation is one that has begun.
type operation struct {
	history.Operation
	at   int
	call time.Duration
	// floor is the largest tag of its key when it began.
	floor tags.Tag
	hasty bool
}

// who names an operation in a complaint.
func (o *operation) who() string {
	if o.Kind == history.Write {
		return fmt.Sprintf("%s's write of %q", o.Client, o.Value)
	}
	return fmt.Sprintf("%s's %v", o.Client, o.Kind)
}

// began writes down that an operation begins.
func (r *record) began(op history.Operation, hasty bool) *operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.mu.keys[op.Key]; !known {
		r.mu.keys[op.Key] = state{}
	}
	now := time.Since(r.begin)
	return &operation{Operation: op, at: r.mu.recorder.Began(now, op), call: now, floor: r.mu.keys[op.Key].tag, hasty: hasty}
}

// done writes down that an operation took effect under a tag. Of a read, label
// is what it found.
func (r *record) done(op *operation, tag tags.Tag, label string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch op.Kind {
	case history.Read:
		r.mu.counts.Gets++
		r.mu.recorder.Found(time.Since(r.begin), op.at, label)
	case history.Write:
		r.mu.counts.Puts++
		label = op.Value
		r.mu.recorder.Ended(time.Since(r.begin), op.at, history.OK)
	case history.Delete:
		r.mu.counts.Deletes++
		label = ""
		r.mu.recorder.Ended(time.Since(r.begin), op.at, history.OK)
	}
	// Whatever ended before this one began has a tag that a read can't be
	// below, and a write must be above.
	if order := tag.Compare(op.floor); order < 0 || order == 0 && op.Kind != history.Read {
		r.complainLocked("the tag of %s went back: %s has %v, after one that had %v had ended", op.Key, op.who(), tag, op.floor)
	}
	known := r.mu.keys[op.Key]
	if !tag.IsZero() && tag == known.tag && label != known.label {
		r.complainLocked("%s has two values with the tag %v: %q and %q", op.Key, tag, known.label, label)
	}
	if known.tag.Less(tag) {
		r.mu.keys[op.Key] = state{tag, label}
	}
}

// nothing writes down that a read found nothing.
func (r *record) nothing(op *operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.counts.Gets++
	r.mu.recorder.Ended(time.Since(r.begin), op.at, history.OK)
}

// failed writes down that an operation had no effect and never will, as an error
// says that is not a *client.UnknownError. It may be of two kinds only.
func (r *record) failed(op *operation, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Since(r.begin)
	r.mu.counts.Failed++
	if _, ok := errors.AsType[*client.NoQuorumError](err); !ok && !errors.Is(err, client.ErrClosed) {
		r.complainLocked("%s of %s: an error of no known kind: %v", op.who(), op.Key, err)
	}
	r.surprisingLocked(op, now, err)
	r.mu.recorder.Ended(now, op.at, history.Failed)
}

// unknown counts an operation whose outcome nobody knows. The recorder takes
// it for unknown anyway, unless done is called yet.
func (r *record) unknown(op *operation, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.counts.Unknown++
	r.surprisingLocked(op, time.Since(r.begin), err)
}

// resumed counts an operation that was unknown and is done now.
func (r *record) resumed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.counts.Unknown--
	r.mu.counts.Resumed++
}

func (r *record) surprisingLocked(op *operation, now time.Duration, err error) {
	if op.hasty || errors.Is(err, client.ErrClosed) {
		return // what it had to expect
	}
	for _, o := range r.mu.outages {
		if op.call < o.to+grace && o.from < now {
			return
		}
	}
	r.mu.counts.Surprising++
}

// outage writes down that there is no quorum from now on; the function that it
// returns, that there is one again.
func (r *record) outage() (over func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	const unending = time.Duration(1<<62 - 1)
	i := len(r.mu.outages)
	r.mu.outages = append(r.mu.outages, outage{time.Since(r.begin), unending})
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.mu.outages[i].to = time.Since(r.begin)
	}
}

// complain writes down what went wrong.
func (r *record) complain(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complainLocked(format, args...)
}

func (r *record) complainLocked(format string, args ...any) {
	r.mu.complained++
	if len(r.mu.complaints) < complaintsKept {
		r.mu.complaints = append(r.mu.complaints, fmt.Sprintf(format, args...))
	}
}
