//go:build unix

package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// freeSpace returns how many bytes an ordinary user may still write to the
// file system of dir.
func freeSpace(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// lockDir takes the folder's lock, or returns an *InUseError at once. The
// lock ends with the process, however that ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := tryLock(dir, f); err != nil {
		f.Close()
		return nil, err
	}
	// Who holds it is for people only: the lock is the flock.
	err = f.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	if err != nil && !noSpace(err) {
		f.Close()
		return nil, err
	}
	return f, nil
}

// probeLock returns an *InUseError if somebody holds the folder's lock.
func probeLock(dir string) error {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() // which gives the lock back
	return tryLock(dir, f)
}

// lockToRead takes the folder's lock for somebody who changes nothing there,
// neither who holds it by its text. It returns nil if there is none to take.
func lockToRead(dir string) (*os.File, error) {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := tryLock(dir, f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func tryLock(dir string, f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		b, _ := io.ReadAll(io.LimitReader(f, 32))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
		if pid > 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			pid = 0 // that of an earlier holder: this one only reads
		}
		return &InUseError{Dir: dir, Process: pid}
	}
	if err != nil {
		return &os.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
	return nil
}

// syncDir makes names in dir durable: what was created, renamed or removed.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// noSpace reports that a write found no space (or no quota).
func noSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
