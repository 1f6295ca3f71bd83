package store

import (
	"errors"
	"io/fs"
	"time"

	"go.etcd.io/bbolt"
)

// applyTables puts each frozen table into bbolt, until the store closes.
func (s *Store) applyTables() {
	for {
		select {
		case <-s.closing:
			return
		case <-s.wake:
		}
		t := s.frozen.Load()
		if t == nil || s.Committed() < t.last {
			// Nothing goes into bbolt before it is durable in the journal:
			// what Load finds there waits for nothing.
			continue
		}
		if err := s.applyTable(t); err != nil {
			if !errors.Is(err, ErrClosed) {
				s.fail(err)
			}
			return
		}
	}
}

// applyTable puts a table into bbolt and gives its journal segments back.
func (s *Store) applyTable(t *table) error {
	begin, done := time.Now(), 0
	t.sorted()
	var batch []appliedRecord
	for c, more := t.from(""), true; ; {
		var err error
		if batch, more, err = nextBatch(c, batch[:0]); err != nil {
			return err
		}
		m, cells := s.summary, map[string][]byte(nil)
		if !more {
			m.applied, cells = t.last, t.cells
		}
		if err := s.applyBatch(batch, cells, m); err != nil {
			return err
		}
		if !more {
			break
		}
		done += len(batch)
		if !s.pace(float64(done) / float64(t.count)) {
			return ErrClosed
		}
	}
	if size, err := s.state.size(); err == nil {
		s.stateBytes.Store(size)
	}
	// From here on Load finds the table's keys in bbolt; and only then may what
	// holds them in the journal be used again.
	s.frozen.Store(nil)
	if err := t.filed.letGo(); err != nil {
		s.log.Warn("closing journal segments failed", "err", err)
	}
	if err := s.journal.recycle(t.last); err != nil {
		return err
	}
	s.applies.Add(1)
	s.log.Debug("applied a table", "keys", t.count, "bytes", t.bytes, "took", time.Since(begin))
	close(t.applied)
	s.journal.look()
	return nil
}

// pace waits a little when the apply, of which a part is done, is ahead of the
// table that fills behind it. So its work is spread over the time that there
// is, and callers don't wait for the disk now and not at all then. It returns
// false when the store closes: the rest can be done after the next Open.
func (s *Store) pace(done float64) bool {
	for until := time.Now().Add(longestPause); ; {
		if s.usable() != nil {
			return false
		}
		if s.pressure() >= done*paceTarget || time.Now().After(until) {
			return true
		}
		select {
		case <-s.closing:
		case <-s.failing:
		case <-time.After(pauseStep):
		}
	}
}

// nextBatch appends applyBytes of a table to batch, in order of the keys: each page
// of bbolt is rewritten once a table, and not once a batch.
func nextBatch(c *tableCursor, batch []appliedRecord) (_ []appliedRecord, more bool, err error) {
	size := 0
	for {
		key, ok := c.peek()
		if !ok || size >= applyBytes {
			return batch, ok, nil
		}
		e, err := c.entry(true)
		if err != nil {
			return nil, false, err
		}
		batch = append(batch, appliedRecord{key: key, record: e.record, before: e.before})
		size += len(key) + len(e.record)
		c.next()
	}
}

// applyBatch writes a batch, with the last one the table's cells, and counts
// what it changes, again and again while there is no space.
//
// The counts are those of what is in the file, in the same transaction, so
// they are right after a crash between two batches as well.
func (s *Store) applyBatch(batch []appliedRecord, cells map[string][]byte, m summary) error {
	if err := s.state.know(batch); err != nil {
		return fatalDamage(err)
	}
	fill, err := s.state.fill(batch)
	if err != nil {
		return fatalDamage(err)
	}
	for _, r := range batch {
		r.before.count(&m.keys, &m.tombstones, -1)
		presenceOf(r.record).count(&m.keys, &m.tombstones, +1)
	}
	for {
		err := s.state.apply(batch, cells, m, fill)
		if err == nil {
			s.summary = m
			s.applied.Store(uint64(m.applied))
			return nil
		}
		// Only a write that found no space is tried again, never a sync.
		if path := (*fs.PathError)(nil); !noSpace(err) || !errors.As(err, &path) || path.Op != "write" {
			return err
		}
		s.journal.setFull(true, err)
		if s.journal.ballast.release() {
			continue
		}
		select {
		case <-s.closing:
			return ErrClosed
		case <-time.After(spaceRetry):
		}
	}
}

