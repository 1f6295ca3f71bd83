package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve gives a new file size bytes of space, without writing them if the
// file system can.
func reserve(f *os.File, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, size)
		switch {
		case err == unix.EINTR:
			continue
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return writeZeros(f, size)
		}
		return os.NewSyscallError("fallocate", err)
	}
}

// dataSync makes f's bytes durable, and of its metadata only what is needed
// to find them: into a file that was filled before, that is nothing.
func dataSync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// readAhead asks the system to read a part of f before it is needed. Without
// that it is only slower.
func readAhead(f *os.File, offset, length int64) {
	unix.Fadvise(int(f.Fd()), offset, length, unix.FADV_WILLNEED)
}

// adviseLarge asks the system to back memory that nobody has touched yet with
// large pages, where they are given to who asks.
func adviseLarge(b []byte) {
	unix.Madvise(b, unix.MADV_HUGEPAGE) // without that it is only slower
}

// adviseLargeAt is adviseLarge for all memory from begin to end, whoever has it.
func adviseLargeAt(begin, end uintptr) {
	unix.Syscall(unix.SYS_MADVISE, begin, end-begin, unix.MADV_HUGEPAGE)
}
