package abd

import (
	"fmt"

	"atoll/env"
	"atoll/quorum"
	"atoll/tags"
)

// Key names a register: 1 to MaxKey bytes, any bytes.
type Key string

// Limits of what a register holds, in bytes.
const (
	MaxKey = 1024
	// DefaultMaxValue is how large a value may be unless the cluster says
	// otherwise, and LargestMaxValue is the most that it may say.
	DefaultMaxValue = 1 << 20
	LargestMaxValue = 8 << 20
	// MaxPage is how many keys a node puts into one page of a list.
	MaxPage = 1000
	// DefaultInline is how large a value may be that every member of a read
	// quorum sends. A larger one is sent by one of them.
	DefaultInline = 16 << 10
	// MaxPageBytes is about how many bytes its keys have at most.
	MaxPageBytes = 256 << 10
)

// Check returns an error when k is empty or too long.
func (k Key) Check() error {
	if len(k) == 0 || len(k) > MaxKey {
		return &SizeError{What: "key", Size: len(k), Min: 1, Max: MaxKey}
	}
	return nil
}

// CheckValue returns an error when v is larger than limit bytes.
func CheckValue(v []byte, limit int) error {
	if len(v) > limit {
		return &SizeError{What: "value", Size: len(v), Max: limit}
	}
	return nil
}

// SizeError says that a key or value is too small or too large. Nothing was
// sent.
type SizeError struct {
	What           string // "key" or "value"
	Size, Min, Max int    // bytes
}

// Error states the size and the limits.
func (e *SizeError) Error() string {
	if e.Size < e.Min {
		return fmt.Sprintf("the %s has %d bytes, at least %d are needed", e.What, e.Size, e.Min)
	}
	return fmt.Sprintf("the %s has %d bytes, at most %d are allowed", e.What, e.Size, e.Max)
}

// Record is what a replica stores under a key. The zero Record is that of a
// register that was never written.
type Record struct {
	Tag tags.Tag
	// Deleted marks a tombstone: the register was written, and is absent.
	Deleted bool
	// Value is immutable; nil and empty are the same, and not the same as
	// absent.
	Value []byte
}

// Absent reports whether a reader finds nothing.
func (r Record) Absent() bool { return r.Deleted || r.Tag.IsZero() }

// Get asks a replica for its tag and value of a key.
type Get struct {
	Key Key
	// TagOnly leaves the value out of the answer.
	TagOnly bool
	// ValueLimit is the size in bytes of the largest value that the answer may
	// have; a larger one is left out. 0: no limit.
	ValueLimit int

	Horizon quorum.Horizon // of the asker

	// expect is the size of the value that is known to be there, 0 if none is.
	// It stays with the asker.
	expect int
}

// Wakes implements env.Wakeable.
func (*Get) Wakes() {}

// Wakes implements env.Wakeable.
func (*Put) Wakes() {}

// Wakes implements env.Wakeable.
func (*List) Wakes() {}

// AnswerBytes implements env.Bulky.
func (m *Get) AnswerBytes() int { return m.expect }

// GetAck answers a Get. A zero Tag: never written here.
type GetAck struct {
	Record Record
	// Confirmed: the put phase of this tag has ended in every active
	// configuration, and whoever ran it said so afterwards.
	Confirmed bool
	// Omitted is the size in bytes of the record's value if it was left out
	// because it is larger than ValueLimit, and else 0.
	Omitted int
	Standing
}

// Put asks a replica to store a record if its tag is larger than what the
// replica has.
type Put struct {
	Key     Key
	Record  Record
	Horizon quorum.Horizon // of the asker
}

// Check returns an error when no replica may store what m holds: a *SizeError
// or an *env.Refused. maxValue is the largest value in bytes.
func (m *Put) Check(maxValue int) error {
	if err := m.Key.Check(); err != nil {
		return err
	}
	if err := CheckValue(m.Record.Value, maxValue); err != nil {
		return err
	}
	switch {
	case m.Record.Tag.IsZero():
		return &env.Refused{Reason: env.ReasonBadRequest, Text: "a put needs a tag"}
	case m.Record.Deleted && len(m.Record.Value) > 0:
		return &env.Refused{Reason: env.ReasonBadRequest, Text: "a tombstone has no value"}
	}
	return nil
}

// PutAck answers a Put: the replica durably holds this tag or a larger one.
type PutAck struct{ Standing }

// Confirm tells a replica that the put phase of a tag has ended in every
// active configuration. It has no answer.
type Confirm struct {
	Key Key
	Tag tags.Tag
}

// List asks a replica for the tags of its keys that begin with Prefix and
// come after After, in order.
type List struct {
	Prefix Key
	After  Key // empty: from the first
	Limit  int // at most this many keys, 1 to MaxPage

	Horizon quorum.Horizon // of the asker
}

// Moved answers a Get, a Put or a List at a node that was a member and is in no
// active configuration any more. It has done nothing, and says who the members
// are.
type Moved struct{ Standing }

// Page answers a List.
type Page struct {
	Items []Item // sorted by key, tombstones included
	// More: there are, or may be, keys after the last of Items. Otherwise
	// the page reaches the end of the prefix.
	More bool
	Standing
}

// Item is one key of a Page.
type Item struct {
	Key       Key
	Tag       tags.Tag
	Deleted   bool
	Confirmed bool
}

// Message marks the type as a message.
func (*Get) Message() {}

// Message marks the type as a message.
func (*GetAck) Message() {}

// Message marks the type as a message.
func (*Put) Message() {}

// Message marks the type as a message.
func (*PutAck) Message() {}

// Message marks the type as a message.
func (*Confirm) Message() {}

// Message marks the type as a message.
func (*List) Message() {}

// Message marks the type as a message.
func (*Page) Message() {}

// Message marks the type as a message.
func (*Moved) Message() {}
