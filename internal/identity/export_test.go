package identity

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"time"
)

// SetClock makes c take the time from clock.
func (c *Credentials) SetClock(clock func() time.Time) { c.clock = clock }

// OpenFolderAt is OpenFolder at a given time.
func OpenFolderAt(dir string, now time.Time) (*Folder, error) { return openFolder(dir, now) }

// ParseIdentityFile reports whether the bytes are an identity file's.
func ParseIdentityFile(data []byte) error {
	_, err := parseIdentityFile(data)
	return err
}

// ParseCAs reports how many CA certificates the bytes hold.
func ParseCAs(data []byte) (int, error) {
	certs, _, err := parseCAs(data)
	return len(certs), err
}

// ParseInstance reports whether the bytes are an instance file's.
func ParseInstance(data []byte) error {
	_, _, err := parseInstance(data)
	return err
}

// TicketBody returns a ticket's body, and TicketOfBody the text that has it.
func TicketBody(t Ticket) []byte {
	b, _ := ticketText.DecodeString(strings.TrimPrefix(t.String(), ticketPrefix))
	return b[:len(b)-ticketChecksum]
}

// TicketOfBody returns the text of a ticket with this body.
func TicketOfBody(b []byte) string {
	b = binary.BigEndian.AppendUint32(bytes.Clone(b), crc32.ChecksumIEEE(b))
	return ticketPrefix + ticketText.EncodeToString(b)
}
