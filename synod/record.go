package synod

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"atoll/abd"
	"atoll/env"
	"atoll/internal/cells"
	"atoll/quorum"
	"atoll/tags"
)

// Record is what an acceptor knows of an instance.
type Record struct {
	// Promised is the largest ballot that was promised.
	Promised Ballot
	// Accepted is the vote.
	Accepted Vote
}

// floor returns the least ballot that the acceptor may still take: it has
// promised that much, or has accepted under it, which promises as much. A vote
// that travelled came without a promise.
func (r *Record) floor() Ballot {
	if r.Promised.Less(r.Accepted.Ballot) {
		return r.Accepted.Ballot
	}
	return r.Promised
}

// DamagedError says that an acceptor's record can't be trusted, and of which
// instance. It wraps abd.ErrDamaged. The acceptor abstains on that instance.
type DamagedError struct {
	Instance Instance
	Detail   string
}

// Error names the instance and what is wrong.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%v: the acceptor's record of %q: %s", abd.ErrDamaged, string(e.Instance), e.Detail)
}

// Unwrap returns abd.ErrDamaged.
func (e *DamagedError) Unwrap() error { return abd.ErrDamaged }

// recordFormat is the first byte of a record. Then follow, as unsigned varints
// and bytes with their length before them: the instance; the ballots promised
// and accepted, each an index, a round and 16 bytes of an id; the value; and
// at last 4 bytes of a CRC-32 (IEEE) over all before it. The instance is under
// the checksum, so that a record in the place of another is noticed.
const recordFormat = 1

const checksumBytes = 4

func encodeRecord(i Instance, r Record) []byte {
	b := make([]byte, 0, len(i)+len(r.Accepted.Value)+100)
	b = append(b, recordFormat)
	b = cells.AppendBytes(b, i)
	b = appendBallot(b, r.Promised)
	b = appendBallot(b, r.Accepted.Ballot)
	b = cells.AppendBytes(b, r.Accepted.Value)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func appendBallot(b []byte, o Ballot) []byte {
	b = cells.AppendNumber(b, uint64(o.Index))
	b = cells.AppendNumber(b, uint64(o.Round))
	id := o.ID.Bytes()
	return append(b, id[:]...)
}

// InstanceOf returns the instance whose record was encoded, for a View that
// keeps records of several in one place. An error means that the record can't be
// trusted, nor what it says of itself.
func InstanceOf(record []byte) (Instance, error) {
	i, _, err := decodeRecord(record)
	return i, err
}

var (
	errChecksum = errors.New("its checksum is wrong")
	errRecord   = errors.New("it makes no sense")
)

func decodeRecord(b []byte) (Instance, Record, error) {
	n := len(b) - checksumBytes
	if n < 1 {
		return "", Record{}, errRecord
	}
	if crc32.ChecksumIEEE(b[:n]) != binary.BigEndian.Uint32(b[n:]) {
		return "", Record{}, errChecksum
	}
	if b[0] != recordFormat {
		return "", Record{}, fmt.Errorf("it has format %d, and this version knows %d", b[0], recordFormat)
	}
	r := cells.Read(b[1:n])
	i := Instance(r.Bytes(MaxInstance))
	record := Record{Promised: readBallot(&r)}
	record.Accepted.Ballot = readBallot(&r)
	record.Accepted.Value = r.Bytes(MaxValue)
	if !r.Done() {
		return "", Record{}, errRecord
	}
	return i, record, nil
}

func readBallot(r *cells.Reader) (b Ballot) {
	b.Index = quorum.ConfigIndex(r.Any())
	b.Round = Round(r.Any())
	if id := r.Take(tags.PIDSize); r.OK() {
		b.ID = tags.PIDFromBytes([tags.PIDSize]byte(id))
	}
	return b
}

// load returns the record of an instance, and the position that it stands at: of
// what removed it, if it is gone.
func (a *Acceptor) load(i Instance) (Record, env.Position, error) {
	b, at := a.view.Load(i)
	if len(b) == 0 {
		return Record{}, at, nil
	}
	of, r, err := decodeRecord(b)
	if err == nil && of != i {
		err = fmt.Errorf("it is that of %q", string(of))
	}
	switch {
	case err == nil:
		return r, at, nil
	case a.rules.DamagedIsAbsent:
		return Record{}, at, nil
	}
	return Record{}, 0, &DamagedError{Instance: i, Detail: err.Error()}
}

func (a *Acceptor) save(i Instance, r Record) (env.Position, error) {
	return a.view.Save(i, encodeRecord(i, r))
}
