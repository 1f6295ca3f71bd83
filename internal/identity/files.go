package identity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	secretMode = 0o600
	publicMode = 0o644
	folderMode = 0o700
)

var (
	errTooLarge   = fmt.Errorf("is larger than %d bytes", MaxFileSize)
	errNotRegular = errors.New("is not a regular file")
)

// readFile reads a file of at most MaxFileSize.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}

// readRegular is readFile for a file in a folder of ours. It would rather say
// so than wait for a pipe.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	return readFile(path)
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxFileSize+1))
	if err == nil && len(data) > MaxFileSize {
		return nil, errTooLarge
	}
	return data, err
}

// writeNew writes a file that must not exist yet, and syncs it. Its entry in
// the folder is the caller's to sync.
func writeNew(path string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	return fill(f, data)
}

func fill(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// replaceFile makes path hold data, now or not at all, whatever happens in
// between. The file's folder must exist. A file that is there passes its owner
// on, so that a service can still read what root has renewed.
func replaceFile(path string, data []byte, mode os.FileMode) error {
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	f, err := os.CreateTemp(dir, "."+name+".tmp-*")
	if err != nil {
		return err
	}
	temp := f.Name()
	err = errors.Join(f.Chmod(mode), keepOwner(f, path), fill(f, data))
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return syncFolder(dir)
}

// syncFolder makes the entries of a folder durable.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// readableByOthers reports whether the file's mode lets others than its owner
// read it.
func readableByOthers(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&0o044 != 0
}

// decodeJSON reads one JSON object into v, which has a field "format". It
// refuses other formats, unknown fields and whatever follows the object.
func decodeJSON(data []byte, format int, v any) error {
	var head struct {
		Format int `json:"format"`
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("is empty")
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("is not a whole JSON object: %w", err)
	}
	switch {
	case head.Format > format:
		return fmt.Errorf("has format %d, of a newer version of atoll (this one knows up to %d)", head.Format, format)
	case head.Format < 1:
		return fmt.Errorf("has no format number that this version knows (%d)", format)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("is not as expected: %w", err)
	}
	return nil
}

func encodeJSON(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}
