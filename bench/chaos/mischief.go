package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// mischief kills and stops replicas.
type mischief struct {
	Config
	record  *record
	cluster Cluster
	random  *rand.Rand
	tally   Tally
}

// Tally counts mischief.
type Tally struct {
	// One, Two and All count the times that so many replicas were killed at
	// once; Starting those in which one was killed while it started, and once
	// more after that. Processes is how many were killed altogether.
	One, Two, All, Starting, Processes int
	// Stopped counts the times that replicas were stopped for a while, and
	// Twins the second processes that were refused.
	Stopped, Twins int
	// SlowestStart is the longest that a replica took until it served.
	SlowestStart time.Duration
}

func (t Tally) kills() int { return t.One + t.Two + t.All + t.Starting }

// run does mischief until enough has been killed or ctx ends, and leaves all
// replicas running. An error says that it couldn't, which is a failure of the
// replicas as well.
func (m *mischief) run(ctx context.Context) error {
	for noted := 0; m.tally.kills() < m.Kills && pause(ctx, m.upTo(m.Quiet)); {
		if err := m.event(ctx); err != nil {
			return err
		}
		if n := m.tally.kills(); n >= noted+noteEvery {
			m.Note("%d of %d kills", n, m.Kills)
			noted = n
		}
	}
	return nil
}

func (m *mischief) upTo(d time.Duration) time.Duration {
	return time.Duration(m.random.Int64N(int64(d)))
}

func (m *mischief) event(ctx context.Context) error {
	for i := range m.cluster.Members() {
		if err := m.cluster.Ended(i); err != nil {
			return err
		}
	}
	switch dice := m.random.Float64(); {
	case dice < 0.36:
		m.tally.One++
		return m.kill(ctx, 1)
	case dice < 0.54:
		m.tally.Two++
		return m.kill(ctx, 2)
	case dice < 0.74:
		m.tally.All++
		return m.kill(ctx, m.cluster.Members())
	case dice < 0.86:
		m.tally.Starting++
		return m.killStarting(ctx)
	case dice < 0.93:
		m.tally.Stopped++
		return m.stop(ctx)
	default:
		m.tally.Twins++
		return m.twin(ctx)
	}
}

// some draws n replicas.
func (m *mischief) some(n int) []int { return m.random.Perm(m.cluster.Members())[:n] }

// without declares an outage if no quorum is left when n replicas aren't
// there.
func (m *mischief) without(n int) (over func()) {
	if left := m.cluster.Members() - n; left > m.cluster.Members()/2 {
		return func() {}
	}
	return m.record.outage()
}

// kill kills n replicas at once, and starts them again after a while.
func (m *mischief) kill(ctx context.Context, n int) error {
	victims := m.some(n)
	defer m.without(n)()
	m.killAtOnce(victims)
	return m.launch(ctx, victims)
}

func (m *mischief) killAtOnce(victims []int) {
	var all sync.WaitGroup
	for _, i := range victims {
		all.Go(func() { m.cluster.Kill(i) })
	}
	all.Wait()
	m.tally.Processes += len(victims)
}

// launch starts replicas, one some time after the other, and waits until all
// of them serve, even when the campaign is over.
func (m *mischief) launch(ctx context.Context, victims []int) error {
	var starting sync.WaitGroup
	errs := make([]error, len(victims))
	took := make([]time.Duration, len(victims))
	for at, i := range victims {
		pause(ctx, m.upTo(m.Down))
		begin := time.Now()
		serves, err := m.cluster.Begin(i)
		if err != nil {
			errs[at] = err
			break
		}
		starting.Go(func() {
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), startFor)
			defer cancel()
			errs[at] = serves(limited)
			took[at] = time.Since(begin)
		})
	}
	starting.Wait()
	m.tally.SlowestStart = max(m.tally.SlowestStart, slices.Max(took))
	return errors.Join(errs...)
}

// killStarting kills a replica, starts it, and kills it again before it serves
// or soon after: while it reads what it has, or its peers find it again.
func (m *mischief) killStarting(ctx context.Context) error {
	victims := m.some(1)
	defer m.without(1)()
	m.killAtOnce(victims)
	if _, err := m.cluster.Begin(victims[0]); err != nil {
		return err
	}
	pause(ctx, m.upTo(startingMost))
	m.killAtOnce(victims)
	return m.launch(ctx, victims)
}

// stop stops replicas where they are, for longer than connections bear it, and
// lets them go on with what they knew. Half of the times another one is killed
// meanwhile.
func (m *mischief) stop(ctx context.Context) error {
	order := m.some(m.cluster.Members())
	n := 1 + m.random.IntN(len(order))
	stopped := order[:n]
	var victims []int
	if m.random.IntN(2) == 0 && n < len(order) {
		victims = order[n : n+1]
	}
	defer m.without(n + len(victims))()
	for _, i := range stopped {
		if err := m.cluster.Pause(i); err != nil {
			return err
		}
	}
	pause(ctx, m.Silence/2)
	m.killAtOnce(victims)
	var err error
	if len(victims) > 0 {
		err = m.launch(ctx, victims)
	}
	pause(ctx, m.Silence/2)
	for _, i := range stopped {
		err = errors.Join(err, m.cluster.Resume(i))
	}
	return err
}

// twin starts a second process on the folder of a running replica.
func (m *mischief) twin(ctx context.Context) error {
	i := m.some(1)[0]
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), startFor)
	defer cancel()
	switch err := m.cluster.Twin(limited, i); {
	case err == nil:
		m.record.complain("a second process on the folder of %s ended without an error", m.cluster.Name(i))
	case !errors.Is(err, ErrTwinRefused):
		m.record.complain("a second process on the folder of %s wasn't refused as it must be: %v", m.cluster.Name(i), err)
	}
	return nil
}
