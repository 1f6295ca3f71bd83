package history

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Kind is what an operation was meant to do.
type Kind uint8

// The kinds. The zero Kind is none.
const (
	Read   Kind = 1 + iota // returns the register's value, or that it has none
	Write                  // gives the register a value
	Delete                 // takes the register's value away
)

// String returns "read", "write" or "delete": the names that files use.
func (k Kind) String() string {
	switch k {
	case Read:
		return "read"
	case Write:
		return "write"
	case Delete:
		return "delete"
	}
	return "kind " + strconv.Itoa(int(k))
}

// MarshalText returns the kind's name. The error says that it has none.
func (k Kind) MarshalText() ([]byte, error) {
	if k < Read || k > Delete {
		return nil, errors.New("there is no " + k.String())
	}
	return []byte(k.String()), nil
}

// UnmarshalText takes a kind's name.
func (k *Kind) UnmarshalText(name []byte) error {
	for kind := Read; kind <= Delete; kind++ {
		if kind.String() == string(name) {
			*k = kind
			return nil
		}
	}
	return fmt.Errorf("it is read, write or delete, not %s", quote(string(name)))
}

// Outcome is what the client was told about an operation.
type Outcome uint8

// The outcomes. The zero Outcome is none.
const (
	// OK: the operation took effect once, between Call and Return.
	OK Outcome = 1 + iota
	// Failed: the operation had no effect and will have none.
	Failed
	// Unknown: the client never learned. The operation may have taken effect
	// at any time after its call, may still do so long after the client gave
	// up, or may never do so.
	Unknown
)

// String returns "ok", "failed" or "unknown": the names that files use.
func (o Outcome) String() string {
	switch o {
	case OK:
		return "ok"
	case Failed:
		return "failed"
	case Unknown:
		return "unknown"
	}
	return "outcome " + strconv.Itoa(int(o))
}

// MarshalText returns the outcome's name. The error says that it has none.
func (o Outcome) MarshalText() ([]byte, error) {
	if o < OK || o > Unknown {
		return nil, errors.New("there is no " + o.String())
	}
	return []byte(o.String()), nil
}

// UnmarshalText takes an outcome's name.
func (o *Outcome) UnmarshalText(name []byte) error {
	for outcome := OK; outcome <= Unknown; outcome++ {
		if outcome.String() == string(name) {
			*o = outcome
			return nil
		}
	}
	return fmt.Errorf("it is ok, failed or unknown, not %s", quote(string(name)))
}

// Operation is one operation on one register, as its client saw it.
type Operation struct {
	// Client is who did it. Only people read it: a client may have many
	// operations under way at once.
	Client string
	// Key names the register. Registers are independent of each other.
	Key  string
	Kind Kind
	// Outcome is what the client was told.
	Outcome Outcome
	// Found tells whether an OK read found a value. It is false in all other
	// operations.
	Found bool
	// Value is what was written, or what an OK read found. No two writes to
	// one key may have the same value, whatever became of them.
	Value string
	// Call and Return are when the operation began and when its client
	// learned of the outcome, on one clock for the whole history; nanoseconds
	// where it has a unit. Only their order counts. Operations that touch,
	// one's Return equal to the other's Call, are concurrent. Return means
	// nothing if the outcome is unknown.
	Call, Return time.Duration
}

// String returns the operation in one line, without its key and client.
func (o Operation) String() string {
	var what string
	switch {
	case o.Kind == Write:
		what = "write " + quote(o.Value)
	case o.Kind == Read && o.Outcome == OK && o.Found:
		what = "read " + quote(o.Value)
	case o.Kind == Read && o.Outcome == OK:
		what = "read nothing"
	default:
		what = o.Kind.String()
	}
	if o.Outcome != OK {
		what += " (" + o.Outcome.String() + ")"
	}
	return what
}

// History is what clients saw: operations, in any order.
type History []Operation
