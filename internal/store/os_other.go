//go:build unix && !linux

package store

import "os"

// reserve gives a new file size bytes of space.
func reserve(f *os.File, size int64) error { return writeZeros(f, size) }

// dataSync makes f's bytes durable.
func dataSync(f *os.File) error { return f.Sync() }

// readAhead does nothing: the system isn't asked.
func readAhead(*os.File, int64, int64) {}

// adviseLarge does nothing: the system isn't asked.
func adviseLarge([]byte) {}

// adviseLargeAt does nothing, either.
func adviseLargeAt(uintptr, uintptr) {}
