package store

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"atoll/abd"
	"atoll/env"
	"atoll/replica"
)

var _ replica.Store = (*Store)(nil)

// A Store is an open folder. Load, Store, Scan and Cut belong to one
// goroutine, the one that steps. Commit may run on another at the same time,
// and Usage, Stats, Committed and Applied on any.
type Store struct {
	cfg     Config
	log     *slog.Logger
	lock    *os.File
	state   *state
	journal *journal

	// Of the goroutine that steps.
	active   *table
	appended env.Position // behind the last record
	group    []byte       // frameHead free bytes, then the records since Cut
	records  uint32       // how many those are
	known    struct {     // the key that was last looked up
		key      abd.Key
		hash     uint32
		presence presence
		// at is where it is in the active table, if placed.
		at     spot
		placed bool
	}
	ahead struct { // the keys that are expected
		hashes [expectKeys]uint32
		sum    uint32 // of what was touched; nobody needs it
	}
	memo  memo
	cells map[string]cell

	// healed: a record was, so that the table should be applied soon. Until
	// then bbolt's file has the damage in it.
	healed bool
	// replayed is how many records of the journal Open has read that bbolt
	// didn't have.
	replayed int64
	// suspects are the keys whose records were damaged at Open.
	suspects []abd.Key

	// frozen is the table being applied, nil if none.
	frozen atomic.Pointer[table]
	// summary is what bbolt holds. Of the apply.
	summary summary

	committed, applied         atomic.Uint64 // positions
	keys, tombstones           atomic.Int64
	stateBytes                 atomic.Int64
	activeBytes, journaled     atomic.Int64 // of the active table
	pending                    atomic.Int64 // bytes that wait for Commit
	commits, recorded, applies atomic.Int64
	throttled                  atomic.Int64 // nanoseconds
	waits                      atomic.Pointer[string]

	// cut is what Commit takes: every closed group.
	cut struct {
		sync.Mutex
		bytes   []byte // frameHead free bytes, then the records
		records uint32
		end     env.Position
		counts  counts // with those records
	}
	// commit is held by Commit.
	commit sync.Mutex
	// spent is the buffer that the last Commit has written. Of Commit.
	spent []byte

	failOnce sync.Once
	failure  error         // set before failing is closed
	failing  chan struct{} // closed by the first error that is final
	wake     chan struct{} // of the apply
	closing  chan struct{}
	closed   sync.Once
	tasks    sync.WaitGroup
}

// fail makes err the end of this store. Only the first one counts.
func (s *Store) fail(err error) {
	s.failOnce.Do(func() {
		s.failure = err
		close(s.failing)
		s.log.Error("the store has failed, and takes nothing more", "dir", s.cfg.Dir, "err", err)
	})
}

// usable returns why the store can't be written any more.
func (s *Store) usable() error {
	// One select of both would cost more than all else that Store looks at.
	select {
	case <-s.failing:
		return s.failure
	default:
	}
	select {
	case <-s.closing:
		return ErrClosed
	default:
		return nil
	}
}

// Load returns the record of a key, the zero Record if there is none, and its
// position, 0 if nothing needs to wait for it. The value must not be changed.
// A record that can't be trusted is a *DamageError that wraps abd.ErrDamaged.
func (s *Store) Load(key abd.Key, withValue bool) (abd.Record, env.Position, error) {
	record, position, err := s.lookup(key, withValue)
	if err != nil {
		return abd.Record{}, 0, err
	}
	if record == nil {
		return abd.Record{}, position, nil // above 0 if it was removed
	}
	return decodeRecord(record, withValue), position, nil
}

// lookup returns a key's encoded record, nil if there is none.
func (s *Store) lookup(key abd.Key, withValue bool) ([]byte, env.Position, error) {
	hash, tables := s.active.hash(key), s.tables()
	at := s.active.find(key, hash)
	e, ok, err := s.active.getAt(at, withValue)
	if older := tables[1]; !ok && older != nil && (err == nil || err == errApplied) {
		if e, ok, err = older.get(key, hash, withValue); err == errApplied {
			err = nil
		}
	}
	if err != nil {
		return nil, 0, err
	}
	if !ok {
		switch {
		case len(key) == 0:
			return nil, 0, nil
		case s.state.absent(key):
			ok = true // nothing to remember: it is found out again as fast
		case !withValue:
			e.record, ok = s.memo.get(key, hash)
		}
	}
	if !ok {
		record, err := s.state.load(key, withValue, &tables)
		if err != nil {
			return nil, 0, err
		}
		s.memo.put(key, hash, record)
		e.record = record
	}
	if e.filed && withValue {
		if reason := checkValue(e.record); reason != "" {
			return nil, 0, damagedRecord(s.journal.dir, keyBytes(key), reason)
		}
	}
	s.known.key, s.known.hash, s.known.presence = key, hash, presenceOf(e.record)
	s.known.at, s.known.placed = at, true
	return e.record, e.position, nil
}

