package store

import (
	"bytes"
	"strings"

	"go.etcd.io/bbolt"

	"atoll/abd"
	"atoll/env"
	"atoll/tags"
)

// Scan calls each with the keys that begin with prefix and come after the key
// after, in order, tombstones included, until each returns false. It returns
// the highest position of what it passed on or found removed. No transaction
// is open while each runs, so it may call Load.
func (s *Store) Scan(prefix, after abd.Key, each func(key abd.Key, tag tags.Tag, deleted bool) bool) (env.Position, error) {
	start := max(prefix, after)
	if after >= prefix && after != "" {
		start = behind(after)
	}
	tables := s.tables()
	m := s.merger(prefix, start, &tables, &stateCursor{state: s.state, over: &tables, prefix: prefix, start: start})
	m.applied = func(key abd.Key) ([]byte, error) { return s.state.load(key, false, &tables) }
	return m.each(func(key abd.Key, e entry) bool { return each(key, recordTag(e.record), recordDeleted(e.record)) })
}

// Walk is Scan behind a key for those who look at many records, and want the
// values of some: it costs a fraction. But a transaction is open while each
// runs, so each must not use the store, and key and value are good until it
// returns. value returns a *DamageError that wraps abd.ErrDamaged if nothing but
// the value can't be trusted.
func (s *Store) Walk(after abd.Key, each func(key abd.Key, tag tags.Tag, deleted bool, value func() ([]byte, error)) bool) (highest env.Position, err error) {
	start := abd.Key("")
	if after != "" {
		start = behind(after)
	}
	for {
		w := walk{Store: s, each: each}
		err = w.run(start)
		highest = max(highest, w.highest)
		if err != errApplied {
			return highest, err
		}
		start = w.rest // bbolt has them, in a later transaction
	}
}

// walk is a Walk in one transaction.
type walk struct {
	*Store
	each    func(key abd.Key, tag tags.Tag, deleted bool, value func() ([]byte, error)) bool
	key     abd.Key
	entry   entry
	highest env.Position
	outside bool    // of this package
	rest    abd.Key // with errApplied: where to go on
}

func (w *walk) run(start abd.Key) error {
	w.rest = start
	tables := w.tables()
	value := w.value
	return w.state.view(start, &w.outside, func(records *bbolt.Bucket) (err error) {
		m := w.merger("", start, &tables, &liveCursor{state: w.state, over: &tables, cursor: records.Cursor(), start: start})
		m.withValue = true
		w.highest, err = m.each(func(key abd.Key, e entry) bool {
			w.key, w.entry = key, e
			w.outside = true
			more := w.each(key, recordTag(e.record), recordDeleted(e.record), value)
			w.outside = false
			return more
		})
		if err == errApplied && w.key != "" {
			w.rest = behind(w.key) // a copy
		}
		return err
	})
}

// value returns the value of the record that each was called with.
func (w *walk) value() ([]byte, error) {
	w.outside = false
	defer func() { w.outside = true }()
	if path := w.fileOf(w.entry); path != "" {
		if reason := checkValue(w.entry.record); reason != "" {
			return nil, damagedRecord(path, keyBytes(w.key), reason)
		}
	}
	return w.entry.record[recordHead:], nil
}

// fileOf returns where an entry was read from without a look at its value, "" if
// nowhere.
func (s *Store) fileOf(e entry) string {
	switch {
	case e.filed:
		return s.journal.dir
	case e.position == 0:
		return s.state.path
	}
	return ""
}

// behind returns the least key that is greater.
func behind(key abd.Key) abd.Key { return key + "\x00" }

// A merger walks the tables and bbolt in order of the keys. For a key that is
// in several the first of tables has the newest record, and bbolt the oldest.
type merger struct {
	prefix abd.Key
	tables []*tableCursor
	state  source
	// withValue: records that were loaded are read whole.
	withValue bool
	// applied returns a record that was loaded and is in bbolt since. Without
	// it, that ends the walk with errApplied.
	applied func(abd.Key) ([]byte, error)
}

// A source walks what is in bbolt.
type source interface {
	// peek returns the head at the cursor, false at the end. The record may be
	// the whole one.
	peek() (head, bool, error)
	// next moves on. peek has returned true.
	next()
}

