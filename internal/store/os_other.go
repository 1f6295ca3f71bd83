//go:build unix && !linux

package store

import "os"

// dataSync makes f's bytes durable.
func dataSync(f *os.File) error { return f.Sync() }