// Expect implements replica.Store: it brings the places of the keys into the
// processor's cache, for many at a time. One by one, each would be waited for.
func (s *Store) Expect(keys iter.Seq[abd.Key]) {
	hashes := s.ahead.hashes[:0]
	for key := range keys {
		if len(hashes) == expectKeys {
			break
		}
		hash := s.active.hash(key)
		hashes = append(hashes, hash)
		s.ahead.sum += uint32(len(s.memo.heads[hash%memoHeads].key))
	}
	for _, t := range s.tables() {
		if t != nil {
			s.ahead.sum += t.touch(hashes)
		}
	}
}

// tables returns what isn't in bbolt yet. It must be called before bbolt is
// looked at: a table leaves s.frozen after it is all in bbolt.
func (s *Store) tables() overrides { return overrides{s.active, s.frozen.Load()} }

// Store appends a record and returns the position behind it. It copies what
// it keeps. abd.ErrFull (wrapped) means that there is no space, or that too
// much waits for Commit; the key is unchanged then.
func (s *Store) Store(key abd.Key, r abd.Record) (env.Position, error) {
	if r.Tag.IsZero() {
		panic("store: a record without a tag is that of a register that was never written")
	}
	return s.append(key, r, (*Store).expected)
}

// expected returns what a record is stored in the place of.
func (s *Store) expected(key abd.Key) (presence, error) {
	if s.known.key != key {
		if _, _, err := s.lookup(key, false); err != nil {
			return absent, err
		}
	}
	return s.known.presence, nil
}

// append appends a record in the place of what before says.
func (s *Store) append(key abd.Key, r abd.Record, before func(*Store, abd.Key) (presence, error)) (env.Position, error) {
	if err := key.Check(); err != nil {
		return 0, err
	}
	if err := abd.CheckValue(r.Value, abd.LargestMaxValue); err != nil {
		return 0, err
	}
	size := int64(2 + len(key) + recordHead + len(r.Value))
	if err := s.admit(size); err != nil {
		return 0, err
	}
	old, err := before(s, key)
	if err != nil {
		return 0, err
	}
	s.appended++
	at, hash := s.place(key)
	record := s.active.putAt(at, key, hash, recordHead+len(r.Value), s.appended, old)
	fillRecord(record, key, r)
	s.group = appendEntry(s.group, key, record)
	s.stored(key, hash, size, old, presenceOf(record))
	return s.appended, nil
}

// place returns where a key is in the active table, and its hash.
func (s *Store) place(key abd.Key) (spot, uint32) {
	if s.known.placed && s.known.key == key {
		return s.known.at, s.known.hash
	}
	hash := s.active.hash(key)
	return s.active.find(key, hash), hash
}

// admit returns why an entry of so many bytes can't be appended.
func (s *Store) admit(size int64) error {
	if err := s.usable(); err != nil {
		return err
	}
	if s.journal.full.Load() {
		return fmt.Errorf("%s: the disk is nearly full: %w", s.cfg.Dir, abd.ErrFull)
	}
	if s.pending.Load()+size > maxPending {
		return fmt.Errorf("%s: %d bytes wait to be synced: %w", s.cfg.Dir, s.pending.Load(), abd.ErrFull)
	}
	return nil
}

// stored notes that a record was appended, or its removal: size bytes of the
// group, in the place of what the counts know as before.
func (s *Store) stored(key abd.Key, hash uint32, size int64, before, after presence) {
	s.count(size)
	s.recount(before, after)
	s.memo.forget(key, hash)
	s.known.key, s.known.hash, s.known.presence, s.known.placed = key, hash, after, false
}

// count counts an entry of so many bytes that was appended to the group.
func (s *Store) count(size int64) {
	s.records++
	s.pending.Add(size)
	s.activeBytes.Store(s.active.bytes)
	s.journaled.Add(size)
}

// recount moves a key from one count to another.
func (s *Store) recount(from, to presence) {
	if from == to {
		return
	}
	c := s.counted()
	from.count(&c.keys, &c.tombstones, -1)
	to.count(&c.keys, &c.tombstones, +1)
	s.setCounts(c)
}

// counted returns the counts, as the goroutine that steps has them.
func (s *Store) counted() counts { return counts{keys: s.keys.Load(), tombstones: s.tombstones.Load()} }

func (s *Store) setCounts(c counts) {
	s.keys.Store(c.keys)
	s.tombstones.Store(c.tombstones)
}

// Cut ends a group, whose records become durable together or not at all, and
// returns the position behind it.
func (s *Store) Cut() env.Position {
	if s.records > 0 {
		s.cut.Lock()
		if len(s.cut.bytes) == frameHead {
			s.cut.bytes, s.group = s.group, s.cut.bytes
		} else {
			s.cut.bytes = append(s.cut.bytes, s.group[frameHead:]...)
		}
		s.cut.records += s.records
		s.cut.end = s.appended
		s.cut.counts = s.counted()
		s.cut.Unlock()
		s.group, s.records = s.group[:frameHead], 0
	}
	s.freeze()
	return s.appended
}

