package reconfig

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"atoll/quorum"
	"atoll/synod"
)

// instancePrefix begins the names of the instances that decide configurations.
const instancePrefix = "recon/"

// Instance returns what decides the configuration of an index.
func Instance(k quorum.ConfigIndex) synod.Instance {
	return synod.Instance(instancePrefix + strconv.FormatUint(uint64(k), 10))
}

// IndexOf returns the index of the configuration that an instance decides, if it
// decides one. The first configuration is decided by nobody.
func IndexOf(i synod.Instance) (quorum.ConfigIndex, bool) {
	digits, ok := strings.CutPrefix(string(i), instancePrefix)
	k, err := strconv.ParseUint(digits, 10, 64)
	return quorum.ConfigIndex(k), ok && err == nil && k > 0 && Instance(quorum.ConfigIndex(k)) == i
}

// valueFormat is the first byte of an encoded configuration. Then follow, as
// unsigned varints and strings with their length before them: the index, the
// quorum system as people write it, how many members, and each of them.
const valueFormat = 1

var errValue = errors.New("reconfig: that is no configuration")

// Encode returns a configuration as the value that is decided.
func Encode(c *quorum.Configuration) []byte {
	b := []byte{valueFormat}
	b = binary.AppendUvarint(b, uint64(c.Index()))
	b = appendString(b, c.System().String())
	b = binary.AppendUvarint(b, uint64(len(c.Members())))
	for _, m := range c.Members() {
		b = appendString(b, string(m))
	}
	return b
}

func appendString[S ~string | ~[]byte](b []byte, s S) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Decode reads what Encode wrote, and refuses what is no valid configuration.
func Decode(b []byte) (*quorum.Configuration, error) {
	if len(b) == 0 || b[0] != valueFormat {
		return nil, errValue
	}
	r := reader{b: b[1:], ok: true}
	index := quorum.ConfigIndex(r.number())
	text := r.string()
	n := r.number()
	if !r.ok || n > quorum.MaxMembers {
		return nil, errValue
	}
	members := make([]quorum.NodeID, n)
	for i := range members {
		members[i] = quorum.NodeID(r.string())
	}
	if !r.ok || len(r.b) > 0 {
		return nil, errValue
	}
	system, err := quorum.ParseSystem(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errValue, err)
	}
	c, err := quorum.NewConfiguration(index, members, system)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errValue, err)
	}
	return c, nil
}

type reader struct {
	b  []byte
	ok bool
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.b)
	if r.ok = r.ok && size > 0; !r.ok {
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) string() string {
	n := r.number()
	if r.ok = r.ok && n <= uint64(len(r.b)); !r.ok {
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// notesFormat is the first byte of the cell of notes. Then follow how many, each
// as Encode writes it with its length before it, the oldest first, and at last a
// CRC-32 (IEEE) over all before it.
const notesFormat = 1

const checksumBytes = 4

func encodeNotes(notes []*quorum.Configuration) []byte {
	b := []byte{notesFormat}
	b = binary.AppendUvarint(b, uint64(len(notes)))
	for _, c := range notes {
		b = appendString(b, Encode(c))
	}
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// decodeNotes reads notes. Those that can't be read are none: nothing hangs on
// them but what people are told.
func decodeNotes(b []byte) []*quorum.Configuration {
	n := len(b) - checksumBytes
	if n < 1 || b[0] != notesFormat || crc32.ChecksumIEEE(b[:n]) != binary.BigEndian.Uint32(b[n:]) {
		return nil
	}
	r := reader{b: b[1:n], ok: true}
	var notes []*quorum.Configuration
	for count := r.number(); count > 0 && r.ok; count-- {
		c, err := Decode([]byte(r.string()))
		if err != nil {
			return nil
		}
		notes = append(notes, c)
	}
	if !r.ok || len(r.b) > 0 {
		return nil
	}
	return notes
}
