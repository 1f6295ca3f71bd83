package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// dataSync makes f's bytes durable, and of its metadata only what is needed
// to find them: into a file that was filled before, that is nothing.
func dataSync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
