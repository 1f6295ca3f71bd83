package store

import (
	"bytes"
	"slices"

	"go.etcd.io/bbolt"

	"atoll/abd"
)

// Gap returns where a damaged record stands; see replica.Store. What is in the
// tables is sound, and so the damage is in bbolt. The sound neighbours are
// looked for there, too: those in the tables may be nearer, and then the gap is
// wider than it need be.
func (s *Store) Gap(key abd.Key) (after, to abd.Key, damaged []abd.Key, err error) {
	over := s.tables()
	if over.have(keyBytes(key)) {
		return "", "", nil, nil
	}
	err = s.state.view(key, nil, func(records *bbolt.Bucket) error {
		c := records.Cursor()
		k, v := c.Seek(keyBytes(key))
		if k == nil || !bytes.Equal(k, keyBytes(key)) || checkHead(k, v) == "" && checkValue(v) == "" {
			return nil // it was healed, and applied
		}
		damaged = append(damaged, key)
		note := func(k []byte) {
			if !over.have(k) {
				damaged = append(damaged, abd.Key(k))
			}
		}
		for k, v = c.Next(); k != nil && checkHead(k, v) != ""; k, v = c.Next() {
			note(k)
		}
		to = abd.Key(k)
		c.Seek(keyBytes(key))
		for k, v = c.Prev(); k != nil && checkHead(k, v) != ""; k, v = c.Prev() {
			note(k)
		}
		after = abd.Key(k)
		return nil
	})
	slices.Sort(damaged)
	return after, to, damaged, err
}
