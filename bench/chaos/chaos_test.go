package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"atoll/abd"
	"atoll/client"
	"atoll/tags"
)

// fake is a cluster that is a map. It can be told to do what no cluster may.
type fake struct {
	sin string

	mu     sync.Mutex
	up     []bool
	now    map[string]abd.Record
	before map[string]abd.Record // what each key had before that
	seq    tags.Seq
	writes int
	ops    int        // begun
	began  *sync.Cond // after each
	loaded bool       // there are clients
}

func newFake(sin string) *fake {
	f := &fake{sin: sin, up: []bool{true, true, true}, now: make(map[string]abd.Record), before: make(map[string]abd.Record)}
	f.began = sync.NewCond(&f.mu)
	return f
}

// opsBetween is how many operations there are at least from one event of
// mischief to the next, however slow the machine is.
const opsBetween = 50

// begin counts an operation, and leaves the lock held.
func (f *fake) begin() {
	f.mu.Lock()
	f.ops++
	f.began.Broadcast()
}

func (f *fake) Members() int      { return len(f.up) }
func (f *fake) Name(i int) string { return string(rune('a' + i)) }

func (f *fake) set(i int, up bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.up[i] = up
}

func (f *fake) Begin(i int) (func(context.Context) error, error) {
	return func(context.Context) error {
		f.set(i, true)
		if f.sin == "doesn't serve" {
			return errors.New("replica a ended: corrupt")
		}
		return nil
	}, nil
}

func (f *fake) Kill(i int) {
	f.set(i, false)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sin == "loses" {
		for key := range f.now {
			if strings.HasPrefix(key, oncePrefix) {
				delete(f.now, key)
			}
		}
	}
}
func (f *fake) Pause(i int) error  { f.set(i, false); return nil }
func (f *fake) Resume(i int) error { f.set(i, true); return nil }

