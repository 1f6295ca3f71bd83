package main

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"atoll/bench/report"
)

// environment describes this machine, with dir's file system.
func environment(dir string) (report.Environment, error) {
	e := report.Environment{
		Kind: report.KindEnvironment, Time: time.Now().UTC().Truncate(time.Second), Command: os.Args,
		CPU: "unknown", Cores: runtime.NumCPU(), Go: runtime.Version(),
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				e.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return e, os.NewSyscallError("sysinfo", err)
	}
	e.Memory = int64(info.Totalram) * int64(info.Unit)
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return e, os.NewSyscallError("uname", err)
	}
	release, _, _ := bytes.Cut(name.Release[:], []byte{0})
	e.Kernel = string(release)
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return e, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	e.FileSystem = fileSystem(int64(fs.Type))
	return e, nil
}

const tmpfs = "tmpfs"

// fileSystem names the common ones.
func fileSystem(magic int64) string {
	switch magic {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs"
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return tmpfs
	}
	return "another"
}

func inMemory(fileSystem string) bool { return fileSystem == tmpfs }
