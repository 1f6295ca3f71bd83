package store

import (
	"strings"

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
		start = after + "\x00" // the least key that is greater
	}
	tables := s.tables()
	m := merger{prefix: prefix, state: stateCursor{state: s.state, over: &tables, prefix: prefix, start: start}}
	s.active.arrange()
	for _, t := range tables {
		if t == nil {
			continue
		}
		if t != s.active {
			t.sorted()
		}
		m.tables = append(m.tables, t.from(start))
	}
	highest := env.Position(0)
	for {
		key, e, ok, err := m.next()
		if err != nil || !ok {
			return highest, err
		}
		highest = max(highest, e.position)
		if e.record == nil {
			continue // it was removed, and that shows, too
		}
		if !each(key, recordTag(e.record), recordDeleted(e.record)) {
			return highest, nil
		}
	}
}

// A merger walks the tables and bbolt in order of the keys. For a key that is
// in several the first of tables has the newest record, and bbolt the oldest.
type merger struct {
	prefix abd.Key
	tables []*tableCursor
	state  stateCursor
}

// next returns the next key, false behind the last.
func (m *merger) next() (key abd.Key, e entry, ok bool, err error) {
	stored, ok, err := m.state.peek()
	if err != nil {
		return "", entry{}, false, err
	}
	if ok {
		key, e.record = stored.key, stored.record
	}
	// From the oldest to the newest, so that the newest wins.
	for i := len(m.tables) - 1; i >= 0; i-- {
		t := m.tables[i]
		k, there := t.peek()
		if there && strings.HasPrefix(string(k), string(m.prefix)) && (!ok || k <= key) {
			if e, err = t.entry(false); err == errApplied {
				e.record, err = m.state.state.load(k, false, m.state.over)
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
	if len(m.state.page) > 0 && m.state.page[0].key == key {
		m.state.page = m.state.page[1:]
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

// peek returns the head at the cursor, false at the end.
func (c *stateCursor) peek() (head, bool, error) {
	if len(c.page) == 0 && !c.end {
		page, more, err := c.state.heads(c.prefix, c.start, scanPage, c.over)
		if err != nil {
			return head{}, false, err
		}
		c.page, c.end = page, !more
		if len(page) > 0 {
			c.start = page[len(page)-1].key + "\x00"
		}
	}
	if len(c.page) == 0 {
		return head{}, false, nil
	}
	return c.page[0], true, nil
}
