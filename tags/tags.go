package tags

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ErrExhausted is returned by Next and Update when a component of the tag has
// no successor. No cluster reaches it by its work (2^64 writes or updates of
// one key); a tag that comes near it was made by a faulty writer.
var ErrExhausted = errors.New("tags: no larger tag exists")

// Seq is the first component of a Tag: the number of the write in the chain
// of writes to one register that saw each other.
type Seq uint64

// RMW is the last component of a Tag: the number of updates since the write.
// It has 64 bits because a counter may be updated for years and never written
// again: 32 bits are used up in ten days at 5,000 updates a second.
type RMW uint64

// Tag orders the values of one register. It is comparable, and safe as a map
// key. The zero Tag is the least.
type Tag struct {
	Seq Seq
	PID PID
	RMW RMW
}

// Compare returns -1 if t is less than u, 0 if they are equal and +1 if t is
// greater, as [cmp.Compare] does.
func (t Tag) Compare(u Tag) int {
	if c := cmp.Compare(t.Seq, u.Seq); c != 0 {
		return c
	}
	if c := t.PID.Compare(u.PID); c != 0 {
		return c
	}
	return cmp.Compare(t.RMW, u.RMW)
}

// Less reports whether t is less than u.
func (t Tag) Less(u Tag) bool { return t.Compare(u) < 0 }

// IsZero reports whether t is the tag of a register that was never written.
func (t Tag) IsZero() bool { return t == Tag{} }

// Next returns the tag of a write by the operation pid that found t as the
// maximum of a read quorum: (t.Seq+1, pid, 0).
func (t Tag) Next(pid PID) (Tag, error) {
	if t.Seq == math.MaxUint64 {
		return Tag{}, fmt.Errorf("%w after %v", ErrExhausted, t)
	}
	return Tag{Seq: t.Seq + 1, PID: pid}, nil
}

// Update returns the tag of the immediate successor of t, the result of an
// update computed from t's value: (t.Seq, t.PID, t.RMW+1).
func (t Tag) Update() (Tag, error) {
	if t.RMW == math.MaxUint64 {
		return Tag{}, fmt.Errorf("%w after %v", ErrExhausted, t)
	}
	return Tag{Seq: t.Seq, PID: t.PID, RMW: t.RMW + 1}, nil
}

// String returns the text form of t, "seq.pid.rmw": two decimal numbers and
// between them the 32 hexadecimal digits of the PID. Parse reads it back.
func (t Tag) String() string {
	b, _ := t.AppendText(make([]byte, 0, 64))
	return string(b)
}

// AppendText appends the text form of t to b. The error is always nil.
func (t Tag) AppendText(b []byte) ([]byte, error) {
	b = strconv.AppendUint(b, uint64(t.Seq), 10)
	b = append(b, '.')
	b, _ = t.PID.AppendText(b)
	b = append(b, '.')
	return strconv.AppendUint(b, uint64(t.RMW), 10), nil
}

// MarshalText implements [encoding.TextMarshaler].
func (t Tag) MarshalText() ([]byte, error) { return t.AppendText(nil) }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *Tag) UnmarshalText(b []byte) error {
	u, err := Parse(string(b))
	if err == nil {
		*t = u
	}
	return err
}

// Parse reads the text form of a Tag. It accepts what String returns and
// nothing else: no signs, leading zeros, spaces or upper-case digits.
func Parse(s string) (Tag, error) {
	bad := func() (Tag, error) { return Tag{}, fmt.Errorf("tags: %.80q is not a tag (seq.pid.rmw)", s) }
	first, rest, ok1 := strings.Cut(s, ".")
	mid, last, ok2 := strings.Cut(rest, ".")
	if !ok1 || !ok2 {
		return bad()
	}
	seq, err1 := strconv.ParseUint(first, 10, 64)
	pid, err2 := ParsePID(mid)
	rmw, err3 := strconv.ParseUint(last, 10, 64)
	t := Tag{Seq: Seq(seq), PID: pid, RMW: RMW(rmw)}
	if err1 != nil || err2 != nil || err3 != nil || t.String() != s {
		return bad()
	}
	return t, nil
}

// PIDSize is the length of a PID's wire form in bytes.
const PIDSize = 16

// PID names one operation, unique across processes and their restarts: 80
// bits drawn at random when the process started, then the 48-bit count of the
// operations that it has begun since (rule R1 in docs/PROTOCOLS.md).
//
// That any two of 50 million process starts draw the same 80 bits has a
// probability of about 10^-9 (birthday bound: n²/2^81).
type PID struct {
	hi uint64 // the first 64 random bits
	lo uint64 // 16 random bits, then the count
}

// MaxCount is the number of operations one process can name.
const MaxCount = 1<<48 - 1

// NewPID returns the PID with the given random part (80 bits: hi, then lo)
// and count. It panics when count exceeds [MaxCount].
func NewPID(hi uint64, lo uint16, count uint64) PID {
	if count > MaxCount {
		panic("tags: a process has used up its operation ids")
	}
	return PID{hi: hi, lo: uint64(lo)<<48 | count}
}

// Compare orders PIDs by their random part, then by count.
func (p PID) Compare(q PID) int {
	if c := cmp.Compare(p.hi, q.hi); c != 0 {
		return c
	}
	return cmp.Compare(p.lo, q.lo)
}

// IsZero reports whether p names no operation.
func (p PID) IsZero() bool { return p == PID{} }

// Bytes returns the wire form of p: big-endian, so that the order of the
// bytes is the order of the PIDs.
func (p PID) Bytes() [PIDSize]byte {
	var b [PIDSize]byte
	binary.BigEndian.PutUint64(b[:8], p.hi)
	binary.BigEndian.PutUint64(b[8:], p.lo)
	return b
}

// PIDFromBytes reads the wire form of a PID.
func PIDFromBytes(b [PIDSize]byte) PID {
	return PID{hi: binary.BigEndian.Uint64(b[:8]), lo: binary.BigEndian.Uint64(b[8:])}
}

// String returns p as 32 lower-case hexadecimal digits.
func (p PID) String() string {
	b := p.Bytes()
	return hex.EncodeToString(b[:])
}

// AppendText appends the text form of p to b. The error is always nil.
func (p PID) AppendText(b []byte) ([]byte, error) {
	w := p.Bytes()
	return hex.AppendEncode(b, w[:]), nil
}

// MarshalText implements [encoding.TextMarshaler].
func (p PID) MarshalText() ([]byte, error) { return p.AppendText(nil) }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *PID) UnmarshalText(b []byte) error {
	q, err := ParsePID(string(b))
	if err == nil {
		*p = q
	}
	return err
}

// ParsePID reads the text form of a PID. It accepts what String returns and
// nothing else: two texts of one id would be two ids to whoever compares them.
func ParsePID(s string) (PID, error) {
	var b [PIDSize]byte
	n, err := hex.Decode(b[:], []byte(s[:min(len(s), 2*PIDSize)]))
	p := PIDFromBytes(b)
	if err != nil || n != PIDSize || p.String() != s {
		return PID{}, fmt.Errorf("tags: %.80q is not an operation id (32 digits of 0-9a-f)", s)
	}
	return p, nil
}
