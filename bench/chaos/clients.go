package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"atoll/client"
	"atoll/sim/history"
	"atoll/tags"
)

// clients drive operations at a cluster and record them.
type clients struct {
	Config
	record  *record
	cluster Cluster
	slots   [slots]atomic.Pointer[Library]
	workers sync.WaitGroup
	closers sync.WaitGroup
}

// start opens the libraries and starts the clients, which go on until ctx ends.
func (c *clients) start(ctx context.Context) error {
	for i := range c.slots {
		l, err := c.cluster.Open(ctx)
		if err != nil {
			return errors.Join(err, c.close())
		}
		c.slots[i].Store(&l)
	}
	for i := range c.slots {
		c.workers.Go(func() { c.renew(ctx, i) })
	}
	for i := range c.Clients {
		w := &worker{clients: c, name: "c" + strconv.Itoa(i), random: newRandom(c.Seed, uint64(i)+1), slot: i % slots}
		c.workers.Go(func() { w.run(ctx) })
	}
	return nil
}

// wait waits until the clients have ended.
func (c *clients) wait() { c.workers.Wait() }

// close closes the libraries.
func (c *clients) close() error {
	c.closers.Wait()
	var errs []error
	for i := range c.slots {
		if l := c.slots[i].Load(); l != nil {
			errs = append(errs, (*l).Close())
		}
	}
	return errors.Join(errs...)
}

// renew replaces a library by a new one from time to time, as programs that
// are restarted do: operations of the old one that are in flight are cut off.
func (c *clients) renew(ctx context.Context, slot int) {
	for pause(ctx, lifetime+time.Duration(slot)*lifetime/slots) {
		opening, cancel := context.WithTimeout(ctx, patience)
		l, err := c.cluster.Open(opening)
		cancel()
		if err != nil {
			continue // nobody is there; the old one will find them again
		}
		old := *c.slots[slot].Swap(&l)
		c.closers.Go(func() {
			if err := old.Close(); err != nil {
				c.record.complain("closing a client: %v", err)
			}
		})
	}
}

// worker is one client.
type worker struct {
	*clients
	name   string
	random *rand.Rand
	slot   int
	count  int
}

func (w *worker) run(ctx context.Context) {
	for pause(ctx, time.Duration(w.random.Int64N(int64(w.Pause)))) {
		op, hasty := w.choose()
		o := w.record.began(op, hasty)
		within := patience
		if hasty {
			within = max(time.Microsecond, time.Duration(w.random.Int64N(int64(haste))))
		}
		// Not ctx: the last operations may end.
		scope, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		w.do(scope, *w.slots[w.slot].Load(), o)
		cancel()
	}
}

// oncePrefix begins the keys that are written once.
const oncePrefix = "once/"

// choose draws the next operation.
func (w *worker) choose() (op history.Operation, hasty bool) {
	op = history.Operation{Client: w.name, Kind: history.Read}
	kind := w.random.Float64()
	switch where := w.random.Float64(); {
	case where < 0.40:
		op.Key = "hot/" + strconv.Itoa(w.random.IntN(w.Hot))
	case where < 0.95:
		op.Key = "many/" + strconv.Itoa(w.random.IntN(w.Many))
	default:
		op.Key, kind = fmt.Sprintf("%s%s-%d", oncePrefix, w.name, w.count), 0
	}
	switch {
	case kind < 0.45:
		op.Kind, op.Value = history.Write, fmt.Sprintf("%s-%d", w.name, w.count)
		w.count++
	case kind < 0.53:
		op.Kind = history.Delete
	}
	return op, w.random.Float64() < hastily
}

// do does an operation and records what came of it.
func (w *worker) do(ctx context.Context, l Library, o *operation) {
	var tag tags.Tag
	var err error
	switch o.Kind {
	case history.Read:
		w.record.read(ctx, l, o)
		return
	case history.Write:
		tag, err = l.Put(ctx, o.Key, valueOf(o.Value, w.padding()))
	case history.Delete:
		tag, err = l.Delete(ctx, o.Key)
	}
	if err == nil {
		w.record.done(o, tag, "")
		return
	}
	unknown, ok := errors.AsType[*client.UnknownError](err)
	if !ok {
		w.record.failed(o, err)
		return
	}
	w.record.unknown(o, err)
	if w.random.Float64() < resumed {
		w.resume(o, unknown)
	}
}

func (w *worker) padding() int {
	if w.random.Float64() < large {
		return w.random.IntN(largeMost)
	}
	return w.random.IntN(paddingMost)
}

// resume tries an unknown operation again, as the same one, until it is done
// or the patience for it is over.
func (w *worker) resume(o *operation, unknown *client.UnknownError) {
	ctx, cancel := context.WithTimeout(context.Background(), resumeFor)
	defer cancel()
	for pause(ctx, retryPause) {
		attempt, cancel := context.WithTimeout(ctx, patience)
		tag, err := (*w.slots[w.slot].Load()).Resume(attempt, unknown.Operation)
		cancel()
		if err == nil {
			w.record.done(o, tag, "")
			w.record.resumed()
			return
		}
		if _, ok := errors.AsType[*client.UnknownError](err); !ok {
			w.record.complain("resuming %s of %s: an error of no known kind: %v", o.who(), o.Key, err)
			return
		}
	}
}

// read gets a key, records what came of it and reports whether it was done.
func (r *record) read(ctx context.Context, l Library, o *operation) bool {
	v, err := l.Get(ctx, o.Key)
	if errors.Is(err, client.ErrNotFound) {
		r.nothing(o)
		return true
	}
	if err != nil {
		r.failed(o, err)
		return false
	}
	label, err := labelOf(v.Bytes)
	if err != nil {
		r.failed(o, fmt.Errorf("%s has %w", o.Key, err))
		return true
	}
	r.done(o, v.Tag, label)
	return true
}

// pause waits, and reports whether ctx hasn't ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}

// newRandom returns the source of choices of a client, or, with 0, of mischief.
func newRandom(seed, who uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, who)) }
