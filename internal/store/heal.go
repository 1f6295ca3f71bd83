package store

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"

	"atoll/abd"
	"atoll/env"
)

// Heal puts r in the place of a record, whether that is damaged or not; the
// zero Record removes it. It returns the position behind it. See replica.Store
// for the errors, and for what whoever removes a record must know.
func (s *Store) Heal(key abd.Key, r abd.Record) (_ env.Position, err error) {
	defer func() { s.healed = s.healed || err == nil }()
	if !r.Tag.IsZero() {
		return s.append(key, r, (*Store).replaced)
	}
	if r.Deleted || len(r.Value) > 0 {
		panic("store: a record without a tag is that of a register that was never written")
	}
	if err := key.Check(); err != nil {
		return 0, err
	}
	size := int64(2 + len(key) + blobValue)
	if err := s.admit(size); err != nil {
		return 0, err
	}
	before, err := s.replaced(key)
	if err == nil && before == absent {
		// Unless it can be proved, the record may be there under another key,
		// and the key would be as damaged as before.
		_, _, err = s.lookup(key, false)
	}
	if err != nil {
		return 0, err
	}
	s.group = appendSpecial(s.group, string(key), encodeBlob(kindRemoved, string(key), nil))
	s.appended++
	hash := s.active.hash(key)
	s.active.put(key, hash, 0, s.appended, before)
	s.stored(key, hash, size, before, absent)
	return s.appended, nil
}

// replaced returns what a healed record replaces.
func (s *Store) replaced(key abd.Key) (presence, error) {
	tables := s.tables()
	if e, ok, err := tables.newest(key, s.active.hash(key), false); ok || err != nil {
		return presenceOf(e.record), err
	}
	return s.state.presence(key)
}

// overrides are the tables in front of bbolt, nil or the newer one first. An
// entry there takes the place of what bbolt has under its key, damaged or not.
type overrides [2]*table

// newest returns the newest entry of a key whose hash is known; see entryOf.
func (o *overrides) newest(key abd.Key, hash uint32, withValue bool) (entry, bool, error) {
	for _, t := range o {
		if t == nil {
			continue
		}
		if e, ok, err := t.get(key, hash, withValue); ok || err != nil && err != errApplied {
			return e, ok, err
		}
	}
	return entry{}, false, nil
}

// have reports whether there is an entry of a key.
func (o *overrides) have(key []byte) bool {
	for _, t := range o {
		if t != nil {
			if t.find(keyIn(key), t.hash(keyIn(key))).there {
				return true
			}
		}
	}
	return false
}

// enclosed proves where a key belongs in bbolt: that it is between two
// records which are sound, and in order with all that stand in between. Then
// it is nowhere else. What stands in between is damaged, and may be the record
// of key, unless it is overridden, or over is nil, which allows it. k and v
// are what c.Seek(key) returned.
//
// If some other key's bytes are damaged, a binary search may turn the wrong
// way there. Then it ends beside that very key, or where the keys on both
// sides don't enclose the one that was searched for.
func (s *state) enclosed(c *bbolt.Cursor, key, k, v []byte, over *overrides) error {
	doubtful := func(k []byte) bool { return over != nil && !over.have(k) }
	moved := false
	last := key
	if k != nil && bytes.Equal(k, key) {
		moved = true
		k, v = c.Next()
	}
	for ; k != nil; k, v = c.Next() {
		if bytes.Compare(k, last) <= 0 {
			return s.outOfOrder(key, k, v)
		}
		reason := checkHead(k, v)
		if reason == "" {
			break
		}
		if doubtful(k) {
			return s.besideDamage(key, k, reason)
		}
		moved, last = true, k
	}
	switch {
	case moved:
		if k, _ = c.Seek(key); k == nil {
			k, v = c.Last()
		} else {
			k, v = c.Prev()
		}
	case k == nil:
		k, v = c.Last()
	default:
		k, v = c.Prev()
	}
	for last = key; k != nil; k, v = c.Prev() {
		if bytes.Compare(k, last) >= 0 {
			return s.outOfOrder(key, k, v)
		}
		reason := checkHead(k, v)
		if reason == "" {
			break
		}
		if doubtful(k) {
			return s.besideDamage(key, k, reason)
		}
		last = k
	}
	return nil
}

// besideDamage is the error of a key whose absence a damaged neighbour puts
// in doubt.
func (s *state) besideDamage(key, neighbour []byte, reason string) error {
	return damagedRecord(s.path, neighbour, fmt.Sprintf("%s; so key %q can't be proved absent", reason, key))
}

// outOfOrder is the error of a key that a search ended in the wrong place
// for. If the record found there is sound, another one, nobody knows which,
// has led the search astray.
func (s *state) outOfOrder(key, k, v []byte) error {
	if reason := checkHead(k, v); reason != "" {
		return s.besideDamage(key, k, reason+", and it is out of order")
	}
	return damagedRecord(s.path, key, fmt.Sprintf("it isn't found where it belongs, beside key %q", k))
}

// base returns what bbolt has under a key, as far as the counts go: what a
// new record of the key takes the place of. Unlike find it takes damage, as
// long as it is certain where the key belongs.
func (s *state) base(c *bbolt.Cursor, key []byte) (presence, error) {
	k, v := c.Seek(key)
	found := k != nil && bytes.Equal(k, key)
	if found && checkHead(k, v) == "" {
		return presenceOf(v), nil
	}
	if err := s.enclosed(c, key, k, v, nil); err != nil || !found {
		return absent, err
	}
	return presenceOfDamaged(k, v), nil
}

// presenceOfDamaged tells whether a damaged record counts as a key or as a
// tombstone. If a single byte is damaged the answer is right: either it is
// the flag's, and then the checksum fits when the flag is put right, or the
// flag is what it was. If more is damaged the guess may be wrong by one
// between the two counts, whose sum stays right; Open counts anew.
func presenceOfDamaged(key, record []byte) presence {
	if len(record) < recordHead {
		return present
	}
	head := bytes.Clone(record[:recordHead])
	for _, flags := range []byte{0, flagDeleted} {
		head[1] = flags
		if headSum(key, head) == headSumOf(head) {
			return presenceOf(head)
		}
	}
	return presenceOf(record)
}
