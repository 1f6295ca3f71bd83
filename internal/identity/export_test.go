package identity

import "time"

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