// merger returns one that begins with the first key that isn't before start.
func (s *Store) merger(prefix, start abd.Key, tables *overrides, state source) *merger {
	m := &merger{prefix: prefix, state: state}
	s.active.arrange()
	for _, t := range tables {
		if t == nil {
			continue
		}
		if t != s.active {
			t.sorted()
		}
		if c := t.from(start); len(c.runs) > 0 {
			m.tables = append(m.tables, c)
		}
	}
	return m
}

// each visits what is left, until visit returns false, but for what was removed.
// It returns the highest position, of what was removed, too: that shows.
func (m *merger) each(visit func(abd.Key, entry) bool) (highest env.Position, err error) {
	for {
		key, e, ok, err := m.next()
		if err != nil || !ok {
			return highest, err
		}
		highest = max(highest, e.position)
		if e.record != nil && !visit(key, e) {
			return highest, nil
		}
	}
}

// next returns the next key, false behind the last.
func (m *merger) next() (key abd.Key, e entry, ok bool, err error) {
	stored, inState, err := m.state.peek()
	if err != nil {
		return "", entry{}, false, err
	}
	if ok = inState; ok {
		key, e.record = stored.key, stored.record
	}
	// From the oldest to the newest, so that the newest wins.
	for i := len(m.tables) - 1; i >= 0; i-- {
		t := m.tables[i]
		k, there := t.peek()
		if there && strings.HasPrefix(string(k), string(m.prefix)) && (!ok || k <= key) {
			if e, err = t.entry(m.withValue); err == errApplied && m.applied != nil {
				e.record, err = m.applied(k)
			}
			if err != nil {
				return "", entry{}, false, err
			}
			key, ok = k, true
		}
	}
	if !ok {
		return "", entry{}, false, nil
	}
	for i := range m.tables {
		if k, there := m.tables[i].peek(); there && k == key {
			m.tables[i].next()
		}
	}
	if inState && stored.key == key {
		m.state.next()
	}
	return key, e, true, nil
}

// stateCursor walks bbolt a page at a time.
type stateCursor struct {
	state         *state
	over          *overrides
	prefix, start abd.Key
	page          []head
	end           bool
}

func (c *stateCursor) peek() (head, bool, error) {
	if len(c.page) == 0 && !c.end {
		page, more, err := c.state.heads(c.prefix, c.start, scanPage, c.over)
		if err != nil {
			return head{}, false, err
		}
		c.page, c.end = page, !more
		if len(page) > 0 {
			c.start = behind(page[len(page)-1].key)
		}
	}
	if len(c.page) == 0 {
		return head{}, false, nil
	}
	return c.page[0], true, nil
}

func (c *stateCursor) next() { c.page = c.page[1:] }

// liveCursor walks bbolt in a transaction, whose memory its heads are. It holds
// each record against the one before, and leaves out damaged ones that the
// tables over have another record of.
type liveCursor struct {
	state  *state
	over   *overrides
	cursor *bbolt.Cursor
	start  abd.Key
	placed bool   // the cursor was
	last   []byte // the key that was met last
	at     head
	known  bool // at is where the cursor stands; without a record at the end
}

func (c *liveCursor) peek() (head, bool, error) {
	if !c.known {
		if err := c.move(); err != nil {
			return head{}, false, err
		}
		c.known = true
	}
	return c.at, c.at.record != nil, nil
}

func (c *liveCursor) next() { c.known = false }

// move finds the next record.
func (c *liveCursor) move() error {
	k, v, err := c.step()
	for ; k != nil && err == nil; k, v = c.cursor.Next() {
		reason := checkHead(k, v)
		inOrder := c.last == nil && bytes.Compare(k, keyBytes(c.start)) >= 0 || c.last != nil && bytes.Compare(k, c.last) > 0
		switch {
		case !inOrder:
			return damagedRecord(c.state.path, k, "it is out of order")
		case reason == "":
			c.at, c.last = head{key: keyIn(k), record: v}, k
			return nil
		case !c.over.have(k):
			return damagedRecord(c.state.path, k, reason)
		}
		c.last = k
	}
	c.at = head{}
	return err
}

// step moves bbolt's cursor, to the start at first.
func (c *liveCursor) step() (k, v []byte, err error) {
	if c.placed {
		k, v = c.cursor.Next()
		return k, v, nil
	}
	c.placed = true
	if len(c.start) > 0 {
		// The proof that nothing before the first was missed.
		if _, err := c.state.find(c.cursor, keyBytes(c.start), c.over); err != nil {
			return nil, nil, err
		}
	}
	k, v = c.cursor.Seek(keyBytes(c.start))
	return k, v, nil
}
