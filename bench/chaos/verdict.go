package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"atoll/sim/history"
)

// Result is what a campaign came to.
type Result struct {
	Tally
	Counts
	Took time.Duration
	// Keys is how many were touched. Of those that were written once,
	// OnceAcked writes were acknowledged, and OnceUnknown not known to have
	// taken effect; OnceThere of the latter had.
	Keys, OnceAcked, OnceUnknown, OnceThere int
	// Complaints are the first of what went wrong, and Complained is how many
	// there were. Violation is the oracle's, and not among them.
	Complaints []string
	Complained int
	Violation  *history.Violation
	// History is all that the clients saw.
	History history.History
}

// Passed reports whether nothing went wrong.
func (r *Result) Passed() bool { return r.Complained == 0 && r.Violation == nil }

// Run runs a campaign on a cluster whose replicas all serve, and judges it. The
// error says that there is no judgement, or that replicas ended or didn't
// serve though they should: then the result is what was seen until then.
func Run(ctx context.Context, cfg Config, cluster Cluster) (*Result, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &clients{Config: cfg, record: newRecord(), cluster: cluster}
	m := &mischief{Config: cfg, record: c.record, cluster: cluster, random: newRandom(cfg.Seed, 0)}
	working, stop := context.WithCancel(ctx)
	defer stop()
	if err := c.start(working); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, cfg.Limit)
	err := m.run(limited)
	cancel()
	stop()
	c.wait()
	if err == nil {
		err = c.finish(ctx, m)
	}
	r := c.record.result()
	r.Tally = m.tally
	if err := errors.Join(err, c.close()); err != nil {
		return r, err
	}
	cfg.Note("judging %d operations", len(r.History))
	if r.Violation, err = history.Check(r.History); err != nil {
		return r, err
	}
	r.judgeOnce()
	return r, ctx.Err()
}

// finish kills all replicas once more, starts them, and reads every key that
// was ever touched.
func (c *clients) finish(ctx context.Context, m *mischief) error {
	if err := m.kill(ctx, c.cluster.Members()); err != nil {
		return err
	}
	last, err := c.openPatiently(ctx)
	if err != nil {
		return err
	}
	keys := c.record.keys()
	c.Note("reading all %d keys", len(keys))
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	queue := make(chan string)
	var readers sync.WaitGroup
	for range c.Clients {
		readers.Go(func() {
			for key := range queue {
				c.readPatiently(ctx, last, key)
			}
		})
	}
	for _, key := range keys {
		queue <- key
	}
	close(queue)
	readers.Wait()
	return last.Close()
}

func (c *clients) openPatiently(ctx context.Context) (Library, error) {
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	for {
		l, err := c.cluster.Open(ctx)
		if err == nil || !pause(ctx, retryPause) {
			return l, err
		}
	}
}

// readPatiently reads a key until it is done, or complains.
func (c *clients) readPatiently(ctx context.Context, l Library, key string) {
	for pause(ctx, 0) {
		scope, cancel := context.WithTimeout(ctx, patience)
		done := c.record.read(scope, l, c.record.began(history.Operation{Client: lastReader, Key: key, Kind: history.Read}, false))
		cancel()
		if done {
			return
		}
		pause(ctx, retryPause)
	}
	c.record.complain("%s can't be read, %v after the last mischief", key, settleFor)
}

// lastReader is the client that reads everything at the end.
const lastReader = "last"

// keys returns all that were touched, in order.
func (r *record) keys() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.mu.keys))
}

func (r *record) result() *Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Result{
		Counts: r.mu.counts, Took: time.Since(r.begin), Keys: len(r.mu.keys),
		Complaints: r.mu.complaints, Complained: r.mu.complained, History: r.mu.recorder.History(),
	}
}

// judgeOnce looks at the keys that were written once. The oracle has judged
// them as well; this says it in a way that needs no oracle.
func (r *Result) judgeOnce() {
	found := make(map[string]string)
	for _, op := range r.History {
		if op.Client == lastReader && op.Found {
			found[op.Key] = op.Value
		}
	}
	for _, op := range r.History {
		if op.Kind != history.Write || !strings.HasPrefix(op.Key, oncePrefix) {
			continue
		}
		label, there := found[op.Key]
		switch op.Outcome {
		case history.OK:
			r.OnceAcked++
			if label != op.Value {
				r.complain(fmt.Sprintf("%s has %q at the end, and was acknowledged to have %q", op.Key, label, op.Value))
			}
		case history.Unknown:
			r.OnceUnknown++
			if there {
				r.OnceThere++
			}
		case history.Failed:
			if there {
				r.complain(fmt.Sprintf("%s has %q at the end, and its write had definitely failed", op.Key, label))
			}
		}
	}
}

func (r *Result) complain(text string) {
	r.Complained++
	if len(r.Complaints) < complaintsKept {
		r.Complaints = append(r.Complaints, text)
	}
}
