package store

import (
	"errors"
	"fmt"
	"strings"

	"atoll/abd"
)

// Errors of Create and Open, and of a store after Close.
var (
	// ErrNoStore: the folder holds no store. Create makes one.
	ErrNoStore = errors.New("no store here")
	// ErrExists: the folder holds a store, or what is left of one.
	ErrExists = errors.New("there is a store, or a part of one, already")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store is closed")
)

// wayOut is what to do about a damaged file.
const wayOut = "leave this member off, and don't start it with an empty store, which would have forgotten what it acknowledged: " +
	"the cluster goes on with the others as far as its quorums tolerate; put a new node in its place, by client member ticket and client member replace"

// recordWayOut is what to do about a damaged record.
const recordWayOut = "nothing needs to be done at once: this node abstains on the key, the others serve it, and it is healed from them; " +
	"if it isn't alone, look at the disk, and at the folder with replica data check"

// metaWayOut is what to do about a damaged meta page, of which there are two.
const metaWayOut = "nothing is lost, and the next start writes it anew; if no crash explains it, look at the disk"

// DamageError says that a file holds something that can't be trusted.
type DamageError struct {
	// File is the path of the damaged file.
	File string
	// Offset is where the damage was noticed, in bytes; -1 if not known.
	Offset int64
	// OneRecord: the damage is that of the record of Key, as far as is known,
	// and not of the whole file. Then the error wraps an *abd.DamagedRecord.
	OneRecord bool
	Key       abd.Key
	// ValueOnly: all but the value of that record is sound, the key too. If it
	// isn't, the key may be another one than the record was written under.
	ValueOnly bool
	// Reason says what is wrong.
	Reason string
	// WayOut says what an operator can do.
	WayOut string
}

// Error names the file, the place in it, the reason and the way out.
func (e *DamageError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is damaged", e.File)
	if e.Offset >= 0 {
		fmt.Fprintf(&b, " at byte %d", e.Offset)
	}
	if e.OneRecord {
		fmt.Fprintf(&b, " (record of key %q)", string(e.Key))
	}
	fmt.Fprintf(&b, ": %s", e.Reason)
	if e.WayOut != "" {
		fmt.Fprintf(&b, "; %s", e.WayOut)
	}
	return b.String()
}

// Unwrap returns an *abd.DamagedRecord when the damage is that of one record.
func (e *DamageError) Unwrap() error {
	if e.OneRecord {
		return &abd.DamagedRecord{Key: e.Key, Detail: e.Reason}
	}
	return nil
}

// damagedFile says that a whole file can't be trusted.
func damagedFile(path string, offset int64, format string, args ...any) error {
	return &DamageError{File: path, Offset: offset, Reason: fmt.Sprintf(format, args...), WayOut: wayOut}
}

// damagedMeta says that one of the two meta pages of a bbolt file can't be trusted.
func damagedMeta(path string, page int64) error {
	return &DamageError{File: path, Offset: page * boltPage, Reason: fmt.Sprintf("meta page %d isn't valid, and the other one is used", page), WayOut: metaWayOut}
}

// damagedRecord says that one record can't be trusted.
func damagedRecord(path string, key []byte, reason string) error {
	return &DamageError{File: path, Offset: -1, OneRecord: true, Key: abd.Key(key), Reason: reason, WayOut: recordWayOut}
}

// damagedValue says that the value of a record can't be trusted, and the rest
// can.
func damagedValue(path string, key []byte, reason string) error {
	return &DamageError{File: path, Offset: -1, OneRecord: true, Key: abd.Key(key), ValueOnly: true, Reason: reason, WayOut: recordWayOut}
}

// InUseError says that another process has the folder open.
type InUseError struct {
	Dir string
	// Process is the operating system's id of that process, 0 if not known.
	Process int
}

// Error names the folder and the process.
func (e *InUseError) Error() string {
	if e.Process == 0 {
		return fmt.Sprintf("%s is in use by another process", e.Dir)
	}
	return fmt.Sprintf("%s is in use by another process (pid %d)", e.Dir, e.Process)
}

// SpaceError says that a file system has too little space.
type SpaceError struct {
	Dir string
	// Need and Free are in bytes; 0 if a write found none.
	Need, Free int64
	// Err is what the write said, if one did.
	Err error
}

// Error names the folder and what is missing.
func (e *SpaceError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: the disk is full: %v", e.Dir, e.Err)
	}
	return fmt.Sprintf("%s: %d bytes of free space are needed, and %d are there", e.Dir, e.Need, e.Free)
}

// Unwrap returns what the write said.
func (e *SpaceError) Unwrap() error { return e.Err }

// withoutSpace makes a *SpaceError of an error that says that a write found no
// space, and leaves any other as it is.
func withoutSpace(dir string, err error) error {
	if noSpace(err) {
		return &SpaceError{Dir: dir, Err: err}
	}
	return err
}

// FormatError says that a file was written by a newer program.
type FormatError struct {
	File string
	// Found is the file's format, Supported the newest that this one reads.
	Found, Supported int
}

// Error names the file and both formats.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format %d, this program reads formats up to %d: use a newer program", e.File, e.Found, e.Supported)
}
