package synod

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"atoll/abd"
	"atoll/quorum"
	"atoll/tags"
)

// Limits.
const (
	// MaxInstance is the largest length of an instance's name in bytes.
	MaxInstance = 128
	// MaxValue is the largest value in bytes that can be decided: with all that
	// stands around it, it fits in a cell of a node's store.
	MaxValue = 60 << 10
)

// Round numbers the attempts at an instance.
type Round uint64

// Ballot is one attempt at an instance, and orders the attempts: by the
// configuration among whose members it is made, then by round, then by id (R1
// in docs/PROTOCOLS.md). The id is fresh for each attempt, so no two share a
// ballot, a proposer's own before and after its restart neither. The zero
// Ballot is the least, and nobody's.
type Ballot struct {
	Index quorum.ConfigIndex
	Round Round
	ID    tags.PID
}

// Compare returns -1, 0 or +1, as cmp.Compare does.
func (b Ballot) Compare(o Ballot) int {
	return cmp.Or(cmp.Compare(b.Index, o.Index), cmp.Compare(b.Round, o.Round), b.ID.Compare(o.ID))
}

// Less reports whether b is less than o.
func (b Ballot) Less(o Ballot) bool { return b.Compare(o) < 0 }

// IsZero reports whether b is nobody's ballot.
func (b Ballot) IsZero() bool { return b == Ballot{} }

// String returns "index.round.id".
func (b Ballot) String() string { return fmt.Sprintf("%d.%d.%v", b.Index, b.Round, b.ID) }

// errRounds: only a faulty proposer comes near the largest round.
var errRounds = errors.New("synod: no larger round exists")

// after returns a ballot of configuration k in the round after the largest one
// that was seen.
func after(k quorum.ConfigIndex, seen Round, id tags.PID) (Ballot, error) {
	if seen == math.MaxUint64 {
		return Ballot{}, errRounds
	}
	return Ballot{Index: k, Round: seen + 1, ID: id}, nil
}

// Instance names what is decided: 1 to MaxInstance bytes. Those that begin with
// TravellingPrefix go on in the next configuration; see the package doc.
type Instance string

// TravellingPrefix begins the names of instances whose votes travel.
const TravellingPrefix = "key/"

// Travels reports whether the instance's votes go on in the next configuration.
func (i Instance) Travels() bool { return strings.HasPrefix(string(i), TravellingPrefix) }

// Check returns a *abd.SizeError when the name is empty or too long.
func (i Instance) Check() error {
	if len(i) == 0 || len(i) > MaxInstance {
		return &abd.SizeError{What: "name of an instance", Size: len(i), Min: 1, Max: MaxInstance}
	}
	return nil
}

// CheckValue returns a *abd.SizeError when a value is empty or larger than
// MaxValue. A value of no bytes would look like none.
func CheckValue(value []byte) error {
	if len(value) == 0 || len(value) > MaxValue {
		return &abd.SizeError{What: "value", Size: len(value), Min: 1, Max: MaxValue}
	}
	return nil
}

// Vote is what an acceptor has accepted: a value, and the ballot under which it
// was. The zero Vote is none. The value is immutable.
type Vote struct {
	Ballot Ballot
	Value  []byte
}

// IsZero reports whether nothing was accepted.
func (v Vote) IsZero() bool { return v.Ballot.IsZero() }