// fatalDamage turns the damage of one record into that of the file: it isn't
// certain where a record belongs that was acknowledged.
func fatalDamage(err error) error {
	var d *DamageError
	if errors.As(err, &d) && d.OneRecord {
		return damagedFile(d.File, d.Offset, "record of key %q: %s", string(d.Key), d.Reason)
	}
	return err
}

// freeze makes the active table the one to be applied, if the one before is
// done and this one is full, or heals something, or is what a start has loaded
// and not sorted. The stepping goroutine calls it between two groups.
func (s *Store) freeze() {
	full := s.pressure() >= 1 || s.healed || s.active.count-s.active.arranged > runKeys
	if !full || s.frozen.Load() != nil || s.active.empty() {
		return
	}
	s.healed = false
	s.active.seal(s.appended)
	s.frozen.Store(s.active)
	s.active = newTable(s.active.seed)
	s.known.placed = false
	s.activeBytes.Store(0)
	s.journaled.Store(0)
	s.poke()
}

// poke makes applyTables look.
func (s *Store) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// pressure says how full the active table, and its part of the journal, are.
func (s *Store) pressure() float64 {
	return max(
		float64(s.activeBytes.Load())/float64(s.cfg.TableBytes),
		float64(s.journaled.Load())/float64(s.cfg.JournalBytes/journalShare),
	)
}

// throttle slows Commit down while the apply is behind: a little at first,
// then altogether. It must not wait for a table whose records this very
// Commit is to make durable.
func (s *Store) throttle() {
	t := s.frozen.Load()
	p := s.pressure()
	if t == nil || p <= 1 || s.Committed() < t.last {
		return
	}
	defer s.waitFor(&waitsForApply)()
	begin := time.Now()
	if p >= pressureStop {
		select {
		case <-t.applied:
		case <-s.closing:
		case <-s.failing:
		}
	} else {
		delay := time.Duration((p - 1) / (pressureStop - 1) * float64(longestDelay))
		select {
		case <-t.applied:
		case <-s.closing:
		case <-s.failing:
		case <-time.After(delay):
		}
	}
	s.throttled.Add(int64(time.Since(begin)))
}

// load fills the active table, and the cells, with what the journal has and
// bbolt hasn't.
func (s *Store) load(m summary) (*replay, error) {
	t := s.active
	r, err := s.journal.read(m.applied, func(name []byte) uint32 { return t.hash(keyIn(name)) })
	if err != nil {
		return nil, err
	}
	loadTable(t, r.segments, r.loaders)
	for i := range r.segments {
		for _, c := range r.segments[i].cells {
			s.cells[string(c.name)] = cellOf(c.bytes, c.position)
		}
		r.segments[i].cells, r.segments[i].filed = nil, nil // the table has it
	}
	for _, l := range r.loaders {
		s.journaled.Add(l.bytes)
	}
	r.loaders = nil
	s.replayed = int64(r.end - m.applied)
	s.appended = r.end
	s.committed.Store(uint64(r.end))
	s.activeBytes.Store(t.bytes)
	return r, nil
}

// countLoaded returns the counts with all that was loaded, given those of bbolt.
// The journal's last frame says it, unless its format is older, or records of bbolt
// are damaged: one whose key is damaged isn't replaced any more by what was stored
// under that key, and counts beside it. Then bbolt is searched for each key, once,
// and in order, which takes a fraction.
func (s *Store) countLoaded(r *replay, inState counts, damaged []error) (c counts, err error) {
	t := s.active
	switch {
	case t.count == 0:
		return inState, nil
	case r.known && len(damaged) == 0:
		return r.counts, nil
	}
	t.arrange()
	c = inState
	err = s.state.view(t.keyOf(0), nil, func(records *bbolt.Bucket) error {
		cursor := records.Cursor()
		for walk := t.from(""); ; walk.next() {
			key, ok := walk.peek()
			if !ok {
				return nil
			}
			e, err := walk.entry(false)
			if err != nil {
				return err
			}
			before, err := s.state.base(cursor, keyBytes(key))
			if err != nil {
				return err
			}
			before.count(&c.keys, &c.tombstones, -1)
			presenceOf(e.record).count(&c.keys, &c.tombstones, +1)
		}
	})
	return c, fatalDamage(err)
}
