package repair

import (
	"slices"
	"strings"

	"atoll/abd"
	"atoll/tags"
)

// collection is what a walk copies into an answer, up to the answer's limits.
type collection struct {
	replica *Replica
	limit   int  // of records
	skip    bool // leaves out records of which the value is damaged

	records Records
	taken   int // those that were left out included: reading one costs as much
	size    int // of keys and values
	last    []byte
	copies  copies
	failure error
}

// take takes a record. It returns false if the answer has no room for it, or it
// is damaged: then the walk ends before it.
func (c *collection) take(key abd.Key, tag tags.Tag, deleted bool, value func() ([]byte, error)) bool {
	if c.size >= MaxEntryBytes {
		c.records.More = true
		return false
	}
	v, err := value()
	if err != nil {
		c.replica.notice(err)
		if !c.skip {
			c.failure = err
			return false
		}
		c.taken++
		return true
	}
	n := len(c.records.Entries)
	if n > 0 && c.bytes()+len(key)+len(v)+entryOverhead > maxAnswer {
		c.records.More = true
		return false
	}
	if n == firstEntries {
		c.records.Entries = slices.Grow(c.records.Entries, c.limit-n) // it becomes a large one, most likely
	}
	c.taken++
	c.size += len(key) + len(v)
	record := abd.Record{Tag: tag, Deleted: deleted, Value: c.copies.value(v)}
	c.records.Entries = append(c.records.Entries, Entry{c.copies.key(key), record})
	return true
}

// bytes is about how large an answer with these records is.
func (c *collection) bytes() int { return c.size + len(c.records.Entries)*entryOverhead }

// firstEntries is how many entries an answer has before there is room for all.
const firstEntries = 128

// pass notes that the walk has gone beyond a key.
func (c *collection) pass(key abd.Key) { c.last = append(c.last[:0], key...) }

// end returns the records of a walk that has ended with err.
func (c *collection) end(err error) (Records, error) {
	if err == nil {
		err = c.failure
	}
	c.records.Last = abd.Key(c.last)
	return c.records, err
}

// copies keeps copies of keys and values, many in one piece of memory: each in
// its own would cost more than all that is done with them.
type copies struct {
	keys   strings.Builder
	values []byte // what is free
	pieces [2]int // sizes of the last of each
}

// The sizes of such pieces in bytes.
const (
	firstPiece   = 1 << 10
	largestPiece = 256 << 10
)

// next returns the size of a piece that holds n bytes, more each time.
func next(piece *int, n int) int {
	*piece = min(max(2**piece, firstPiece), largestPiece)
	return max(*piece, n)
}

func (c *copies) key(k abd.Key) abd.Key {
	if c.keys.Cap()-c.keys.Len() < len(k) {
		c.keys = strings.Builder{}
		c.keys.Grow(next(&c.pieces[0], len(k)))
	}
	begin := c.keys.Len()
	c.keys.WriteString(string(k))
	return abd.Key(c.keys.String()[begin:])
}

// value returns nil for no bytes.
func (c *copies) value(v []byte) []byte {
	if len(v) == 0 {
		return nil
	}
	if len(c.values) < len(v) {
		c.values = make([]byte, next(&c.pieces[1], len(v)))
	}
	copied := c.values[:len(v):len(v)]
	c.values = c.values[copy(copied, v):]
	return copied
}
