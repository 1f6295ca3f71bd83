//go:build unix

package identity

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// writable reports why files can't be made in a folder. It asks, and doesn't
// try: a folder that is refused stays as it was.
func writable(dir string) error {
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return &fs.PathError{Op: "access", Path: dir, Err: err}
	}
	return nil
}
