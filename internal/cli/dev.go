package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Dev is the dev cluster that runs on this machine, as `replica dev`
// announces it and a client without context or endpoints finds it.
type Dev struct {
	// PID is the process of `replica dev`.
	PID int `json:"pid"`
	// Context is the absolute path of the context file for clients.
	Context string `json:"context"`
}

// devPath is where the announcement lies: atoll/dev.json in the user's cache
// folder (XDG_CACHE_HOME moves it).
func devPath() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "atoll", "dev.json"), nil
}

// Announcement is this process's dev cluster, announced.
//
// The process holds a lock on the file as long as it lives, however it ends:
// a process id alone may by now belong to another program.
type Announcement struct {
	file *os.File
	path string
}

// AnnounceDev announces a dev cluster of this process. A cluster that was
// announced before, and still lives, is no longer found afterwards.
func AnnounceDev(contextFile string) (*Announcement, error) {
	path, err := devPath()
	if err != nil {
		return nil, err
	}
	context, err := filepath.Abs(contextFile)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(Dev{PID: os.Getpid(), Context: context})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	// Locked before it gets its name: a reader never sees it unlocked.
	f, err := os.CreateTemp(filepath.Dir(path), "dev-*.tmp")
	if err != nil {
		return nil, err
	}
	_, err = f.Write(append(b, '\n'))
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		f.Close()
		return nil, fmt.Errorf("announce the dev cluster: %w", err)
	}
	return &Announcement{file: f, path: path}, nil
}

// Withdraw ends the announcement, and leaves that of another cluster alone.
func (a *Announcement) Withdraw() error {
	defer a.file.Close()
	mine, err := a.file.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(a.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(mine, there) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Remove(a.path)
}

// FindDev returns the dev cluster that runs on this machine. alive is false
// when there is none, or the one that was announced has ended.
func FindDev() (dev Dev, alive bool, err error) {
	path, err := devPath()
	if err != nil {
		return Dev{}, false, nil // no home, no cache folder, no dev cluster
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Dev{}, false, nil
	}
	if err != nil {
		return Dev{}, false, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		return Dev{}, false, nil // nobody holds it
	}
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return Dev{}, false, fmt.Errorf("%s: %w", path, err)
	}
	if err := json.NewDecoder(f).Decode(&dev); err != nil {
		return Dev{}, false, fmt.Errorf("%s: %w", path, err)
	}
	return dev, true, nil
}