// Commit makes every closed group durable, with one write and one sync, and
// returns the position that the journal is then durable up to. It may be
// delayed while the apply is behind, and while there is no space at all. An
// error is final: every later Commit returns it.
func (s *Store) Commit() (env.Position, error) {
	s.commit.Lock()
	defer s.commit.Unlock()
	if err := s.usable(); err != nil {
		return s.Committed(), err
	}
	s.throttle()

	fresh := s.spent
	if cap(fresh) < frameHead || cap(fresh) > keepBuffer {
		fresh = make([]byte, frameHead)
	}
	s.cut.Lock()
	b, records, end, counts := s.cut.bytes, s.cut.records, s.cut.end, s.cut.counts
	if records == 0 {
		s.cut.Unlock()
		return s.Committed(), nil
	}
	s.cut.bytes, s.cut.records = fresh[:frameHead], 0
	s.cut.Unlock()

	defer s.waitFor(&waitsForDisk)()
	if err := s.journal.append(b, s.Committed(), records, counts); err != nil {
		if !errors.Is(err, ErrClosed) {
			s.fail(err)
		}
		return s.Committed(), err
	}
	s.spent = b
	s.pending.Add(-int64(len(b) - frameHead))
	s.commits.Add(1)
	s.recorded.Add(int64(records))
	s.committed.Store(uint64(end))
	if s.frozen.Load() != nil {
		s.poke()
	}
	return end, nil
}

// Committed is the position up to which the journal is durable.
func (s *Store) Committed() env.Position { return env.Position(s.committed.Load()) }

// Applied is the position up to which bbolt holds every record.
func (s *Store) Applied() env.Position { return env.Position(s.applied.Load()) }

// Usage says what the store holds.
func (s *Store) Usage() replica.Usage {
	return replica.Usage{
		Keys:       s.keys.Load(),
		Tombstones: s.tombstones.Load(),
		Bytes:      s.stateBytes.Load() + s.journal.size.Load() + s.journal.ballast.taken.Load(),
	}
}

// Stats counts what a store has done since it was opened.
type Stats struct {
	Commits       int64         // that wrote something: syncs of the journal
	Records       int64         // made durable
	JournalBytes  int64         // written to the journal
	Applies       int64         // memory tables put into bbolt
	Throttled     time.Duration // by which Commit was delayed
	PendingBytes  int64         // that wait for Commit, now
	TableBytes    int64         // in the active memory table, now
	AppliedBehind int64         // records that are durable and not in bbolt, now
	Full          bool          // stores are refused for want of space, now
}

// Stats returns the counts.
func (s *Store) Stats() Stats {
	return Stats{
		Commits:       s.commits.Load(),
		Records:       s.recorded.Load(),
		JournalBytes:  s.journal.written.Load(),
		Applies:       s.applies.Load(),
		Throttled:     time.Duration(s.throttled.Load()),
		PendingBytes:  s.pending.Load(),
		TableBytes:    s.activeBytes.Load(),
		AppliedBehind: max(0, int64(s.committed.Load()-s.applied.Load())),
		Full:          s.journal.full.Load(),
	}
}

// What a Commit waits for.
var (
	waitsForDisk  = "the journal's write and sync"
	waitsForApply = stateName + " to take what the journal holds"
)

// Condition is what keeps a store from taking writes, at the moment.
type Condition struct {
	// Full is why Store returns abd.ErrFull, nil if it doesn't.
	Full error
	// Waits says what a Commit waits for that is on its way, for people; ""
	// if none is.
	Waits string
}

// Condition says how the store is.
func (s *Store) Condition() Condition {
	c := Condition{Full: s.journal.whyFull()}
	if waits := s.waits.Load(); waits != nil {
		c.Waits = *waits
	}
	return c
}

// waitFor notes what Commit waits for from now on, and returns the end of it.
func (s *Store) waitFor(what *string) (end func()) {
	s.waits.Store(what)
	return func() { s.waits.Store(nil) }
}

// Close releases the folder. What wasn't committed is lost. A Commit that is
// on its way ends first.
func (s *Store) Close() error {
	var err error
	s.closed.Do(func() {
		close(s.closing)
		s.journal.shutdown()
		s.commit.Lock()
		defer s.commit.Unlock()
		s.tasks.Wait()
		err = errors.Join(s.letGo(), s.journal.close(), s.state.close(), s.lock.Close())
	})
	return err
}

// letGo closes what the tables read.
func (s *Store) letGo() error {
	err := s.active.filed.letGo()
	if t := s.frozen.Load(); t != nil {
		err = errors.Join(err, t.filed.letGo())
	}
	return err
}