func (f *fake) Ended(i int) error {
	if f.sin == "ends" {
		return errors.New("replica a ended: panic")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for enough := f.ops + opsBetween; i == 0 && f.loaded && f.ops < enough; {
		f.began.Wait()
	}
	return nil
}

func (f *fake) Twin(context.Context, int) error {
	if f.sin == "twin" {
		return nil
	}
	return ErrTwinRefused
}

func (f *fake) Open(context.Context) (Library, error) { return fakeLibrary{f}, nil }

// fakeLibrary is a client of a fake.
type fakeLibrary struct{ f *fake }

func (l fakeLibrary) Close() error { return nil }

func (f *fake) quorum() bool {
	n := 0
	for _, up := range f.up {
		if up {
			n++
		}
	}
	return n > len(f.up)/2
}

var errNoQuorum = &client.NoQuorumError{Cause: context.DeadlineExceeded}

func (l fakeLibrary) Get(_ context.Context, key string) (client.Value, error) {
	f := l.f
	f.begin()
	defer f.mu.Unlock()
	if !f.quorum() {
		return client.Value{}, errNoQuorum
	}
	f.writes++
	r := f.now[key]
	old := f.before[key]
	switch {
	case f.sin == "stale" && f.writes%50 == 0:
		r = old
	case f.sin == "tag back" && f.writes%50 == 0 && !r.Tag.IsZero():
		r.Tag.Seq--
	case f.sin == "one tag, two values" && !old.Absent() && !r.Absent():
		r.Value = old.Value
	case f.sin == "odd error" && f.writes%50 == 0:
		return client.Value{}, errors.New("odd")
	case f.sin == "torn" && len(r.Value) > 200:
		r.Value = r.Value[:150]
	}
	if r.Absent() {
		return client.Value{}, client.ErrNotFound
	}
	return client.Value{Tag: r.Tag, Bytes: r.Value}, nil
}

func (l fakeLibrary) Put(_ context.Context, key string, value []byte) (tags.Tag, error) {
	return l.f.write(abd.Operation{Key: abd.Key(key), Value: value})
}

func (l fakeLibrary) Delete(_ context.Context, key string) (tags.Tag, error) {
	return l.f.write(abd.Operation{Key: abd.Key(key), Delete: true})
}

func (l fakeLibrary) Resume(_ context.Context, op abd.Operation) (tags.Tag, error) {
	return l.f.write(op)
}

// write: every seventh has an unknown outcome, and of these every second takes
// effect at once and the others when they are resumed, or never.
func (f *fake) write(op abd.Operation) (tags.Tag, error) {
	f.begin()
	defer f.mu.Unlock()
	if !f.quorum() && !op.Sent {
		return tags.Tag{}, errNoQuorum
	}
	f.writes++
	if !op.Sent {
		f.seq++
		op.Sent, op.Tag = true, tags.Tag{Seq: f.seq, PID: tags.NewPID(1, 1, uint64(f.seq))}
	}
	unknown := f.writes%7 == 0 || !f.quorum()
	if !unknown || f.writes%2 == 0 {
		key := string(op.Key)
		if r := f.now[key]; r.Tag.Less(op.Tag) {
			f.before[key] = r
			f.now[key] = abd.Record{Tag: op.Tag, Deleted: op.Delete, Value: op.Value}
		}
	}
	if unknown && f.sin != "says done" {
		if f.sin == "says failed" {
			return tags.Tag{}, errNoQuorum
		}
		return tags.Tag{}, &client.UnknownError{Operation: op, Cause: context.DeadlineExceeded}
	}
	return op.Tag, nil
}

func campaignOf(t *testing.T, f *fake) (*Result, error) {
	t.Helper()
	f.loaded = true
	return Run(t.Context(), Config{
		Seed: 7, Kills: 20, Limit: time.Minute, Clients: 8, Pause: 100 * time.Microsecond,
		Hot: 2, Many: 20, Silence: time.Millisecond, Quiet: time.Millisecond, Down: time.Millisecond, Note: func(string, ...any) {},
	}, f)
}

// TestVerdict: a cluster that does everything right passes, and each wrong that
// it can do is found.
func TestVerdict(t *testing.T) {
	for _, c := range []struct{ sin, complaint, violation string }{
		{sin: ""},
		{sin: "loses", complaint: "was acknowledged to have"},
		{sin: "stale", complaint: "went back"},
		{sin: "tag back", complaint: "went back"},
		{sin: "one tag, two values", complaint: "has two values with the tag"},
		{sin: "odd error", complaint: "an error of no known kind: odd"},
		{sin: "torn", complaint: "behind the label"},
		{sin: "says done", violation: "e"}, // whichever is found first
		{sin: "says failed", violation: "a read found the value of a write that had failed"},
	} {
		t.Run(c.sin, func(t *testing.T) {
			t.Parallel()
			r, err := campaignOf(t, newFake(c.sin))
			if err != nil {
				t.Fatal(err)
			}
			if r.Puts == 0 || r.Gets == 0 || r.Deletes == 0 || r.Keys < 22 {
				t.Fatalf("too little was done: %+v", r.Counts)
			}
			if c.sin == "" {
				if !r.Passed() {
					t.Errorf("complaints %q, violation %v", r.Complaints, r.Violation)
				}
				return
			}
			complaints := strings.Join(r.Complaints, "\n")
			if c.complaint != "" && !strings.Contains(complaints, c.complaint) {
				t.Errorf("complaints %q, none with %q", complaints, c.complaint)
			}
			if c.violation != "" && (r.Violation == nil || !strings.Contains(string(r.Violation.Rule), c.violation)) {
				t.Errorf("violation %v, want one with %q", r.Violation, c.violation)
			}
		})
	}
}

// TestReplicasThatEnd: what the replicas themselves must not do ends a campaign.
func TestReplicasThatEnd(t *testing.T) {
	for _, sin := range []string{"ends", "doesn't serve"} {
		f := newFake(sin)
		if _, err := campaignOf(t, f); err == nil || !strings.Contains(err.Error(), "replica a ended") {
			t.Errorf("%s: got %v", sin, err)
		}
	}
}

// TestMischief: each kind is done, every replica serves afterwards, and a twin
// that isn't refused is complained about.
func TestMischief(t *testing.T) {
	f := newFake("twin")
	m := &mischief{record: newRecord(), cluster: f, random: newRandom(3, 0)}
	m.Silence, m.Down = time.Microsecond, time.Microsecond
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no pause is waited for
	for range 200 {
		if err := m.event(ctx); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(f.up) != "[true true true]" {
			t.Fatalf("after %+v: %v", m.tally, f.up)
		}
	}
	got := m.tally
	if got.One == 0 || got.Two == 0 || got.All == 0 || got.Starting == 0 || got.Stopped == 0 || got.Twins == 0 {
		t.Errorf("something was never done: %+v", got)
	}
	if least := got.One + 2*got.Two + 3*got.All + 2*got.Starting; got.Processes < least {
		t.Errorf("%d processes were killed, at least %d", got.Processes, least)
	}
	if m.record.mu.complained != got.Twins {
		t.Errorf("%d complaints about %d twins", m.record.mu.complained, got.Twins)
	}
}

func TestValues(t *testing.T) {
	for _, padding := range []int{0, 1, 7, 8, 1000} {
		v := valueOf("c1-7", padding)
		if label, err := labelOf(v); label != "c1-7" || err != nil {
			t.Errorf("padding %d: %q, %v", padding, label, err)
		}
		v[len(v)-1] ^= 1
		if _, err := labelOf(v); err == nil {
			t.Errorf("padding %d: a flipped bit was taken", padding)
		}
		if _, err := labelOf(valueOf("c1-7", padding)[:len(v)-1]); err == nil {
			t.Errorf("padding %d: a value that was cut was taken", padding)
		}
	}
	if _, err := labelOf([]byte("c1-7")); err == nil {
		t.Error("a value without a label was taken")
	}
}

// TestSurprising: only what fails without a reason is one.
func TestSurprising(t *testing.T) {
	for _, c := range []struct {
		what     string
		hasty    bool
		err      error
		outage   outage
		surprise uint64
	}{
		{what: "no outage", err: errNoQuorum, surprise: 1},
		{what: "a hasty one", hasty: true, err: errNoQuorum},
		{what: "closed", err: fmt.Errorf("x: %w", client.ErrClosed)},
		{what: "an outage", err: errNoQuorum, outage: outage{time.Second, 1 << 62}},
		{what: "an outage before", err: errNoQuorum, outage: outage{0, time.Second}},
		{what: "an outage long before", err: errNoQuorum, outage: outage{0, time.Millisecond}, surprise: 1},
		{what: "an outage later", err: errNoQuorum, outage: outage{time.Minute, 1 << 62}, surprise: 1},
	} {
		r := newRecord()
		if c.outage.to > 0 {
			r.mu.outages = append(r.mu.outages, c.outage)
		}
		op := &operation{call: grace + 100*time.Millisecond, hasty: c.hasty}
		r.surprisingLocked(op, grace+2*time.Second, c.err)
		if got := r.mu.counts.Surprising; got != c.surprise {
			t.Errorf("%s: %d, want %d", c.what, got, c.surprise)
		}
	}
}
